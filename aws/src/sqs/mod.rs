//! Queues on SQS.
//!
//! Each file is one step: where a queue is (`address`), what it is (`describe`, `options`), how it is made and removed
//! (`manage`), sent to (`send`, with `body` and `attributes` for what is not text, and `batch` for what SQS does in part), received from (`receive`), what is
//! done with a receipt (`receipts`), and how dead letters go back (`moving`). What SQS refuses is sorted in `refusal`.
//!
//! Where SQS promises less than the port:
//!
//! * Changed options hold within a minute, a changed retention within a quarter of an hour.
//! * Two who make the same queue with the same options at the same moment both succeed.
//! * A name is free a minute after its queue was deleted: making it again waits.
//! * Counts are estimates, and nobody says how old the oldest message is.
//! * A standard queue may once in a while give a message twice, or one that was deleted.
//! * Whoever waits in a queue that another process deletes may come back with nothing instead of an error.
//! * Moves that have ended have no identifier of their own any more.

pub(crate) mod action;

mod address;
mod attributes;
mod batch;
mod body;
mod describe;
mod manage;
mod moving;
mod options;
mod receipts;
mod receive;
mod refusal;
mod send;

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::queue::{MoveId, MoveSummary, QueueSummary, ReceiveOptions, Sent};
use anabranch_model::{
    Error, Message, NewMessage, Page, QueueName, QueueOptions, QueueStore, Receipt, Result,
};
use async_trait::async_trait;
use aws_sdk_sqs::Client;

use self::address::Addresses;
use crate::call::{Caller, Deadline};
use crate::config::Aws;

/// How long a call may take, with its attempts.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long making or removing a queue may take: SQS needs a minute before it gives a name again.
const CHANGE_PATIENCE: Duration = Duration::from_secs(120);
/// How long SQS takes to purge. Until then messages that were sent before can be received, and some that are sent
/// meanwhile are deleted with them.
const PURGE_DURATION: Duration = Duration::from_secs(60);

/// Queues on SQS. Cheap to clone: the clones share connections and limits.
#[derive(Clone, Debug)]
pub struct Queues {
    client: Client,
    caller: Caller,
    addresses: Arc<Addresses>,
    purge_duration: Duration,
}

impl Queues {
    /// The queues of the account and region that `aws` is connected to.
    pub fn new(aws: &Aws) -> Self {
        Queues {
            client: Client::new(&aws.config),
            caller: aws.caller.clone(),
            addresses: Arc::default(),
            purge_duration: PURGE_DURATION,
        }
    }

    /// The same queues, on a server that has purged a queue when it says so. SQS itself needs a minute, which a purge
    /// waits for: what is sent during that minute may be deleted too.
    pub fn purging_at_once(mut self) -> Self {
        self.purge_duration = Duration::ZERO;
        self
    }

    fn soon(&self) -> Deadline {
        self.caller.deadline(PATIENCE)
    }
}

#[async_trait]
impl QueueStore for Queues {
    async fn create_queue(&self, queue: &QueueName, options: QueueOptions) -> Result<()> {
        self.make(queue, options).await
    }

    async fn delete_queue(&self, queue: &QueueName) -> Result<()> {
        self.remove(queue).await
    }

    async fn queues(
        &self,
        after: Option<&QueueName>,
        limit: usize,
        prefix: &str,
    ) -> Result<Page<QueueSummary>> {
        self.page(after, limit, prefix).await
    }

    async fn queue(&self, queue: &QueueName) -> Result<QueueSummary> {
        self.summary(queue).await
    }

    async fn set_options(&self, queue: &QueueName, options: QueueOptions) -> Result<()> {
        self.change(queue, options).await
    }

    async fn send(&self, queue: &QueueName, messages: Vec<NewMessage>) -> Result<Vec<Result<Sent>>> {
        self.send_all(queue, messages).await
    }

    async fn receive(&self, queue: &QueueName, options: ReceiveOptions) -> Result<Vec<Message>> {
        self.take(queue, options).await
    }

    async fn delete(&self, queue: &QueueName, receipts: Vec<Receipt>) -> Result<Vec<Result<()>>> {
        self.delete_all(queue, receipts).await
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> Result<Vec<Result<()>>> {
        self.hide_all(queue, changes).await
    }

    async fn purge(&self, queue: &QueueName) -> Result<()> {
        self.empty(queue).await
    }

    async fn start_move(
        &self,
        from: &QueueName,
        to: Option<&QueueName>,
        messages_per_second: Option<u32>,
    ) -> Result<MoveId> {
        self.begin_move(from, to, messages_per_second).await
    }

    async fn moves(&self, from: &QueueName) -> Result<Vec<MoveSummary>> {
        self.list_moves(from).await
    }

    async fn cancel_move(&self, id: &MoveId) -> Result<u64> {
        self.end_move(id).await
    }
}

/// SQS counts in seconds: what lies between two is the longer time.
fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis().div_ceil(1_000)).unwrap_or(i32::MAX)
}

/// What the answer of SQS cannot be.
fn strange(what: &str) -> Error {
    Error::Misconfigured(format!(
        "SQS answers with {what}: check whether the endpoint (AWS_ENDPOINT_URL) is SQS"
    ))
}
