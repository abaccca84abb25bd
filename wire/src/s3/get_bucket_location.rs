//! GetBucketLocation.

use http::{Response, StatusCode};

use super::errors::fault;
use super::rest::Rest;
use super::xml::Xml;
use crate::context::{Context, REGION_DEFAULT};
use crate::fault::Fault;
use crate::protocol::Protocol;
use crate::receive::Body;

/// A bucket is in the region that it is asked from. The first region has no name here.
pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    context.ports.blobs.bucket(rest.bucket()?).await.map_err(fault)?;
    let region = if context.region == REGION_DEFAULT { "" } else { &context.region };
    let text = Xml::document("LocationConstraint", |xml| xml.text(region));
    Ok(Protocol::Xml.response(StatusCode::OK, text.into_bytes()))
}
