//! The operations on the server's side: receive, ask the store, answer. Those on queues, blobs and tables have files of
//! their own.

use std::convert::Infallible;
use std::sync::Arc;

use anabranch_model::{Error, Follow, NewRecord, Result};
use anabranch_wire::Wire;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use bytes::Bytes;
use futures_core::Stream;
use futures_util::{StreamExt, stream};

use super::batch::{BatchPieces, failed_line};
use super::receive::{Refusal, receive};
use super::text::Text;
use super::wire::{
    AppendReply, AppendRequest, Empty, FollowRequest, OpenedReply, PageReply, ReadRequest, StatusReply,
};
use super::{
    Append, Backup, CreateStream, DeleteStream, Merge, Operation, PREFIX, Read, SetRetention, Shards, Split,
    Status, Streams, backups, blobs, queues, tables,
};
use crate::backup::Backups;
use crate::host::StatusSource;
use crate::http::{Budget, Stop};
use crate::limits::FOLLOW_SILENCE_MAX;
use crate::stores::Stores;

/// What the operations need.
pub(crate) struct Api {
    pub(crate) stores: Stores,
    /// The AWS protocols. None where not everything is kept that they speak of.
    pub(crate) wire: Option<Wire>,
    pub(crate) status: StatusSource,
    /// None where the stores are no data directory.
    pub(crate) backups: Option<Backups>,
    /// Memory for the bodies of requests.
    pub(crate) budget: Budget,
    /// Ends follows and receives that wait, which would not end by themselves in time.
    pub(crate) stop: Stop,
}

/// All operations. Any other path goes to the AWS protocols, or is answered with the reason why it is not there.
pub(crate) fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route(Status::PATH, post(answer::<Status>))
        .route(Streams::PATH, post(answer::<Streams>))
        .route(super::Stream::PATH, post(answer::<super::Stream>))
        .route(Shards::PATH, post(answer::<Shards>))
        .route(CreateStream::PATH, post(answer::<CreateStream>))
        .route(DeleteStream::PATH, post(answer::<DeleteStream>))
        .route(SetRetention::PATH, post(answer::<SetRetention>))
        .route(Split::PATH, post(answer::<Split>))
        .route(Merge::PATH, post(answer::<Merge>))
        .route(Append::PATH, post(append))
        .route(Read::PATH, post(read))
        .route(super::Follow::PATH, post(follow))
        .route(Backup::PATH, post(backups::backup))
        .merge(queues::router())
        .merge(blobs::router())
        .merge(tables::router())
        .method_not_allowed_fallback(wrong_method)
        .fallback(elsewhere)
        .with_state(api)
}

/// An operation whose reply is small enough to be made in one piece.
pub(super) trait Answer: Operation {
    /// Asks the store.
    fn ask(api: &Api, request: Self::Request) -> impl Future<Output = Result<Self::Reply>> + Send;
}

async fn answer<O: Answer>(
    State(api): State<Arc<Api>>,
    request: Request,
) -> std::result::Result<Json<O::Reply>, Refusal> {
    let (request, _admission) = receive::<O::Request>(request, &api.budget).await?;
    Ok(Json(O::ask(&api, request).await?))
}

impl Answer for Status {
    async fn ask(api: &Api, Empty {}: Empty) -> Result<StatusReply> {
        Ok((api.status)())
    }
}

impl Answer for Streams {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        let after = request.after.map(|after| after.0);
        Ok(PageReply::of(api.stores.streams()?.streams(after.as_ref(), request.limit).await?))
    }
}

impl Answer for super::Stream {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        Ok(api.stores.streams()?.stream(&request.stream.0).await?.into())
    }
}

impl Answer for Shards {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        let after = request.after.map(|after| after.0);
        Ok(PageReply::of(
            api.stores.streams()?.shards(&request.stream.0, after.as_ref(), request.limit).await?,
        ))
    }
}

impl Answer for CreateStream {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        api.stores.streams()?.create_stream(&request.stream.0, request.options()).await?;
        Ok(Empty {})
    }
}

impl Answer for DeleteStream {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        api.stores.streams()?.delete_stream(&request.stream.0).await?;
        Ok(Empty {})
    }
}

impl Answer for SetRetention {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        api.stores.streams()?.set_retention(&request.stream.0, request.retention).await?;
        Ok(Empty {})
    }
}

impl Answer for Split {
    async fn ask(api: &Api, request: Self::Request) -> Result<OpenedReply> {
        let children = api.stores.streams()?.split(&request.stream.0, &request.shard.0, request.at.0).await?;
        Ok(OpenedReply { shards: children.map(Text).into() })
    }
}

impl Answer for Merge {
    async fn ask(api: &Api, request: Self::Request) -> Result<OpenedReply> {
        let child =
            api.stores.streams()?.merge(&request.stream.0, &request.shard.0, &request.neighbour.0).await?;
        Ok(OpenedReply { shards: vec![Text(child)] })
    }
}

/// Bytes from the network become records here. Their memory is accounted for as a request until the store has
/// answered for them.
async fn append(
    State(api): State<Arc<Api>>,
    request: Request,
) -> std::result::Result<Json<AppendReply>, Refusal> {
    let (request, _admission) = receive::<AppendRequest>(request, &api.budget).await?;
    let records = request.records.into_iter().map(NewRecord::from).collect();
    let results = api.stores.streams()?.append(&request.stream.0, records).await?;
    Ok(Json(AppendReply { results: results.into_iter().map(Into::into).collect() }))
}

/// The memory of what was read is accounted for by the store until the last piece is gone.
async fn read(State(api): State<Arc<Api>>, request: Request) -> std::result::Result<Response, Refusal> {
    let (request, admission) = receive::<ReadRequest>(request, &api.budget).await?;
    drop(admission);
    let (stream, shard) = (&request.stream.0, &request.shard.0);
    let batch = api.stores.streams()?.read(stream, shard, request.from.into(), request.limit()).await?;
    Ok(streamed("application/json", stream::iter(BatchPieces::new(batch))))
}

async fn follow(State(api): State<Arc<Api>>, request: Request) -> std::result::Result<Response, Refusal> {
    let (request, admission) = receive::<FollowRequest>(request, &api.budget).await?;
    drop(admission);
    let follow =
        api.stores.streams()?.follow(&request.stream.0, &request.shard.0, request.from.into()).await?;
    Ok(streamed("application/x-ndjson", lines(follow, api.stop.clone())))
}

/// The lines of a follow: batches as they come, an empty line after some silence, and why it ends if the shard
/// does not.
pub(super) fn lines(follow: Follow, stop: Stop) -> impl Stream<Item = Bytes> + Send {
    struct Lines {
        follow: Option<Follow>,
        stop: Stop,
        pieces: Option<BatchPieces>,
    }
    let lines = Lines { follow: Some(follow), stop, pieces: None };
    stream::unfold(lines, |mut lines| async move {
        if let Some(piece) = lines.pieces.as_mut().and_then(Iterator::next) {
            return Some((piece, lines));
        }
        let follow = lines.follow.as_mut()?;
        let news = tokio::select! {
            () = lines.stop.requested() => {
                Some(Err(Error::Unavailable("the server is shutting down".to_owned())))
            }
            news = tokio::time::timeout(FOLLOW_SILENCE_MAX, follow.next()) => match news {
                Ok(news) => news,
                Err(_) => return Some((Bytes::from_static(b"\n"), lines)),
            },
        };
        match news? {
            Ok(batch) => {
                let mut pieces = BatchPieces::new(batch);
                let first = pieces.next()?;
                lines.pieces = Some(pieces);
                Some((first, lines))
            }
            Err(error) => {
                lines.follow = None;
                Some((failed_line(error), lines))
            }
        }
    })
}

/// An answer in pieces.
pub(super) fn streamed(
    content_type: &'static str,
    pieces: impl Stream<Item = Bytes> + Send + 'static,
) -> Response {
    let body = Body::from_stream(pieces.map(Ok::<_, Infallible>));
    ([(header::CONTENT_TYPE, content_type)], body).into_response()
}

async fn wrong_method() -> Refusal {
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "operations of Anabranch are called with POST")
}

/// Whatever is not the control API is for the AWS protocols.
async fn elsewhere(State(api): State<Arc<Api>>, request: Request) -> Response {
    let message = match &api.wire {
        _ if request.uri().path().starts_with(PREFIX) => {
            "this build of Anabranch has no such operation: client and server differ in version"
        }
        Some(wire) => return wire.handle(request).await.map(Body::new),
        None => "the AWS protocols are not served here, only the control API under /_anabranch/v1/",
    };
    Refusal::new(StatusCode::NOT_FOUND, message).into_response()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anabranch_model::{Batch, Next, Position};

    use super::*;
    use crate::api::wire::FollowLine;
    use crate::http::Stopper;

    fn parsed(line: &Bytes) -> Result<Batch> {
        serde_json::from_slice::<FollowLine>(line).unwrap().into_batch()
    }

    #[tokio::test(start_paused = true)]
    async fn a_follow_breaks_its_silence_and_ends_with_the_server() {
        let batch =
            Batch { records: Vec::new(), next: Next::At(Position::TrimHorizon), behind: Duration::ZERO };
        let (stopper, stop) = Stopper::new();
        let follow: Follow = Box::pin(stream::iter([Ok(batch.clone())]).chain(stream::pending()));
        let mut lines = std::pin::pin!(lines(follow, stop));
        assert_eq!(parsed(&lines.next().await.unwrap()), Ok(batch));
        assert_eq!(lines.next().await.unwrap(), "\n");
        assert_eq!(lines.next().await.unwrap(), "\n");
        stopper.stop();
        assert!(matches!(parsed(&lines.next().await.unwrap()), Err(Error::Unavailable(_))));
        assert_eq!(lines.next().await, None);
    }

    #[tokio::test]
    async fn a_follow_ends_with_its_shard_or_with_an_error() {
        let ended = Batch { records: Vec::new(), next: Next::Ended(Vec::new()), behind: Duration::ZERO };
        for last in [Ok(ended), Err(Error::DiskFull)] {
            let (_stopper, stop) = Stopper::new();
            let follow: Follow = Box::pin(stream::iter([last.clone()]));
            let all: Vec<Bytes> = lines(follow, stop).collect().await;
            assert_eq!(all.iter().map(parsed).collect::<Vec<_>>(), [last]);
        }
    }
}
