//! The reference as a store: one lock around everything, and a clock that only a test moves.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;

use super::tables::Tables;
use crate::laws::table::TableFixture;
use crate::table::{
    Action, Alteration, Get, Got, Item, ItemPage, Query, Scan, TableCapabilities, TableOptions, TableStore,
    TableSummary, Token, Write,
};
use crate::{
    Batch, Capabilities, Error, Follow, Next, Page, Position, ReadLimit, Result, SequenceNumber, Shard,
    ShardId, ShardSource, StreamName, TableName, Timestamp, limits,
};

/// When the clock of a new store stands still.
const START_MS: u64 = 1_700_000_000_000;

/// A store in memory; clones are the same store.
#[derive(Clone, Debug)]
pub struct ReferenceTables {
    state: Arc<Mutex<Tables>>,
    /// Whoever follows a stream of changes.
    waiting: Arc<Mutex<Vec<Waker>>>,
    now_ms: Arc<AtomicU64>,
}

impl Default for ReferenceTables {
    fn default() -> Self {
        ReferenceTables {
            state: Arc::default(),
            waiting: Arc::default(),
            now_ms: Arc::new(AtomicU64::new(START_MS)),
        }
    }
}

impl ReferenceTables {
    /// A store without tables.
    pub fn new() -> Self {
        ReferenceTables::default()
    }

    /// Everything that a law may want to do to `store`, which is this one or a wrapper around it.
    pub fn fixture(&self, store: Arc<dyn TableStore>) -> TableFixture {
        let (clock, tidy, survivor) = (self.clone(), self.clone(), store.clone());
        TableFixture::new(store)
            .with_advance(move |by| clock.advance(by))
            .with_upkeep(move || {
                tidy.tidy();
                std::future::ready(())
            })
            .with_crash(move || std::future::ready(survivor.clone()))
    }

    /// The state behind the lock, to be looked at or replaced.
    pub fn state(&self) -> MutexGuard<'_, Tables> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time of day.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_ms.load(Ordering::SeqCst))
    }

    /// Moves the clock.
    pub fn advance(&self, by: Duration) {
        self.now_ms.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }

    /// Removes the items whose time has come, and changes that were kept for a day.
    pub fn tidy(&self) {
        let now = self.now();
        self.change(|state| {
            state.expire(now);
            state.trim(now);
        });
    }

    /// Changes the state and wakes whoever follows it.
    fn change<T>(&self, change: impl FnOnce(&mut Tables) -> T) -> T {
        let result = change(&mut self.state());
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().for_each(Waker::wake);
        result
    }

    fn read_log(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        let state = self.state();
        let log = state.logs.get(stream).ok_or_else(|| Error::StreamNotFound(stream.clone()))?;
        if log.shard().id != *shard {
            return Err(Error::ShardNotFound(stream.clone(), shard.clone()));
        }
        Ok(log.read(from, limit))
    }

    /// The next batch that has something to say.
    async fn wait(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Batch> {
        poll_fn(|context| {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(context.waker().clone());
            match self.read_log(stream, shard, from, ReadLimit::default()) {
                Ok(batch) if batch.records.is_empty() && matches!(batch.next, Next::At(_)) => Poll::Pending,
                other => Poll::Ready(other),
            }
        })
        .await
    }
}

#[async_trait]
impl TableStore for ReferenceTables {
    fn capabilities(&self) -> TableCapabilities {
        TableCapabilities { exact_counts: true, immediate: true }
    }

    async fn create_table(&self, table: &TableName, options: TableOptions) -> Result<()> {
        let now = self.now();
        self.change(|state| state.create(table, options, now))
    }

    async fn delete_table(&self, table: &TableName) -> Result<()> {
        let now = self.now();
        self.change(|state| state.delete(table, now))
    }

    async fn tables(&self, after: Option<&TableName>, limit: usize) -> Result<Page<TableName>> {
        let limit = limit.clamp(1, limits::PAGE_ENTRIES_MAX);
        let state = self.state();
        let behind = state.names().filter(|name| after.is_none_or(|after| *name > after));
        let mut entries: Vec<_> = behind.take(limit + 1).cloned().collect();
        let more = entries.len() > limit;
        entries.truncate(limit);
        Ok(Page { entries, more })
    }

    async fn table(&self, table: &TableName) -> Result<TableSummary> {
        self.state().summary(table)
    }

    async fn alter(&self, table: &TableName, alteration: Alteration) -> Result<()> {
        let now = self.now();
        self.change(|state| state.alter(table, &alteration, now))
    }

    async fn get(&self, table: &TableName, get: Get) -> Result<Option<Item>> {
        self.state().get(table, &get)
    }

    async fn write(&self, table: &TableName, write: Write) -> Result<Option<Item>> {
        let now = self.now();
        self.change(|state| state.write(table, &write, now))
    }

    async fn batch_get(&self, gets: Vec<(TableName, Get)>) -> Result<Vec<Got>> {
        self.state().batch_get(&gets)
    }

    async fn batch_write(&self, writes: Vec<(TableName, Action)>) -> Result<Vec<(TableName, Action)>> {
        let now = self.now();
        self.change(|state| state.batch_write(&writes, now))?;
        Ok(Vec::new())
    }

    async fn transact_get(&self, gets: Vec<(TableName, Get)>) -> Result<Vec<Option<Item>>> {
        self.state().transact_get(&gets)
    }

    async fn transact_write(&self, writes: Vec<(TableName, Write)>, token: Option<Token>) -> Result<()> {
        let now = self.now();
        self.change(|state| state.transact_write(&writes, token.as_ref(), now))
    }

    async fn query(&self, table: &TableName, query: Query) -> Result<ItemPage> {
        self.state().query(table, &query)
    }

    async fn scan(&self, table: &TableName, scan: Scan) -> Result<ItemPage> {
        self.state().scan(table, &scan)
    }

    fn changes(&self) -> &dyn ShardSource {
        self
    }

    async fn change_streams(&self, table: &TableName) -> Result<Vec<StreamName>> {
        Ok(self.state().change_streams(table))
    }
}

#[async_trait]
impl ShardSource for ReferenceTables {
    fn capabilities(&self) -> Capabilities {
        Capabilities { hash_ranges: false, at_timestamp: true, push: true, lends: false }
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        _limit: usize,
    ) -> Result<Page<Shard>> {
        let state = self.state();
        let log = state.logs.get(stream).ok_or_else(|| Error::StreamNotFound(stream.clone()))?;
        let entries = after.is_none().then(|| log.shard().clone()).into_iter().collect();
        Ok(Page { entries, more: false })
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        self.read_log(stream, shard, from, limit)
    }

    async fn trimmed(&self, stream: &StreamName, _: &ShardId) -> Result<Option<SequenceNumber>> {
        let state = self.state();
        let log = state.logs.get(stream).ok_or_else(|| Error::StreamNotFound(stream.clone()))?;
        Ok(log.trimmed())
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        // The first read turns a position like `Latest` into one that stays where it is.
        let first = self.read_log(stream, shard, from, ReadLimit::default())?;
        let (store, stream, shard) = (self.clone(), stream.clone(), shard.clone());
        let next = first.next.clone();
        let rest = stream::unfold(Some(next), move |next| {
            let (store, stream, shard) = (store.clone(), stream.clone(), shard.clone());
            async move {
                let Next::At(position) = next? else { return None };
                let batch = store.wait(&stream, &shard, position).await;
                let next = batch.as_ref().ok().map(|batch| batch.next.clone());
                Some((batch, next))
            }
        });
        Ok(Box::pin(stream::StreamExt::chain(stream::iter([Ok(first)]), rest)))
    }
}
