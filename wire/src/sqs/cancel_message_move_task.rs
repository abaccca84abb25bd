//! CancelMessageMoveTask.

use anabranch_model::Error;
use serde::{Deserialize, Serialize};

use super::errors::{fault, no_resource, required};
use super::task_handle;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    task_handle: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    approximate_number_of_messages_moved: u64,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let handle = required("TaskHandle", request.task_handle)?;
    let (from, id) = task_handle::parse(&handle)?;
    context.ports.queues.queue(&from).await.map_err(|error| match error {
        Error::QueueNotFound(_) => {
            no_resource("The resource that you specified for the SourceArn parameter doesn't exist.")
        }
        error => fault(error),
    })?;
    let moved = context.ports.queues.cancel_move(&id).await.map_err(fault)?;
    Ok(Response { approximate_number_of_messages_moved: moved })
}
