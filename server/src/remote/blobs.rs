//! The port of blobs over the control API.

use anabranch_model::blob::{
    Blob, BlobKey, BlobMeta, BlobStore, Body, BodyOptions, BucketName, BucketSummary, CompleteOptions,
    CopyOptions, ETag, GetOptions, ListOptions, ListPage, Part, PartChoice, PartNumber, PutOptions, Upload,
    UploadListOptions, UploadOptions, UploadSummary,
};
use anabranch_model::{Page, Result};
use async_trait::async_trait;

use super::Remote;
use crate::api;
use crate::api::text::{Number, Text, Verbatim};
use crate::api::wire::{
    BeginUploadRequest, BlobPlace, BlobsRequest, BucketRequest, BucketsRequest, CompleteUploadRequest,
    CopyBlobRequest, DeleteBlobRequest, DeleteBlobsRequest, Empty, GetBlobRequest, PartsRequest,
    PutBlobRequest, PutPartRequest, UploadsRequest,
};

fn one(bucket: &BucketName) -> BucketRequest {
    BucketRequest { bucket: Text(bucket.clone()) }
}

#[async_trait]
impl BlobStore for Remote {
    async fn create_bucket(&self, bucket: &BucketName) -> Result<()> {
        self.caller.call::<api::CreateBucket>(&one(bucket)).await.map(Empty::into)
    }

    async fn delete_bucket(&self, bucket: &BucketName) -> Result<()> {
        self.caller.call::<api::DeleteBucket>(&one(bucket)).await.map(Empty::into)
    }

    async fn bucket(&self, bucket: &BucketName) -> Result<BucketSummary> {
        self.caller.call::<api::Bucket>(&one(bucket)).await?.try_into()
    }

    async fn buckets(&self, after: Option<&BucketName>, limit: usize) -> Result<Page<BucketSummary>> {
        let request = BucketsRequest { after: after.cloned().map(Text), limit };
        self.caller.call::<api::Buckets>(&request).await?.into_page()
    }

    async fn put(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        body: Body,
        options: PutOptions,
    ) -> Result<BlobMeta> {
        let request = PutBlobRequest::new(bucket, key, options);
        self.caller.send::<api::PutBlob>(&request, body).await?.try_into()
    }

    async fn get(&self, bucket: &BucketName, key: &BlobKey, options: GetOptions) -> Result<Blob> {
        let request = GetBlobRequest::new(bucket, key, options);
        let (reply, body) =
            self.caller.fetch::<api::GetBlob>(&request, |reply| reply.end - reply.first).await?;
        let part = reply.part.map(TryInto::try_into).transpose()?;
        Ok(Blob { meta: reply.meta.try_into()?, range: reply.first..reply.end, part, body })
    }

    async fn head(&self, bucket: &BucketName, key: &BlobKey) -> Result<BlobMeta> {
        self.caller.call::<api::HeadBlob>(&BlobPlace::new(bucket, key)).await?.try_into()
    }

    async fn delete(&self, bucket: &BucketName, key: &BlobKey, if_match: Option<&ETag>) -> Result<()> {
        let request =
            DeleteBlobRequest { place: BlobPlace::new(bucket, key), if_match: if_match.cloned().map(Text) };
        self.caller.call::<api::DeleteBlob>(&request).await.map(Empty::into)
    }

    async fn delete_many(&self, bucket: &BucketName, keys: &[BlobKey]) -> Result<Vec<Result<()>>> {
        let request = DeleteBlobsRequest {
            bucket: Text(bucket.clone()),
            keys: keys.iter().cloned().map(Verbatim).collect(),
        };
        self.caller.call::<api::DeleteBlobs>(&request).await?.into_results(keys.len())
    }

    async fn copy(
        &self,
        source: (&BucketName, &BlobKey),
        target: (&BucketName, &BlobKey),
        options: CopyOptions,
    ) -> Result<BlobMeta> {
        let request = CopyBlobRequest {
            source: BlobPlace::new(source.0, source.1),
            target: BlobPlace::new(target.0, target.1),
            source_conditions: options.source.into(),
            condition: options.target.into(),
            properties: options.properties.map(Into::into),
        };
        self.caller.call::<api::CopyBlob>(&request).await?.try_into()
    }

    async fn list(&self, bucket: &BucketName, options: ListOptions) -> Result<ListPage> {
        Ok(self.caller.call::<api::Blobs>(&BlobsRequest::new(bucket, options)).await?.into())
    }

    async fn begin_upload(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        options: UploadOptions,
    ) -> Result<Upload> {
        let request = BeginUploadRequest::new(bucket, key, options);
        Ok(self.caller.call::<api::BeginUpload>(&request).await?.into())
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: PartNumber,
        body: Body,
        options: BodyOptions,
    ) -> Result<Part> {
        let request =
            PutPartRequest { upload: upload.clone().into(), number: Number(number), body: options.into() };
        self.caller.send::<api::PutPart>(&request, body).await?.try_into()
    }

    async fn parts(&self, upload: &Upload, after: Option<PartNumber>, limit: usize) -> Result<Page<Part>> {
        let request = PartsRequest { upload: upload.clone().into(), after: after.map(Number), limit };
        self.caller.call::<api::Parts>(&request).await?.into_page()
    }

    async fn uploads(&self, bucket: &BucketName, options: UploadListOptions) -> Result<Page<UploadSummary>> {
        self.caller.call::<api::Uploads>(&UploadsRequest::new(bucket, options)).await?.into_page()
    }

    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[PartChoice],
        options: CompleteOptions,
    ) -> Result<BlobMeta> {
        let request = CompleteUploadRequest::new(upload, parts, options);
        self.caller.call::<api::CompleteUpload>(&request).await?.try_into()
    }

    async fn abort_upload(&self, upload: &Upload) -> Result<()> {
        self.caller.call::<api::AbortUpload>(&upload.clone().into()).await.map(Empty::into)
    }
}
