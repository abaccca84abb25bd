//! Reading streams of changes, whoever's they are.
//!
//! A [`Feed`] makes the four calls; [`Source`] is a [`ShardSource`] on them. What must hold: an iterator that the service
//! has forgotten is asked for again by its position, records that are trimmed are passed over, and a shard that has no
//! further iterator has ended, with its children from the listing.
//!
//! These services know no time. The end of an open shard is found by reading it, or by the first record that comes behind
//! it meanwhile; a follower that begins at the end keeps the service's own iterator until that record has come.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_model::{
    Batch, Capabilities, Error, Follow, Next, Page, Position, ReadLimit, Record, Result, SequenceNumber,
    Shard, ShardId, ShardSource, StreamName, Timestamp, limits,
};
use async_trait::async_trait;

use super::{Iterators, Polled, cut, poll};
use crate::call::{Caller, Deadline};

/// How long a read may take, with its attempts.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the end of a shard may be looked for.
const END_PATIENCE: Duration = Duration::from_secs(180);
/// Answers without a record that one read goes through: a service walks a shard in steps, and a step may hold nothing.
const EMPTY_ANSWERS_MAX: usize = 3;
/// The same, where the service says that there is more to come.
const STEPS_MAX: usize = 20;
/// Most pages of a listing that is read to its end.
const PAGES_MAX: usize = 10_000;
/// What is known of so many streams at most.
const FOUND_MAX: usize = 4_096;

/// A stream that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found<T> {
    /// The service's own name for it.
    pub(crate) arn: String,
    /// What the service says about the stream, and what its records cannot be understood without.
    pub(crate) told: T,
}

/// A shard of a stream that was found.
pub(crate) struct Place<T> {
    pub(crate) stream: StreamName,
    pub(crate) shard: ShardId,
    pub(crate) found: Arc<Found<T>>,
    pub(crate) deadline: Deadline,
}

/// Where an iterator starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Horizon,
    Latest,
    At(SequenceNumber),
    After(SequenceNumber),
}

/// What one call gave: records, and the next iterator if the shard goes on.
pub(crate) struct Fetched {
    pub(crate) records: Vec<Record>,
    pub(crate) next: Option<String>,
    /// Whether there is nothing more at the moment, where the service says it.
    pub(crate) at_tip: Option<bool>,
}

/// Why a call gave nothing.
pub(crate) enum Missed {
    /// The iterator is too old.
    Expired,
    /// What it points to is trimmed.
    Trimmed,
    /// The stream or the shard is not there.
    NotFound,
    /// Anything else.
    Failed(Error),
}

/// The calls of one service.
#[async_trait]
pub(crate) trait Feed: Clone + Send + Sync + 'static {
    /// What is told about a stream.
    type Told: Send + Sync;

    /// Looks for a stream.
    async fn find(&self, stream: &StreamName, deadline: Deadline) -> Result<Found<Self::Told>>;

    /// A page of shards behind a place in the listing, and the place behind the page if there are more.
    async fn page(
        &self,
        stream: &StreamName,
        found: &Found<Self::Told>,
        after: Option<String>,
        deadline: Deadline,
    ) -> Result<(Vec<Shard>, Option<String>)>;

    /// Asks for an iterator.
    async fn iterator(&self, place: &Place<Self::Told>, start: Start) -> std::result::Result<String, Missed>;

    /// Reads from an iterator.
    async fn records(
        &self,
        place: &Place<Self::Told>,
        iterator: &str,
        limit: usize,
    ) -> std::result::Result<Fetched, Missed>;
}

/// The streams of a service. Cheap to clone: the clones share what they know.
pub(crate) struct Source<F: Feed> {
    pub(crate) feed: F,
    caller: Caller,
    iterators: Arc<Iterators>,
    found: Known<F::Told>,
}

/// The streams that were found so far.
type Known<T> = Arc<Mutex<HashMap<StreamName, Arc<Found<T>>>>>;

// Derived, it would ask for a clone of what was told about streams, which is shared.
impl<F: Feed> Clone for Source<F> {
    fn clone(&self) -> Self {
        Source {
            feed: self.feed.clone(),
            caller: self.caller.clone(),
            iterators: self.iterators.clone(),
            found: self.found.clone(),
        }
    }
}

impl<F: Feed> fmt::Debug for Source<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

/// Where a follower goes on.
#[derive(Clone)]
enum Cursor {
    Position(Position),
    /// The service's own iterator for the end of the shard; nothing has come since.
    Iterator(String),
}

/// What has come behind a place that was the end of a shard.
enum Behind {
    /// Nothing yet; the iterator points to the same place.
    Nothing(String),
    /// A record.
    Record(SequenceNumber),
    /// The shard has ended there.
    End,
}

impl<F: Feed> Source<F> {
    pub(crate) fn new(feed: F, caller: Caller) -> Self {
        Source { feed, caller, iterators: Arc::default(), found: Arc::default() }
    }

    async fn find(&self, stream: &StreamName, deadline: Deadline) -> Result<Arc<Found<F::Told>>> {
        let known = self.found.lock().unwrap_or_else(PoisonError::into_inner).get(stream).cloned();
        if let Some(found) = known {
            return Ok(found);
        }
        let found = Arc::new(self.feed.find(stream, deadline).await?);
        let mut known = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= FOUND_MAX {
            known.clear();
        }
        known.insert(stream.clone(), found.clone());
        Ok(found)
    }

    async fn place(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        patience: Duration,
    ) -> Result<Place<F::Told>> {
        let deadline = self.caller.deadline(patience);
        let found = self.find(stream, deadline).await?;
        Ok(Place { stream: stream.clone(), shard: shard.clone(), found, deadline })
    }

    /// Every shard of a stream, in the order of their creation.
    async fn all_shards(&self, stream: &StreamName, deadline: Deadline) -> Result<Vec<Shard>> {
        let found = self.find(stream, deadline).await?;
        let mut shards: Vec<Shard> = Vec::new();
        let mut after = None;
        for _ in 0..PAGES_MAX {
            let (page, more) = self.feed.page(stream, &found, after, deadline).await?;
            shards.extend(page);
            after = more;
            if after.is_none() {
                break;
            }
        }
        close(&mut shards);
        Ok(shards)
    }

    async fn children(&self, place: &Place<F::Told>) -> Result<Vec<ShardId>> {
        let shards = self.all_shards(&place.stream, place.deadline).await?;
        let children = shards.into_iter().filter(|shard| shard.parents.contains(&place.shard));
        Ok(children.map(|shard| shard.id).collect())
    }

    /// What does not exist: the stream, the shard, or the position in it.
    async fn missing(&self, place: &Place<F::Told>, from: Position) -> Error {
        // What was known may be of a stream that is gone.
        self.found.lock().unwrap_or_else(PoisonError::into_inner).remove(&place.stream);
        match self.all_shards(&place.stream, place.deadline).await {
            Err(error) => error,
            Ok(shards) if shards.iter().any(|shard| shard.id == place.shard) => {
                Error::Invalid(format!("shard `{}` has no position {from:?}", place.shard))
            }
            Ok(_) => Error::ShardNotFound(place.stream.clone(), place.shard.clone()),
        }
    }
}

/// Sets what the numbers do not tell: a shard was closed when its first child was made, and the identifiers of these
/// services hold the millisecond of that.
fn close(shards: &mut [Shard]) {
    let mut closed: HashMap<ShardId, Timestamp> = HashMap::new();
    for shard in shards.iter() {
        for parent in &shard.parents {
            closed.entry(parent.clone()).or_insert(made_at(&shard.id));
        }
    }
    for shard in shards.iter_mut().filter(|shard| !shard.is_open()) {
        // Where nothing tells, all that is known is that it was some time ago.
        shard.closed_at = Some(closed.get(&shard.id).copied().unwrap_or_default());
    }
}

/// `shardId-00000001414576573621-f55eea83` was made 1414576573621 ms after the epoch.
fn made_at(shard: &ShardId) -> Timestamp {
    let millis = shard.as_str().split('-').nth(1).filter(|digits| digits.len() == 20);
    Timestamp::from_millis(millis.and_then(|digits| digits.parse().ok()).unwrap_or_default())
}

/// Reading.
impl<F: Feed> Source<F> {
    async fn iterator(&self, place: &Place<F::Told>, from: Position) -> Result<String> {
        let start = match from {
            Position::TrimHorizon => Start::Horizon,
            Position::Latest => Start::Latest,
            Position::At(number) => Start::At(number),
            Position::After(number) => Start::After(number),
            Position::AtTimestamp(_) => {
                return Err(Error::Invalid(
                    "a stream of changes cannot be read from a moment on".to_string(),
                ));
            }
        };
        let iterator = match self.feed.iterator(place, start).await {
            // What is trimmed cannot be missed any more: reading goes on with what is left.
            Err(Missed::Trimmed) => self.feed.iterator(place, Start::Horizon).await,
            other => other,
        };
        match iterator {
            Ok(iterator) => Ok(iterator),
            Err(Missed::Failed(error)) => Err(error),
            Err(_) => Err(self.missing(place, from).await),
        }
    }

    async fn read_from(&self, place: &Place<F::Told>, from: Position, limit: ReadLimit) -> Result<Batch> {
        let now = self.caller.clock().elapsed();
        let iterator = match self.iterators.take(&place.stream, &place.shard, from, now) {
            Some(iterator) => iterator,
            None => self.iterator(place, from).await?,
        };
        let (batch, iterator) = self.read_on(place, from, iterator, limit).await?;
        self.keep(place, &batch, iterator);
        Ok(batch)
    }

    /// Keeps the iterator behind a batch for whoever reads on there.
    fn keep(&self, place: &Place<F::Told>, batch: &Batch, iterator: Option<String>) {
        if let (Next::At(position), Some(iterator)) = (&batch.next, iterator) {
            let now = self.caller.clock().elapsed();
            self.iterators.keep(&place.stream, &place.shard, *position, iterator, now);
        }
    }

    /// Reads from an iterator that stands for a position. Returns the iterator behind the batch, if there is one.
    async fn read_on(
        &self,
        place: &Place<F::Told>,
        from: Position,
        mut iterator: String,
        limit: ReadLimit,
    ) -> Result<(Batch, Option<String>)> {
        let limit = limit.clamped();
        let mut empty = 0;
        let mut renewed = false;
        loop {
            let fetched = match self.feed.records(place, &iterator, limit.records).await {
                Ok(fetched) => fetched,
                // Asking for the end anew would pass over what has come since.
                Err(Missed::Expired) if from == Position::Latest => return Err(forgotten(&place.shard)),
                Err(Missed::Expired) if !renewed => {
                    renewed = true;
                    iterator = self.iterator(place, from).await?;
                    continue;
                }
                Err(Missed::Trimmed) if !renewed => {
                    renewed = true;
                    iterator = self.iterator(place, Position::TrimHorizon).await?;
                    continue;
                }
                Err(Missed::Failed(error)) => return Err(error),
                Err(_) => return Err(self.missing(place, from).await),
            };
            empty += 1;
            let goes_on = match fetched.at_tip {
                Some(true) => false,
                Some(false) => empty < STEPS_MAX,
                None => empty < EMPTY_ANSWERS_MAX,
            };
            match fetched.next {
                Some(next) if fetched.records.is_empty() && goes_on => iterator = next,
                _ => return self.batch(place, from, fetched, limit).await,
            }
        }
    }

    async fn batch(
        &self,
        place: &Place<F::Told>,
        from: Position,
        fetched: Fetched,
        limit: ReadLimit,
    ) -> Result<(Batch, Option<String>)> {
        let received = fetched.records.len();
        let records = cut(fetched.records, limit.bytes);
        let position = records.last().map_or(from, |last| Position::After(last.sequence));
        let age = |last: &Record| self.caller.clock().now().since(last.arrival).max(Duration::from_millis(1));
        let behind = match (fetched.at_tip, records.last()) {
            (Some(true), _) if records.len() == received => Duration::ZERO,
            (Some(false), None) => Duration::from_millis(1),
            // Where the service does not say whether there is more, only an empty answer means that there is not.
            (_, last) => last.map_or(Duration::ZERO, age),
        };
        if records.len() < received {
            return Ok((Batch { records, next: Next::At(position), behind }, None));
        }
        if fetched.next.is_some() {
            return Ok((Batch { records, next: Next::At(position), behind }, fetched.next));
        }
        let next = Next::Ended(self.children(place).await?);
        Ok((Batch { records, next, behind: Duration::ZERO }, None))
    }

    /// An empty batch that goes on behind the newest record. Where much is written, reading never comes to the end, but then
    /// something comes soon behind the place where the end was at first.
    async fn read_latest(&self, place: &Place<F::Told>) -> Result<Batch> {
        let shards = self.all_shards(&place.stream, place.deadline).await?;
        let Some(shard) = shards.iter().find(|shard| shard.id == place.shard) else {
            return Err(Error::ShardNotFound(place.stream.clone(), place.shard.clone()));
        };
        if !shard.is_open() {
            return Ok(at_the_end(Next::Ended(self.children(place).await?)));
        }
        let mut end = self.iterator(place, Position::Latest).await?;
        let mut position = Position::TrimHorizon;
        loop {
            let batch = self.read_from(place, position, ReadLimit::default()).await?;
            // What came since the beginning of this call is not passed over, even if the end was found behind it.
            match self.behind_end(place, &end).await? {
                Behind::Nothing(next) => end = next,
                Behind::Record(number) => return Ok(at_the_end(Next::At(Position::At(number)))),
                Behind::End => return Ok(at_the_end(Next::Ended(self.children(place).await?))),
            }
            match batch.next {
                Next::At(next) if batch.behind.is_zero() => return Ok(at_the_end(Next::At(next))),
                Next::At(next) => position = next,
                ended => return Ok(at_the_end(ended)),
            }
            if self.caller.left(place.deadline).is_zero() {
                return Err(Error::Unavailable(format!(
                    "the end of shard `{}` was not found in {} seconds: follow it, or read it from its beginning",
                    place.shard,
                    END_PATIENCE.as_secs()
                )));
            }
        }
    }

    /// What has come behind the end of a shard, to which an iterator points.
    async fn behind_end(&self, place: &Place<F::Told>, iterator: &str) -> Result<Behind> {
        match self.feed.records(place, iterator, 1).await {
            Ok(fetched) => Ok(match (fetched.records.first(), fetched.next) {
                (Some(first), _) => Behind::Record(first.sequence),
                (None, Some(next)) => Behind::Nothing(next),
                (None, None) => Behind::End,
            }),
            Err(Missed::Failed(error)) => Err(error),
            Err(Missed::Expired | Missed::Trimmed) => Err(forgotten(&place.shard)),
            Err(Missed::NotFound) => Err(self.missing(place, Position::Latest).await),
        }
    }

    async fn polled(&self, stream: &StreamName, shard: &ShardId, cursor: Cursor) -> Result<Polled<Cursor>> {
        let place = self.place(stream, shard, PATIENCE).await?;
        let limit = ReadLimit::default();
        let (batch, iterator) = match cursor {
            Cursor::Position(from) => (self.read_from(&place, from, limit).await?, None),
            Cursor::Iterator(iterator) => self.read_on(&place, Position::Latest, iterator, limit).await?,
        };
        let next = match (&batch.next, iterator) {
            (Next::At(Position::Latest), Some(iterator)) => Some(Cursor::Iterator(iterator)),
            (Next::At(position), iterator) => {
                self.keep(&place, &batch, iterator);
                Some(Cursor::Position(*position))
            }
            (Next::Ended(_), _) => None,
        };
        Ok(Polled { batch, next })
    }
}

fn forgotten(shard: &ShardId) -> Error {
    Error::Unavailable(format!("the place at the end of shard `{shard}` was forgotten: follow it again"))
}

fn at_the_end(next: Next) -> Batch {
    Batch { records: Vec::new(), next, behind: Duration::ZERO }
}

#[async_trait]
impl<F: Feed> ShardSource for Source<F> {
    fn capabilities(&self) -> Capabilities {
        Capabilities { hash_ranges: false, at_timestamp: false, push: false, lends: false }
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        let limit = limit.clamp(1, limits::PAGE_ENTRIES_MAX);
        // The moment at which a shard was closed stands on the page of its child.
        let mut shards = self.all_shards(stream, self.caller.deadline(PATIENCE)).await?;
        if let Some(after) = after {
            let place = shards.iter().position(|shard| shard.id == *after);
            let place = place.ok_or_else(|| Error::ShardNotFound(stream.clone(), after.clone()))?;
            shards.drain(..=place);
        }
        let more = shards.len() > limit;
        shards.truncate(limit);
        Ok(Page { entries: shards, more })
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        if from == Position::Latest {
            return self.read_latest(&self.place(stream, shard, END_PATIENCE).await?).await;
        }
        self.read_from(&self.place(stream, shard, PATIENCE).await?, from, limit).await
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        let cursor = match from {
            Position::Latest => {
                let place = self.place(stream, shard, PATIENCE).await?;
                Cursor::Iterator(self.iterator(&place, from).await?)
            }
            position => Cursor::Position(position),
        };
        let first = self.polled(stream, shard, cursor).await?;
        let (source, stream, shard) = (self.clone(), stream.clone(), shard.clone());
        Ok(poll(first, move |cursor| {
            let (source, stream, shard) = (source.clone(), stream.clone(), shard.clone());
            async move { source.polled(&stream, &shard, cursor).await }
        }))
    }
}
