//! TagDeliveryStream.

use serde::{Deserialize, Serialize};

use super::definition;
use super::errors::invalid;
use super::tags::{self, Tag};
use crate::context::Context;
use crate::fault::Fault;
use crate::list::{ENTRIES_MAX, some_bounded};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    delivery_stream_name: Option<String>,
    #[serde(default, deserialize_with = "some_bounded::<_, _, { ENTRIES_MAX }>")]
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
