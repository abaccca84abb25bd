//! The streams of the engine, of which a share of all records is refused for no reason; and how many were refused for one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Engine, SystemClock};
use anabranch_model::{
    Appended, Batch, Capabilities, Clock, Dice, Error, Follow, HashKey, NewRecord, Page, Position, ReadLimit,
    Result, Shard, ShardId, ShardSource, StreamName, StreamOptions, StreamStore, StreamSummary,
};
use async_trait::async_trait;
use parking_lot::Mutex;

/// What a writer is asked to wait that was refused for no reason.
const RETRY_AFTER: Duration = Duration::from_millis(10);

pub struct Spiteful {
    inner: Engine,
    clock: Arc<SystemClock>,
    dice: Dice,
    /// Of a hundred records, so many are refused.
    spite: u64,
    /// Records that shards refused because they were full, by the second.
    refused: Mutex<BTreeMap<u64, u64>>,
}

impl Spiteful {
    pub fn new(inner: Engine, clock: Arc<SystemClock>, spite: u64) -> Self {
        Spiteful { inner, clock, dice: Dice::new(11), spite, refused: Mutex::default() }
    }

    /// Records that full shards refused in this time until now.
    pub fn refused_within(&self, time: Duration) -> u64 {
        let since = self.clock.elapsed().saturating_sub(time).as_secs();
        self.refused.lock().range(since..).map(|(_, count)| count).sum()
    }

    fn is_spited(&self) -> bool {
        self.dice.roll() % 100 < self.spite
    }
}

#[async_trait]
impl ShardSource for Spiteful {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        self.inner.shards(stream, after, limit).await
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        self.inner.read(stream, shard, from, limit).await
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        self.inner.follow(stream, shard, from).await
    }
}

#[async_trait]
impl StreamStore for Spiteful {
    async fn create_stream(&self, stream: &StreamName, options: StreamOptions) -> Result<()> {
        self.inner.create_stream(stream, options).await
    }

    async fn delete_stream(&self, stream: &StreamName) -> Result<()> {
        self.inner.delete_stream(stream).await
    }

    async fn streams(&self, after: Option<&StreamName>, limit: usize) -> Result<Page<StreamSummary>> {
        self.inner.streams(after, limit).await
    }

    async fn stream(&self, stream: &StreamName) -> Result<StreamSummary> {
        self.inner.stream(stream).await
    }

    async fn set_retention(&self, stream: &StreamName, retention: Duration) -> Result<()> {
        self.inner.set_retention(stream, retention).await
    }

    async fn append(&self, stream: &StreamName, records: Vec<NewRecord>) -> Result<Vec<Result<Appended>>> {
        let spited: Vec<bool> = records.iter().map(|_| self.is_spited()).collect();
        let asked: Vec<NewRecord> = records
            .into_iter()
            .zip(&spited)
            .filter(|(_, spited)| !**spited)
            .map(|(record, _)| record)
            .collect();
        // A service refuses the third record of a call and stores the fourth.
        let mut stored = match asked.is_empty() {
            true => Vec::new().into_iter(),
            false => self.inner.append(stream, asked).await?.into_iter(),
        };
        let refusal = || Error::Throttled {
            shard: ShardId::numbered(0),
            limit: "nothing at all",
            retry_after: RETRY_AFTER,
        };
        let results = spited.iter().map(|spited| match spited {
            true => Err(refusal()),
            false => stored.next().expect("an answer for each"),
        });
        let results: Vec<_> = results.collect();
        let full = results.iter().zip(&spited);
        let full =
            full.filter(|(result, spited)| matches!(result, Err(Error::Throttled { .. })) && !**spited);
        let count = full.count() as u64;
        if count > 0 {
            *self.refused.lock().entry(self.clock.elapsed().as_secs()).or_default() += count;
        }
        Ok(results)
    }

    async fn split(&self, stream: &StreamName, shard: &ShardId, at: HashKey) -> Result<[ShardId; 2]> {
        self.inner.split(stream, shard, at).await
    }

    async fn merge(&self, stream: &StreamName, shard: &ShardId, neighbour: &ShardId) -> Result<ShardId> {
        self.inner.merge(stream, shard, neighbour).await
    }
}
