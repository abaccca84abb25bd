//! CreateBucket.

use anabranch_model::Error;
use http::header::LOCATION;
use http::{Response, StatusCode};

use super::answer::{ARN, arn, empty};
use super::errors::{fault, not_implemented};
use super::headers::set;
use super::rest::Rest;
use super::xml::Element;
use crate::context::{Context, REGION_DEFAULT};
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let bucket = rest.bucket()?;
    let (body, _reservation) = rest.payload.collect(&*context.memory).await?;
    if !body.is_empty() {
        check(&Element::parse(&body, "CreateBucketConfiguration")?)?;
    }
    match context.ports.blobs.create_bucket(bucket).await {
        Ok(()) => {}
        // In this one region it is no mistake to create a bucket again, and clients have come to rely on it.
        Err(Error::BucketExists(_)) if context.region == REGION_DEFAULT => {}
        Err(error) => return Err(fault(error)),
    }
    let mut response = empty(StatusCode::OK);
    let headers = response.headers_mut();
    set(headers, LOCATION, &format!("/{bucket}"));
    set(headers, ARN, &arn(bucket));
    Ok(response)
}

/// Any region will do: a bucket is in the one that it is asked from. Everything else would have to be done.
fn check(configuration: &Element) -> Result<(), Fault> {
    let kind = configuration.all("Bucket").next().is_some() || configuration.all("Location").next().is_some();
    if kind {
        return Err(not_implemented("a bucket of another kind"));
    }
    let tagged = configuration.all("Tags").any(|tags| tags.all("Tag").next().is_some());
    if tagged { Err(not_implemented("Tags")) } else { Ok(()) }
}
