//! Blobs in parts.

use anabranch_model::blob::{
    BlobKey, BodyOptions, BucketName, ChecksumAlgorithm, ChecksumScope, CompleteOptions, ETag, Part,
    PartChoice, PartNumber, Upload, UploadAfter, UploadId, UploadListOptions, UploadOptions, UploadSummary,
};
use anabranch_model::limits::UPLOAD_PARTS_MAX;
use anabranch_model::{Error, Result, Timestamp};
use serde::{Deserialize, Serialize};

use super::super::text::{Number, Text, Verbatim};
use super::blob::BlobPlace;
use super::body::{AlgorithmBody, BodyOptionsBody, ChecksumScopeBody, ChecksumsBody};
use super::bounded::bounded;
use super::condition::WriteConditionBody;
use super::meta::PropertiesBody;

/// An upload, and a call that needs nothing else.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadBody {
    /// Where the blob will be.
    pub bucket: Text<BucketName>,
    /// The key that the blob will have.
    pub key: Verbatim<BlobKey>,
    /// Tells it from the others.
    pub id: Verbatim<UploadId>,
}

impl From<Upload> for UploadBody {
    fn from(upload: Upload) -> Self {
        UploadBody { bucket: Text(upload.bucket), key: Verbatim(upload.key), id: Verbatim(upload.id) }
    }
}

impl From<UploadBody> for Upload {
    fn from(body: UploadBody) -> Self {
        Upload { bucket: body.bucket.0, key: body.key.0, id: body.id.0 }
    }
}

type ChecksumKind = Option<(AlgorithmBody, ChecksumScopeBody)>;

fn kind_of(checksum: Option<(ChecksumAlgorithm, ChecksumScope)>) -> ChecksumKind {
    checksum.map(|(algorithm, scope)| (algorithm.into(), scope.into()))
}

fn into_kind(body: ChecksumKind) -> Option<(ChecksumAlgorithm, ChecksumScope)> {
    body.map(|(algorithm, scope)| (algorithm.into(), scope.into()))
}

/// Begins an upload.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeginUploadRequest {
    /// Where.
    pub place: BlobPlace,
    /// What the writer says about the blob.
    pub properties: PropertiesBody,
    /// The checksum that the blob will have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: ChecksumKind,
}

impl BeginUploadRequest {
    /// An upload with these options.
    pub fn new(bucket: &BucketName, key: &BlobKey, options: UploadOptions) -> Self {
        BeginUploadRequest {
            place: BlobPlace::new(bucket, key),
            properties: options.properties.into(),
            checksum: kind_of(options.checksum),
        }
    }

    /// What the store is asked for.
    pub fn options(self) -> (BlobPlace, UploadOptions) {
        let options =
            UploadOptions { properties: self.properties.into(), checksum: into_kind(self.checksum) };
        (self.place, options)
    }
}

/// Stores a part whose body follows as it is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutPartRequest {
    /// Of this upload.
    pub upload: UploadBody,
    /// Its place.
    pub number: Number,
    /// How its body is verified.
    pub body: BodyOptionsBody,
}

impl PutPartRequest {
    /// What the store is asked for.
    pub fn options(self) -> Result<(Upload, PartNumber, BodyOptions)> {
        Ok((self.upload.into(), self.number.0, self.body.try_into()?))
    }
}

/// Asks for a page of parts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartsRequest {
    /// Of this upload.
    pub upload: UploadBody,
    /// The last part of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Number>,
    /// Most entries.
    pub limit: usize,
}

/// A part that an upload has.
#[derive(Debug, Serialize, Deserialize)]
pub struct PartBody {
    /// Its place.
    pub number: Number,
    /// Bytes.
    pub size: u64,
    /// The MD5 of its bytes.
    pub etag: Text<ETag>,
    /// Those that are known.
    pub checksums: ChecksumsBody,
    /// When it was put, in milliseconds since the Unix epoch.
    pub modified_at_ms: u64,
}

impl From<Part> for PartBody {
    fn from(part: Part) -> Self {
        PartBody {
            number: Number(part.number),
            size: part.size,
            etag: Text(part.etag),
            checksums: part.checksums.into(),
            modified_at_ms: part.modified_at.as_millis(),
        }
    }
}

impl TryFrom<PartBody> for Part {
    type Error = Error;

    fn try_from(body: PartBody) -> Result<Self> {
        Ok(Part {
            number: body.number.0,
            size: body.size,
            etag: body.etag.0,
            checksums: body.checksums.try_into()?,
            modified_at: Timestamp::from_millis(body.modified_at_ms),
        })
    }
}

/// Asks for a page of uploads.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadsRequest {
    /// Of this bucket.
    pub bucket: Text<BucketName>,
    /// What keys begin with.
    #[serde(default)]
    pub prefix: String,
    /// The key at which the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_key: Option<Verbatim<BlobKey>>,
    /// The upload of this key at which the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_upload: Option<Verbatim<UploadId>>,
    /// Most entries.
    pub limit: usize,
}

impl UploadsRequest {
    /// A listing with these options.
    pub fn new(bucket: &BucketName, options: UploadListOptions) -> Self {
        let (key, upload) = match options.after {
            Some(after) => (Some(after.key), after.upload),
            None => (None, None),
        };
        UploadsRequest {
            bucket: Text(bucket.clone()),
            prefix: options.prefix,
            after_key: key.map(Verbatim),
            after_upload: upload.map(Verbatim),
            limit: options.limit,
        }
    }

    /// What the store is asked for.
    pub fn options(self) -> (BucketName, UploadListOptions) {
        let upload = self.after_upload.map(|upload| upload.0);
        let after = self.after_key.map(|key| UploadAfter { key: key.0, upload });
        (self.bucket.0, UploadListOptions { prefix: self.prefix, after, limit: self.limit })
    }
}

/// An upload as a listing shows it.
#[derive(Debug, Serialize, Deserialize)]
pub struct UploadSummaryBody {
    /// Where to find it.
    pub upload: UploadBody,
    /// When it was begun, in milliseconds since the Unix epoch.
    pub begun_at_ms: u64,
    /// The checksum it was begun with.
    pub checksum: ChecksumKind,
}

impl From<UploadSummary> for UploadSummaryBody {
    fn from(summary: UploadSummary) -> Self {
        UploadSummaryBody {
            upload: summary.upload.into(),
            begun_at_ms: summary.begun_at.as_millis(),
            checksum: kind_of(summary.checksum),
        }
    }
}

impl TryFrom<UploadSummaryBody> for UploadSummary {
    type Error = Error;

    fn try_from(body: UploadSummaryBody) -> Result<Self> {
        Ok(UploadSummary {
            upload: body.upload.into(),
            begun_at: Timestamp::from_millis(body.begun_at_ms),
            checksum: into_kind(body.checksum),
        })
    }
}

/// Makes a blob of the chosen parts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompleteUploadRequest {
    /// Of this upload.
    pub upload: UploadBody,
    /// Numbers and tags. One more than allowed is let through, for the store to refuse.
    #[serde(deserialize_with = "bounded::<_, _, { UPLOAD_PARTS_MAX + 1 }>")]
    pub parts: Vec<(Number, Text<ETag>)>,
    /// What must be true of the blob that it replaces.
    pub condition: WriteConditionBody,
    /// Bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// What the checksums of the blob must be.
    #[serde(default)]
    pub expected: ChecksumsBody,
}

impl CompleteUploadRequest {
    /// A completion with these options.
    pub fn new(upload: &Upload, parts: &[PartChoice], options: CompleteOptions) -> Self {
        let part = |choice: &PartChoice| (Number(choice.number), Text(choice.etag.clone()));
        CompleteUploadRequest {
            upload: upload.clone().into(),
            parts: parts.iter().map(part).collect(),
            condition: options.condition.into(),
            size: options.size,
            expected: options.expected.into(),
        }
    }

    /// What the store is asked for.
    pub fn options(self) -> Result<(Upload, Vec<PartChoice>, CompleteOptions)> {
        let part = |(number, etag): (Number, Text<ETag>)| PartChoice { number: number.0, etag: etag.0 };
        let options = CompleteOptions {
            condition: self.condition.into(),
            size: self.size,
            expected: self.expected.try_into()?,
        };
        Ok((self.upload.into(), self.parts.into_iter().map(part).collect(), options))
    }
}
