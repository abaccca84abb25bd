//! Putting a blob with one request.

use anabranch_model::blob::{
    BlobMeta, Body, BodyDigest, Checksums, ETag, Properties, PutOptions, WriteCondition,
};
use anabranch_model::{BlobKey, BucketName, Error, Result, Timestamp};
use aws_smithy_runtime_api::http::Headers;
use aws_smithy_types::base64;
use bytes::Bytes;
use futures_util::FutureExt;

use super::explain::{About, Failed};
use super::guard::Guard;
use super::intake::{Flow, Intake, WHOLE_BYTES_MAX, carrying, take};
use super::request::Request;
use super::{Blobs, action, meta};

impl Blobs {
    pub(super) async fn put_blob(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        body: Body,
        options: PutOptions,
    ) -> Result<BlobMeta> {
        meta::check_properties(&options.properties)?;
        match take(body, options.body.clone(), WHOLE_BYTES_MAX).await? {
            Intake::Whole(bytes, digest) => self.put_whole((bucket, key), bytes, digest, &options).await,
            Intake::Flowing(flow) => {
                let declared = &options.body;
                let known = declared.computed.iter().all(|it| declared.expected.get(*it).is_some());
                match declared.size.filter(|_| known) {
                    Some(size) => self.put_flowing((bucket, key), flow, size, &options).await,
                    // A request says at its beginning how long it is, and what its checksum is.
                    None => self.put_large((bucket, key), flow, &options).await,
                }
            }
        }
    }

    async fn put_whole(
        &self,
        (bucket, key): (&BucketName, &BlobKey),
        bytes: Bytes,
        digest: BodyDigest,
        options: &PutOptions,
    ) -> Result<BlobMeta> {
        let deadline = self.time_for(digest.size);
        let request = self.put_request((bucket, key), options, &digest.checksums)?;
        let request = request.header_if("content-md5", digest.etag.md5().map(base64::encode)).body(bytes);
        let (about, size) = (About::Blob(bucket, key), digest.size);
        let write = |guard: Guard| {
            let request = guard.on(request.clone());
            async move {
                let call = || self.client.ask(&request, self.caller.clock().now());
                let action = carrying(guard.action(&action::PUT_OBJECT), size);
                self.caller.call(&action, deadline, call).await
            }
            .boxed()
        };
        let explain = |failure| about.explain(failure);
        let answer = self.guarded((bucket, key), &options.condition, deadline, write, explain).await?;
        self.acknowledged(&answer.headers, digest, &options.properties)
    }

    /// Puts a body that is still on its way. A condition that only looking decides is decided once: the body cannot be
    /// sent again.
    async fn put_flowing(
        &self,
        (bucket, key): (&BucketName, &BlobKey),
        flow: Flow,
        size: u64,
        options: &PutOptions,
    ) -> Result<BlobMeta> {
        let guard = self.guard(bucket, key, &options.condition, self.soon()).await?;
        let request = guard.on(self.put_request((bucket, key), options, &options.body.expected)?);
        let request = request.header_if("content-md5", options.body.md5.map(base64::encode));
        let about = About::Blob(bucket, key);
        let explain = |failure: Failed| match (&options.condition, failure.is("PreconditionFailed")) {
            (WriteCondition::IfAbsent | WriteCondition::IfMatch(_), true) => {
                Error::PreconditionFailed(key.clone())
            }
            // It held when it was looked at; the writer decides whether to send the body once more.
            (_, true) => {
                Error::Unavailable(format!("others write to blob `{key}` at the same time: try again"))
            }
            (_, false) => about.explain(failure),
        };
        let (headers, digest) = self.send_flowing(&action::PUT_OBJECT, &request, flow, size, explain).await?;
        self.acknowledged(&headers, digest, &options.properties)
    }

    fn put_request(
        &self,
        (bucket, key): (&BucketName, &BlobKey),
        options: &PutOptions,
        checksums: &Checksums,
    ) -> Result<Request> {
        let (own, further) = meta::place_checksums(checksums);
        let request = Request::blob("PUT", bucket, key)
            .headers(meta::to_headers(&options.properties, &further)?)
            .headers(own.into_iter().flat_map(meta::checksum_headers));
        Ok(request)
    }

    /// What is known about a blob that S3 has acknowledged. Its answer does not tell the time of the object, only its own.
    fn acknowledged(
        &self,
        headers: &Headers,
        digest: BodyDigest,
        properties: &Properties,
    ) -> Result<BlobMeta> {
        Ok(BlobMeta {
            size: digest.size,
            etag: meta::etag(headers.get("etag").unwrap_or_default())?,
            properties: properties.clone(),
            checksums: meta::with_added(digest.checksums, headers),
            modified_at: self.date(headers),
            parts: None,
        })
    }

    /// When the service answered, in whole seconds, as it dates objects.
    pub(super) fn date(&self, headers: &Headers) -> Timestamp {
        let date = headers.get("date").and_then(meta::http_date);
        date.unwrap_or_else(|| Timestamp::from_millis(self.caller.clock().now().as_millis() / 1_000 * 1_000))
    }
}

/// The tag that an object gets from its parts, if they have tags from which it can be told.
pub(super) fn etag_of_parts<'a>(etags: impl Iterator<Item = &'a ETag>) -> Option<ETag> {
    let md5s: Option<Vec<[u8; 16]>> = etags.map(ETag::md5).collect();
    md5s.map(|md5s| ETag::of_parts(&md5s))
}
