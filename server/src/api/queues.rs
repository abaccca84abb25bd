//! The operations on queues, on the server's side.

use std::sync::Arc;

use anabranch_model::queue::{Message, MoveSummary, NewMessage};
use anabranch_model::{Error, Result};
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use bytes::Bytes;
use futures_util::stream;

use super::meter::{self, Waiting};
use super::receive::{Refusal, receive};
use super::serve::{Answer, Api, streamed};
use super::text::Text;
use super::wire::{
    Empty, MessageBody, MoveBody, MovedReply, MovesReply, PageReply, ReceiveRequest, ResultsReply,
};
use super::{
    CancelMove, ChangeVisibility, CreateQueue, DeleteMessages, DeleteQueue, Moves, Operation, Purge, Queue,
    Queues, Receive, SendMessages, SetQueueOptions, StartMove,
};
use crate::http::Stop;

/// All operations on queues.
pub(super) fn router() -> Router<Arc<Api>> {
    Router::new()
        .route(Queues::PATH, post(answer::<Queues>))
        .route(Queue::PATH, post(answer::<Queue>))
        .route(CreateQueue::PATH, post(answer::<CreateQueue>))
        .route(DeleteQueue::PATH, post(answer::<DeleteQueue>))
        .route(SetQueueOptions::PATH, post(answer::<SetQueueOptions>))
        .route(SendMessages::PATH, post(answer::<SendMessages>))
        .route(Receive::PATH, post(receive_messages))
        .route(DeleteMessages::PATH, post(answer::<DeleteMessages>))
        .route(ChangeVisibility::PATH, post(answer::<ChangeVisibility>))
        .route(Purge::PATH, post(answer::<Purge>))
        .route(StartMove::PATH, post(answer::<StartMove>))
        .route(Moves::PATH, post(answer::<Moves>))
        .route(CancelMove::PATH, post(answer::<CancelMove>))
}

async fn answer<O: Answer>(
    State(api): State<Arc<Api>>,
    request: Request,
) -> std::result::Result<Json<O::Reply>, Refusal> {
    let (request, _admission) = receive::<O::Request>(request, &api.budget).await?;
    let reply = O::ask(&api, request).await;
    meter::queue_call(O::NAME, &reply);
    Ok(Json(reply?))
}

/// Waits without a thread. The wait ends with the connection: what a receive picked for a client that is gone is not
/// deleted, and is visible again after its time.
async fn receive_messages(
    State(api): State<Arc<Api>>,
    request: Request,
) -> std::result::Result<Response, Refusal> {
    let (request, admission) = receive::<ReceiveRequest>(request, &api.budget).await?;
    drop(admission);
    let queue = request.queue.0.clone();
    let received = async {
        let _waiting = Waiting::begin();
        unless_stopped(api.stores.queues()?.receive(&queue, request.options()), api.stop.clone()).await
    };
    let received = received.await;
    meter::queue_call(Receive::NAME, &received);
    let messages = received?;
    meter::received(messages.len());
    Ok(streamed("application/json", stream::iter(pieces(messages))))
}

/// A server that stops does not wait for messages that may never come. What was received is given out all the same.
async fn unless_stopped<T>(call: impl Future<Output = Result<T>>, mut stop: Stop) -> Result<T> {
    tokio::select! {
        biased;
        result = call => result,
        () = stop.requested() => Err(Error::Unavailable("the server is shutting down".to_owned())),
    }
}

/// A [`ReceiveReply`](super::wire::ReceiveReply), one message a piece, so that ten of the largest never exist as JSON at
/// the same time.
fn pieces(messages: Vec<Message>) -> impl Iterator<Item = Bytes> + Send {
    let written = messages.into_iter().enumerate().map(|(place, message)| {
        let mut piece = if place == 0 { Vec::new() } else { vec![b','] };
        serde_json::to_writer(&mut piece, &MessageBody::from(message))
            .expect("wire types have string keys, and memory takes every byte");
        Bytes::from(piece)
    });
    let start = std::iter::once(Bytes::from_static(b"{\"messages\":["));
    start.chain(written).chain(std::iter::once(Bytes::from_static(b"]}")))
}

impl Answer for Queues {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        let after = request.after.map(|after| after.0);
        let page = api.stores.queues()?.queues(after.as_ref(), request.limit, &request.prefix).await?;
        Ok(PageReply::of(page))
    }
}

impl Answer for Queue {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        Ok(api.stores.queues()?.queue(&request.queue.0).await?.into())
    }
}

impl Answer for CreateQueue {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        Ok(api.stores.queues()?.create_queue(&request.queue.0, request.options.into()).await?.into())
    }
}

impl Answer for DeleteQueue {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        Ok(api.stores.queues()?.delete_queue(&request.queue.0).await?.into())
    }
}

impl Answer for SetQueueOptions {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        Ok(api.stores.queues()?.set_options(&request.queue.0, request.options.into()).await?.into())
    }
}

impl Answer for SendMessages {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        let messages = request.messages.into_iter().map(NewMessage::from).collect();
        let results = api.stores.queues()?.send(&request.queue.0, messages).await?;
        meter::sent(&results);
        Ok(ResultsReply::of(results))
    }
}

impl Answer for DeleteMessages {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        let receipts = request.receipts.into_iter().map(|receipt| receipt.0).collect();
        let results = api.stores.queues()?.delete(&request.queue.0, receipts).await?;
        meter::deleted(&results);
        Ok(ResultsReply::of(results))
    }
}

impl Answer for ChangeVisibility {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        let changes = request.changes.into_iter().map(|(receipt, time)| (receipt.0, time)).collect();
        Ok(ResultsReply::of(api.stores.queues()?.change_visibility(&request.queue.0, changes).await?))
    }
}

impl Answer for Purge {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        Ok(api.stores.queues()?.purge(&request.queue.0).await?.into())
    }
}

impl Answer for StartMove {
    async fn ask(api: &Api, request: Self::Request) -> Result<MoveBody> {
        let to = request.to.map(|queue| queue.0);
        let started =
            api.stores.queues()?.start_move(&request.from.0, to.as_ref(), request.messages_per_second);
        Ok(MoveBody { id: Text(started.await?) })
    }
}

impl Answer for Moves {
    async fn ask(api: &Api, request: Self::Request) -> Result<MovesReply> {
        let moves = api.stores.queues()?.moves(&request.queue.0).await?;
        Ok(MovesReply { moves: moves.into_iter().map(MoveSummary::into).collect() })
    }
}

impl Answer for CancelMove {
    async fn ask(api: &Api, request: Self::Request) -> Result<MovedReply> {
        Ok(MovedReply { moved: api.stores.queues()?.cancel_move(&request.id.0).await? })
    }
}
