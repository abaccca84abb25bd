//! ListTagsForStream.

use serde::{Deserialize, Serialize};

use super::settings;
use super::stream::resolve;
use super::tags::{self, TAGS_MAX, Tag};
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
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
    let mut validation = Validation::default();
    validation.length("exclusiveStartTagKey", request.exclusive_start_tag_key.as_deref(), 1..=128).range(
        "limit",
        request.limit,
        1..=50,
    );
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    let mut tags = settings::load(context, &stream).await?.tags;
    if let Some(after) = request.exclusive_start_tag_key {
        tags.retain(|key, _| *key > after);
    }
    let mut tags = tags::shapes(&tags);
    let limit = request.limit.map_or(TAGS_MAX, |limit| limit as usize);
    let has_more_tags = tags.len() > limit;
    tags.truncate(limit);
    Ok(Response { tags, has_more_tags })
}
