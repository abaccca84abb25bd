//! ListTagsForDeliveryStream.

use serde::{Deserialize, Serialize};

use super::definition;
use super::errors::invalid;
use super::tags::{self, TAGS_MAX, Tag};
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    delivery_stream_name: Option<String>,
    exclusive_start_tag_key: Option<String>,
    limit: Option<i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    tags: Vec<Tag>,
    has_more_tags: bool,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let limit = request.limit.unwrap_or(TAGS_MAX as i64);
    if !(1..=TAGS_MAX as i64).contains(&limit) {
        return Err(invalid(format!("Limit must be 1 to {TAGS_MAX}.")));
    }
    let found = definition::find(context, request.delivery_stream_name).await?;
    let mut tags = tags::list(context, &found.name).await?;
    tags.retain(|tag| tag.key > request.exclusive_start_tag_key);
    let has_more_tags = tags.len() > limit as usize;
    tags.truncate(limit as usize);
    Ok(Response { tags, has_more_tags })
}
