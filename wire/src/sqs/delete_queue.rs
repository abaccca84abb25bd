//! DeleteQueue.

use serde::Deserialize;

use super::Nothing;
use super::errors::fault;
use super::queue::resolve;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_url: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let queue = resolve(context, request.queue_url.as_deref())?;
    context.ports.queues.delete_queue(&queue).await.map_err(fault)?;
    context.sqs.forget_purge(&queue);
    Ok(Nothing {})
}
