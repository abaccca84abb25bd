//! Blobs on S3.
//!
//! Each file is one step. A request is put together (`request`), sent to its address (`place`) with a signature
//! (`client`, `credentials`), and answered with headers (`meta`), a document (`xml`) or a refusal (`refusal`). On that
//! stand the operations: buckets (`buckets`), reading (`read`), putting (`put`, with `intake` for the body, and `large`
//! and `unfinished` for one that does not fit into memory), conditions of writes (`guard`), copying (`copy`), deleting
//! (`delete`), listing (`list`), and uploads (`upload`, `complete`). What they cost is measured beside `bare`.
//!
//! Requests are our own because keys are bytes: clients that take a key for a path or an address for a URL lose `..`, `//`
//! and control characters on the way.

pub(crate) mod action;

mod bare;
mod buckets;
mod client;
mod complete;
mod copy;
mod credentials;
mod delete;
mod explain;
mod guard;
mod intake;
mod large;
mod list;
mod meta;
mod place;
mod put;
mod read;
mod refusal;
mod request;
mod unfinished;
mod upload;
mod words;
mod xml;

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::blob::{
    Blob, BlobMeta, BlobStore, Body, BodyOptions, BucketSummary, CompleteOptions, CopyOptions, ETag,
    GetOptions, ListOptions, ListPage, Part, PartChoice, PartNumber, PutOptions, Upload, UploadListOptions,
    UploadOptions, UploadSummary,
};
use anabranch_model::{BlobKey, BucketName, Error, Page, Result};
use async_trait::async_trait;

use self::client::Client;
use self::place::Place;
use self::upload::Algorithms;
use crate::call::{Caller, Deadline};
use crate::config::Aws;

/// How long a call may take, with its attempts.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long S3 may take to copy or join what it has: it answers when it is through.
const JOIN_MAX: Duration = Duration::from_secs(10 * 60);
/// The slowest line that a body goes through, in bytes a second: a share of two megabits.
const LINE_BYTES_MIN: u64 = 64 << 10;

/// Blobs on S3. Cheap to clone: the clones share connections and limits.
#[derive(Clone, Debug)]
pub struct Blobs {
    client: Client,
    caller: Caller,
    algorithms: Arc<Algorithms>,
}

impl Blobs {
    /// The buckets of the account and region that `aws` is connected to.
    pub fn new(aws: &Aws) -> Result<Self> {
        let client = Client::new(aws, Place::of(aws)?);
        Ok(Blobs { client, caller: aws.caller.clone(), algorithms: Arc::default() })
    }

    fn soon(&self) -> Deadline {
        self.caller.deadline(PATIENCE)
    }

    /// When S3 must be through with something that it does by itself.
    fn later(&self) -> Deadline {
        self.caller.deadline(JOIN_MAX)
    }

    /// When a request with so many bytes must be through.
    fn time_for(&self, bytes: u64) -> Deadline {
        self.caller.deadline(PATIENCE + Duration::from_secs(bytes / LINE_BYTES_MIN))
    }
}

#[async_trait]
impl BlobStore for Blobs {
    async fn create_bucket(&self, bucket: &BucketName) -> Result<()> {
        self.make_bucket(bucket).await
    }

    async fn delete_bucket(&self, bucket: &BucketName) -> Result<()> {
        self.remove_bucket(bucket).await
    }

    async fn bucket(&self, bucket: &BucketName) -> Result<BucketSummary> {
        self.describe_bucket(bucket).await
    }

    async fn buckets(&self, after: Option<&BucketName>, limit: usize) -> Result<Page<BucketSummary>> {
        self.list_buckets(after, limit).await
    }

    async fn put(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        body: Body,
        options: PutOptions,
    ) -> Result<BlobMeta> {
        self.put_blob(bucket, key, body, options).await
    }

    async fn get(&self, bucket: &BucketName, key: &BlobKey, options: GetOptions) -> Result<Blob> {
        self.open(bucket, key, options).await
    }

    async fn head(&self, bucket: &BucketName, key: &BlobKey) -> Result<BlobMeta> {
        self.look(bucket, key, self.soon()).await
    }

    async fn delete(&self, bucket: &BucketName, key: &BlobKey, if_match: Option<&ETag>) -> Result<()> {
        self.remove(bucket, key, if_match).await
    }

    async fn delete_many(&self, bucket: &BucketName, keys: &[BlobKey]) -> Result<Vec<Result<()>>> {
        self.remove_many(bucket, keys).await
    }

    async fn copy(
        &self,
        source: (&BucketName, &BlobKey),
        target: (&BucketName, &BlobKey),
        options: CopyOptions,
    ) -> Result<BlobMeta> {
        self.copy_blob(source, target, options).await
    }

    async fn list(&self, bucket: &BucketName, options: ListOptions) -> Result<ListPage> {
        self.list_page(bucket, options).await
    }

    async fn begin_upload(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        options: UploadOptions,
    ) -> Result<Upload> {
        self.begin(bucket, key, &options, &[]).await
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: PartNumber,
        body: Body,
        options: BodyOptions,
    ) -> Result<Part> {
        self.put_one_part(upload, number, body, options).await
    }

    async fn parts(&self, upload: &Upload, after: Option<PartNumber>, limit: usize) -> Result<Page<Part>> {
        let (page, _) = self.part_page(upload, after, limit, self.soon()).await?;
        Ok(page)
    }

    async fn uploads(&self, bucket: &BucketName, options: UploadListOptions) -> Result<Page<UploadSummary>> {
        self.upload_page(bucket, options).await
    }

    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[PartChoice],
        options: CompleteOptions,
    ) -> Result<BlobMeta> {
        self.complete(upload, parts, options).await
    }

    async fn abort_upload(&self, upload: &Upload) -> Result<()> {
        self.abort_known(upload).await
    }
}

/// What the answer of S3 cannot be.
fn strange(what: &str) -> Error {
    Error::Misconfigured(format!(
        "S3 answers with {what}: check whether the endpoint (AWS_ENDPOINT_URL) is S3"
    ))
}
