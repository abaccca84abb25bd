//! Requests that are signed and sent, and nothing else: what the operations are measured beside.

use anabranch_model::{BlobKey, BucketName, Result};
use bytes::Bytes;

use super::Blobs;
use super::request::Request;
use crate::bare::broken;

impl Blobs {
    /// Puts bytes.
    pub(crate) async fn bare_put(&self, bucket: &BucketName, key: &BlobKey, body: &Bytes) -> Result<()> {
        let request = Request::blob("PUT", bucket, key).body(body.clone());
        self.client.ask(&request, self.caller.clock().now()).await.map(drop).map_err(broken)
    }

    /// Reads a body whole, and says how long it is.
    pub(crate) async fn bare_get(&self, bucket: &BucketName, key: &BlobKey) -> Result<usize> {
        let answer = self.client.ask(&Request::blob("GET", bucket, key), self.caller.clock().now()).await;
        Ok(answer.map_err(broken)?.text.len())
    }
}
