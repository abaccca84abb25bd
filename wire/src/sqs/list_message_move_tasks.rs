//! ListMessageMoveTasks.

use anabranch_model::Error;
use anabranch_model::limits::MOVES_REMEMBERED_MAX;
use anabranch_model::queue::{MoveStatus, MoveSummary};
use serde::{Deserialize, Serialize};

use super::errors::{fault, invalid_value, no_resource, required};
use super::queue::{arn, of_parameter};
use super::task_handle;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    source_arn: Option<String>,
    max_results: Option<i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    results: Vec<Task>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Task {
    #[serde(skip_serializing_if = "Option::is_none")]
    task_handle: Option<String>,
    status: &'static str,
    source_arn: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_number_of_messages_per_second: Option<u32>,
    approximate_number_of_messages_moved: u64,
    approximate_number_of_messages_to_move: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_reason: Option<String>,
    started_timestamp: u64,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let from = of_parameter("SourceArn", &required("SourceArn", request.source_arn)?)?;
    let most = request.max_results.unwrap_or(1);
    let limit = usize::try_from(most).ok().filter(|limit| (1..=MOVES_REMEMBERED_MAX).contains(limit));
    let limit = limit.ok_or_else(|| invalid_value("MaxResults", most, "Must be between 1 and 10."))?;
    let moves = context.ports.queues.moves(&from).await.map_err(|error| match error {
        Error::QueueNotFound(_) => {
            no_resource("The resource that you specified for the SourceArn parameter doesn't exist.")
        }
        error => fault(error),
    })?;
    let tasks = moves.into_iter().take(limit).map(|moving| task(context, moving));
    Ok(Response { results: tasks.collect::<Result<_, _>>()? })
}

/// A task as SQS shows it. Only one that runs has a handle: there is nothing to do with others.
fn task(context: &Context, moving: MoveSummary) -> Result<Task, Fault> {
    let (status, failure_reason) = match moving.status {
        MoveStatus::Running => ("RUNNING", None),
        MoveStatus::Completed => ("COMPLETED", None),
        MoveStatus::Cancelled => ("CANCELLED", None),
        MoveStatus::Failed(reason) => ("FAILED", Some(reason)),
    };
    let running = status == "RUNNING";
    let handle = running.then(|| task_handle::spell(context, &moving.from, &moving.id)).transpose()?;
    Ok(Task {
        task_handle: handle,
        status,
        source_arn: arn(context, &moving.from),
        destination_arn: moving.to.map(|to| arn(context, &to)),
        max_number_of_messages_per_second: moving.messages_per_second,
        approximate_number_of_messages_moved: moving.moved,
        approximate_number_of_messages_to_move: moving.to_move,
        failure_reason,
        started_timestamp: moving.started_at.as_millis(),
    })
}
