//! The port of queues over the control API.

use std::time::Duration;

use anabranch_model::queue::{
    Message, MoveId, MoveSummary, NewMessage, QueueName, QueueOptions, QueueStore, QueueSummary, Receipt,
    ReceiveOptions, Sent, check_batch, check_send,
};
use anabranch_model::{Page, Result};
use async_trait::async_trait;

use super::Remote;
use crate::api;
use crate::api::text::Text;
use crate::api::wire::{
    DeleteMessagesRequest, Empty, MoveBody, NewMessageBody, QueueOptionsRequest, QueueRequest, QueuesRequest,
    ReceiveRequest, SendRequest, StartMoveRequest, VisibilityRequest,
};

fn one(queue: &QueueName) -> QueueRequest {
    QueueRequest { queue: Text(queue.clone()) }
}

fn with_options(queue: &QueueName, options: QueueOptions) -> QueueOptionsRequest {
    QueueOptionsRequest { queue: Text(queue.clone()), options: options.into() }
}

#[async_trait]
impl QueueStore for Remote {
    async fn create_queue(&self, queue: &QueueName, options: QueueOptions) -> Result<()> {
        self.caller.call::<api::CreateQueue>(&with_options(queue, options)).await.map(Empty::into)
    }

    async fn delete_queue(&self, queue: &QueueName) -> Result<()> {
        self.caller.call::<api::DeleteQueue>(&one(queue)).await.map(Empty::into)
    }

    async fn queues(
        &self,
        after: Option<&QueueName>,
        limit: usize,
        prefix: &str,
    ) -> Result<Page<QueueSummary>> {
        let request = QueuesRequest { after: after.cloned().map(Text), limit, prefix: prefix.to_owned() };
        self.caller.call::<api::Queues>(&request).await?.into_page()
    }

    async fn queue(&self, queue: &QueueName) -> Result<QueueSummary> {
        self.caller.call::<api::Queue>(&one(queue)).await?.try_into()
    }

    async fn set_options(&self, queue: &QueueName, options: QueueOptions) -> Result<()> {
        self.caller.call::<api::SetQueueOptions>(&with_options(queue, options)).await.map(Empty::into)
    }

    async fn send(&self, queue: &QueueName, messages: Vec<NewMessage>) -> Result<Vec<Result<Sent>>> {
        // Checked on this side, so that what is far too large is refused with its reason and not by the transport.
        check_send(&messages)?;
        let count = messages.len();
        let messages = messages.into_iter().map(NewMessageBody::from).collect();
        let request = SendRequest { queue: Text(queue.clone()), messages };
        self.caller.call::<api::SendMessages>(&request).await?.into_results(count)
    }

    async fn receive(&self, queue: &QueueName, options: ReceiveOptions) -> Result<Vec<Message>> {
        let request = ReceiveRequest::new(queue, options);
        let reply = self.caller.call::<api::Receive>(&request).await?;
        Ok(reply.messages.into_iter().map(Message::from).collect())
    }

    async fn delete(&self, queue: &QueueName, receipts: Vec<Receipt>) -> Result<Vec<Result<()>>> {
        check_batch(receipts.len())?;
        let count = receipts.len();
        let receipts = receipts.into_iter().map(Text).collect();
        let request = DeleteMessagesRequest { queue: Text(queue.clone()), receipts };
        self.caller.call::<api::DeleteMessages>(&request).await?.into_results(count)
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> Result<Vec<Result<()>>> {
        check_batch(changes.len())?;
        let count = changes.len();
        let changes = changes.into_iter().map(|(receipt, visibility)| (Text(receipt), visibility)).collect();
        let request = VisibilityRequest { queue: Text(queue.clone()), changes };
        self.caller.call::<api::ChangeVisibility>(&request).await?.into_results(count)
    }

    async fn purge(&self, queue: &QueueName) -> Result<()> {
        self.caller.call::<api::Purge>(&one(queue)).await.map(Empty::into)
    }

    async fn start_move(
        &self,
        from: &QueueName,
        to: Option<&QueueName>,
        messages_per_second: Option<u32>,
    ) -> Result<MoveId> {
        let request =
            StartMoveRequest { from: Text(from.clone()), to: to.cloned().map(Text), messages_per_second };
        Ok(self.caller.call::<api::StartMove>(&request).await?.id.0)
    }

    async fn moves(&self, from: &QueueName) -> Result<Vec<MoveSummary>> {
        let reply = self.caller.call::<api::Moves>(&one(from)).await?;
        Ok(reply.moves.into_iter().map(MoveSummary::from).collect())
    }

    async fn cancel_move(&self, id: &MoveId) -> Result<u64> {
        Ok(self.caller.call::<api::CancelMove>(&MoveBody { id: Text(id.clone()) }).await?.moved)
    }
}
