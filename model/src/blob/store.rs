//! The port of blobs: [`BlobStore`].

use std::fmt;
use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use futures_core::Stream;

use super::checksum::Checksums;
use super::etag::ETag;
use super::listing::{ListOptions, ListPage, UploadListOptions};
use super::meta::BlobMeta;
use super::name::{BlobKey, BucketName, PartNumber};
use super::options::{BodyOptions, CopyOptions, GetOptions, PutOptions};
use super::upload::{CompleteOptions, Part, PartChoice, Upload, UploadOptions, UploadSummary};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::stream::Page;

/// The bytes of a body in pieces of any size, at most [`limits::BODY_BYTES_MAX`](crate::limits::BODY_BYTES_MAX) on the
/// way in. It ends with the body or after an error.
pub type Body = Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>;

/// A bucket as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketSummary {
    /// Its name.
    pub name: BucketName,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The answer to a read.
pub struct Blob {
    /// What is known about the whole blob.
    pub meta: BlobMeta,
    /// Which of its bytes follow.
    pub range: std::ops::Range<u64>,
    /// The checksums of the part that was asked for, where the store has kept them: those of the whole are made of them.
    pub part: Option<Checksums>,
    /// These bytes.
    pub body: Body,
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blob").field("meta", &self.meta).field("range", &self.range).finish_non_exhaustive()
    }
}

/// Buckets of blobs.
///
/// Laws (the suite `laws::blob` checks them against every implementation):
///
/// 1. **Whole or not at all.** A blob appears, with body and meta, in one moment: when its put, copy or completion is
///    acknowledged or shortly before. A call that fails, is dropped, or whose body ends with an error leaves what was
///    there before.
/// 2. **Durable before acknowledged.** What was acknowledged is there after any crash, and what was deleted is not. What
///    was not acknowledged is absent or whole.
/// 3. **Last writer.** Of puts to one key one is the last, and every read that starts after its acknowledgement returns
///    it. Reads, conditions and listings agree on which blob is there.
/// 4. **Readers keep what they began.** A body that was opened is read to its end as it was then, whatever is put to or
///    deleted from its key meanwhile.
/// 5. **Verified.** A body whose size, MD5 or checksum is not the declared one is refused. The etag follows
///    from the bytes: bodies that differ have different ones, and equal bodies that are put in the same way have the same.
///    Where it is asked for, it is the MD5 of a body put at once; of one put in parts like this it is the MD5 of the
///    parts' MD5s with their number behind it.
/// 6. **Conditions are decided with the write.** Of writers that all demand that the key be absent, or that it hold one
///    same etag, one succeeds. [`WriteCondition::check`](super::WriteCondition::check) and
///    [`ReadConditions::check`](super::ReadConditions::check) say what a condition means.
/// 7. **Keys are bytes.** Keys that differ in a byte are different; none is a folder or a path. A key may be the beginning
///    of another.
/// 8. **Listing.** Pages joined show every key that fits and was there during the whole listing, once, in the order of
///    bytes; each prefix once; an entry shows what `head` shows. A page is short of its limit only if it is the last.
/// 9. **Uploads.** Parts are no blob until completed. Of parts with one number the last that was acknowledged counts. A
///    completed upload is gone; an aborted one is gone with its parts. The parts of a blob can be read one by one.
/// 10. **Refusals change nothing.** A call that returns an error of [`NextMove::FixCall`](crate::NextMove) had no effect;
///     a deletion of many has a result for each key.
#[async_trait]
pub trait BlobStore: Send + Sync {
    /// Makes a bucket. When it returns, the bucket takes blobs.
    async fn create_bucket(&self, bucket: &BucketName) -> Result<()>;

    /// Removes a bucket without blobs. Uploads that are open in it are aborted. When it returns, the name is free.
    async fn delete_bucket(&self, bucket: &BucketName) -> Result<()>;

    /// One bucket.
    async fn bucket(&self, bucket: &BucketName) -> Result<BucketSummary>;

    /// Buckets in the order of their names, those behind `after` only, whether or not `after` exists. The limit is cut to
    /// [`limits::PAGE_ENTRIES_MAX`](crate::limits::PAGE_ENTRIES_MAX); zero counts as one.
    async fn buckets(&self, after: Option<&BucketName>, limit: usize) -> Result<Page<BucketSummary>>;

    /// Stores a blob, in place of the one that has this key. The condition is decided when the body has been taken, and
    /// may be decided before as well. Where the blobs are kept by a service that does not say when it stored one,
    /// `modified_at` in the answer is when it answered, which is shortly behind what [`head`](Self::head) shows.
    async fn put(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        body: Body,
        options: PutOptions,
    ) -> Result<BlobMeta>;

    /// Opens a blob for reading, or a piece of it: a store remembers where the parts of a blob begin
    /// ([`Range::Part`](super::Range::Part)). Stored bytes that are damaged end the body with an error, never silently.
    async fn get(&self, bucket: &BucketName, key: &BlobKey, options: GetOptions) -> Result<Blob>;

    /// What is known about a blob.
    async fn head(&self, bucket: &BucketName, key: &BlobKey) -> Result<BlobMeta>;

    /// Removes a blob. That it does not exist is no error, unless it should have the tag `if_match`.
    async fn delete(&self, bucket: &BucketName, key: &BlobKey, if_match: Option<&ETag>) -> Result<()>;

    /// Removes blobs, 1 to [`limits::DELETE_KEYS_MAX`](crate::limits::DELETE_KEYS_MAX); the results are in the order of
    /// `keys`.
    async fn delete_many(&self, bucket: &BucketName, keys: &[BlobKey]) -> Result<Vec<Result<()>>>;

    /// Stores a blob with the body of another, at most [`limits::BODY_BYTES_MAX`](crate::limits::BODY_BYTES_MAX) long, as it
    /// was at one moment. A source that was put at once gives its etag to the copy; any other may get a new one.
    async fn copy(
        &self,
        source: (&BucketName, &BlobKey),
        target: (&BucketName, &BlobKey),
        options: CopyOptions,
    ) -> Result<BlobMeta>;

    /// One page of the keys in a bucket.
    async fn list(&self, bucket: &BucketName, options: ListOptions) -> Result<ListPage>;

    /// Begins an upload in parts.
    async fn begin_upload(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        options: UploadOptions,
    ) -> Result<Upload>;

    /// Stores a part, in place of the one that has this number.
    async fn put_part(
        &self,
        upload: &Upload,
        number: PartNumber,
        body: Body,
        options: BodyOptions,
    ) -> Result<Part>;

    /// Parts in the order of their numbers, those behind `after` only. The limit is cut to
    /// [`limits::PAGE_ENTRIES_MAX`](crate::limits::PAGE_ENTRIES_MAX); zero counts as one.
    async fn parts(&self, upload: &Upload, after: Option<PartNumber>, limit: usize) -> Result<Page<Part>>;

    /// Open uploads in the order of their keys; those of one key in an order that does not change.
    async fn uploads(&self, bucket: &BucketName, options: UploadListOptions) -> Result<Page<UploadSummary>>;

    /// Makes a blob of the chosen parts, in place of the one that has the key; the other parts are forgotten.
    /// [`check_parts`](super::check_parts) says which choices are refused. A store may answer a completion that is sent
    /// again like the first one, as long as nothing changes.
    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[PartChoice],
        options: CompleteOptions,
    ) -> Result<BlobMeta>;

    /// Ends an upload and forgets its parts.
    async fn abort_upload(&self, upload: &Upload) -> Result<()>;
}
