//! CancelMessageMoveTask.

use anabranch_model::queue::MoveId;
use serde::{Deserialize, Serialize};

use super::errors::{fault, no_resource, required};
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
    let id = MoveId::new(&handle).map_err(|_| no_resource("Task does not exist."))?;
    let moved = context.ports.queues.cancel_move(&id).await.map_err(fault)?;
    Ok(Response { approximate_number_of_messages_moved: moved })
}
