//! The port of blobs.

use anabranch_model::blob::{
    Blob, BlobKey, BlobMeta, BlobStore, Body, BodyOptions, BucketName, BucketSummary, CompleteOptions,
    CopyOptions, ETag, GetOptions, ListOptions, ListPage, Part, PartChoice, PartNumber, PutOptions, Upload,
    UploadListOptions, UploadOptions, UploadSummary,
};
use anabranch_model::{Page, Result};
use async_trait::async_trait;

use crate::engine::Engine;

#[async_trait]
impl BlobStore for Engine {
    async fn create_bucket(&self, bucket: &BucketName) -> Result<()> {
        self.writing_core()?.create_bucket(bucket).await
    }

    async fn delete_bucket(&self, bucket: &BucketName) -> Result<()> {
        self.writing_core()?.delete_bucket(bucket).await
    }

    async fn bucket(&self, bucket: &BucketName) -> Result<BucketSummary> {
        self.rows_core()?.blobs.summary(bucket)
    }

    async fn buckets(&self, after: Option<&BucketName>, limit: usize) -> Result<Page<BucketSummary>> {
        Ok(self.rows_core()?.blobs.page(after, limit))
    }

    async fn put(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        body: Body,
        options: PutOptions,
    ) -> Result<BlobMeta> {
        self.writing_core()?.put_blob(bucket, key, body, options).await
    }

    async fn get(&self, bucket: &BucketName, key: &BlobKey, options: GetOptions) -> Result<Blob> {
        self.rows_core()?.open_blob(bucket, key, options).await
    }

    async fn head(&self, bucket: &BucketName, key: &BlobKey) -> Result<BlobMeta> {
        self.rows_core()?.look_at_blob(bucket, key)
    }

    async fn delete(&self, bucket: &BucketName, key: &BlobKey, if_match: Option<&ETag>) -> Result<()> {
        self.writing_core()?.delete_blob(bucket, key, if_match).await
    }

    async fn delete_many(&self, bucket: &BucketName, keys: &[BlobKey]) -> Result<Vec<Result<()>>> {
        self.writing_core()?.delete_blobs(bucket, keys).await
    }

    async fn copy(
        &self,
        source: (&BucketName, &BlobKey),
        target: (&BucketName, &BlobKey),
        options: CopyOptions,
    ) -> Result<BlobMeta> {
        self.writing_core()?.copy_blob(source, target, options).await
    }

    async fn list(&self, bucket: &BucketName, options: ListOptions) -> Result<ListPage> {
        self.rows_core()?.list_blobs(bucket, &options)
    }

    async fn begin_upload(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        options: UploadOptions,
    ) -> Result<Upload> {
        self.writing_core()?.begin_upload(bucket, key, options).await
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: PartNumber,
        body: Body,
        options: BodyOptions,
    ) -> Result<Part> {
        self.writing_core()?.put_part(upload, number, body, options).await
    }

    async fn parts(&self, upload: &Upload, after: Option<PartNumber>, limit: usize) -> Result<Page<Part>> {
        self.rows_core()?.list_parts(upload, after, limit)
    }

    async fn uploads(&self, bucket: &BucketName, options: UploadListOptions) -> Result<Page<UploadSummary>> {
        self.rows_core()?.list_uploads(bucket, &options)
    }

    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[PartChoice],
        options: CompleteOptions,
    ) -> Result<BlobMeta> {
        self.writing_core()?.complete_upload(upload, parts, options).await
    }

    async fn abort_upload(&self, upload: &Upload) -> Result<()> {
        self.writing_core()?.abort_upload(upload).await
    }
}
