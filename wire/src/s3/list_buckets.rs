//! ListBuckets.

use anabranch_model::blob::{BucketName, BucketSummary};
use anabranch_model::limits::{BUCKETS_MAX, PAGE_ENTRIES_MAX};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::Response;

use super::answer::{arn, document, owner};
use super::errors::{fault, invalid};
use super::moment::iso;
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let query = &rest.query;
    let limit = query.limit("max-buckets", BUCKETS_MAX)?;
    if limit == 0 {
        return Err(invalid("Argument max-buckets must be an integer between 1 and 10000"));
    }
    let prefix = query.get("prefix").unwrap_or("");
    let after = query.filled("continuation-token").map(open_token).transpose()?;
    // One more than wanted tells whether there are more. Every bucket is in the region that it is asked from.
    let elsewhere = query.filled("bucket-region").is_some_and(|region| region != context.region);
    let mut found = if elsewhere { Vec::new() } else { gather(context, after, prefix, limit + 1).await? };
    let more = found.len() > limit;
    found.truncate(limit);
    let token = found.last().filter(|_| more).map(|last| BASE64_STANDARD.encode(last.name.as_str()));
    Ok(document("ListAllMyBucketsResult", |xml| {
        owner(xml, "Owner");
        xml.element("Buckets", |xml| {
            for bucket in &found {
                xml.element("Bucket", |xml| {
                    xml.value("Name", bucket.name.as_str()).value("CreationDate", iso(bucket.created_at));
                    xml.value("BucketRegion", &context.region);
                    xml.value("BucketArn", arn(&bucket.name));
                });
            }
        });
        xml.optional("ContinuationToken", token).optional("Prefix", query.filled("prefix"));
    }))
}

async fn gather(
    context: &Context,
    mut after: Option<BucketName>,
    prefix: &str,
    most: usize,
) -> Result<Vec<BucketSummary>, Fault> {
    let mut found = Vec::new();
    loop {
        let page = context.ports.blobs.buckets(after.as_ref(), PAGE_ENTRIES_MAX).await.map_err(fault)?;
        after = page.entries.last().map(|last| last.name.clone());
        found.extend(page.entries.into_iter().filter(|bucket| bucket.name.as_str().starts_with(prefix)));
        if !page.more || found.len() >= most {
            found.truncate(most);
            return Ok(found);
        }
    }
}

fn open_token(token: &str) -> Result<BucketName, Fault> {
    let name = BASE64_STANDARD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let name = name.and_then(|name| BucketName::new(&name).ok());
    name.ok_or_else(|| invalid("The continuation token provided is incorrect"))
}
