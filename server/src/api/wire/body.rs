//! How a body is verified.

use anabranch_model::blob::{BodyOptions, Checksum, ChecksumAlgorithm, ChecksumScope, Checksums};
use anabranch_model::{Error, Result};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::super::text::Base64;

/// How a checksum is computed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the variants are those of the model's algorithm")]
pub enum AlgorithmBody {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

impl From<ChecksumAlgorithm> for AlgorithmBody {
    fn from(algorithm: ChecksumAlgorithm) -> Self {
        match algorithm {
            ChecksumAlgorithm::Crc32 => AlgorithmBody::Crc32,
            ChecksumAlgorithm::Crc32c => AlgorithmBody::Crc32c,
            ChecksumAlgorithm::Crc64Nvme => AlgorithmBody::Crc64Nvme,
            ChecksumAlgorithm::Sha1 => AlgorithmBody::Sha1,
            ChecksumAlgorithm::Sha256 => AlgorithmBody::Sha256,
        }
    }
}

impl From<AlgorithmBody> for ChecksumAlgorithm {
    fn from(body: AlgorithmBody) -> Self {
        match body {
            AlgorithmBody::Crc32 => ChecksumAlgorithm::Crc32,
            AlgorithmBody::Crc32c => ChecksumAlgorithm::Crc32c,
            AlgorithmBody::Crc64Nvme => ChecksumAlgorithm::Crc64Nvme,
            AlgorithmBody::Sha1 => ChecksumAlgorithm::Sha1,
            AlgorithmBody::Sha256 => ChecksumAlgorithm::Sha256,
        }
    }
}

/// What a checksum is computed from.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChecksumScopeBody {
    /// The bytes of the body.
    #[default]
    Body,
    /// The checksums of the parts.
    Parts,
}

impl From<ChecksumScope> for ChecksumScopeBody {
    fn from(scope: ChecksumScope) -> Self {
        match scope {
            ChecksumScope::Body => ChecksumScopeBody::Body,
            ChecksumScope::Parts => ChecksumScopeBody::Parts,
        }
    }
}

impl From<ChecksumScopeBody> for ChecksumScope {
    fn from(body: ChecksumScopeBody) -> Self {
        match body {
            ChecksumScopeBody::Body => ChecksumScope::Body,
            ChecksumScopeBody::Parts => ChecksumScope::Parts,
        }
    }
}

/// Checksums of one scope.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChecksumsBody {
    /// What they were computed from.
    #[serde(default)]
    pub scope: ChecksumScopeBody,
    /// Algorithms and values.
    #[serde(default)]
    pub values: Vec<(AlgorithmBody, Base64)>,
}

impl From<Checksums> for ChecksumsBody {
    fn from(checksums: Checksums) -> Self {
        let value = |checksum: Checksum| {
            (checksum.algorithm().into(), Base64(Bytes::copy_from_slice(checksum.value())))
        };
        ChecksumsBody { scope: checksums.scope().into(), values: checksums.iter().map(value).collect() }
    }
}

impl TryFrom<ChecksumsBody> for Checksums {
    type Error = Error;

    fn try_from(body: ChecksumsBody) -> Result<Self> {
        let mut checksums = Checksums::empty(body.scope.into());
        for (algorithm, value) in body.values {
            checksums.insert(Checksum::new(algorithm.into(), &value.0)?);
        }
        Ok(checksums)
    }
}

/// What is known about a body before it is seen, and what should be known afterwards.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyOptionsBody {
    /// Bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Its MD5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub md5: Option<Base64>,
    /// Whether its etag must be its MD5.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub md5_tag: bool,
    /// Its checksums.
    #[serde(default)]
    pub expected: ChecksumsBody,
    /// Checksums to compute and to remember.
    #[serde(default)]
    pub computed: Vec<AlgorithmBody>,
}

impl From<BodyOptions> for BodyOptionsBody {
    fn from(options: BodyOptions) -> Self {
        BodyOptionsBody {
            size: options.size,
            md5: options.md5.map(|md5| Base64(Bytes::copy_from_slice(&md5))),
            md5_tag: options.md5_tag,
            expected: options.expected.into(),
            computed: options.computed.into_iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<BodyOptionsBody> for BodyOptions {
    type Error = Error;

    fn try_from(body: BodyOptionsBody) -> Result<Self> {
        let md5 = body.md5.map(|md5| {
            <[u8; 16]>::try_from(&md5.0[..])
                .map_err(|_| Error::Invalid(format!("an MD5 has 16 bytes, not {}", md5.0.len())))
        });
        Ok(BodyOptions {
            size: body.size,
            md5: md5.transpose()?,
            md5_tag: body.md5_tag,
            expected: body.expected.try_into()?,
            computed: body.computed.into_iter().map(Into::into).collect(),
        })
    }
}
