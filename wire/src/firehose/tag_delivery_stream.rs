//! TagDeliveryStream.

use serde::{Deserialize, Serialize};

use super::definition;
use super::errors::invalid;
use super::tags::{self, Tag};
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    delivery_stream_name: Option<String>,
    tags: Option<Vec<Tag>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Response {}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let tags = request.tags.filter(|tags| !tags.is_empty()).ok_or_else(|| invalid("Tags are missing."))?;
    tags::check(&tags)?;
    let found = definition::find(context, request.delivery_stream_name).await?;
    tags::put(context, &found.name, tags).await?;
    Ok(Response {})
}
