//! Appending: records are checked, routed by their hash key and put into one frame a shard; the frames get their place
//! in the journal, and the call returns when they are durable and visible.
//!
//! There is one write path: a single record is a batch of one. What is kept of each record lies in place as long as there is
//! only one, because most appends have one, and the allocator would be a good part of their cost.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_model::stream::check_append;
use anabranch_model::{Appended, Error, HashKey, NewRecord, Result, StreamName};
use smallvec::SmallVec;

use super::catalogue::{Accepted, Effect, Stream};
use super::records::{self, number, sequence, stored_bytes};
use super::shard::Shard;
use super::throttle::TooFast;
use crate::core::{Attempt, Core};
use crate::journal::frame::frame_bytes;
use crate::journal::{Draft, Urgency};

/// The result of each record, in the order of the call.
pub type Results = Vec<std::result::Result<Appended, Error>>;

impl Core {
    /// Stores records. See [`StreamStore::append`](anabranch_model::StreamStore::append).
    pub async fn append(&self, name: &StreamName, records: &[NewRecord]) -> Result<Results> {
        check_append(records)?;
        let stream = self.catalogue.stream(name)?;
        let mut batch = Batch::new(self, records);
        if self.shard_limits {
            batch.throttle(self, &stream);
        }
        if batch.admitted == 0 {
            return Ok(batch.into_results());
        }
        let mut permit = Some(self.budget.write(batch.bytes).await);
        self.submit(|| batch.attempt(self, &stream, &mut permit)).await?;
        Ok(batch.into_results())
    }
}

/// Of each record of a call; most calls have one.
type Each<T> = SmallVec<[T; 1]>;

/// The records of one call on their way.
struct Batch<'a> {
    records: &'a [NewRecord],
    /// `None` while a record is on its way.
    results: Vec<Option<std::result::Result<Appended, Error>>>,
    hash_keys: Each<HashKey>,
    admitted: usize,
    bytes: usize,
}

/// The records of one batch that go to one shard.
struct Share {
    /// Which of the routes it is. References to a shard are counted by the thread that shows records as well, so one is taken
    /// only where it is needed.
    route: usize,
    draft: Draft,
    indexes: Each<usize>,
}

impl<'a> Batch<'a> {
    fn new(core: &Core, records: &'a [NewRecord]) -> Batch<'a> {
        let results: Vec<_> = records.iter().map(|record| check(core, record).err().map(Err)).collect();
        let admitted = results.iter().filter(|result| result.is_none()).count();
        let hash_keys = match records {
            [record] => Each::from_elem(record.hash_key(), 1),
            _ => NewRecord::hash_keys(records.iter()).into(),
        };
        Batch { hash_keys, bytes: records.iter().map(stored_bytes).sum(), records, results, admitted }
    }

    fn waiting(&self) -> impl Iterator<Item = usize> {
        self.results.iter().enumerate().filter(|(_, result)| result.is_none()).map(|(index, _)| index)
    }

    /// Refuses records that a shard does not take this second, and with each the ones behind it that have its hash key: a
    /// smaller one might still fit, and a run would have a hole.
    fn throttle(&mut self, core: &Core, stream: &Stream) {
        let (now, routes) = (core.clock.elapsed(), stream.accepted.lock().routes.clone());
        let mut broken: HashMap<HashKey, TooFast> = HashMap::new();
        for index in self.waiting().collect::<Vec<_>>() {
            let key = self.hash_keys[index];
            let shard = &routes[Accepted::route(&routes, key)];
            let admitted = match broken.get(&key) {
                Some(too_fast) => Err(*too_fast),
                None => shard.throttle.lock().write(now, self.records[index].size()),
            };
            if let Err(too_fast) = admitted {
                metrics::counter!("anabranch_stream_throttled_records_total").increment(1);
                broken.insert(key, too_fast);
                self.admitted -= 1;
                self.results[index] = Some(Err(Error::Throttled {
                    shard: shard.id.clone(),
                    limit: too_fast.limit,
                    retry_after: too_fast.retry_after,
                }));
            }
        }
    }

    /// Builds the frames without a lock, and takes a turn if the shards are still the same.
    fn attempt(
        &mut self,
        core: &Core,
        stream: &Arc<Stream>,
        permit: &mut Option<tokio::sync::OwnedSemaphorePermit>,
    ) -> Attempt<()> {
        loop {
            let routes = stream.accepted.lock().routes.clone();
            let shares = self.shares(core, &routes);
            let accepted = stream.accepted.lock();
            if accepted.deleted {
                return Err(Error::StreamNotFound(stream.name.clone()).into());
            }
            if !Arc::ptr_eq(&routes, &accepted.routes) {
                continue;
            }
            let mut turn = core.turn(shares.iter().map(|share| share.draft.bytes()), Urgency::Normal)?;
            let now = core.now_ms();
            for Share { route, mut draft, indexes } in shares {
                let shard = &routes[route];
                let mut last = shard.arrival_accepted.lock();
                let arrival = now.max(*last);
                *last = arrival;
                drop(last);
                draft.set_arrival(arrival);
                let count = indexes.len() as u32;
                let effect = Effect::Appended { shard: shard.clone(), count, arrival };
                let origin = turn.push(draft, |_| Some(effect));
                for (place, index) in indexes.into_iter().enumerate() {
                    let sequence = number(sequence(origin, place as u32));
                    self.results[index] = Some(Ok(Appended { shard: shard.id.clone(), sequence }));
                }
            }
            return Ok(((), turn.finish(permit.take())));
        }
    }

    fn shares(&self, core: &Core, routes: &[Arc<Shard>]) -> Each<Share> {
        let frame_bytes_max = core.sequencer.frame_bytes_max() as usize;
        let mut routed: Each<(usize, usize)> =
            self.waiting().map(|index| (Accepted::route(routes, self.hash_keys[index]), index)).collect();
        // Within a shard in the order of the call.
        routed.sort_unstable();
        let mut share_of: Each<usize> = Each::from_elem(0, self.records.len());
        let mut shares: Each<Share> = Each::new();
        for chunk in
            routed.chunk_by(|(a, _), (b, _)| a == b).flat_map(|chunk| self.frames(chunk, frame_bytes_max))
        {
            let route = chunk[0].0;
            let indexes: Each<usize> = chunk.iter().map(|(_, index)| *index).collect();
            indexes.iter().for_each(|index| share_of[*index] = shares.len());
            let bytes = indexes.iter().map(|index| stored_bytes(&self.records[*index])).sum();
            let draft = records::open(routes[route].key, indexes.len() as u32, bytes);
            shares.push(Share { route, draft, indexes });
        }
        // In the order of the call as well: payloads mostly lie in memory as they came, and reading them here and there
        // takes twice as long.
        self.waiting().for_each(|index| {
            records::add(shares[share_of[index]].draft.payload(), &self.records[index]);
        });
        shares.iter_mut().for_each(|share| share.draft.close());
        shares
    }

    /// Cuts the records of one shard so that each piece fits into a segment. Only tests have segments so small that
    /// there is more than one piece.
    fn frames<'c>(&self, chunk: &'c [(usize, usize)], frame_bytes_max: usize) -> Each<&'c [(usize, usize)]> {
        let (mut pieces, mut start, mut bytes) = (Each::new(), 0, 0);
        for (at, (_, index)) in chunk.iter().enumerate() {
            let record = stored_bytes(&self.records[*index]);
            if at > start && frame_bytes(bytes + record) > frame_bytes_max {
                pieces.push(&chunk[start..at]);
                (start, bytes) = (at, 0);
            }
            bytes += record;
        }
        pieces.push(&chunk[start..]);
        pieces
    }

    fn into_results(self) -> Results {
        self.results.into_iter().map(|result| result.expect("every record has its result")).collect()
    }
}

fn check(core: &Core, record: &NewRecord) -> Result<()> {
    record.check()?;
    // Segments are far larger than any record, except where a test makes them small.
    if frame_bytes(stored_bytes(record)) as u64 > core.sequencer.frame_bytes_max() {
        return Err(Error::Invalid(format!(
            "a record of {} bytes does not fit into a segment",
            record.size()
        )));
    }
    Ok(())
}
