//! The ports: tables, and the streams of their changes.

use std::sync::Arc;

use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::table::{
    Action, Alteration, Get, Got, Item, ItemPage, Query, Scan, TableCapabilities, TableOptions, TableStore,
    TableSummary, Token, Write,
};
use anabranch_model::{
    Batch, Capabilities, Error, Follow, Page, Position, ReadLimit, Result, SequenceNumber, Shard, ShardId,
    ShardSource, StreamName, TableName,
};
use async_trait::async_trait;

use super::changes::Log;
use crate::core::Core;
use crate::engine::Engine;

#[async_trait]
impl TableStore for Engine {
    fn capabilities(&self) -> TableCapabilities {
        TableCapabilities { exact_counts: true, immediate: true }
    }

    async fn create_table(&self, table: &TableName, options: TableOptions) -> Result<()> {
        self.writing_core()?.create_table(table, options).await
    }

    async fn delete_table(&self, table: &TableName) -> Result<()> {
        self.writing_core()?.delete_table(table).await
    }

    async fn tables(&self, after: Option<&TableName>, limit: usize) -> Result<Page<TableName>> {
        let (entries, more) = self.rows_core()?.tables.names(after, limit.clamp(1, PAGE_ENTRIES_MAX));
        Ok(Page { entries, more })
    }

    async fn table(&self, table: &TableName) -> Result<TableSummary> {
        Ok(self.rows_core()?.tables.table(table)?.summary())
    }

    async fn alter(&self, table: &TableName, alteration: Alteration) -> Result<()> {
        self.writing_core()?.alter_table(table, alteration).await
    }

    async fn get(&self, table: &TableName, get: Get) -> Result<Option<Item>> {
        self.rows_core()?.get_item(table, &get)
    }

    async fn write(&self, table: &TableName, write: Write) -> Result<Option<Item>> {
        self.writing_core()?.write_item(table, write).await
    }

    async fn batch_get(&self, gets: Vec<(TableName, Get)>) -> Result<Vec<Got>> {
        self.rows_core()?.batch_get(&gets)
    }

    async fn batch_write(&self, writes: Vec<(TableName, Action)>) -> Result<Vec<(TableName, Action)>> {
        self.writing_core()?.batch_write(writes).await
    }

    async fn transact_get(&self, gets: Vec<(TableName, Get)>) -> Result<Vec<Option<Item>>> {
        self.rows_core()?.transact_get(&gets)
    }

    async fn transact_write(&self, writes: Vec<(TableName, Write)>, token: Option<Token>) -> Result<()> {
        self.writing_core()?.transact_write(writes, token).await
    }

    async fn query(&self, table: &TableName, query: Query) -> Result<ItemPage> {
        self.rows_core()?.query(table, &query)
    }

    async fn scan(&self, table: &TableName, scan: Scan) -> Result<ItemPage> {
        self.rows_core()?.scan(table, &scan)
    }

    fn changes(&self) -> &dyn ShardSource {
        self.change_source()
    }

    async fn change_streams(&self, table: &TableName) -> Result<Vec<StreamName>> {
        Ok(self.rows_core()?.tables.logs.of_table(table))
    }
}

/// The streams of changes of an engine.
#[derive(Clone)]
pub struct Changes(pub(crate) Arc<Core>);

impl Changes {
    fn log(&self, stream: &StreamName) -> Result<Arc<Log>> {
        self.0.check_rows()?;
        self.0.tables.logs.log(stream)
    }
}

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
        let log = self.log(stream)?;
        let after = match after {
            None => None,
            Some(id) if id.number().is_some() => id.number(),
            Some(id) => return Err(Error::ShardNotFound(stream.clone(), id.clone())),
        };
        let mut behind = log.shards().filter(|shard| shard.id.number() > after);
        let entries = behind.by_ref().take(limit.clamp(1, PAGE_ENTRIES_MAX)).collect();
        Ok(Page { entries, more: behind.next().is_some() })
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        let log = self.log(stream)?;
        self.0.read_changes(&log, shard, from, limit)
    }

    async fn trimmed(&self, stream: &StreamName, shard: &ShardId) -> Result<Option<SequenceNumber>> {
        self.log(stream)?.trimmed(shard)
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        let log = self.log(stream)?;
        self.0.follow_changes(log, shard, from)
    }
}
