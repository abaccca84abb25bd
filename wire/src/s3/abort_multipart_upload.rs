//! AbortMultipartUpload.

use http::{Response, StatusCode};

use super::answer::empty;
use super::errors::fault;
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    context.ports.blobs.abort_upload(&rest.upload()?).await.map_err(fault)?;
    Ok(empty(StatusCode::NO_CONTENT))
}
