//! GetQueueUrl.

use anabranch_model::QueueName;
use serde::{Deserialize, Serialize};

use super::errors::{fault, no_queue, required};
use super::queue::url;
use crate::context::Context;
use crate::fault::Fault;

/// One account owns all queues, so the owner that a caller may name is not looked at.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_name: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    queue_url: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let name = required("QueueName", request.queue_name)?;
    let queue = QueueName::new(&name).map_err(|_| no_queue())?;
    context.ports.queues.queue(&queue).await.map_err(fault)?;
    Ok(Response { queue_url: url(context, &queue) })
}
