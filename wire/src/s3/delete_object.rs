//! DeleteObject.

use anabranch_model::blob::{BlobKey, BucketName, ETag};
use anabranch_model::{Error, Result as ModelResult};
use http::{Response, StatusCode};

use super::answer::empty;
use super::errors::{fault, not_implemented};
use super::headers::etag;
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

/// How often an object that is replaced meanwhile is looked at again.
const ATTEMPTS_MAX: usize = 16;

/// What an object must be to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DeleteIf {
    /// Whatever it is, and whether or not it is there.
    Always,
    /// It is there.
    Present,
    /// It has this tag.
    Matches(ETag),
}

impl DeleteIf {
    /// What a tag in a request demands.
    pub(super) fn parse(text: Option<&str>) -> Result<Self, Fault> {
        match text.map(str::trim) {
            None | Some("") => Ok(DeleteIf::Always),
            Some("*") => Ok(DeleteIf::Present),
            Some(text) => etag(text).map(DeleteIf::Matches),
        }
    }
}

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let (bucket, key) = rest.object()?;
    for header in ["x-amz-if-match-size", "x-amz-if-match-last-modified-time"] {
        if rest.headers.contains_key(header) {
            return Err(not_implemented(header));
        }
    }
    let condition = DeleteIf::parse(rest.header("if-match")?)?;
    delete(context, bucket, key, &condition).await.map_err(fault)?;
    Ok(empty(StatusCode::NO_CONTENT))
}

/// Deletes an object. One that must be there may be replaced meanwhile, and then it is the new one that goes.
pub(super) async fn delete(
    context: &Context,
    bucket: &BucketName,
    key: &BlobKey,
    condition: &DeleteIf,
) -> ModelResult<()> {
    let blobs = &context.ports.blobs;
    match condition {
        DeleteIf::Always => blobs.delete(bucket, key, None).await,
        DeleteIf::Matches(tag) => blobs.delete(bucket, key, Some(tag)).await,
        DeleteIf::Present => {
            for _ in 0..ATTEMPTS_MAX {
                let tag = blobs.head(bucket, key).await?.etag;
                match blobs.delete(bucket, key, Some(&tag)).await {
                    Err(Error::PreconditionFailed(_)) => {}
                    done => return done,
                }
            }
            Err(Error::Unavailable(format!("`{key}` is being replaced again and again")))
        }
    }
}
