//! What a store remembers about a blob beside its body.

use std::collections::BTreeMap;

use super::checksum::{ChecksumKinds, Checksums};
use super::etag::ETag;
use super::name::BlobKey;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::limits::{BLOB_HEADERS_BYTES_MAX, BLOB_METADATA_BYTES_MAX};
use crate::name::excerpt;

/// What a body is to those who show it: kept and given back as it came, and not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Header {
    /// What it contains, for instance `text/plain`.
    ContentType,
    /// How it was packed, for instance `gzip`.
    ContentEncoding,
    /// The language it is written in.
    ContentLanguage,
    /// Whether to show or to save it, and as what.
    ContentDisposition,
    /// How long others may keep a copy.
    CacheControl,
    /// When a copy becomes stale.
    Expires,
}

impl Header {
    /// All of them.
    pub const ALL: [Header; 6] = [
        Header::ContentType,
        Header::ContentEncoding,
        Header::ContentLanguage,
        Header::ContentDisposition,
        Header::CacheControl,
        Header::Expires,
    ];
}

/// What the writer says about a blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// UTF-8 without control characters.
    pub headers: BTreeMap<Header, String>,
    /// The writer's own words under names of `a-z 0-9` and ASCII signs except `:`. Values are UTF-8 without control
    /// characters.
    pub metadata: BTreeMap<String, String>,
}

impl Properties {
    /// Bytes of the writer's own words, with their names.
    pub fn metadata_bytes(&self) -> usize {
        self.metadata.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    /// Whether a store may take them.
    pub fn check(&self) -> Result<()> {
        let bytes: usize = self.headers.values().map(String::len).sum();
        if bytes > BLOB_HEADERS_BYTES_MAX {
            return Err(Error::Invalid(format!(
                "headers have {bytes} bytes: at most {BLOB_HEADERS_BYTES_MAX} are allowed"
            )));
        }
        for (header, value) in &self.headers {
            if value.chars().any(char::is_control) {
                return Err(Error::Invalid(format!("{header:?} {} has control characters", excerpt(value))));
            }
        }
        let bytes = self.metadata_bytes();
        if bytes > BLOB_METADATA_BYTES_MAX {
            return Err(Error::Invalid(format!(
                "metadata has {bytes} bytes with its names: at most {BLOB_METADATA_BYTES_MAX} are allowed"
            )));
        }
        self.metadata.iter().try_for_each(|(name, value)| check_metadata(name, value))
    }
}

fn check_metadata(name: &str, value: &str) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase() && byte != b':';
    if name.is_empty() || !name.bytes().all(allowed) {
        return Err(Error::Invalid(format!(
            "metadata name {} must have visible ASCII characters except A-Z and `:`",
            excerpt(name)
        )));
    }
    if value.chars().any(char::is_control) {
        return Err(Error::Invalid(format!(
            "metadata value {} of {} has control characters",
            excerpt(value),
            excerpt(name)
        )));
    }
    Ok(())
}

/// Everything about a blob except its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobMeta {
    /// Bytes of the body.
    pub size: u64,
    /// Changes with the body.
    pub etag: ETag,
    /// As the writer gave them.
    pub properties: Properties,
    /// Those that the writer gave or asked for; a store may add more.
    pub checksums: Checksums,
    /// When it was put. A blob is replaced and never changed, so this is when it was made, too. For one put in parts
    /// it lies between the beginning and the completion of its upload.
    pub modified_at: Timestamp,
    /// How many parts it was put in; none if it was put at once.
    pub parts: Option<u16>,
}

impl BlobMeta {
    /// What a listing shows of it.
    pub fn summary(&self, key: &BlobKey) -> BlobSummary {
        BlobSummary {
            key: key.clone(),
            size: self.size,
            etag: self.etag.clone(),
            modified_at: self.modified_at,
            checksums: Some(self.checksums.kinds()),
        }
    }
}

/// A blob as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobSummary {
    /// Its key.
    pub key: BlobKey,
    /// Bytes of the body.
    pub size: u64,
    /// As [`BlobMeta::etag`].
    pub etag: ETag,
    /// As [`BlobMeta::modified_at`].
    pub modified_at: Timestamp,
    /// Which of [`BlobMeta::checksums`] there are; none where a listing does not say it.
    pub checksums: Option<ChecksumKinds>,
}
