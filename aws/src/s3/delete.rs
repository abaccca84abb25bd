//! Deleting blobs, one or many at a time.

use std::collections::HashMap;

use anabranch_model::blob::{ETag, WriteCondition, md5_of};
use anabranch_model::{BlobKey, BucketName, Error, Result, limits};
use aws_smithy_types::base64;
use futures_util::future::{BoxFuture, ready};
use futures_util::{FutureExt, StreamExt, stream};

use super::explain::About;
use super::guard::Guard;
use super::request::Request;
use super::xml::{Element, escaped};
use super::{Blobs, action};
use crate::failure::{Failure, Reply, from_reply};

/// Deletions of keys that no document can name which are under way at the same time.
const SINGLE_AT_ONCE: usize = 8;

impl Blobs {
    pub(super) async fn remove(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        if_match: Option<&ETag>,
    ) -> Result<()> {
        let deadline = self.soon();
        let request = Request::blob("DELETE", bucket, key);
        let condition = match if_match {
            None => WriteCondition::None,
            Some(etag) => {
                // S3 does not say whether it is the tag or the blob that is missing.
                let seen = self.look(bucket, key, deadline).await?;
                let condition = WriteCondition::IfMatch(etag.clone());
                condition.check(bucket, key, Some(&seen.etag))?;
                condition
            }
        };
        let write = |guard: Guard| {
            let request = guard.on(request.clone());
            async move {
                let call = || self.client.ask(&request, self.caller.clock().now());
                self.caller.call(&guard.action(&action::DELETE_OBJECT), deadline, call).await
            }
            .boxed()
        };
        let explain = |failure| About::Blob(bucket, key).explain(failure);
        self.guarded((bucket, key), &condition, deadline, write, explain).await?;
        Ok(())
    }

    pub(super) async fn remove_many(&self, bucket: &BucketName, keys: &[BlobKey]) -> Result<Vec<Result<()>>> {
        if keys.is_empty() || keys.len() > limits::DELETE_KEYS_MAX {
            return Err(Error::Invalid(format!(
                "a deletion of {} keys is not allowed: it must have 1 to {}",
                keys.len(),
                limits::DELETE_KEYS_MAX
            )));
        }
        let texts: Vec<_> = keys.iter().map(|key| escaped(key.as_str())).collect();
        let objects: String =
            texts.iter().flatten().map(|text| format!("<Object><Key>{text}</Key></Object>")).collect();
        let failed =
            if objects.is_empty() { HashMap::new() } else { self.remove_named(bucket, objects).await? };
        let results: Vec<BoxFuture<'_, Result<()>>> = keys
            .iter()
            .zip(texts)
            .map(|(key, text)| match text {
                Some(_) => ready(failed.get(key.as_str()).map_or(Ok(()), |error| Err(error.clone()))).boxed(),
                None => self.remove(bucket, key, None).boxed(),
            })
            .collect();
        Ok(stream::iter(results).buffered(SINGLE_AT_ONCE).collect().await)
    }

    /// Deletes the keys in a document. What failed comes back under its key.
    async fn remove_named(&self, bucket: &BucketName, objects: String) -> Result<HashMap<String, Error>> {
        let document = format!(
            "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>{objects}</Delete>"
        );
        let request = Request::bucket("POST", bucket)
            .query("delete", "")
            .header("content-type", "application/xml")
            .header("content-md5", base64::encode(md5_of(document.as_bytes())))
            .body(document);
        let call = || self.client.ask_document(&request, self.caller.clock().now());
        let answer = self.caller.call(&action::DELETE_OBJECTS, self.soon(), call).await;
        let answer = answer.map_err(|failure| About::Bucket(bucket).explain(failure))?;
        let error = |element: &Element| (element.raw("Key").to_string(), refused(bucket, element));
        Ok(answer.all("Error").map(error).collect())
    }
}

/// Why one of many was not deleted.
fn refused(bucket: &BucketName, element: &Element) -> Error {
    let reply = Reply { status: 200, ..Reply::default() };
    // The code says what it is; an inner failure has the status of the whole.
    let code = match element.text("Code") {
        "InternalError" => "ServiceUnavailable",
        code => code,
    };
    let failure: Failure<_> =
        from_reply(&action::DELETE_OBJECTS, Some(code), Some(element.text("Message")), &reply);
    About::Bucket(bucket).explain(failure)
}
