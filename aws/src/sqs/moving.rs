//! Dead letters on their way back, which SQS moves by itself.

use std::time::Duration;

use anabranch_model::queue::{MoveId, MoveStatus, MoveSummary, check_rate};
use anabranch_model::{Error, QueueName, Result, Timestamp, limits};
use aws_sdk_sqs::types::ListMessageMoveTasksResultEntry;

use super::options::{self, Arn};
use super::{Queues, action, refusal, strange};
use crate::call::Deadline;
use crate::failure::{Kind, Outcome};

/// How much older than the call a move may look that the call has started: the clocks of two machines differ.
const YOUNG: Duration = Duration::from_secs(60);

impl Queues {
    pub(super) async fn begin_move(
        &self,
        from: &QueueName,
        to: Option<&QueueName>,
        messages_per_second: Option<u32>,
    ) -> Result<MoveId> {
        check_rate(messages_per_second)?;
        if let Some(to) = to.filter(|to| *to == from || to.is_fifo() != from.is_fifo()) {
            return Err(Error::Invalid(format!(
                "dead letters of `{from}` cannot be moved to `{to}`: it must be another queue of the same kind"
            )));
        }
        let deadline = self.soon();
        let source = self.arn(from, deadline).await?;
        let destination = match to {
            Some(to) => Some(self.arn(to, deadline).await?.as_str().to_string()),
            None => None,
        };
        let rate = messages_per_second.map(|rate| i32::try_from(rate).unwrap_or(i32::MAX));
        let started = self.caller.clock().now();
        let request = || {
            self.client
                .start_message_move_task()
                .source_arn(source.as_str())
                .set_destination_arn(destination.clone())
                .set_max_number_of_messages_per_second(rate)
                .send()
        };
        let failure = match self.caller.call(&action::START_MESSAGE_MOVE_TASK, deadline, request).await {
            Ok(answer) => return handle(answer.task_handle.as_deref()),
            Err(failure) => failure,
        };
        // One move of a queue runs at a time: one that is young and goes to the same place is this one.
        if failure.kind == Kind::Away && failure.outcome == Outcome::Unknown {
            let moves = self.list(from, &source, deadline).await.unwrap_or_default();
            let young = |moving: &MoveSummary| {
                moving.status == MoveStatus::Running
                    && moving.started_at.plus(YOUNG) >= started
                    && moving.to.as_ref() == to
            };
            if let Some(moving) = moves.into_iter().find(young) {
                return Ok(moving.id);
            }
        }
        match failure.message.contains("already a task running") {
            true => Err(Error::MoveRunning(from.clone())),
            false => Err(self.refused(from, None, failure)),
        }
    }

    pub(super) async fn list_moves(&self, from: &QueueName) -> Result<Vec<MoveSummary>> {
        let deadline = self.soon();
        let source = self.arn(from, deadline).await?;
        self.list(from, &source, deadline).await
    }

    async fn list(&self, from: &QueueName, source: &Arn, deadline: Deadline) -> Result<Vec<MoveSummary>> {
        let most = i32::try_from(limits::MOVES_REMEMBERED_MAX).unwrap_or(i32::MAX);
        let request =
            || self.client.list_message_move_tasks().source_arn(source.as_str()).max_results(most).send();
        let answer = self.caller.call(&action::LIST_MESSAGE_MOVE_TASKS, deadline, request).await;
        let answer = answer.map_err(|failure| self.refused(from, None, failure))?;
        let moves = answer.results.unwrap_or_default().into_iter().map(|entry| summary(from, entry));
        let mut moves = moves.collect::<Result<Vec<_>>>()?;
        moves.sort_by_key(|moving| std::cmp::Reverse(moving.started_at));
        Ok(moves)
    }

    pub(super) async fn end_move(&self, id: &MoveId) -> Result<u64> {
        let request = || self.client.cancel_message_move_task().task_handle(id.as_str()).send();
        let answer = self.caller.call(&action::CANCEL_MESSAGE_MOVE_TASK, self.soon(), request).await;
        let answer = answer.map_err(|failure| {
            let ended = matches!(failure.kind, Kind::NotFound | Kind::Invalid)
                || refusal::is(&failure, "UnsupportedOperation");
            failure.explained(|_| ended.then(|| Error::MoveNotRunning(id.clone())))
        })?;
        Ok(u64::try_from(answer.approximate_number_of_messages_moved).unwrap_or(0))
    }

    async fn arn(&self, queue: &QueueName, deadline: Deadline) -> Result<Arn> {
        Arn::of(&self.describe(queue, deadline).await?)
    }
}

fn handle(handle: Option<&str>) -> Result<MoveId> {
    handle.and_then(|handle| MoveId::new(handle).ok()).ok_or_else(|| strange("a move without a handle"))
}

fn summary(from: &QueueName, entry: ListMessageMoveTasksResultEntry) -> Result<MoveSummary> {
    let started_at = Timestamp::from_millis(u64::try_from(entry.started_timestamp).unwrap_or(0));
    let status = match entry.status.as_deref() {
        Some("COMPLETED") => MoveStatus::Completed,
        Some("CANCELLED") => MoveStatus::Cancelled,
        Some("FAILED") => MoveStatus::Failed(entry.failure_reason.unwrap_or_default()),
        // One that is being cancelled still moves what it has begun.
        Some("RUNNING" | "CANCELLING") => MoveStatus::Running,
        _ => return Err(strange("a move in an unknown state")),
    };
    let id = match entry.task_handle.as_deref() {
        Some(text) => handle(Some(text))?,
        // SQS forgets the handle of a move that has ended; nothing can be done with it any more.
        None => handle(Some(&format!("ended-{}", started_at.as_millis())))?,
    };
    Ok(MoveSummary {
        id,
        from: from.clone(),
        to: entry.destination_arn.as_deref().map(options::named).transpose()?,
        messages_per_second: entry
            .max_number_of_messages_per_second
            .and_then(|rate| u32::try_from(rate).ok()),
        status,
        moved: u64::try_from(entry.approximate_number_of_messages_moved).unwrap_or(0),
        to_move: entry
            .approximate_number_of_messages_to_move
            .and_then(|n| u64::try_from(n).ok())
            .unwrap_or(0),
        started_at,
    })
}
