//! HeadBucket.

use http::{HeaderName, Response, StatusCode};

use super::answer::{ARN, arn, empty};
use super::errors::fault;
use super::headers::set;
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let bucket = rest.bucket()?;
    context.ports.blobs.bucket(bucket).await.map_err(fault)?;
    let mut response = empty(StatusCode::OK);
    let headers = response.headers_mut();
    set(headers, HeaderName::from_static("x-amz-bucket-region"), &context.region);
    set(headers, ARN, &arn(bucket));
    set(headers, HeaderName::from_static("x-amz-access-point-alias"), "false");
    Ok(response)
}
