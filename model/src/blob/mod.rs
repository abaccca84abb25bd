//! Blobs in buckets: the nouns, and the port [`BlobStore`] with its laws.
//!
//! A blob is a body of bytes under a key, with what is known about it. It is put whole, by one call or in parts, and
//! never changed: a second put replaces it.
//!
//! Read in this order: names and keys ([`name`]), what a body is known by ([`etag`], [`checksum`], [`digest`]), what
//! a store remembers ([`meta`]), what a call may ask for ([`condition`], [`range`], [`options`], [`listing`],
//! [`upload`]), and then what a store must do ([`store`]).

pub mod name;

pub mod checksum;
pub mod digest;
pub mod etag;

pub mod meta;

pub mod condition;
pub mod listing;
pub mod options;
pub mod range;
pub mod upload;

pub mod store;

pub use checksum::{Checksum, ChecksumAlgorithm, ChecksumKinds, ChecksumScope, Checksums};
pub use condition::{ETagMatch, ReadConditions, WriteCondition};
pub use digest::{BodyDigest, BodyDigester, ChecksumDigester, DigestOfParts, md5_of};
pub use etag::ETag;
pub use listing::{ListAfter, ListOptions, ListPage, UploadAfter, UploadListOptions};
pub use meta::{BlobMeta, BlobSummary, Header, Properties};
pub use name::{BlobKey, BucketName, PartNumber, UploadId};
pub use options::{BodyOptions, CopyOptions, GetOptions, PutOptions};
pub use range::Range;
pub use store::{Blob, BlobStore, Body, BucketSummary};
pub use upload::{CompleteOptions, Part, PartChoice, Upload, UploadOptions, UploadSummary, check_parts};
