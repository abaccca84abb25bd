//! The port of queues, on the engine.

use std::time::Duration;

use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::queue::{
    Message, MoveId, MoveSummary, NewMessage, QueueName, QueueOptions, QueueStore, QueueSummary, Receipt,
    ReceiveOptions, Sent,
};
use anabranch_model::{Page, Result};
use async_trait::async_trait;

use crate::engine::Engine;

#[async_trait]
impl QueueStore for Engine {
    async fn create_queue(&self, queue: &QueueName, options: QueueOptions) -> Result<()> {
        self.writing_core()?.create_queue(queue, options).await
    }

    async fn delete_queue(&self, queue: &QueueName) -> Result<()> {
        self.writing_core()?.delete_queue(queue).await
    }

    async fn queues(
        &self,
        after: Option<&QueueName>,
        limit: usize,
        prefix: &str,
    ) -> Result<Page<QueueSummary>> {
        self.rows_core()?.list_queues(after, limit.clamp(1, PAGE_ENTRIES_MAX), prefix)
    }

    async fn queue(&self, queue: &QueueName) -> Result<QueueSummary> {
        self.rows_core()?.describe_queue(&self.core().queues.get(queue)?)
    }

    async fn set_options(&self, queue: &QueueName, options: QueueOptions) -> Result<()> {
        self.writing_core()?.set_queue_options(queue, options).await
    }

    async fn send(&self, queue: &QueueName, messages: Vec<NewMessage>) -> Result<Vec<Result<Sent>>> {
        self.writing_core()?.send_messages(queue, messages).await
    }

    async fn receive(&self, queue: &QueueName, options: ReceiveOptions) -> Result<Vec<Message>> {
        self.writing_core()?.receive_messages(queue, options).await
    }

    async fn delete(&self, queue: &QueueName, receipts: Vec<Receipt>) -> Result<Vec<Result<()>>> {
        self.writing_core()?.delete_messages(queue, receipts).await
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> Result<Vec<Result<()>>> {
        self.writing_core()?.change_visibility(queue, changes).await
    }

    async fn purge(&self, queue: &QueueName) -> Result<()> {
        self.writing_core()?.purge_queue(queue).await
    }

    async fn start_move(
        &self,
        from: &QueueName,
        to: Option<&QueueName>,
        messages_per_second: Option<u32>,
    ) -> Result<MoveId> {
        self.writing_core()?.start_move(from, to, messages_per_second).await
    }

    async fn moves(&self, from: &QueueName) -> Result<Vec<MoveSummary>> {
        self.rows_core()?.queue_moves(from)
    }

    async fn cancel_move(&self, id: &MoveId) -> Result<u64> {
        self.writing_core()?.cancel_move(id).await
    }
}
