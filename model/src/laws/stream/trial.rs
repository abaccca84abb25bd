//! Making streams, writing, and reading to the end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;

use super::written::Written;
use crate::laws::trial::{self, STEPS_MAX};
pub(super) use crate::laws::trial::{NO_CLOCK, NO_CRASH, give_way};
use crate::{
    Appended, Batch, Error, Follow, HashRange, NewRecord, Next, Position, ReadLimit, Record, Shard,
    ShardGraph, ShardId, StreamName, StreamOptions, StreamStore, limits,
};

pub(super) type Trial = trial::Trial<dyn StreamStore>;

/// Everything from a position to the end of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::laws) struct Reading {
    pub records: Vec<Record>,
    pub next: Next,
}

/// What only the fixture of streams can do.
impl Trial {
    /// A store that refuses what is too much for a shard, if there is one.
    pub async fn limited(&self) -> Option<Arc<dyn StreamStore>> {
        Some(self.means.limited.as_ref()?().await)
    }

    pub fn turn_back(&self, duration: Duration) {
        if let Some(turn_back) = &self.means.turn_back {
            turn_back(duration);
        }
    }
}

/// Streams and writing.
impl Trial {
    /// A name that no other law uses.
    pub fn fresh_name(&self) -> StreamName {
        let number = self.next_number();
        self.ok("naming a stream", StreamName::new(&format!("{}.{}.{number}", self.means.prefix, self.law)))
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

    pub async fn settle(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Position {
        let settled = self.store().settle(stream, shard, from).await;
        self.ok(format!("settle {from:?} in {shard}"), settled)
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
