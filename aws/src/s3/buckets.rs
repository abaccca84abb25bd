//! Making, describing and removing buckets.

use anabranch_model::blob::{BucketSummary, ListOptions};
use anabranch_model::{BucketName, Error, Page, Result, Timestamp, limits};

use super::explain::About;
use super::request::Request;
use super::xml::Element;
use super::{Blobs, action, meta};
use crate::call::Deadline;
use crate::change::Change;
use crate::failure::Kind;

/// The region whose name stands for none.
const FIRST_REGION: &str = "us-east-1";
/// Buckets of a page.
const PAGE_BUCKETS: usize = 1_000;

impl Blobs {
    pub(super) async fn make_bucket(&self, bucket: &BucketName) -> Result<()> {
        let deadline = self.soon();
        // In its first region S3 makes a bucket twice without a word.
        if self.has_keys(bucket, deadline).await?.is_some() {
            return Err(Error::BucketExists(bucket.clone()));
        }
        let region = self.client.place().region();
        let place = format!(
            "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             <LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
        );
        let body = if region == FIRST_REGION { String::new() } else { place };
        let request = Request::bucket("PUT", bucket).body(body);
        let call = || self.client.ask(&request, self.caller.clock().now());
        let ask = async || self.caller.call(&action::CREATE_BUCKET, deadline, call).await.map(drop);
        let look = async || Ok(self.has_keys(bucket, deadline).await?.is_some());
        let made = self.caller.until_certain(Change::Making, deadline, ask, look).await;
        made.map_err(|failure| About::Bucket(bucket).explain(failure))
    }

    pub(super) async fn remove_bucket(&self, bucket: &BucketName) -> Result<()> {
        match self.has_keys(bucket, self.soon()).await? {
            None => return Err(Error::BucketNotFound(bucket.clone())),
            Some(true) => return Err(Error::BucketNotEmpty(bucket.clone())),
            Some(false) => self.abort_all(bucket).await?,
        }
        let deadline = self.soon();
        let request = Request::bucket("DELETE", bucket);
        let call = || self.client.ask(&request, self.caller.clock().now());
        let ask = async || self.caller.call(&action::DELETE_BUCKET, deadline, call).await.map(drop);
        let look = async || Ok(self.has_keys(bucket, deadline).await?.is_none());
        let removed = self.caller.until_certain(Change::Removing, deadline, ask, look).await;
        removed.map_err(|failure| About::Bucket(bucket).explain(failure))
    }

    async fn abort_all(&self, bucket: &BucketName) -> Result<()> {
        for entry in self.open_uploads(bucket, "").await? {
            match self.abort(&entry.upload, self.soon()).await {
                Ok(()) | Err(Error::UploadNotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether a bucket has keys; none if it does not exist.
    async fn has_keys(&self, bucket: &BucketName, deadline: Deadline) -> Result<Option<bool>> {
        match self.keys_behind(bucket, &ListOptions::default(), None, 1, deadline).await {
            Ok(page) => Ok(Some(!page.entries.is_empty())),
            Err(Error::BucketNotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn describe_bucket(&self, bucket: &BucketName) -> Result<BucketSummary> {
        if self.has_keys(bucket, self.soon()).await?.is_none() {
            return Err(Error::BucketNotFound(bucket.clone()));
        }
        let own = self.all_buckets(Some(bucket)).await?.into_iter().find(|summary| summary.name == *bucket);
        // A bucket of another account that lets us in is in no list, and nobody tells when it was made.
        Ok(own.unwrap_or(BucketSummary { name: bucket.clone(), created_at: Timestamp::EPOCH }))
    }

    pub(super) async fn list_buckets(
        &self,
        after: Option<&BucketName>,
        limit: usize,
    ) -> Result<Page<BucketSummary>> {
        let mut entries = self.all_buckets(None).await?;
        entries.retain(|summary| after.is_none_or(|after| summary.name > *after));
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        let limit = limit.clamp(1, limits::PAGE_ENTRIES_MAX);
        let more = entries.len() > limit;
        entries.truncate(limit);
        Ok(Page { entries, more })
    }

    /// The buckets of the account, or those whose names begin like `named`. S3 goes on from a mark, not from a name, so
    /// all of them are listed.
    async fn all_buckets(&self, named: Option<&BucketName>) -> Result<Vec<BucketSummary>> {
        let (mut buckets, mut mark) = (Vec::new(), None);
        loop {
            let place = self.client.place();
            // Buckets of other regions cannot be reached from here.
            let region = place.is_aws().then(|| place.region().to_string());
            let request = Request::new("GET")
                .query_if("bucket-region", region)
                .query_if("continuation-token", mark)
                .query("max-buckets", PAGE_BUCKETS.to_string())
                .query_if("prefix", named.map(|name| name.as_str().to_string()));
            let call = || self.client.ask_document(&request, self.caller.clock().now());
            let answer = self.caller.call(&action::LIST_BUCKETS, self.soon(), call).await;
            let answer = match answer {
                Ok(answer) => answer,
                // Whoever may use one bucket need not see them all.
                Err(failure) if named.is_some() && failure.kind == Kind::Denied => return Ok(buckets),
                Err(failure) => return Err(failure.into()),
            };
            let listed = answer.child("Buckets").ok_or_else(|| super::strange("no list of buckets"))?;
            buckets.extend(listed.all("Bucket").filter_map(summary));
            mark = Some(answer.text("ContinuationToken").to_string()).filter(|mark| !mark.is_empty());
            if mark.is_none() {
                return Ok(buckets);
            }
        }
    }
}

/// A bucket in a list. Very old ones have names that are not allowed any more, and cannot be used.
fn summary(element: &Element) -> Option<BucketSummary> {
    let created_at = meta::date(element.text("CreationDate"))?;
    Some(BucketSummary { name: BucketName::new(element.text("Name")).ok()?, created_at })
}
