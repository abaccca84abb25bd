//! The operations on tables and on the streams of their changes, on the server's side.

use std::sync::Arc;

use anabranch_model::table::Token;
use anabranch_model::{Page, Result, ShardSource};
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use futures_util::stream;

use super::batch::BatchPieces;
use super::meter;
use super::receive::{Refusal, receive};
use super::serve::{Answer, Api, lines, streamed};
use super::wire::{
    ActionsBody, ChangeStreamsReply, Empty, FollowRequest, GotReply, ItemReply, ItemsReply, Mirror,
    PageReply, ReadRequest,
};
use super::{
    AlterTable, BatchGet, BatchWrite, ChangeShards, ChangeStreams, CreateTable, DeleteTable, FollowChanges,
    GetItem, Operation, Query, ReadChanges, Scan, Table, Tables, TransactGet, TransactWrite, WriteItem,
};

/// All operations on tables.
pub(super) fn router() -> Router<Arc<Api>> {
    Router::new()
        .route(Tables::PATH, post(answer::<Tables>))
        .route(Table::PATH, post(answer::<Table>))
        .route(CreateTable::PATH, post(answer::<CreateTable>))
        .route(DeleteTable::PATH, post(answer::<DeleteTable>))
        .route(AlterTable::PATH, post(answer::<AlterTable>))
        .route(GetItem::PATH, post(answer::<GetItem>))
        .route(WriteItem::PATH, post(answer::<WriteItem>))
        .route(BatchGet::PATH, post(answer::<BatchGet>))
        .route(BatchWrite::PATH, post(answer::<BatchWrite>))
        .route(TransactGet::PATH, post(answer::<TransactGet>))
        .route(TransactWrite::PATH, post(answer::<TransactWrite>))
        .route(Query::PATH, post(answer::<Query>))
        .route(Scan::PATH, post(answer::<Scan>))
        .route(ChangeStreams::PATH, post(answer::<ChangeStreams>))
        .route(ChangeShards::PATH, post(answer::<ChangeShards>))
        .route(ReadChanges::PATH, post(read_changes))
        .route(FollowChanges::PATH, post(follow_changes))
}

async fn answer<O: Answer>(
    State(api): State<Arc<Api>>,
    request: Request,
) -> std::result::Result<Json<O::Reply>, Refusal> {
    let (request, _admission) = receive::<O::Request>(request, &api.budget).await?;
    let reply = O::ask(&api, request).await;
    meter::table_call(O::NAME, &reply);
    Ok(Json(reply?))
}

fn changes(api: &Api) -> Result<&dyn ShardSource> {
    Ok(api.stores.tables()?.changes())
}

async fn read_changes(
    State(api): State<Arc<Api>>,
    request: Request,
) -> std::result::Result<Response, Refusal> {
    let (request, admission) = receive::<ReadRequest>(request, &api.budget).await?;
    drop(admission);
    let (stream, shard) = (&request.stream.0, &request.shard.0);
    let batch = changes(&api)?.read(stream, shard, request.from.into(), request.limit()).await;
    meter::table_call(ReadChanges::NAME, &batch);
    Ok(streamed("application/json", stream::iter(BatchPieces::new(batch?))))
}

async fn follow_changes(
    State(api): State<Arc<Api>>,
    request: Request,
) -> std::result::Result<Response, Refusal> {
    let (request, admission) = receive::<FollowRequest>(request, &api.budget).await?;
    drop(admission);
    let follow = changes(&api)?.follow(&request.stream.0, &request.shard.0, request.from.into()).await;
    meter::table_call(FollowChanges::NAME, &follow);
    Ok(streamed("application/x-ndjson", lines(follow?, api.stop.clone())))
}

impl Answer for Tables {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        let after = request.after.map(|after| after.0);
        let Page { entries, more } = api.stores.tables()?.tables(after.as_ref(), request.limit).await?;
        Ok(PageReply { entries: Mirror::of(entries), more })
    }
}

impl Answer for Table {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        api.stores.tables()?.table(&request.table.0).await.map(Mirror::of)
    }
}

impl Answer for CreateTable {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        Ok(api.stores.tables()?.create_table(&request.table.0, request.call.back()).await?.into())
    }
}

impl Answer for DeleteTable {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        Ok(api.stores.tables()?.delete_table(&request.table.0).await?.into())
    }
}

impl Answer for AlterTable {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        Ok(api.stores.tables()?.alter(&request.table.0, request.call.back()).await?.into())
    }
}

impl Answer for GetItem {
    async fn ask(api: &Api, request: Self::Request) -> Result<ItemReply> {
        let item = api.stores.tables()?.get(&request.table.0, request.call.back()).await?;
        Ok(ItemReply { item: Mirror::of(item) })
    }
}

impl Answer for WriteItem {
    async fn ask(api: &Api, request: Self::Request) -> Result<ItemReply> {
        let item = api.stores.tables()?.write(&request.table.0, request.call.back()).await?;
        Ok(ItemReply { item: Mirror::of(item) })
    }
}

impl Answer for BatchGet {
    async fn ask(api: &Api, request: Self::Request) -> Result<GotReply> {
        let got = api.stores.tables()?.batch_get(request.gets.back()).await?;
        Ok(GotReply { got: Mirror::of(got) })
    }
}

impl Answer for BatchWrite {
    async fn ask(api: &Api, request: Self::Request) -> Result<ActionsBody> {
        let actions = api.stores.tables()?.batch_write(request.actions.back()).await?;
        Ok(ActionsBody { actions: Mirror::of(actions) })
    }
}

impl Answer for TransactGet {
    async fn ask(api: &Api, request: Self::Request) -> Result<ItemsReply> {
        let items = api.stores.tables()?.transact_get(request.gets.back()).await?;
        Ok(ItemsReply { items: Mirror::of(items) })
    }
}

impl Answer for TransactWrite {
    async fn ask(api: &Api, request: Self::Request) -> Result<Empty> {
        let token = request.token.map(Token::new).transpose()?;
        Ok(api.stores.tables()?.transact_write(request.writes.back(), token).await?.into())
    }
}

impl Answer for Query {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        api.stores.tables()?.query(&request.table.0, request.call.back()).await.map(Mirror::of)
    }
}

impl Answer for Scan {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        api.stores.tables()?.scan(&request.table.0, request.call.back()).await.map(Mirror::of)
    }
}

impl Answer for ChangeStreams {
    async fn ask(api: &Api, request: Self::Request) -> Result<ChangeStreamsReply> {
        let streams = api.stores.tables()?.change_streams(&request.table.0).await?;
        Ok(ChangeStreamsReply { streams: Mirror::of(streams) })
    }
}

impl Answer for ChangeShards {
    async fn ask(api: &Api, request: Self::Request) -> Result<Self::Reply> {
        let after = request.after.map(|after| after.0);
        let shards = changes(api)?.shards(&request.stream.0, after.as_ref(), request.limit);
        Ok(PageReply::of(shards.await?))
    }
}
