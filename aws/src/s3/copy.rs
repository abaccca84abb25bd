//! Copies, which S3 makes by itself.

use anabranch_model::blob::{BlobMeta, CopyOptions};
use anabranch_model::{BlobKey, BucketName, Error, Result, limits};
use futures_util::FutureExt;

use super::explain::{About, Failed};
use super::guard::{Guard, quoted};
use super::request::{Request, copy_source};
use super::xml::Element;
use super::{Blobs, action, meta};
use crate::call::Deadline;

/// How often the source may be replaced while it is looked at and copied.
const ROUNDS_MAX: u32 = 10;

impl Blobs {
    pub(super) async fn copy_blob(
        &self,
        source: (&BucketName, &BlobKey),
        target: (&BucketName, &BlobKey),
        options: CopyOptions,
    ) -> Result<BlobMeta> {
        match &options.properties {
            Some(properties) => meta::check_properties(properties)?,
            None if source == target => {
                return Err(Error::Invalid(
                    "a blob that is copied onto itself needs other properties".to_string(),
                ));
            }
            None => {}
        }
        let deadline = self.later();
        for rounds in 1..=ROUNDS_MAX {
            let seen = self.look(source.0, source.1, deadline).await?;
            options.source.check(source.1, &seen).map_err(|_| Error::PreconditionFailed(source.1.clone()))?;
            if seen.size > limits::BODY_BYTES_MAX {
                return Err(Error::BodyTooLarge { limit_bytes: limits::BODY_BYTES_MAX });
            }
            if let Some(copied) = self.copy_seen(source, target, &seen, &options, deadline).await? {
                return Ok(copied);
            }
            if !self.caller.back_off(rounds, deadline).await {
                break;
            }
        }
        Err(Error::Unavailable(format!("blob `{}` is replaced all the time: try again", source.1)))
    }

    /// Copies the source as it was seen; none if it is another one by now.
    async fn copy_seen(
        &self,
        source: (&BucketName, &BlobKey),
        target: (&BucketName, &BlobKey),
        seen: &BlobMeta,
        options: &CopyOptions,
        deadline: Deadline,
    ) -> Result<Option<BlobMeta>> {
        let mut request = Request::blob("PUT", target.0, target.1)
            .header("x-amz-copy-source", copy_source(source.0, source.1))
            .header("x-amz-copy-source-if-match", quoted(&seen.etag));
        let (own, further) = meta::place_checksums(&seen.checksums);
        if let Some(properties) = &options.properties {
            request = request
                .header("x-amz-metadata-directive", "REPLACE")
                .headers(meta::to_headers(properties, &further)?);
        }
        let algorithm = own.map(|checksum| meta::algorithm_value(checksum.algorithm()));
        request = request.header_if("x-amz-checksum-algorithm", algorithm);
        let write = |guard: Guard| {
            let request = guard.on(request.clone());
            async move {
                let call = || self.client.ask_document(&request, self.caller.clock().now());
                let action = guard.action(&action::COPY_OBJECT);
                match self.caller.call(&action, deadline, call).await {
                    Ok(answer) => Ok(Some(answer)),
                    // The condition of the source and that of the target fail with the same word.
                    Err(failure) if self.is_other(source, seen, &failure, deadline).await => Ok(None),
                    Err(failure) => Err(failure),
                }
            }
            .boxed()
        };
        let explain = |failure: Failed| match failure.code.as_deref() {
            // Either of the two buckets; the source was there a moment ago.
            Some("NoSuchKey") => About::Blob(source.0, source.1).explain(failure),
            _ => About::Blob(target.0, target.1).explain(failure),
        };
        match self.guarded(target, &options.target, deadline, write, explain).await? {
            Some(answer) => self.copied(target, seen, &answer, options, deadline).await.map(Some),
            None => Ok(None),
        }
    }

    /// Whether a copy failed because the source is not what was seen any more.
    async fn is_other(
        &self,
        source: (&BucketName, &BlobKey),
        seen: &BlobMeta,
        failure: &Failed,
        deadline: Deadline,
    ) -> bool {
        failure.is("PreconditionFailed")
            && self.look(source.0, source.1, deadline).await.is_ok_and(|now| now.etag != seen.etag)
    }

    async fn copied(
        &self,
        target: (&BucketName, &BlobKey),
        seen: &BlobMeta,
        answer: &Element,
        options: &CopyOptions,
        deadline: Deadline,
    ) -> Result<BlobMeta> {
        let written = BlobMeta {
            etag: meta::etag(answer.text("ETag"))?,
            properties: options.properties.clone().unwrap_or_else(|| seen.properties.clone()),
            modified_at: meta::date_in_seconds(answer.text("LastModified"))
                .ok_or_else(|| super::strange("a copy without a date"))?,
            // A copy is put at once, whatever its source was.
            parts: None,
            ..seen.clone()
        };
        Ok(self.written(About::Blob(target.0, target.1), written, deadline).await)
    }
}
