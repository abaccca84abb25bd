//! PurgeQueue.

use http::StatusCode;
use serde::Deserialize;

use super::Nothing;
use super::errors::{fault, refusal};
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
    let Some(purge) = context.sqs.begin_purge(&*context.clock, &queue) else {
        let message = format!("Only one PurgeQueue operation on {queue} is allowed every 60 seconds.");
        let code = "AWS.SimpleQueueService.PurgeQueueInProgress";
        return Err(refusal("PurgeQueueInProgress", code, message).with_status(StatusCode::FORBIDDEN));
    };
    context.ports.queues.purge(&queue).await.map_err(fault)?;
    purge.done();
    Ok(Nothing {})
}
