//! What a call may ask for beside the blob it is about.

use std::collections::BTreeSet;

use super::checksum::{ChecksumAlgorithm, Checksums};
use super::condition::{ReadConditions, WriteCondition};
use super::meta::Properties;
use super::range::Range;

/// What is known about a body before it is seen, and what should be known afterwards. A checksum that arrives behind the
/// body cannot stand here: whoever makes the stream asks for the algorithm in `computed`, compares, and ends the
/// stream with an error if they differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyOptions {
    /// Bytes; a body with more or fewer is refused.
    pub size: Option<u64>,
    /// A body with another MD5 is refused. Its etag is this MD5.
    pub md5: Option<[u8; 16]>,
    /// Whether the etag must be the MD5 of the body, as clients of S3 expect of what they put. Without it, and without
    /// an MD5 to compare with, the store makes the etag of what costs it least.
    pub md5_tag: bool,
    /// A body with others is refused. They are remembered.
    pub expected: Checksums,
    /// Checksums to compute and to remember.
    pub computed: BTreeSet<ChecksumAlgorithm>,
}

/// How a blob is put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutOptions {
    /// What the writer says about it.
    pub properties: Properties,
    /// What must be true of the blob that it replaces.
    pub condition: WriteCondition,
    /// How its body is verified.
    pub body: BodyOptions,
}

/// How a blob is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetOptions {
    /// The bytes to read; all if there is none.
    pub range: Option<Range>,
    /// What must be true of it.
    pub conditions: ReadConditions,
}

/// How a blob is copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyOptions {
    /// What must be true of the source. Whatever fails is [`Error::PreconditionFailed`](crate::Error).
    pub source: ReadConditions,
    /// What must be true of the blob that the copy replaces.
    pub target: WriteCondition,
    /// What is said about the copy, in place of what is said about the source. A blob that is copied onto itself needs
    /// it: without it nothing would change.
    pub properties: Option<Properties>,
}
