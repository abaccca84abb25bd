//! A blob in parts: begun, given parts in any order, and then completed or aborted.
//!
//! ```text
//!            put_part (again and again, any number, the last one of a number counts)
//!              ┌──┐
//!  begin ──▶ open ──▶ complete ──▶ a blob, and no upload
//!              └────▶ abort, or the bucket is deleted ──▶ nothing
//! ```
//!
//! A refused completion leaves the upload open.

use super::checksum::{ChecksumAlgorithm, ChecksumScope, Checksums};
use super::condition::WriteCondition;
use super::etag::ETag;
use super::meta::Properties;
use super::name::{BlobKey, BucketName, PartNumber, UploadId};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::limits::{PART_BYTES_MIN, UPLOAD_PARTS_MAX};

/// An upload, by all that is needed to find it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Upload {
    /// Where the blob will be.
    pub bucket: BucketName,
    /// The key that the blob will have. Several uploads may have the same.
    pub key: BlobKey,
    /// Tells it from the others.
    pub id: UploadId,
}

/// An upload as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadSummary {
    /// Where to find it.
    pub upload: Upload,
    /// When it was begun.
    pub begun_at: Timestamp,
    /// The checksum it was begun with.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumScope)>,
}

/// How an upload is begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadOptions {
    /// What the writer says about the blob.
    pub properties: Properties,
    /// The checksum that the blob will have. Each part gets one of this algorithm, given or computed.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumScope)>,
}

impl UploadOptions {
    /// Whether an upload may be begun like this.
    pub fn check(&self) -> Result<()> {
        self.properties.check()?;
        match self.checksum {
            Some((algorithm, scope)) if !algorithm.allows(scope) => Err(Error::Invalid(format!(
                "a {} of {} is not possible for an upload in parts",
                algorithm.name(),
                match scope {
                    ChecksumScope::Body => "the whole body",
                    ChecksumScope::Parts => "the parts",
                }
            ))),
            _ => Ok(()),
        }
    }
}

/// A part that an upload has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its place.
    pub number: PartNumber,
    /// Bytes.
    pub size: u64,
    /// What its bytes are compared by, as of a body that is put at once.
    pub etag: ETag,
    /// That of the upload's algorithm, and those that were given or asked for.
    pub checksums: Checksums,
    /// When it was put.
    pub modified_at: Timestamp,
}

/// A part that is to be in the blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartChoice {
    /// Its place.
    pub number: PartNumber,
    /// What it must be: a part that was replaced meanwhile is refused.
    pub etag: ETag,
}

impl From<&Part> for PartChoice {
    fn from(part: &Part) -> Self {
        PartChoice { number: part.number, etag: part.etag.clone() }
    }
}

/// How an upload is completed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompleteOptions {
    /// What must be true of the blob that it replaces.
    pub condition: WriteCondition,
    /// Bytes; a blob with more or fewer is refused.
    pub size: Option<u64>,
    /// What the checksums of the blob must be, of the scope that the upload was begun with.
    pub expected: Checksums,
}

impl CompleteOptions {
    /// Compares what was expected with what the chosen parts make.
    pub fn check(&self, size: u64, checksums: &Checksums) -> Result<()> {
        if let Some(declared) = self.size.filter(|declared| *declared != size) {
            return Err(Error::BodySizeMismatch { declared, received: size });
        }
        for expected in self.expected.iter() {
            let algorithm = expected.algorithm();
            if checksums.get(algorithm) != Some(expected) || checksums.scope() != self.expected.scope() {
                return Err(Error::ChecksumMismatch(algorithm.name()));
            }
        }
        Ok(())
    }
}

/// The parts that a completion chose, in their order, or why there is no blob of them. `find` knows the parts that the
/// upload has.
pub fn check_parts(choices: &[PartChoice], find: impl Fn(PartNumber) -> Option<Part>) -> Result<Vec<Part>> {
    if choices.is_empty() || choices.len() > UPLOAD_PARTS_MAX {
        return Err(Error::Invalid(format!(
            "a completion with {} parts is not allowed: it must have 1 to {UPLOAD_PARTS_MAX}",
            choices.len()
        )));
    }
    if let Some(pair) = choices.windows(2).find(|pair| pair[0].number >= pair[1].number) {
        return Err(Error::PartsOutOfOrder(pair[0].number, pair[1].number));
    }
    let mut parts = Vec::with_capacity(choices.len());
    for choice in choices {
        match find(choice.number) {
            Some(part) if part.etag == choice.etag => parts.push(part),
            _ => return Err(Error::PartNotFound(choice.number)),
        }
    }
    let before_last = &parts[..parts.len() - 1];
    match before_last.iter().find(|part| part.size < PART_BYTES_MIN) {
        Some(part) => Err(Error::PartTooSmall { part: part.number, bytes: part.size }),
        None => Ok(parts),
    }
}
