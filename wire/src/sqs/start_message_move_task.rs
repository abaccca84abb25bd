//! StartMessageMoveTask.

use anabranch_model::Error;
use anabranch_model::limits::MOVE_MESSAGES_PER_SECOND_MAX;
use serde::{Deserialize, Serialize};

use super::errors::{fault, invalid, invalid_value, no_resource, required};
use super::queue::of_parameter;
use super::task_handle;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    source_arn: Option<String>,
    destination_arn: Option<String>,
    max_number_of_messages_per_second: Option<i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    task_handle: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let from = of_parameter("SourceArn", &required("SourceArn", request.source_arn)?)?;
    let to = request.destination_arn.as_deref().map(|arn| of_parameter("DestinationArn", arn)).transpose()?;
    if let Some(to) = to.as_ref().filter(|to| **to == from || to.is_fifo() != from.is_fifo()) {
        return Err(invalid_value("DestinationArn", to, "It must be another queue of the same kind."));
    }
    let rate = request.max_number_of_messages_per_second.map(rate).transpose()?;
    let started = context.ports.queues.start_move(&from, to.as_ref(), rate).await;
    let id = started.map_err(|error| match error {
        Error::QueueNotFound(missing) => {
            let parameter = if missing == from { "SourceArn" } else { "DestinationArn" };
            no_resource(format!(
                "The resource that you specified for the {parameter} parameter doesn't exist."
            ))
        }
        // The store refuses it for nothing else that is not checked above.
        Error::Invalid(_) => invalid("Source queue must be configured as a Dead Letter Queue."),
        error => fault(error),
    })?;
    Ok(Response { task_handle: task_handle::spell(context, &from, &id)? })
}

fn rate(messages: i64) -> Result<u32, Fault> {
    let allowed =
        u32::try_from(messages).ok().filter(|rate| (1..=MOVE_MESSAGES_PER_SECOND_MAX).contains(rate));
    allowed.ok_or_else(|| {
        let reason = format!("Must be between 1 and {MOVE_MESSAGES_PER_SECOND_MAX}.");
        invalid_value("MaxNumberOfMessagesPerSecond", messages, &reason)
    })
}
