//! A store with one fault. What it wraps is right, so whatever a law notices is the fault.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_model::laws::reference::{SimpleStreams, SimpleStreamsState};
use anabranch_model::laws::stream::StreamFixture;
use anabranch_model::{
    Appended, Batch, Capabilities, Error, Follow, HashKey, NewRecord, Next, Page, Position, ReadLimit,
    Result, SequenceNumber, Shard, ShardId, ShardSource, StreamName, StreamOptions, StreamStore,
    StreamSummary, Timestamp, limits,
};
use async_trait::async_trait;
use futures_util::{StreamExt, future, stream};

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Acknowledges the last record of an append without storing it.
    DropsLastOfAppend,
    /// Stores the records of an append back to front.
    ReversesAppends,
    /// Gives the results of an append back to front.
    ReversesResults,
    /// Keeps the first thousand bytes of a payload.
    CutsPayloads,
    /// Sends every record to the first shard.
    RoutesToFirstShard,
    /// Counts the records of each stream from one.
    NumbersPerStream,
    /// Refuses a whole append for one bad record.
    FailsWholeAppend,
    /// Returns the first two records of a batch in the wrong order.
    SwapsRecords,
    /// Shows a record only once there is another one behind it.
    ShowsLastRecordLate,
    /// Returns all there is, whatever the limit.
    IgnoresLimits,
    /// Leaves out a record behind a batch that was cut short by its limit.
    ResumesTooFar,
    /// Starts with the record that it should start behind.
    AfterIsAt,
    /// Returns the newest record from `Latest`.
    LatestReturnsOld,
    /// Says to go on from `Latest` after a read from `Latest`.
    LatestStaysLatest,
    /// Says that every batch has caught up.
    AlwaysCaughtUp,
    /// Takes the time of day for the time of arrival, even when it jumps back.
    ArrivalIsTimeOfDay,
    /// Starts with the oldest record, whatever the moment.
    AtTimestampIsHorizon,
    /// Waits for a moment in the future.
    FutureIsAwaited,
    /// Never trims.
    KeepsForever,
    /// Trims everything after the shortest retention.
    ForgetsEarly,
    /// Goes on behind everything when the record of a position was trimmed.
    TrimmedIsLatest,
    /// Never says that a shard has ended.
    NeverEnds,
    /// Says that a shard has ended as soon as there is nothing new.
    EndsWhenCaughtUp,
    /// Lists the youngest first.
    ListsBackwards,
    /// Leaves out the first entry of every page but the first.
    PagesSkip,
    /// Does not list the open shard with the highest keys.
    HidesShard,
    /// Says that shards start later than they do.
    MisstatesBounds,
    /// Names the parent as the lower child of a split.
    ReturnsParentAsChild,
    /// Yields every followed batch twice.
    FollowRepeats,
    /// Follows from the oldest record, whatever the position.
    FollowsFromHorizon,
    /// Stops following without a word instead of with the end or an error.
    FollowStopsSilently,
    /// Does not count closed shards.
    MiscountsShards,
    /// Says that a stream was deleted, and keeps it.
    DeletesNothing,
    /// Answers `Ok` to calls that it should refuse.
    SwallowsErrors,
    /// Loses the last change in a crash.
    LosesLastChange,
    /// Stores what comes behind a refused record in its run.
    StoresBehindRefused,
    /// Loses the first record of the last append in a crash, and not those behind it.
    TearsLastAppend,
}

/// Records of an append that a store with limits takes whatever their size.
const BEFORE_LIMIT: usize = 10;
/// What is large beyond them.
const LARGE: usize = 1_000;

/// What was appended, and where.
type Append = (StreamName, Vec<NewRecord>);

#[derive(Clone)]
pub struct BrokenStore {
    inner: SimpleStreams,
    fault: Fault,
    /// What [`Fault::NumbersPerStream`] takes off the numbers of a stream.
    bases: Arc<Mutex<HashMap<StreamName, u128>>>,
    /// The retention that was asked for.
    retentions: Arc<Mutex<HashMap<StreamName, Duration>>>,
    /// The time of day at which records came.
    times: Arc<Mutex<HashMap<SequenceNumber, Timestamp>>>,
    /// The state before the last change.
    before: Arc<Mutex<SimpleStreamsState>>,
    /// The last append.
    last: Arc<Mutex<Option<Append>>>,
    /// Large records are refused.
    limited: bool,
}

impl BrokenStore {
    pub fn fixture(fault: Fault) -> StreamFixture {
        let inner = SimpleStreams::new();
        let store = BrokenStore {
            inner: inner.clone(),
            fault,
            bases: Arc::default(),
            retentions: Arc::default(),
            times: Arc::default(),
            before: Arc::default(),
            last: Arc::default(),
            limited: false,
        };
        let survivor = store.clone();
        let limited = BrokenStore { limited: true, ..store.clone() };
        inner
            .fixture(Arc::new(store))
            .with_limits(move || future::ready(Arc::new(limited.clone()) as _))
            .with_crash(move || {
                let survivor = survivor.clone();
                async move {
                    survivor.crash().await;
                    Arc::new(survivor) as Arc<dyn StreamStore>
                }
            })
    }

    async fn crash(&self) {
        if self.has(Fault::LosesLastChange) || self.has(Fault::TearsLastAppend) {
            *self.inner.state() = lock(&self.before).clone();
        }
        let last = lock(&self.last).take();
        if self.has(Fault::TearsLastAppend)
            && let Some((stream, records)) = last
        {
            self.inner
                .append(&stream, records[1..].to_vec())
                .await
                .expect("what was stored before is stored");
        }
    }

    /// Stores what is not too much.
    async fn append_admitted(
        &self,
        stream: &StreamName,
        records: Vec<NewRecord>,
    ) -> Result<Vec<Result<Appended>>> {
        let admitted = self.admitted(&records);
        let taken = records.into_iter().zip(&admitted).filter(|(_, admitted)| **admitted);
        let mut stored =
            self.inner.append(stream, taken.map(|(record, _)| record).collect()).await?.into_iter();
        let refused = || {
            let (shard, limit) = (ShardId::numbered(0), "nothing that is large");
            Err(Error::Throttled { shard, limit, retry_after: Duration::from_secs(1) })
        };
        let result = |admitted: bool| if admitted { stored.next().expect("a result") } else { refused() };
        Ok(admitted.into_iter().map(result).collect())
    }

    /// Of each record whether a store with limits takes it.
    fn admitted(&self, records: &[NewRecord]) -> Vec<bool> {
        let mut broken = HashSet::new();
        let mut admit = |(number, record): (usize, &NewRecord)| {
            let run = record.hash_key();
            let behind = broken.contains(&run) && !self.has(Fault::StoresBehindRefused);
            let too_much = number >= BEFORE_LIMIT && record.size() > LARGE;
            if too_much {
                broken.insert(run);
            }
            !(too_much || behind)
        };
        records.iter().enumerate().map(&mut admit).collect()
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn before_change(&self) {
        if self.has(Fault::LosesLastChange) || self.has(Fault::TearsLastAppend) {
            *lock(&self.before) = self.inner.state().clone();
        }
    }

    /// The value of a call that was refused, if this store does not mind.
    fn swallow<T>(&self, result: Result<T>, instead: impl FnOnce() -> T) -> Result<T> {
        if self.has(Fault::SwallowsErrors) { result.or_else(|_| Ok(instead())) } else { result }
    }

    /// The retention that this store uses when it is asked for another.
    fn retention(&self, stream: &StreamName, retention: Duration) -> Duration {
        lock(&self.retentions).insert(stream.clone(), retention);
        match self.fault {
            Fault::KeepsForever => limits::RETENTION_MAX,
            Fault::ForgetsEarly => limits::RETENTION_MIN,
            _ => retention,
        }
    }

    fn number_out(&self, stream: &StreamName, number: SequenceNumber) -> SequenceNumber {
        let bases = lock(&self.bases);
        let Some((base, number)) = bases.get(stream).zip(number.as_u128()) else { return number };
        SequenceNumber::from_u128(number.saturating_sub(*base))
    }

    fn number_in(&self, stream: &StreamName, number: SequenceNumber) -> SequenceNumber {
        let bases = lock(&self.bases);
        let Some((base, number)) = bases.get(stream).zip(number.as_u128()) else { return number };
        SequenceNumber::from_u128(number.saturating_add(*base))
    }

    fn position_in(&self, stream: &StreamName, from: Position) -> Position {
        match from {
            Position::At(number) => Position::At(self.number_in(stream, number)),
            Position::After(number) => Position::After(self.number_in(stream, number)),
            other => other,
        }
    }

    /// Where this store starts when it should start at `from`.
    async fn start(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Position> {
        let oldest = self.inner.read(stream, shard, Position::TrimHorizon, ReadLimit::default()).await?;
        let first = oldest.records.first().map(|record| record.sequence);
        Ok(match (self.fault, from) {
            (Fault::AfterIsAt, Position::After(number)) => Position::At(number),
            (Fault::LatestReturnsOld, Position::Latest) => match oldest.records.last() {
                Some(newest) => Position::At(newest.sequence),
                None => from,
            },
            (Fault::AtTimestampIsHorizon, Position::AtTimestamp(_)) => Position::TrimHorizon,
            (Fault::TrimmedIsLatest, Position::At(number) | Position::After(number))
                if first > Some(number.next()) =>
            {
                Position::Latest
            }
            _ => from,
        })
    }

    fn spoil(&self, batch: &mut Batch, from: Position, limit: ReadLimit) {
        let records = &mut batch.records;
        let cut_short = records.len() == limit.clamped().records;
        match self.fault {
            Fault::SwapsRecords if records.len() > 1 => records.swap(0, 1),
            Fault::ShowsLastRecordLate => drop(records.pop()),
            Fault::ArrivalIsTimeOfDay => records.iter_mut().for_each(|record| {
                record.arrival = lock(&self.times)[&record.sequence];
            }),
            Fault::AlwaysCaughtUp => batch.behind = Duration::ZERO,
            Fault::LatestStaysLatest if from == Position::Latest => batch.next = Next::At(Position::Latest),
            Fault::FutureIsAwaited if matches!(from, Position::AtTimestamp(_)) && records.is_empty() => {
                batch.next = Next::At(Position::AtTimestamp(Timestamp::from_millis(u64::MAX)));
            }
            Fault::ResumesTooFar if cut_short => {
                if let Next::At(Position::After(number)) = batch.next {
                    batch.next = Next::At(Position::After(number.next()));
                }
            }
            Fault::NeverEnds if matches!(batch.next, Next::Ended(_)) => {
                batch.next = Next::At(Position::At(SequenceNumber::MAX));
            }
            Fault::EndsWhenCaughtUp if records.is_empty() => batch.next = Next::Ended(Vec::new()),
            _ => {}
        }
    }

    fn spoil_records(&self, mut records: Vec<NewRecord>) -> Vec<NewRecord> {
        for record in &mut records {
            match self.fault {
                Fault::CutsPayloads => record.data.truncate(1_000),
                Fault::RoutesToFirstShard => record.explicit_hash_key = Some(HashKey::MIN),
                _ => {}
            }
        }
        match self.fault {
            Fault::ReversesAppends => records.reverse(),
            Fault::DropsLastOfAppend if records.len() > 1 => drop(records.pop()),
            _ => {}
        }
        records
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl ShardSource for BrokenStore {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        let page = self.inner.shards(stream, after, limit).await;
        let mut page = self.swallow(page, || Page { entries: Vec::new(), more: false })?;
        let last = |shard: &Shard| shard.is_open() && shard.range.is_some_and(|r| r.last() == HashKey::MAX);
        match self.fault {
            Fault::ListsBackwards => page.entries.reverse(),
            Fault::PagesSkip if after.is_some() && page.entries.len() > 1 => drop(page.entries.remove(0)),
            Fault::HidesShard => page.entries.retain(|shard| !last(shard)),
            Fault::MisstatesBounds => page.entries.iter_mut().for_each(|shard| {
                shard.starts_at = SequenceNumber::MAX;
            }),
            Fault::NumbersPerStream => page.entries.iter_mut().for_each(|shard| {
                shard.starts_at = self.number_out(stream, shard.starts_at);
                shard.ends_before = shard.ends_before.map(|number| self.number_out(stream, number));
            }),
            _ => {}
        }
        Ok(page)
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        let start = self.start(stream, shard, self.position_in(stream, from)).await;
        let start = self.swallow(start, || Position::TrimHorizon)?;
        let asked = if self.has(Fault::IgnoresLimits) { ReadLimit::default() } else { limit };
        let batch = self.inner.read(stream, shard, start, asked).await;
        let nothing = || Batch { records: Vec::new(), next: Next::Ended(Vec::new()), behind: Duration::ZERO };
        let mut batch = self.swallow(batch, nothing)?;
        self.spoil(&mut batch, from, limit);
        for record in &mut batch.records {
            record.sequence = self.number_out(stream, record.sequence);
        }
        if let Next::At(Position::At(number) | Position::After(number)) = &mut batch.next {
            *number = self.number_out(stream, *number);
        }
        Ok(batch)
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        let horizon = self.has(Fault::FollowsFromHorizon);
        let from = if horizon { Position::TrimHorizon } else { self.position_in(stream, from) };
        let follow = self.inner.follow(stream, shard, from).await;
        let follow = self.swallow(follow, || Box::pin(stream::empty()))?;
        Ok(match self.fault {
            Fault::FollowRepeats => Box::pin(follow.flat_map(|batch| stream::iter([batch.clone(), batch]))),
            Fault::FollowStopsSilently => Box::pin(follow.take_while(|batch| {
                future::ready(matches!(batch, Ok(batch) if matches!(batch.next, Next::At(_))))
            })),
            _ => follow,
        })
    }
}

#[async_trait]
impl StreamStore for BrokenStore {
    async fn create_stream(&self, stream: &StreamName, options: StreamOptions) -> Result<()> {
        self.before_change();
        lock(&self.bases).remove(stream);
        let options = StreamOptions { retention: self.retention(stream, options.retention), ..options };
        self.swallow(self.inner.create_stream(stream, options).await, || ())
    }

    async fn delete_stream(&self, stream: &StreamName) -> Result<()> {
        if self.has(Fault::DeletesNothing) {
            return self.inner.stream(stream).await.map(drop);
        }
        self.before_change();
        self.swallow(self.inner.delete_stream(stream).await, || ())
    }

    async fn streams(&self, after: Option<&StreamName>, limit: usize) -> Result<Page<StreamSummary>> {
        let mut page = self.inner.streams(after, limit).await?;
        if self.has(Fault::ListsBackwards) {
            page.entries.reverse();
        }
        Ok(page)
    }

    async fn stream(&self, stream: &StreamName) -> Result<StreamSummary> {
        let mut summary = self.inner.stream(stream).await?;
        if self.has(Fault::MiscountsShards) {
            summary.closed_shards = 0;
        }
        // Whatever it does about retention, it says what is expected of it.
        if let (Fault::KeepsForever | Fault::ForgetsEarly, Some(asked)) =
            (self.fault, lock(&self.retentions).get(stream))
        {
            summary.retention = *asked;
        }
        Ok(summary)
    }

    async fn set_retention(&self, stream: &StreamName, retention: Duration) -> Result<()> {
        self.before_change();
        self.swallow(self.inner.set_retention(stream, self.retention(stream, retention)).await, || ())
    }

    fn keeps_runs(&self) -> bool {
        true
    }

    async fn append(&self, stream: &StreamName, records: Vec<NewRecord>) -> Result<Vec<Result<Appended>>> {
        self.before_change();
        if self.has(Fault::FailsWholeAppend) {
            records.iter().try_for_each(NewRecord::check)?;
        }
        if self.limited {
            return self.append_admitted(stream, records).await;
        }
        *lock(&self.last) = Some((stream.clone(), records.clone()));
        let count = records.len();
        let mut results = self.inner.append(stream, self.spoil_records(records)).await;
        if let Ok(results) = &mut results
            && let Some(Ok(last)) = results.last()
            && results.len() < count
        {
            let invented = Appended { shard: last.shard.clone(), sequence: last.sequence.next() };
            results.push(Ok(invented));
        }
        if self.has(Fault::ReversesAppends) || self.has(Fault::ReversesResults) {
            results = results.map(|results| results.into_iter().rev().collect());
        }
        let mut results = self.swallow(results, Vec::new)?;
        for appended in results.iter_mut().flatten() {
            lock(&self.times).insert(appended.sequence, self.inner.now());
            if self.has(Fault::NumbersPerStream) {
                let number = appended.sequence.as_u128().expect("small");
                lock(&self.bases).entry(stream.clone()).or_insert(number - 1);
            }
            appended.sequence = self.number_out(stream, appended.sequence);
        }
        Ok(results)
    }

    async fn split(&self, stream: &StreamName, shard: &ShardId, at: HashKey) -> Result<[ShardId; 2]> {
        self.before_change();
        let split = self.inner.split(stream, shard, at).await;
        let mut children = self.swallow(split, || [shard.clone(), shard.clone()])?;
        if self.has(Fault::ReturnsParentAsChild) {
            children[0] = shard.clone();
        }
        Ok(children)
    }

    async fn merge(&self, stream: &StreamName, shard: &ShardId, neighbour: &ShardId) -> Result<ShardId> {
        self.before_change();
        self.swallow(self.inner.merge(stream, shard, neighbour).await, || shard.clone())
    }
}
