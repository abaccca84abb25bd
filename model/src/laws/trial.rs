//! One law in front of one store: making streams, writing, reading to the end, and saying what was seen.
//!
//! Calls that a law takes for granted panic when they fail; every message begins with the name of the law.

use std::fmt::{Debug, Display};
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;

use super::fixture::{Crash, Fixture, Limited, Spawn, Store, Turn, Upkeep};
use super::written::Written;
use crate::{
    Appended, Batch, Error, Follow, HashRange, NewRecord, Next, Position, ReadLimit, Record, Result, Shard,
    ShardGraph, ShardId, StreamName, StreamOptions, StreamStore, limits,
};

/// Why a law about time is not put to the test.
pub(super) const NO_CLOCK: &str = "the clock of the fixture cannot be moved";
/// Why a law about crashes is not put to the test.
pub(super) const NO_CRASH: &str = "the store of the fixture cannot be made to crash";
/// More steps than any law needs: a loop that reaches it means that the store goes round in circles.
const STEPS_MAX: usize = 100_000;
/// Most bytes of a value that a message repeats.
const SHOWN_BYTES_MAX: usize = 1_500;
/// How much of that comes before the first difference.
const SHOWN_BYTES_BEFORE: usize = 200;

pub(super) struct Trial {
    law: &'static str,
    store: Mutex<Option<Store>>,
    prefix: String,
    streams: AtomicUsize,
    advance: Option<Turn>,
    turn_back: Option<Turn>,
    upkeep: Option<Upkeep>,
    crash: Option<Crash>,
    limited: Option<Limited>,
    spawn: Spawn,
    _kept: Vec<Box<dyn std::any::Any + Send + Sync>>,
}

/// Everything from a position to the end of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub records: Vec<Record>,
    pub next: Next,
}

/// Lets everything else run once.
pub(super) fn give_way() -> impl Future<Output = ()> + Send {
    let mut given = false;
    poll_fn(move |context| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

impl Trial {
    pub fn new(law: &'static str, fixture: Fixture) -> Self {
        Trial {
            law,
            store: Mutex::new(Some(fixture.store)),
            prefix: fixture.prefix,
            streams: AtomicUsize::new(0),
            advance: fixture.advance,
            turn_back: fixture.turn_back,
            upkeep: fixture.upkeep,
            crash: fixture.crash,
            limited: fixture.limited,
            spawn: fixture.spawn,
            _kept: fixture.kept,
        }
    }
}

/// Saying what was seen.
impl Trial {
    #[track_caller]
    pub fn fail(&self, seen: impl Display) -> ! {
        panic!("law `{}`: {seen}", self.law)
    }

    #[track_caller]
    pub fn holds(&self, condition: bool, seen: impl Display) {
        if !condition {
            self.fail(seen)
        }
    }

    #[track_caller]
    pub fn same<T: PartialEq + Debug>(&self, what: impl Display, seen: T, expected: T) {
        if seen != expected {
            let [seen, expected] = differing(&format!("{seen:?}"), &format!("{expected:?}"));
            self.fail(format!("{what}:\n  saw      {seen}\n  expected {expected}"))
        }
    }

    #[track_caller]
    pub fn ok<T>(&self, what: impl Display, result: Result<T>) -> T {
        result.unwrap_or_else(|error| self.fail(format!("{what} failed: {error} ({error:?})")))
    }

    /// Says why the law cannot be put to the test here.
    pub fn skip(&self, why: &str) {
        eprintln!("law `{}` was not put to the test: {why}", self.law);
    }
}

/// Two texts from shortly before their first difference on: lists of records are long and mostly alike.
pub(super) fn differing(one: &str, other: &str) -> [String; 2] {
    let alike = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    [one, other].map(|text| {
        let start = text.floor_char_boundary(alike.saturating_sub(SHOWN_BYTES_BEFORE));
        let end = text.floor_char_boundary(start + SHOWN_BYTES_MAX);
        let before = if start > 0 { "… " } else { "" };
        let behind = if end < text.len() { " …" } else { "" };
        format!("{before}{}{behind}", &text[start..end])
    })
}

/// What the fixture can do.
impl Trial {
    pub fn store(&self) -> Store {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).clone();
        store.unwrap_or_else(|| self.fail("the store has crashed and is not open again"))
    }

    /// A store that refuses what is too much for a shard, if there is one.
    pub async fn limited(&self) -> Option<Store> {
        Some(self.limited.as_ref()?().await)
    }

    pub fn can_crash(&self) -> bool {
        self.crash.is_some()
    }

    /// Ends the store without warning and goes on with what is left of it.
    pub async fn crash(&self) {
        let Some(crash) = &self.crash else { self.fail("the fixture cannot crash") };
        let last_handle = self.store.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(last_handle);
        let store = crash().await;
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(store);
    }

    pub fn can_advance(&self) -> bool {
        self.advance.is_some()
    }

    /// Moves the clock and lets the store tidy up.
    pub async fn advance(&self, duration: Duration) {
        if let Some(advance) = &self.advance {
            advance(duration);
        }
        self.upkeep().await;
    }

    pub async fn upkeep(&self) {
        if let Some(upkeep) = &self.upkeep {
            upkeep().await;
        }
    }

    pub fn turn_back(&self, duration: Duration) {
        if let Some(turn_back) = &self.turn_back {
            turn_back(duration);
        }
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
        (self.spawn)(Box::pin(task))
    }
}

/// Streams and writing.
impl Trial {
    /// A name that no other law uses.
    pub fn fresh_name(&self) -> StreamName {
        let number = self.streams.fetch_add(1, Ordering::Relaxed);
        self.ok("naming a stream", StreamName::new(&format!("{}.{}.{number}", self.prefix, self.law)))
    }

    /// A new stream with the shortest retention.
    pub async fn stream(&self, shards: usize) -> StreamName {
        self.stream_with(StreamOptions { shards, ..StreamOptions::default() }).await
    }

    pub async fn stream_with(&self, options: StreamOptions) -> StreamName {
        self.make_stream(&*self.store(), options).await
    }

    /// A new stream of another store than the one under test.
    pub async fn stream_in(&self, store: &dyn StreamStore, shards: usize) -> StreamName {
        self.make_stream(store, StreamOptions { shards, ..StreamOptions::default() }).await
    }

    async fn make_stream(&self, store: &dyn StreamStore, options: StreamOptions) -> StreamName {
        let name = self.fresh_name();
        match store.delete_stream(&name).await {
            Ok(()) | Err(Error::StreamNotFound(_)) => {}
            Err(error) => self.fail(format!("deleting what an earlier run left failed: {error}")),
        }
        self.ok("making a stream", store.create_stream(&name, options).await);
        name
    }

    /// A new stream with one shard.
    pub async fn single_shard(&self) -> (StreamName, ShardId) {
        let stream = self.stream(1).await;
        let shard = self.open_shards(&stream).await.swap_remove(0);
        (stream, shard.id)
    }

    /// Appends; every record must be taken.
    pub async fn write(&self, stream: &StreamName, records: Vec<NewRecord>) -> Vec<Written> {
        let results = self.ok("append", self.store().append(stream, records.clone()).await);
        self.same("results of an append", results.len(), records.len());
        let written = |(record, result)| {
            let appended: Appended = self.ok("appending a record", result);
            Written { record, shard: appended.shard, sequence: appended.sequence }
        };
        records.into_iter().zip(results).map(written).collect()
    }

    pub async fn write_one(&self, stream: &StreamName, record: NewRecord) -> Written {
        self.write(stream, vec![record]).await.swap_remove(0)
    }

    /// Splits an open shard in the middle.
    pub async fn split(&self, stream: &StreamName, shard: &Shard) -> [ShardId; 2] {
        let middle = self.range(shard).midpoint();
        let middle = middle.unwrap_or_else(|| self.fail(format!("{shard:?} holds a single key")));
        self.ok("split", self.store().split(stream, &shard.id, middle).await)
    }

    pub async fn merge(&self, stream: &StreamName, one: &ShardId, other: &ShardId) -> ShardId {
        self.ok("merge", self.store().merge(stream, one, other).await)
    }
}

/// Shards and reading.
impl Trial {
    /// All shards, in pages of the usual size.
    pub async fn shards(&self, stream: &StreamName) -> Vec<Shard> {
        self.shards_by(stream, limits::PAGE_ENTRIES_MAX).await
    }

    pub async fn shards_by(&self, stream: &StreamName, limit: usize) -> Vec<Shard> {
        self.shards_in(&*self.store(), stream, limit).await
    }

    pub async fn shards_in(&self, store: &dyn StreamStore, stream: &StreamName, limit: usize) -> Vec<Shard> {
        let mut shards: Vec<Shard> = Vec::new();
        for _ in 0..STEPS_MAX {
            let after = shards.last().map(|shard| shard.id.clone());
            let page = self.ok("listing shards", store.shards(stream, after.as_ref(), limit).await);
            self.holds(
                page.entries.len() <= limit.max(1),
                format!("a page of {limit} has {} shards", page.entries.len()),
            );
            self.holds(
                !page.more || !page.entries.is_empty(),
                "an empty page says that there are more shards",
            );
            shards.extend(page.entries);
            if !page.more {
                return shards;
            }
        }
        self.fail("the listing of shards does not end")
    }

    pub async fn graph(&self, stream: &StreamName) -> ShardGraph {
        ShardGraph::new(self.shards(stream).await)
    }

    /// The open shards, by their ranges.
    pub async fn open_shards(&self, stream: &StreamName) -> Vec<Shard> {
        let mut open = self.shards(stream).await;
        open.retain(Shard::is_open);
        open.sort_by_key(|shard| self.range(shard).first());
        self.holds(!open.is_empty(), "the stream has no open shard");
        open
    }

    pub async fn shard(&self, stream: &StreamName, id: &ShardId) -> Shard {
        let shard = self.graph(stream).await.get(id).cloned();
        shard.unwrap_or_else(|| self.fail(format!("shard {id} is not listed")))
    }

    #[track_caller]
    pub fn range(&self, shard: &Shard) -> HashRange {
        shard.range.unwrap_or_else(|| self.fail(format!("shard {} of a stream has no hash range", shard.id)))
    }

    pub async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Batch {
        self.read_in(&*self.store(), stream, shard, from, limit).await
    }

    async fn read_in(
        &self,
        store: &dyn StreamStore,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Batch {
        let batch = store.read(stream, shard, from, limit).await;
        self.ok(format!("reading {shard} from {from:?}"), batch)
    }

    /// Reads in batches of at most `records` until there is nothing more.
    pub async fn read_by(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        records: usize,
    ) -> Reading {
        self.read_to_end(&*self.store(), stream, shard, from, records).await
    }

    async fn read_to_end(
        &self,
        store: &dyn StreamStore,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        records: usize,
    ) -> Reading {
        let limit = ReadLimit { records, ..ReadLimit::default() };
        let mut reading = Reading { records: Vec::new(), next: Next::At(from) };
        for _ in 0..STEPS_MAX {
            let Next::At(position) = reading.next else { return reading };
            let batch = self.read_in(store, stream, shard, position, limit).await;
            // A source may return an empty batch before the end, but then says that it is behind.
            let caught_up = batch.records.is_empty() && batch.behind.is_zero();
            reading.records.extend(batch.records);
            reading.next = batch.next;
            if caught_up {
                return reading;
            }
        }
        self.fail(format!("reading {shard} from {from:?} does not end"))
    }

    pub async fn read_on(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Reading {
        self.read_by(stream, shard, from, limits::READ_RECORDS_MAX).await
    }

    pub async fn read_all(&self, stream: &StreamName, shard: &ShardId) -> Vec<Record> {
        self.read_on(stream, shard, Position::TrimHorizon).await.records
    }

    /// Everything in a shard of another store than the one under test.
    pub async fn read_all_in(
        &self,
        store: &dyn StreamStore,
        stream: &StreamName,
        shard: &ShardId,
    ) -> Vec<Record> {
        let most = limits::READ_RECORDS_MAX;
        self.read_to_end(store, stream, shard, Position::TrimHorizon, most).await.records
    }

    pub async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Follow {
        let follow = self.store().follow(stream, shard, from).await;
        self.ok(format!("following {shard} from {from:?}"), follow)
    }

    /// Takes batches from `follow` until `enough` of the records, or until the shard has ended.
    pub async fn take_until(&self, follow: &mut Follow, enough: impl Fn(&[Record]) -> bool) -> Reading {
        let mut reading = Reading { records: Vec::new(), next: Next::At(Position::TrimHorizon) };
        for _ in 0..STEPS_MAX {
            if enough(&reading.records) || matches!(reading.next, Next::Ended(_)) {
                return reading;
            }
            let batch = follow.next().await;
            let batch = batch.unwrap_or_else(|| self.fail("following ended without the end of the shard"));
            let batch = self.ok("following", batch);
            reading.records.extend(batch.records);
            reading.next = batch.next;
        }
        self.fail("following yields batches without end")
    }

    /// The position of a batch that is not the last one.
    #[track_caller]
    pub fn position(&self, next: &Next) -> Position {
        match next {
            Next::At(position) => *position,
            Next::Ended(_) => self.fail(format!("the shard is not read to its end, but says {next:?}")),
        }
    }

    /// The children of a shard that was read to its end, in the order of their names.
    #[track_caller]
    pub fn children(&self, next: &Next) -> Vec<ShardId> {
        match next {
            Next::At(_) => self.fail(format!("the shard is read to its end, but says {next:?}")),
            Next::Ended(children) => sorted(children.clone()),
        }
    }
}

pub(super) fn sorted(mut ids: Vec<ShardId>) -> Vec<ShardId> {
    ids.sort();
    ids
}
