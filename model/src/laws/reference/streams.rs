//! Streams that are simple enough to be right: everything in memory behind one lock, nothing ever removed, only hidden.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;

use super::log;
use crate::laws::stream::StreamFixture;
use crate::{
    Appended, Batch, Capabilities, Error, Follow, HashKey, HashRange, NewRecord, Next, Page, Position,
    ReadLimit, Record, Result, SequenceNumber, Shard, ShardGraph, ShardId, ShardSource, StreamName,
    StreamOptions, StreamStore, StreamSummary, Timestamp, check_append, check_retention, limits,
};

/// A handle; clones are the same store. Its clock stands still until a fixture moves it.
#[derive(Clone)]
pub struct SimpleStreams {
    state: Arc<Mutex<SimpleStreamsState>>,
    /// Followers that wait. They look again after every change.
    waiting: Arc<Mutex<Vec<Waker>>>,
    now_ms: Arc<AtomicU64>,
}

/// Everything that a store remembers.
#[derive(Clone, Debug, Default)]
pub struct SimpleStreamsState {
    streams: BTreeMap<StreamName, Stream>,
    /// The last number that was given, to a record, a reshard or a stream.
    numbers: u128,
}

#[derive(Clone, Debug)]
struct Stream {
    created_at: Timestamp,
    /// Tells this stream from earlier and later ones of the same name.
    born: SequenceNumber,
    retention: Duration,
    graph: ShardGraph,
    records: HashMap<ShardId, Vec<Record>>,
    /// The number of the next shard.
    ids: u64,
}

impl Default for SimpleStreams {
    fn default() -> Self {
        SimpleStreams::new()
    }
}

impl fmt::Debug for SimpleStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimpleStreams").finish_non_exhaustive()
    }
}

impl SimpleStreams {
    /// A store without streams.
    pub fn new() -> Self {
        SimpleStreams {
            state: Arc::default(),
            waiting: Arc::default(),
            now_ms: Arc::new(AtomicU64::new(1_700_000_000_000)),
        }
    }

    /// Everything that a law may want to do to `store`, which is this one or a wrapper around it.
    pub fn fixture(&self, store: Arc<dyn StreamStore>) -> StreamFixture {
        let (forwards, backwards) = (self.now_ms.clone(), self.now_ms.clone());
        let survivor = store.clone();
        StreamFixture::new(store)
            .with_advance(move |by| {
                forwards.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
            })
            .with_turn_back(move |by| {
                backwards.fetch_sub(by.as_millis() as u64, Ordering::SeqCst);
            })
            .with_upkeep(|| async {})
            .with_crash(move || std::future::ready(survivor.clone()))
    }

    /// Everything that it remembers, to be looked at or replaced.
    pub fn state(&self) -> MutexGuard<'_, SimpleStreamsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the clock.
    pub fn advance(&self, by: Duration) {
        self.now_ms.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }

    /// The time of day.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_ms.load(Ordering::SeqCst))
    }

    fn changed(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().for_each(Waker::wake);
    }

    fn read_now(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        let (state, now) = (self.state(), self.now());
        let found = state.stream(stream)?;
        let listed = found.listed(now).find(|candidate| candidate.id == *shard);
        let listed = listed.ok_or_else(|| Error::ShardNotFound(stream.clone(), shard.clone()))?;
        Ok(found.read(listed, from, limit, now))
    }
}

impl SimpleStreamsState {
    fn stream(&self, name: &StreamName) -> Result<&Stream> {
        self.streams.get(name).ok_or_else(|| Error::StreamNotFound(name.clone()))
    }

    fn stream_mut(&mut self, name: &StreamName) -> Result<&mut Stream> {
        self.streams.get_mut(name).ok_or_else(|| Error::StreamNotFound(name.clone()))
    }

    fn fresh_number(&mut self) -> SequenceNumber {
        self.numbers += 1;
        SequenceNumber::from_u128(self.numbers)
    }
}

impl Stream {
    /// Shards whose records are not all hidden by retention.
    fn listed(&self, now: Timestamp) -> impl Iterator<Item = &Shard> {
        let horizon = now.minus(self.retention);
        self.graph.iter().filter(move |shard| shard.closed_at.is_none_or(|closed| closed >= horizon))
    }

    fn summary(&self, name: &StreamName, now: Timestamp) -> StreamSummary {
        let open_shards = self.graph.open().count();
        StreamSummary {
            name: name.clone(),
            created_at: self.created_at,
            retention: self.retention,
            open_shards,
            closed_shards: self.listed(now).count() - open_shards,
            active: true,
        }
    }

    fn fresh_id(&mut self) -> ShardId {
        self.ids += 1;
        ShardId::numbered(self.ids - 1)
    }

    fn append(&mut self, record: NewRecord, sequence: SequenceNumber, now: Timestamp) -> Result<Appended> {
        record.check()?;
        let owns = |shard: &&Shard| shard.range.is_some_and(|range| range.contains(record.hash_key()));
        let shard = self.graph.open().find(owns).expect("open shards are a partition").id.clone();
        let records = self.records.entry(shard.clone()).or_default();
        let arrival = records.last().map_or(now, |last| now.max(last.arrival));
        let NewRecord { partition_key, data, .. } = record;
        records.push(Record { sequence, arrival, partition_key, data });
        Ok(Appended { shard, sequence })
    }

    fn read(&self, shard: &Shard, from: Position, limit: ReadLimit, now: Timestamp) -> Batch {
        let all = self.records.get(&shard.id).map_or(&[][..], Vec::as_slice);
        let horizon = now.minus(self.retention);
        let kept = &all[all.partition_point(|record| record.arrival < horizon)..];
        let children = self.graph.children_of(&shard.id).into_iter().cloned().collect();
        log::read(kept, shard, children, from, limit)
    }
}

/// The entries behind `after` of a listing that is in order.
fn page<T>(entries: impl Iterator<Item = T>, limit: usize) -> Page<T> {
    let limit = limit.clamp(1, limits::PAGE_ENTRIES_MAX);
    let mut entries: Vec<_> = entries.take(limit + 1).collect();
    let more = entries.len() > limit;
    entries.truncate(limit);
    Page { entries, more }
}

#[async_trait]
impl ShardSource for SimpleStreams {
    fn capabilities(&self) -> Capabilities {
        Capabilities { hash_ranges: true, at_timestamp: true, push: true, lends: false }
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        let state = self.state();
        let behind = |shard: &&Shard| after.is_none_or(|after| shard.id.number() > after.number());
        Ok(page(state.stream(stream)?.listed(self.now()).filter(behind).cloned(), limit))
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        self.read_now(stream, shard, from, limit)
    }

    async fn trimmed(&self, stream: &StreamName, shard: &ShardId) -> Result<Option<SequenceNumber>> {
        let (state, now) = (self.state(), self.now());
        let found = state.stream(stream)?;
        let horizon = now.minus(found.retention);
        let records = found.records.get(shard).map_or(&[][..], Vec::as_slice);
        let gone = records.iter().take_while(|record| record.arrival < horizon);
        Ok(gone.last().map(|record| record.sequence))
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        // The first read turns a position like `Latest` into one that stays where it is.
        let first = self.read(stream, shard, from, ReadLimit::default()).await?;
        let follower = Follower {
            store: self.clone(),
            stream: stream.clone(),
            born: self.state().stream(stream)?.born,
            shard: shard.clone(),
            next: first.next.clone(),
        };
        let rest = stream::unfold(Some(follower), |follower| async {
            let mut follower = follower?;
            let batch = follower.wait().await;
            let goes_on = matches!(&batch, Ok(batch) if matches!(batch.next, Next::At(_)));
            Some((batch, goes_on.then_some(follower)))
        });
        let ended = matches!(first.next, Next::Ended(_));
        let rest = stream::StreamExt::take(rest, if ended { 0 } else { usize::MAX });
        Ok(Box::pin(stream::StreamExt::chain(stream::iter([Ok(first)]), rest)))
    }
}

struct Follower {
    store: SimpleStreams,
    stream: StreamName,
    born: SequenceNumber,
    shard: ShardId,
    next: Next,
}

impl Follower {
    /// The next batch that has something to say.
    async fn wait(&mut self) -> Result<Batch> {
        let Next::At(position) = self.next else { unreachable!("a follower stops at the end") };
        let batch = poll_fn(|context| {
            let waiting = &self.store.waiting;
            waiting.lock().unwrap_or_else(PoisonError::into_inner).push(context.waker().clone());
            match self.look(position) {
                Ok(batch) if batch.records.is_empty() && matches!(batch.next, Next::At(_)) => Poll::Pending,
                other => Poll::Ready(other),
            }
        })
        .await?;
        self.next = batch.next.clone();
        Ok(batch)
    }

    fn look(&self, position: Position) -> Result<Batch> {
        if self.store.state().stream(&self.stream)?.born != self.born {
            return Err(Error::StreamNotFound(self.stream.clone()));
        }
        self.store.read_now(&self.stream, &self.shard, position, ReadLimit::default())
    }
}

#[async_trait]
impl StreamStore for SimpleStreams {
    async fn create_stream(&self, stream: &StreamName, options: StreamOptions) -> Result<()> {
        options.check()?;
        let mut state = self.state();
        if state.streams.contains_key(stream) {
            return Err(Error::StreamExists(stream.clone()));
        }
        let born = state.fresh_number();
        let root = |(range, number): (HashRange, u64)| Shard {
            id: ShardId::numbered(number),
            parents: Vec::new(),
            range: Some(range),
            starts_at: born,
            ends_before: None,
            closed_at: None,
        };
        let made = Stream {
            created_at: self.now(),
            born,
            retention: options.retention,
            graph: ShardGraph::new(HashRange::even(options.shards).into_iter().zip(0..).map(root)),
            records: HashMap::new(),
            ids: options.shards as u64,
        };
        state.streams.insert(stream.clone(), made);
        Ok(())
    }

    async fn delete_stream(&self, stream: &StreamName) -> Result<()> {
        let removed = self.state().streams.remove(stream);
        self.changed();
        removed.map(drop).ok_or_else(|| Error::StreamNotFound(stream.clone()))
    }

    async fn streams(&self, after: Option<&StreamName>, limit: usize) -> Result<Page<StreamSummary>> {
        let (state, now) = (self.state(), self.now());
        let behind = state.streams.iter().filter(|(name, _)| after.is_none_or(|after| *name > after));
        Ok(page(behind.map(|(name, stream)| stream.summary(name, now)), limit))
    }

    async fn stream(&self, stream: &StreamName) -> Result<StreamSummary> {
        Ok(self.state().stream(stream)?.summary(stream, self.now()))
    }

    async fn set_retention(&self, stream: &StreamName, retention: Duration) -> Result<()> {
        let mut state = self.state();
        let found = state.stream_mut(stream)?;
        check_retention(retention)?;
        found.retention = retention;
        Ok(())
    }

    async fn append(&self, stream: &StreamName, records: Vec<NewRecord>) -> Result<Vec<Result<Appended>>> {
        check_append(&records)?;
        let (mut state, now) = (self.state(), self.now());
        state.stream(stream)?;
        let mut results = Vec::new();
        for record in records {
            let sequence = state.fresh_number();
            results.push(state.stream_mut(stream)?.append(record, sequence, now));
        }
        drop(state);
        self.changed();
        Ok(results)
    }

    async fn split(&self, stream: &StreamName, shard: &ShardId, at: HashKey) -> Result<[ShardId; 2]> {
        let mut state = self.state();
        let sequence = state.fresh_number();
        let found = state.stream_mut(stream)?;
        let children = [found.fresh_id(), found.fresh_id()];
        found.graph.split(stream, shard, at, children.clone(), sequence, self.now())?;
        self.changed();
        Ok(children)
    }

    async fn merge(&self, stream: &StreamName, shard: &ShardId, neighbour: &ShardId) -> Result<ShardId> {
        let mut state = self.state();
        let sequence = state.fresh_number();
        let found = state.stream_mut(stream)?;
        let child = found.fresh_id();
        found.graph.merge(stream, shard, neighbour, child.clone(), sequence, self.now())?;
        self.changed();
        Ok(child)
    }
}
