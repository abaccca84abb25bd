//! DeleteBucket.

use http::{Response, StatusCode};

use super::answer::empty;
use super::errors::fault;
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    context.ports.blobs.delete_bucket(rest.bucket()?).await.map_err(fault)?;
    Ok(empty(StatusCode::NO_CONTENT))
}
