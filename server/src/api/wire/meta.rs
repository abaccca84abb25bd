//! What is known about a blob beside its body.

use std::collections::BTreeMap;

use anabranch_model::blob::{BlobMeta, ETag, Header, Properties};
use anabranch_model::{Error, Result, Timestamp};
use serde::{Deserialize, Serialize};

use super::super::text::Text;
use super::body::ChecksumsBody;

/// What the writer says about a blob.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PropertiesBody {
    /// What a body is to those who show it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<HeaderBody, String>,
    /// The writer's own words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// The header of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the variants are those of the model's header")]
pub enum HeaderBody {
    ContentType,
    ContentEncoding,
    ContentLanguage,
    ContentDisposition,
    CacheControl,
    Expires,
}

impl From<Header> for HeaderBody {
    fn from(header: Header) -> Self {
        match header {
            Header::ContentType => HeaderBody::ContentType,
            Header::ContentEncoding => HeaderBody::ContentEncoding,
            Header::ContentLanguage => HeaderBody::ContentLanguage,
            Header::ContentDisposition => HeaderBody::ContentDisposition,
            Header::CacheControl => HeaderBody::CacheControl,
            Header::Expires => HeaderBody::Expires,
        }
    }
}

impl From<HeaderBody> for Header {
    fn from(body: HeaderBody) -> Self {
        match body {
            HeaderBody::ContentType => Header::ContentType,
            HeaderBody::ContentEncoding => Header::ContentEncoding,
            HeaderBody::ContentLanguage => Header::ContentLanguage,
            HeaderBody::ContentDisposition => Header::ContentDisposition,
            HeaderBody::CacheControl => Header::CacheControl,
            HeaderBody::Expires => Header::Expires,
        }
    }
}

impl From<Properties> for PropertiesBody {
    fn from(properties: Properties) -> Self {
        let headers = properties.headers.into_iter().map(|(name, value)| (name.into(), value));
        PropertiesBody { headers: headers.collect(), metadata: properties.metadata }
    }
}

impl From<PropertiesBody> for Properties {
    fn from(body: PropertiesBody) -> Self {
        let headers = body.headers.into_iter().map(|(name, value)| (name.into(), value));
        Properties { headers: headers.collect(), metadata: body.metadata }
    }
}

/// Everything about a blob except its body.
#[derive(Debug, Serialize, Deserialize)]
pub struct BlobMetaBody {
    /// Bytes of the body.
    pub size: u64,
    /// Changes with the body.
    pub etag: Text<ETag>,
    /// As the writer gave them.
    pub properties: PropertiesBody,
    /// Those that are known.
    pub checksums: ChecksumsBody,
    /// When it was put, in milliseconds since the Unix epoch.
    pub modified_at_ms: u64,
    /// How many parts it was put in; none if it was put at once.
    pub parts: Option<u16>,
}

impl From<BlobMeta> for BlobMetaBody {
    fn from(meta: BlobMeta) -> Self {
        BlobMetaBody {
            size: meta.size,
            etag: Text(meta.etag),
            properties: meta.properties.into(),
            checksums: meta.checksums.into(),
            modified_at_ms: meta.modified_at.as_millis(),
            parts: meta.parts,
        }
    }
}

impl TryFrom<BlobMetaBody> for BlobMeta {
    type Error = Error;

    fn try_from(body: BlobMetaBody) -> Result<Self> {
        Ok(BlobMeta {
            size: body.size,
            etag: body.etag.0,
            properties: body.properties.into(),
            checksums: body.checksums.try_into()?,
            modified_at: Timestamp::from_millis(body.modified_at_ms),
            parts: body.parts,
        })
    }
}
