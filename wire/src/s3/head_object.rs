//! HeadObject.

use anabranch_model::Error;
use http::{Response, StatusCode};

use super::answer::{empty, head};
use super::errors::fault;
use super::get_object::{describe, not_modified, part};
use super::headers::{range, read_conditions};
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let (bucket, key) = rest.object()?;
    let range = range(&rest.headers);
    let part = part(context, rest, range.is_some()).await?;
    let meta = context.ports.blobs.head(bucket, key).await.map_err(fault)?;
    match read_conditions(&rest.headers, "")?.check(key, &meta) {
        Ok(()) => {}
        Err(Error::NotModified(_)) => return Ok(not_modified(&meta)),
        Err(error) => return Err(fault(error)),
    }
    let partial = range.is_some() || part.is_some();
    let bytes = range.map_or(Ok(0..meta.size), |range| range.resolve(meta.size)).map_err(fault)?;
    let mut response = empty(if partial { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK });
    let headers = response.headers_mut();
    head(headers, &meta, bytes.end - bytes.start, &rest.query);
    describe(headers, rest, &meta, (partial, &bytes))?;
    Ok(response)
}
