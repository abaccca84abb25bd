//! UntagDeliveryStream.

use serde::{Deserialize, Serialize};

use super::definition;
use super::errors::invalid;
use super::tags::{self, TAGS_MAX};
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    delivery_stream_name: Option<String>,
    #[serde(default)]
    tag_keys: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Response {}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let usable = |key: &String| (1..=128).contains(&key.chars().count());
    if !(1..=TAGS_MAX).contains(&request.tag_keys.len()) || !request.tag_keys.iter().all(usable) {
        return Err(invalid(format!("TagKeys must be 1 to {TAGS_MAX} keys of 1 to 128 characters.")));
    }
    let found = definition::find(context, request.delivery_stream_name).await?;
    tags::remove(context, &found.name, request.tag_keys).await?;
    Ok(Response {})
}
