//! Queues that take their time.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::laws::reference::SimpleQueues;
use anabranch_model::queue::{MoveId, MoveSummary, QueueSummary, ReceiveOptions, Sent};
use anabranch_model::{Message, NewMessage, Page, QueueName, QueueOptions, QueueStore, Receipt, Result};
use async_trait::async_trait;
use parking_lot::Mutex;

use super::pause;

/// What is called, as far as anybody wants it to be slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Receive,
    Delete,
}

/// How long a call takes before it has its effect.
type Rule = Box<dyn FnMut(Call) -> Duration + Send>;

#[derive(Clone)]
pub struct SlowQueues {
    inner: SimpleQueues,
    rule: Arc<Mutex<Rule>>,
}

impl SlowQueues {
    pub fn new(inner: &SimpleQueues, rule: impl FnMut(Call) -> Duration + Send + 'static) -> Self {
        SlowQueues { inner: inner.clone(), rule: Arc::new(Mutex::new(Box::new(rule))) }
    }

    async fn take_time(&self, call: Call) {
        let takes = self.rule.lock()(call);
        pause(takes).await;
    }
}

#[async_trait]
impl QueueStore for SlowQueues {
    async fn create_queue(&self, queue: &QueueName, options: QueueOptions) -> Result<()> {
        self.inner.create_queue(queue, options).await
    }

    async fn delete_queue(&self, queue: &QueueName) -> Result<()> {
        self.inner.delete_queue(queue).await
    }

    async fn queues(
        &self,
        after: Option<&QueueName>,
        limit: usize,
        prefix: &str,
    ) -> Result<Page<QueueSummary>> {
        self.inner.queues(after, limit, prefix).await
    }

    async fn queue(&self, queue: &QueueName) -> Result<QueueSummary> {
        self.inner.queue(queue).await
    }

    async fn set_options(&self, queue: &QueueName, options: QueueOptions) -> Result<()> {
        self.inner.set_options(queue, options).await
    }

    async fn send(&self, queue: &QueueName, messages: Vec<NewMessage>) -> Result<Vec<Result<Sent>>> {
        self.inner.send(queue, messages).await
    }

    async fn receive(&self, queue: &QueueName, options: ReceiveOptions) -> Result<Vec<Message>> {
        self.take_time(Call::Receive).await;
        self.inner.receive(queue, options).await
    }

    async fn delete(&self, queue: &QueueName, receipts: Vec<Receipt>) -> Result<Vec<Result<()>>> {
        self.take_time(Call::Delete).await;
        self.inner.delete(queue, receipts).await
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> Result<Vec<Result<()>>> {
        self.inner.change_visibility(queue, changes).await
    }

    async fn purge(&self, queue: &QueueName) -> Result<()> {
        self.inner.purge(queue).await
    }

    async fn start_move(
        &self,
        from: &QueueName,
        to: Option<&QueueName>,
        messages_per_second: Option<u32>,
    ) -> Result<MoveId> {
        self.inner.start_move(from, to, messages_per_second).await
    }

    async fn moves(&self, from: &QueueName) -> Result<Vec<MoveSummary>> {
        self.inner.moves(from).await
    }

    async fn cancel_move(&self, id: &MoveId) -> Result<u64> {
        self.inner.cancel_move(id).await
    }
}
