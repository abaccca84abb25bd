//! ListQueueTags.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::errors::fault;
use super::queue::resolve;
use super::settings::Settings;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_url: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let queue = resolve(context, request.queue_url.as_deref())?;
    context.ports.queues.queue(&queue).await.map_err(fault)?;
    Ok(Response { tags: Settings::of(context, &queue).await?.tags })
}
