//! UntagQueue.

use serde::Deserialize;

use super::Nothing;
use super::errors::{fault, required};
use super::queue::resolve;
use super::settings::Settings;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_url: Option<String>,
    #[serde(alias = "TagKey")]
    tag_keys: Option<Vec<String>>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let queue = resolve(context, request.queue_url.as_deref())?;
    let keys = required("TagKeys", request.tag_keys)?;
    let _changing = context.sqs.changing().await;
    context.ports.queues.queue(&queue).await.map_err(fault)?;
    let mut settings = Settings::of(context, &queue).await?;
    settings.tags.retain(|key, _| !keys.contains(key));
    settings.keep(context, &queue).await?;
    Ok(Nothing {})
}
