//! The port of tables over the control API, and the streams of their changes.

use std::sync::Arc;

use anabranch_model::table::{
    Action, Alteration, Get, Got, Item, ItemPage, Query, Scan, TableCapabilities, TableOptions, TableStore,
    TableSummary, Token, Write,
};
use anabranch_model::{
    Batch, Capabilities, Error, Follow, Page, Position, ReadLimit, Result, Shard, ShardId, ShardSource,
    StreamName, TableName,
};
use async_trait::async_trait;

use super::call::Caller;
use super::{Remote, follow};
use crate::api::text::Text;
use crate::api::wire::{
    ActionsBody, Empty, FollowRequest, GetsRequest, Mirror, ReadRequest, ShardsRequest, TableCall,
    TableRequest, TablesRequest, TransactRequest,
};
use crate::api::{self, Operation};

fn one(table: &TableName) -> TableRequest {
    TableRequest { table: Text(table.clone()) }
}

fn of<M, B: Mirror<M>>(table: &TableName, call: M) -> TableCall<B> {
    TableCall { table: Text(table.clone()), call: B::of(call) }
}

/// The answers to a batch, if there are as many as were asked for.
fn all<T>(answers: Vec<T>, count: usize) -> Result<Vec<T>> {
    if answers.len() == count {
        return Ok(answers);
    }
    Err(Error::Unavailable("the server answered for another number of items".to_owned()))
}

#[async_trait]
impl TableStore for Remote {
    fn capabilities(&self) -> TableCapabilities {
        TableCapabilities { exact_counts: true, immediate: true }
    }

    async fn create_table(&self, table: &TableName, options: TableOptions) -> Result<()> {
        self.caller.call::<api::CreateTable>(&of(table, options)).await.map(Empty::into)
    }

    async fn delete_table(&self, table: &TableName) -> Result<()> {
        self.caller.call::<api::DeleteTable>(&one(table)).await.map(Empty::into)
    }

    async fn tables(&self, after: Option<&TableName>, limit: usize) -> Result<Page<TableName>> {
        let request = TablesRequest { after: after.cloned().map(Text), limit };
        let page = self.caller.call::<api::Tables>(&request).await?;
        Ok(Page { entries: page.entries.back(), more: page.more })
    }

    async fn table(&self, table: &TableName) -> Result<TableSummary> {
        self.caller.call::<api::Table>(&one(table)).await.map(Mirror::back)
    }

    async fn alter(&self, table: &TableName, alteration: Alteration) -> Result<()> {
        self.caller.call::<api::AlterTable>(&of(table, alteration)).await.map(Empty::into)
    }

    async fn get(&self, table: &TableName, get: Get) -> Result<Option<Item>> {
        self.caller.call::<api::GetItem>(&of(table, get)).await.map(|reply| reply.item.back())
    }

    async fn write(&self, table: &TableName, write: Write) -> Result<Option<Item>> {
        self.caller.call::<api::WriteItem>(&of(table, write)).await.map(|reply| reply.item.back())
    }

    async fn batch_get(&self, gets: Vec<(TableName, Get)>) -> Result<Vec<Got>> {
        let count = gets.len();
        let request = GetsRequest { gets: Mirror::of(gets) };
        all(self.caller.call::<api::BatchGet>(&request).await?.got.back(), count)
    }

    async fn batch_write(&self, writes: Vec<(TableName, Action)>) -> Result<Vec<(TableName, Action)>> {
        let request = ActionsBody { actions: Mirror::of(writes) };
        self.caller.call::<api::BatchWrite>(&request).await.map(|rest| rest.actions.back())
    }

    async fn transact_get(&self, gets: Vec<(TableName, Get)>) -> Result<Vec<Option<Item>>> {
        let count = gets.len();
        let request = GetsRequest { gets: Mirror::of(gets) };
        all(self.caller.call::<api::TransactGet>(&request).await?.items.back(), count)
    }

    async fn transact_write(&self, writes: Vec<(TableName, Write)>, token: Option<Token>) -> Result<()> {
        let token = token.map(|token| token.as_str().to_owned());
        let request = TransactRequest { writes: Mirror::of(writes), token };
        self.caller.call::<api::TransactWrite>(&request).await.map(Empty::into)
    }

    async fn query(&self, table: &TableName, query: Query) -> Result<ItemPage> {
        self.caller.call::<api::Query>(&of(table, query)).await.map(Mirror::back)
    }

    async fn scan(&self, table: &TableName, scan: Scan) -> Result<ItemPage> {
        self.caller.call::<api::Scan>(&of(table, scan)).await.map(Mirror::back)
    }

    fn changes(&self) -> &dyn ShardSource {
        &self.changes
    }

    async fn change_streams(&self, table: &TableName) -> Result<Vec<StreamName>> {
        self.caller.call::<api::ChangeStreams>(&one(table)).await.map(|reply| reply.streams.back())
    }
}

/// The streams of changes of a server's tables.
pub(super) struct Changes(pub(super) Arc<Caller>);

#[async_trait]
impl ShardSource for Changes {
    fn capabilities(&self) -> Capabilities {
        Capabilities { hash_ranges: false, at_timestamp: true, push: true, lends: false }
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        let request = ShardsRequest { stream: Text(stream.clone()), after: after.cloned().map(Text), limit };
        self.0.call::<api::ChangeShards>(&request).await?.into_page()
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        let request = ReadRequest {
            stream: Text(stream.clone()),
            shard: Text(shard.clone()),
            from: from.into(),
            records: limit.records,
            bytes: limit.bytes,
        };
        Ok(self.0.call::<api::ReadChanges>(&request).await?.into())
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        let request =
            FollowRequest { stream: Text(stream.clone()), shard: Text(shard.clone()), from: from.into() };
        let body = self.0.open(<api::FollowChanges as Operation>::PATH, &request).await?;
        Ok(Box::pin(follow::batches(body)))
    }
}
