//! Making buckets, putting, and reading whole.

use std::fmt::{Debug, Display};
use std::future::Future;

use bytes::Bytes;
use futures_util::StreamExt;

use super::bytes::whole;
use crate::blob::{
    BlobKey, BlobMeta, BlobStore, Body, BodyOptions, BucketName, CompleteOptions, GetOptions, ListOptions,
    Part, PartChoice, PartNumber, PutOptions, Upload, UploadAfter, UploadListOptions, UploadOptions,
    UploadSummary,
};
use crate::laws::trial::{self, STEPS_MAX};
use crate::{Error, NextMove, Result};

pub(super) type Trial = trial::Trial<dyn BlobStore>;

/// Everything that can be seen of a bucket.
pub(super) type Snapshot = (Vec<(BlobKey, BlobMeta, Bytes)>, Vec<(UploadSummary, Vec<Part>)>);

/// Saying what was seen.
impl Trial {
    /// Compares what was seen of a blob with what its put said.
    #[track_caller]
    pub fn same_blob(&self, what: impl Display, seen: BlobMeta, mut put: BlobMeta) {
        if self.means.times_are_near {
            put.modified_at = seen.modified_at;
        }
        self.same(what, seen, put);
    }

    /// Compares bodies, which are too long to be shown.
    #[track_caller]
    pub fn same_bytes(&self, what: impl Display, seen: &[u8], expected: &[u8]) {
        if seen != expected {
            let alike = seen.iter().zip(expected).take_while(|(a, b)| a == b).count();
            let lengths = format!("{} bytes, expected {}", seen.len(), expected.len());
            self.fail(format!("{what}: saw {lengths}; they differ from byte {alike} on"))
        }
    }

    /// Asserts that `call` is refused with an error that `fits`, and leaves `bucket` as it was.
    pub async fn refused_in<T: Debug>(
        &self,
        bucket: &BucketName,
        what: &str,
        fits: impl Fn(&Error) -> bool,
        call: impl Future<Output = Result<T>>,
    ) {
        let before = self.snapshot(bucket).await;
        match call.await {
            Ok(value) => self.fail(format!("{what} was not refused, but gave {value:?}")),
            Err(error) => {
                self.holds(fits(&error), format!("{what} was refused with {error:?}"));
                self.same(format!("what to do after {what}"), error.next_move(), NextMove::FixCall);
                self.holds(!error.to_string().is_empty(), format!("{what} was refused without a word"));
            }
        }
        self.same(format!("the bucket after {what}"), self.snapshot(bucket).await, before);
    }
}

/// Buckets and blobs.
impl Trial {
    /// A name that no other law uses. Names of laws are too long for buckets, so their places stand for them.
    pub fn fresh_name(&self) -> BucketName {
        let law = super::all().iter().position(|law| law.name == self.law).unwrap_or_default();
        let number = self.next_number();
        self.ok("naming a bucket", BucketName::new(&format!("{}-{law}-{number}", self.means.prefix)))
    }

    /// A new, empty bucket.
    pub async fn bucket(&self) -> BucketName {
        let (store, name) = (self.store(), self.fresh_name());
        if store.bucket(&name).await.is_ok() {
            for key in self.keys(&name).await {
                self.ok("deleting what an earlier run left", store.delete(&name, &key, None).await);
            }
            self.ok("deleting what an earlier run left", store.delete_bucket(&name).await);
        }
        self.ok("making a bucket", store.create_bucket(&name).await);
        name
    }

    pub fn key(&self, key: &str) -> BlobKey {
        self.ok("a key", BlobKey::new(key))
    }

    pub async fn put(&self, bucket: &BucketName, key: &BlobKey, bytes: &Bytes) -> BlobMeta {
        self.put_with(bucket, key, whole(bytes), PutOptions::default()).await
    }

    pub async fn put_with(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        body: Body,
        options: PutOptions,
    ) -> BlobMeta {
        self.ok(format!("putting {key}"), self.store().put(bucket, key, body, options).await)
    }

    pub async fn head(&self, bucket: &BucketName, key: &BlobKey) -> BlobMeta {
        self.ok(format!("looking at {key}"), self.store().head(bucket, key).await)
    }

    /// The whole body of a blob.
    pub async fn read(&self, bucket: &BucketName, key: &BlobKey) -> Bytes {
        self.read_with(bucket, key, GetOptions::default()).await.2
    }

    pub async fn read_with(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        options: GetOptions,
    ) -> (BlobMeta, std::ops::Range<u64>, Bytes) {
        let what = format!("reading {key} with {options:?}");
        let blob = self.ok(&what, self.store().get(bucket, key, options).await);
        let bytes = self.drain(&what, blob.body).await;
        self.same(format!("bytes of {what}"), bytes.len() as u64, blob.range.end - blob.range.start);
        (blob.meta, blob.range, bytes)
    }

    /// What is left of a body.
    pub async fn drain(&self, what: impl Display, mut body: Body) -> Bytes {
        let mut bytes = Vec::new();
        while let Some(piece) = body.next().await {
            bytes.extend_from_slice(&self.ok(&what, piece));
        }
        bytes.into()
    }

    /// Asserts that nothing can be seen of a blob.
    pub async fn is_absent(&self, what: &str, bucket: &BucketName, key: &BlobKey) {
        let absent = Some(Error::BlobNotFound(bucket.clone(), key.clone()));
        let store = self.store();
        self.same(format!("{what}: looking at it"), store.head(bucket, key).await.err(), absent.clone());
        let read = store.get(bucket, key, GetOptions::default()).await;
        self.same(format!("{what}: reading it"), read.err(), absent);
        self.holds(!self.keys(bucket).await.contains(key), format!("{what}: {key} is listed"));
    }

    /// Every key of a bucket.
    pub async fn keys(&self, bucket: &BucketName) -> Vec<BlobKey> {
        let mut keys = Vec::new();
        let mut after = None;
        for _ in 0..STEPS_MAX {
            let options = ListOptions { after, ..ListOptions::default() };
            let page = self.ok("listing keys", self.store().list(bucket, options).await);
            keys.extend(page.entries.into_iter().map(|entry| entry.key));
            after = page.next;
            if after.is_none() {
                return keys;
            }
        }
        self.fail("the listing of keys does not end")
    }

    pub async fn snapshot(&self, bucket: &BucketName) -> Snapshot {
        if self.store().bucket(bucket).await.is_err() {
            return (Vec::new(), Vec::new());
        }
        let mut blobs = Vec::new();
        for key in self.keys(bucket).await {
            let (meta, _, bytes) = self.read_with(bucket, &key, GetOptions::default()).await;
            blobs.push((key, meta, bytes));
        }
        let mut uploads = Vec::new();
        for summary in self.uploads(bucket).await {
            let parts = self.parts_by(&summary.upload, 1_000).await;
            uploads.push((summary, parts));
        }
        (blobs, uploads)
    }
}

/// Uploads.
impl Trial {
    pub async fn begin(&self, bucket: &BucketName, key: &BlobKey) -> Upload {
        let begun = self.store().begin_upload(bucket, key, UploadOptions::default()).await;
        self.ok("beginning an upload", begun)
    }

    pub async fn part(&self, upload: &Upload, number: u64, bytes: &Bytes) -> Part {
        let number = self.ok("a part number", PartNumber::new(number));
        let part = self.store().put_part(upload, number, whole(bytes), BodyOptions::default()).await;
        self.ok(format!("putting part {number}"), part)
    }

    pub async fn complete(&self, upload: &Upload, parts: &[Part]) -> BlobMeta {
        let choices: Vec<_> = parts.iter().map(PartChoice::from).collect();
        let completed = self.store().complete_upload(upload, &choices, CompleteOptions::default()).await;
        self.ok("completing an upload", completed)
    }

    pub async fn parts_by(&self, upload: &Upload, limit: usize) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for _ in 0..STEPS_MAX {
            let after = parts.last().map(|part| part.number);
            let page = self.ok("listing parts", self.store().parts(upload, after, limit).await);
            self.holds(page.entries.len() <= limit.max(1), format!("a page of {limit} parts is too long"));
            self.holds(
                !page.more || !page.entries.is_empty(),
                "an empty page says that there are more parts",
            );
            parts.extend(page.entries);
            if !page.more {
                return parts;
            }
        }
        self.fail("the listing of parts does not end")
    }

    /// Every open upload of a bucket.
    pub async fn uploads(&self, bucket: &BucketName) -> Vec<UploadSummary> {
        self.uploads_by(bucket, "", 1_000).await
    }

    pub async fn uploads_by(&self, bucket: &BucketName, prefix: &str, limit: usize) -> Vec<UploadSummary> {
        let mut uploads: Vec<UploadSummary> = Vec::new();
        for _ in 0..STEPS_MAX {
            let after = uploads.last().map(|last| UploadAfter {
                key: last.upload.key.clone(),
                upload: Some(last.upload.id.clone()),
            });
            let options = UploadListOptions { prefix: prefix.to_string(), after, limit };
            let page = self.ok("listing uploads", self.store().uploads(bucket, options).await);
            self.holds(page.entries.len() <= limit.max(1), format!("a page of {limit} uploads is too long"));
            self.holds(
                !page.more || !page.entries.is_empty(),
                "an empty page says that there are more uploads",
            );
            uploads.extend(page.entries);
            if !page.more {
                return uploads;
            }
        }
        self.fail("the listing of uploads does not end")
    }
}
