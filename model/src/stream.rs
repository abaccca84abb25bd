//! The ports of streams: [`ShardSource`], which is what a consumer needs, and [`StreamStore`], which adds writing
//! and resharding.

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::hash_key::HashKey;
use crate::limits;
use crate::name::{ShardId, StreamName};
use crate::position::Position;
use crate::record::{NewRecord, Record};
use crate::sequence::SequenceNumber;
use crate::shard::Shard;

/// What a source can do beyond reading shards in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Shards have hash ranges.
    pub hash_ranges: bool,
    /// [`Position::AtTimestamp`] is understood.
    pub at_timestamp: bool,
    /// [`ShardSource::follow`] pushes; otherwise it polls.
    pub push: bool,
    /// What is read lies in memory that the source has little of, until it is dropped: whoever keeps it copies it.
    pub lends: bool,
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries, in the order of the listing.
    pub entries: Vec<T>,
    /// Whether a call with the last entry as `after` returns more.
    pub more: bool,
}

/// How much a read returns at most. Values above the limits of the model are cut to them; zero counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimit {
    /// Most records.
    pub records: usize,
    /// Bytes after which no record is added. The first record is returned whatever its size.
    pub bytes: usize,
}

impl ReadLimit {
    /// This limit with each value brought into what is allowed.
    pub fn clamped(self) -> ReadLimit {
        ReadLimit {
            records: self.records.clamp(1, limits::READ_RECORDS_MAX),
            bytes: self.bytes.clamp(1, limits::READ_BYTES_MAX),
        }
    }
}

impl Default for ReadLimit {
    fn default() -> Self {
        ReadLimit { records: limits::READ_RECORDS_MAX, bytes: limits::READ_BYTES_MAX }
    }
}

/// What comes after a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on reading here. Never [`Position::Latest`]: a position that was resolved stays resolved.
    At(Position),
    /// The shard is closed and read to its end; its records continue in these shards.
    Ended(Vec<ShardId>),
}

/// The answer to a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// In order; empty when there is nothing new.
    pub records: Vec<Record>,
    /// Where the following read starts.
    pub next: Next,
    /// How far the end of this batch lies behind the end of the shard; zero when it has caught up.
    pub behind: Duration,
}

/// Batches as they become durable; it ends after a batch with [`Next::Ended`] or after an error.
pub type Follow = Pin<Box<dyn Stream<Item = Result<Batch>> + Send>>;

/// Shards with parents and children, read from a position.
///
/// Laws (the suite `laws` checks them against every implementation):
///
/// 1. **Order.** Records of a shard come in strictly increasing sequence numbers, the same at every reading.
/// 2. **Nothing skipped.** Reading from [`Position::TrimHorizon`] and following `next` returns every record that
///    was acknowledged and not trimmed, once.
/// 3. **Resumption.** Reading `At(s)` starts with the record `s`, `After(s)` with the one behind it; a batch's
///    `next` starts with the first record that the batch did not contain, whatever the limits were.
/// 4. **Latest.** `Latest` returns nothing that was acknowledged before the call, and its `next` everything after.
/// 5. **Time.** Arrival never decreases in a shard; `AtTimestamp(t)` starts with the first record whose arrival is
///    at least `t`; in the future it behaves like `Latest`.
/// 6. **End.** A closed shard gives its records and then `Ended` with its children; an open one never says `Ended`.
/// 7. **Lineage.** Parents of a listed shard are listed too until retention removes them; all records of a
///    parent have smaller numbers than all records of its children.
/// 8. **Following.** `follow` yields the records that `read` would, in that order, without gaps, until the end.
/// 9. **Settling.** Reading from what `settle` returns gives what reading from the position gave then, and what came since;
///    it is never [`Position::Latest`] while the shard is open.
#[async_trait]
pub trait ShardSource: Send + Sync {
    /// What this source can do.
    fn capabilities(&self) -> Capabilities;

    /// Shards of a stream in the order of their creation, those behind `after` only. A page shows one moment. The
    /// limit is cut to [`limits::PAGE_ENTRIES_MAX`]; zero counts as one.
    async fn shards(&self, stream: &StreamName, after: Option<&ShardId>, limit: usize)
    -> Result<Page<Shard>>;

    /// Reads a batch. It does not wait for records.
    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch>;

    /// Where a read from this position would begin, as a position that means the same whenever it is read. A store that can
    /// tell without reading does not count it as a read.
    async fn settle(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Position> {
        let batch = self.read(stream, shard, from, ReadLimit { records: 1, bytes: 1 }).await?;
        Ok(match (batch.records.first(), batch.next) {
            (Some(first), _) => Position::At(first.sequence),
            (None, Next::At(position)) => position,
            (None, Next::Ended(_)) => from,
        })
    }

    /// The last record that retention has removed from a shard, or a number behind it and before the oldest record left; none
    /// if it has removed nothing, or if the source does not tell. Reading from there or from before goes on with the oldest record left.
    async fn trimmed(&self, _stream: &StreamName, _shard: &ShardId) -> Result<Option<SequenceNumber>> {
        Ok(None)
    }

    /// Reads and then waits for more. Dropping it stops it; deleting the stream ends it with an error.
    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow>;
}

/// How a stream is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// Open shards at the start, with equal ranges.
    pub shards: usize,
    /// How long records are kept.
    pub retention: Duration,
}

impl StreamOptions {
    /// Whether a stream may be made like this.
    pub fn check(&self) -> Result<()> {
        if self.shards == 0 || self.shards > limits::OPEN_SHARDS_MAX {
            return Err(Error::Invalid(format!(
                "a stream cannot begin with {} shards: 1 to {} are allowed",
                self.shards,
                limits::OPEN_SHARDS_MAX
            )));
        }
        check_retention(self.retention)
    }
}

/// Whether records may be kept this long.
pub fn check_retention(retention: Duration) -> Result<()> {
    if (limits::RETENTION_MIN..=limits::RETENTION_MAX).contains(&retention) {
        return Ok(());
    }
    let hours = |duration: Duration| duration.as_secs() / 3600;
    Err(Error::Invalid(format!(
        "retention of {} seconds is not allowed: it must be {} to {} hours",
        retention.as_secs_f64(),
        hours(limits::RETENTION_MIN),
        hours(limits::RETENTION_MAX)
    )))
}

/// Whether a store may take this many records in one append. What is wrong with a single record is the result of
/// that record ([`NewRecord::check`]) and not looked at here; a record that comes alone is bound by its own limit
/// only, or the largest one could never be stored.
pub fn check_append(records: &[NewRecord]) -> Result<()> {
    let count = records.len();
    if count == 0 || count > limits::APPEND_RECORDS_MAX {
        return Err(Error::Invalid(format!(
            "an append of {count} records is not allowed: it must have 1 to {}",
            limits::APPEND_RECORDS_MAX
        )));
    }
    let bytes: usize = records.iter().map(NewRecord::size).sum();
    if count > 1 && bytes > limits::APPEND_BYTES_MAX {
        return Err(Error::Invalid(format!(
            "an append of {bytes} bytes is not allowed: at most {} with partition keys",
            limits::APPEND_BYTES_MAX
        )));
    }
    Ok(())
}

impl Default for StreamOptions {
    fn default() -> Self {
        StreamOptions { shards: 1, retention: limits::RETENTION_MIN }
    }
}

/// A stream as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSummary {
    /// Its name.
    pub name: StreamName,
    /// When it was made.
    pub created_at: Timestamp,
    /// How long records are kept.
    pub retention: Duration,
    /// Shards that take records.
    pub open_shards: usize,
    /// Shards that were split or merged and whose records are not all trimmed yet.
    pub closed_shards: usize,
    /// Whether nothing of it is being changed. Where a change takes its time, none begins before the last one has ended.
    pub active: bool,
}

/// Where an appended record went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The shard that took it.
    pub shard: ShardId,
    /// Its place there.
    pub sequence: SequenceNumber,
}

/// Streams over the 2^128 hash-key space: a [`ShardSource`] that can be written to and resharded.
///
/// Laws, beyond those of [`ShardSource`]:
///
/// 1. **Durable before acknowledged.** What `append` reports as stored is there after any crash.
/// 2. **Visible once durable.** A read that starts after the acknowledgement sees the record.
/// 3. **Routing.** A record goes to the open shard whose range holds its hash key, at every moment exactly one.
/// 4. **Order of writes.** Records of one append to one shard keep their order; an append that starts after
///    another was acknowledged gets larger numbers in every shard.
/// 5. **Partition.** The ranges of the open shards are a partition of the hash-key space, always.
/// 6. **Unique.** A sequence number is given once in the life of a store: an old position never shows a record of a
///    younger stream of the same name as its own. A shard's identifier is given once in the life of a stream.
/// 7. **Refusals change nothing.** A call that returns an error of [`NextMove::FixCall`](crate::NextMove) had no
///    effect; in an append each record has its own result.
/// 8. **Runs**, where [`keeps_runs`](StreamStore::keeps_runs) says so. Of the records of an append with one hash key none is
///    stored behind one that is not, whatever a shard refuses and wherever a crash comes.
#[async_trait]
pub trait StreamStore: ShardSource {
    /// Makes a stream. When it returns, the stream takes records.
    async fn create_stream(&self, stream: &StreamName, options: StreamOptions) -> Result<()>;

    /// Removes a stream and its records. When it returns, the name is free.
    async fn delete_stream(&self, stream: &StreamName) -> Result<()>;

    /// Streams in the order of their names, those behind `after` only, whether or not `after` exists. The limit is cut
    /// to [`limits::PAGE_ENTRIES_MAX`]; zero counts as one.
    async fn streams(&self, after: Option<&StreamName>, limit: usize) -> Result<Page<StreamSummary>>;

    /// One stream.
    async fn stream(&self, stream: &StreamName) -> Result<StreamSummary>;

    /// Changes how long records are kept. Shortening removes what is older.
    async fn set_retention(&self, stream: &StreamName, retention: Duration) -> Result<()>;

    /// Whether an append keeps runs: of the well-formed records of one call with the same hash key, none is stored behind one
    /// that is not, neither when a shard refuses some of them nor after a crash. Where it does not, whoever must not lose a
    /// record in the midst of others sends them one at a time.
    fn keeps_runs(&self) -> bool {
        false
    }

    /// Stores records; the results are in the order of `records`. An error of the whole call means that no record
    /// was acknowledged. What [`check_append`] refuses is such an error; what [`NewRecord::check`] refuses is the
    /// result of that record, and the others are stored.
    async fn append(
        &self,
        stream: &StreamName,
        records: Vec<NewRecord>,
    ) -> Result<Vec<std::result::Result<Appended, Error>>>;

    /// The same as [`append`](StreamStore::append), for whoever keeps the records until he knows what became of them.
    async fn append_kept(
        &self,
        stream: &StreamName,
        records: &[NewRecord],
    ) -> Result<Vec<std::result::Result<Appended, Error>>> {
        self.append(stream, records.to_vec()).await
    }

    /// Closes a shard and opens two in its place; the upper one begins at `at`. Returns the lower one first.
    async fn split(&self, stream: &StreamName, shard: &ShardId, at: HashKey) -> Result<[ShardId; 2]>;

    /// Closes two neighbours, given in either order, and opens one in their place.
    async fn merge(&self, stream: &StreamName, shard: &ShardId, neighbour: &ShardId) -> Result<ShardId>;
}
