//! The task that owns everything on its way: it takes records from senders, forms appends, and hands out what became of
//! each. Its handlers do not wait; appends are tasks beside it, so that a store that computes does not hold it up.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Appended, Error, HashKey, NewRecord, NextMove, Result, Shard};
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinSet};

use crate::batch::{AGGREGATE_OVERHEAD, Batch, Parcel, Unit};
use crate::intake::Wake;
use crate::lane::Entry;
use crate::map::{self, ShardMap};
use crate::outcome::{Why, in_doubt};
use crate::pause::pause;
use crate::producer::Shared;
use crate::queue::{LaneId, Queue};
use crate::{large, metrics};

/// How often records are looked for whose deadline has passed while they wait.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// Shards are not listed more often than this, whatever happens.
const REFRESH_MIN: Duration = Duration::from_millis(250);
/// Lanes of a shard that are looked at when those are counted that it holds back.
const HELD_MAX: usize = 1_000;
/// How long a shard that refused is left alone at most.
pub(crate) const SHUT_MAX: Duration = Duration::from_secs(1);

/// What the store says of each record of an append.
type Results = Result<Vec<std::result::Result<Appended, Error>>>;

pub(crate) struct Worker {
    shared: Arc<Shared>,
    map: Arc<ShardMap>,
    /// Records that were fetched and wait for their turn to be lined up.
    fetched: VecDeque<Entry>,
    queue: Queue,
    /// The slot that is looked at first next time.
    turn: usize,
    flights: JoinSet<Results>,
    /// What is under way in each of the flights.
    flying: HashMap<task::Id, Batch>,
    refresh: Option<BoxFuture<'static, Result<Vec<Shard>>>>,
    refreshed_at: Duration,
    /// A record went to another shard than expected.
    stale: bool,
    swept_at: Duration,
    /// When the first shard that was held back can take more.
    paced_until: Option<Duration>,
    closing: bool,
    /// Room of records that are concluded, to be given back.
    freed: usize,
    /// Records that an append stored, with where they are counted.
    stored: Vec<(usize, HashKey, usize)>,
}

impl Drop for Worker {
    /// Whatever ended it, nobody waits for it any more.
    fn drop(&mut self) {
        self.shared.room.close();
        self.shared.intake.abandon();
    }
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let (map, now) = (shared.map(), shared.clock.elapsed());
        let mut worker = Worker {
            shared,
            map: Arc::default(),
            fetched: VecDeque::new(),
            queue: Queue::default(),
            turn: 0,
            flights: JoinSet::new(),
            flying: HashMap::new(),
            refresh: None,
            refreshed_at: now,
            stale: false,
            swept_at: now,
            paced_until: None,
            closing: false,
            freed: 0,
            stored: Vec::new(),
        };
        worker.use_map(map);
        worker
    }

    /// Runs until it is asked to end and everything is concluded.
    pub(crate) async fn run(mut self, mut close: watch::Receiver<bool>) {
        let shared = self.shared.clone();
        loop {
            let now = shared.clock.elapsed();
            self.upkeep(now);
            self.send(now);
            shared.room.add_permits(std::mem::take(&mut self.freed));
            if self.closing && shared.intake.is_empty() && self.is_idle() {
                return;
            }
            let (wake, wait) = (self.wake(now), self.next_event(now).map(|at| at.saturating_sub(now)));
            tokio::select! {
                biased;
                Some(landed) = self.flights.join_next_with_id() => self.land(landed),
                shards = ready(&mut self.refresh) => self.relist(shards),
                () = shared.intake.rest(wake) => {}
                _ = close.wait_for(|close| *close), if !self.closing => {
                    self.closing = true;
                    shared.intake.close();
                    shared.strands.close();
                }
                () = self.shared.runs.resharded.notified() => self.stale = true,
                () = pause(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.fetched.is_empty() && self.queue.is_empty() && self.flights.is_empty()
    }

    /// Sends what can be sent.
    fn send(&mut self, now: Duration) {
        loop {
            self.line_up(now);
            if self.flights.len() >= self.shared.settings.appends_max {
                return;
            }
            match self.next_batch(now) {
                Some((batch, parcels)) => self.dispatch(batch, parcels),
                // All who are ready linger, or are held back and others may not be.
                None if self.line_up_all(now) => {}
                None => return,
            }
        }
    }

    /// Lines up as many of the fetched records as the next append has room for. The others wait where they are: what is lined
    /// up and sent at once is still at hand, and what has to wait is looked for in memory again.
    fn line_up(&mut self, now: Duration) {
        let settings = &self.shared.settings;
        while self.queue.ready_count() < settings.batch_records
            && self.queue.ready_bytes() < settings.batch_bytes
        {
            if self.fetched.is_empty() {
                self.shared.intake.fetch(&mut self.fetched);
            }
            let Some(entry) = self.fetched.pop_front() else { return };
            self.queue.push(entry, &self.map, now);
        }
    }

    /// Lines up all that there are. Returns whether there were any.
    fn line_up_all(&mut self, now: Duration) -> bool {
        self.shared.intake.fetch(&mut self.fetched);
        let any = !self.fetched.is_empty();
        self.fetched.drain(..).for_each(|entry| self.queue.push(entry, &self.map, now));
        any
    }

    /// For how many new records it is worth looking.
    fn wake(&self, now: Duration) -> Wake {
        let settings = &self.shared.settings;
        if self.flights.len() >= settings.appends_max {
            return Wake::NEVER;
        }
        match self.queue.ready_since() {
            // Records that linger go when there are enough of them, or when their time is over.
            Some(since) if now < since + settings.linger => Wake {
                records: settings.batch_records.saturating_sub(self.queue.ready_count()).max(1),
                bytes: settings.batch_bytes.saturating_sub(self.queue.ready_bytes()).max(1),
            },
            _ => Wake::FIRST,
        }
    }

    fn upkeep(&mut self, now: Duration) {
        self.queue.wake(&self.map, now);
        if now >= self.swept_at + SWEEP_EVERY {
            self.swept_at = now;
            self.shared.intake.fetch(&mut self.fetched);
            if self.fetched.iter().any(|entry| entry.over(now).is_some()) {
                self.line_up_all(now);
            }
            for (entry, why) in self.queue.sweep(|entry| entry.over(now)) {
                self.lose(entry, why);
            }
        }
        let settings = &self.shared.settings;
        let interval = if self.stale { REFRESH_MIN } else { settings.refresh_every };
        if self.refresh.is_none() && now >= self.refreshed_at + interval {
            self.stale = false;
            self.refreshed_at = now;
            let shared = self.shared.clone();
            self.refresh = Some(Box::pin(async move { map::list(&*shared.store, &shared.stream).await }));
        }
    }

    /// When something is to be done although nothing happens.
    fn next_event(&self, now: Duration) -> Option<Duration> {
        let settings = &self.shared.settings;
        let free = self.flights.len() < settings.appends_max;
        let lingers = self.queue.ready_since().map(|since| since + settings.linger);
        // Ready lanes that linger no longer and still did not go are held back by their shards.
        let goes = match lingers.filter(|_| free) {
            Some(at) if at <= now => self.paced_until,
            other => other,
        };
        let sweeps = (!self.is_idle()).then_some(self.swept_at + SWEEP_EVERY);
        let interval = if self.stale { REFRESH_MIN } else { settings.refresh_every };
        let refreshes = self.refresh.is_none().then_some(self.refreshed_at + interval);
        [goes, sweeps, refreshes, self.queue.wakes_at()].into_iter().flatten().min()
    }

    /// What goes next, if it is time: enough for a whole append, or somebody has waited long enough.
    fn next_batch(&mut self, now: Duration) -> Option<(Batch, Vec<Parcel>)> {
        let settings = &self.shared.settings;
        let full = self.queue.ready_count() >= settings.batch_records
            || self.queue.ready_bytes() >= settings.batch_bytes;
        if !full && !self.closing && now < self.queue.ready_since()? + settings.linger {
            return None;
        }
        let (records_max, bytes_max) = (settings.batch_records, settings.batch_bytes);
        let count = self.queue.ready_count().min(records_max);
        let (mut units, mut parcels, mut bytes) = (Vec::with_capacity(count), Vec::with_capacity(count), 0);
        let slots = self.queue.slots();
        self.paced_until = None;
        for step in 0..slots {
            let slot = (self.turn + step) % slots;
            while units.len() < records_max {
                let room = if units.is_empty() { usize::MAX } else { bytes_max.saturating_sub(bytes) };
                let Some((unit, parcel)) = self.next_unit(slot, now, room) else { break };
                bytes += unit.bytes;
                units.push(unit);
                parcels.push(parcel);
            }
        }
        self.turn = (self.turn + 1) % slots.max(1);
        self.queue.taken();
        (!units.is_empty()).then(|| (Batch { units, map: self.map.clone() }, parcels))
    }

    /// What goes next to a shard, if it takes more and there is room.
    fn next_unit(&mut self, slot: usize, now: Duration, room: usize) -> Option<(Unit, Parcel)> {
        let limit = self.shared.settings.aggregate_bytes;
        let mut unit = Unit::new(slot);
        let mut packed = 0;
        while let Some(first) = self.first(slot, now) {
            let fits = match limit {
                _ if unit.lanes.is_empty() => first <= room,
                Some(limit) => packed + first + AGGREGATE_OVERHEAD <= limit.min(room),
                None => false,
            };
            if !fits || (unit.lanes.is_empty() && self.held_back(slot, first, now)) {
                break;
            }
            let left = limit.map_or(0, |limit| limit.min(room).saturating_sub(packed));
            let id = self.queue.take(slot)?;
            self.claim(id, left, &mut unit);
            if limit.is_none() {
                break;
            }
            packed = unit.bytes + unit.records * AGGREGATE_OVERHEAD;
        }
        if unit.lanes.is_empty() {
            return None;
        }
        self.map.shards()[slot].bucket.lock().take(unit.bytes);
        let parcel = self.parcel(&unit)?;
        Some((unit, parcel))
    }

    /// Adds the first record of a lane to a unit; in an aggregate also those behind it that fit into what is left.
    fn claim(&mut self, id: LaneId, mut left: usize, unit: &mut Unit) {
        let mut count = 0;
        for entry in self.queue.lane(id).entries_mut() {
            let size = entry.size();
            if count > 0 && size + AGGREGATE_OVERHEAD > left {
                break;
            }
            left = left.saturating_sub(size + AGGREGATE_OVERHEAD);
            entry.attempts += 1;
            count += 1;
            unit.bytes += size;
        }
        unit.records += count;
        unit.lanes.push((id, count));
    }

    /// What is sent of a unit. A single record goes as it is, with its place, which the store need not compute again.
    fn parcel(&mut self, unit: &Unit) -> Option<Parcel> {
        let (lane, _) = *unit.lanes.first()?;
        let first = self.queue.lane(lane).first()?;
        if unit.records == 1 {
            return Some(Parcel::One(NewRecord {
                explicit_hash_key: Some(first.hash_key),
                ..first.record.clone()
            }));
        }
        let (place, mut all) = (first.hash_key, Vec::with_capacity(unit.records));
        for (lane, count) in &unit.lanes {
            let entries = self.queue.lane(*lane).entries().take(*count);
            all.extend(entries.map(|entry| entry.record.clone()));
        }
        Some(Parcel::Many(place, all))
    }

    /// The size of the record whose turn it is at a shard. Those that are over are concluded on the way.
    fn first(&mut self, slot: usize, now: Duration) -> Option<usize> {
        loop {
            let entry = self.queue.front(slot)?;
            let Some(why) = entry.over(now) else { return Some(entry.size()) };
            let id = self.queue.take(slot)?;
            let entry = self.queue.lane(id).pop();
            self.queue.landed(id, &self.map, now);
            if let Some(entry) = entry {
                self.lose(entry, why);
            }
        }
    }

    /// Whether a shard can take no more at the moment. Those who wait for it are counted.
    fn held_back(&mut self, slot: usize, bytes: usize, now: Duration) -> bool {
        let wait = self.map.shards()[slot].bucket.lock().wait(now, bytes);
        if wait.is_zero() {
            return false;
        }
        let until = now + wait;
        self.paced_until = Some(self.paced_until.map_or(until, |earlier| earlier.min(until)));
        if self.shared.settings.pace.is_some() {
            let held = self.queue.hold(slot, HELD_MAX);
            self.map.shards()[slot].throttled(now, held);
        }
        true
    }

    fn dispatch(&mut self, batch: Batch, parcels: Vec<Parcel>) {
        let shared = self.shared.clone();
        let flight = self.flights.spawn(async move {
            let began = shared.clock.elapsed();
            let records = parcels.into_iter().map(Parcel::encode).collect::<Result<Vec<_>>>()?;
            let results = shared.store.append(&shared.stream, records).await;
            metrics::append(&shared.stream, shared.clock.elapsed().saturating_sub(began));
            results
        });
        self.flying.insert(flight.id(), batch);
    }

    fn land(&mut self, landed: std::result::Result<(task::Id, Results), JoinError>) {
        let now = self.shared.clock.elapsed();
        let (flight, results) = match landed {
            Ok(landed) => landed,
            Err(error) => (error.id(), Err(Error::Unavailable(format!("the append did not end: {error}")))),
        };
        let Some(mut batch) = self.flying.remove(&flight) else { return };
        let units = std::mem::take(&mut batch.units);
        let results = results.and_then(|results| match results.len() == units.len() {
            true => Ok(results),
            false => Err(Error::Unavailable("the store answered about other records".to_owned())),
        });
        match results {
            Ok(results) => {
                let (mut records, mut bytes) = (0, 0);
                for (unit, result) in units.into_iter().zip(results) {
                    match result {
                        Ok(appended) => {
                            (records, bytes) = (records + unit.records, bytes + unit.bytes);
                            self.conclude(&batch, &unit, &appended, now);
                        }
                        Err(error) => self.fail(&batch, &unit, &error, now),
                    }
                }
                self.count(now);
                metrics::stored(&self.shared.stream, records, bytes);
            }
            Err(error) => units.iter().for_each(|unit| self.fail(&batch, unit, &error, now)),
        }
    }

    fn conclude(&mut self, batch: &Batch, unit: &Unit, appended: &Appended, now: Duration) {
        let expected = *batch.shard(unit) == appended.shard;
        if !expected {
            self.stale = true;
            if self.is_spread(unit) {
                // A part of it now lies in a shard that does not own it, where readers may pass it over: it is sent
                // again, each part to its own shard.
                let error = Error::ShardClosed(batch.shard(unit).clone());
                self.again(unit, &error, true, now);
                return;
            }
        }
        // Where it is counted. A shard that is not known yet is counted from the next listing on.
        let known = expected && Arc::ptr_eq(&batch.map, &self.map);
        let slot = if known { Some(unit.slot) } else { self.map.slot_of(&appended.shard) };
        for (id, count) in &unit.lanes {
            for _ in 0..*count {
                let Some(entry) = self.queue.lane(*id).pop() else { break };
                self.stored.extend(slot.map(|slot| (slot, entry.hash_key, entry.size())));
                self.freed += entry.room as usize;
                entry.store(appended.shard.clone(), appended.sequence);
            }
            self.queue.landed(*id, &self.map, now);
        }
    }

    /// Whether the records of a unit belong to different places, so that a split may come between them.
    fn is_spread(&mut self, unit: &Unit) -> bool {
        let mut place = |id: LaneId| self.queue.lane(id).first().map(|first| first.hash_key);
        let first = unit.lanes.first().and_then(|(id, _)| place(*id));
        unit.lanes.iter().any(|(id, _)| place(*id) != first)
    }

    /// Counts what was stored, those of a shard that stand together at once.
    fn count(&mut self, now: Duration) {
        for same in self.stored.chunk_by(|(a, ..), (b, ..)| a == b) {
            let records = same.iter().map(|(_, key, bytes)| (*key, *bytes));
            self.map.shards()[same[0].0].stored(now, records);
        }
        self.stored.clear();
    }

    fn fail(&mut self, batch: &Batch, unit: &Unit, error: &Error, now: Duration) {
        if let Error::Throttled { retry_after, .. } | Error::SlowDown { retry_after, .. } = error {
            metrics::throttled(&self.shared.stream, unit.records);
            if let Some(slot) = self.map.slot_of(batch.shard(unit)) {
                self.map.shards()[slot].throttled(now, unit.records as u64);
                self.map.shards()[slot].bucket.lock().shut(now, (*retry_after).min(SHUT_MAX));
            }
        }
        if error.next_move() == NextMove::Retry {
            self.again(unit, error, in_doubt(error), now);
            return;
        }
        for (id, count) in &unit.lanes {
            for _ in 0..*count {
                let Some(mut entry) = self.queue.lane(*id).pop() else { break };
                entry.doubtful |= in_doubt(error);
                self.lose(entry, Why::Refused(error.clone()));
            }
            self.queue.landed(*id, &self.map, now);
        }
    }

    /// Sends the records of a unit again after a pause.
    fn again(&mut self, unit: &Unit, error: &Error, doubtful: bool, now: Duration) {
        metrics::retried(&self.shared.stream, unit.records);
        let shared = self.shared.clone();
        for (id, count) in &unit.lanes {
            let mut attempts = 1;
            for entry in self.queue.lane(*id).entries_mut().take(*count) {
                attempts = attempts.max(entry.attempts);
                entry.doubtful |= doubtful;
                entry.last_error = Some(Box::new(error.clone()));
            }
            let wait = shared.dice.pause(attempts, shared.settings.retry_first, shared.settings.retry_max);
            self.queue.pause(*id, now + wait);
        }
    }

    fn lose(&mut self, entry: Entry, why: Why) {
        metrics::lost(&self.shared.stream, !entry.doubtful);
        tracing::debug!(stream = %self.shared.stream, %why, "a record is lost");
        self.freed += entry.room as usize;
        if let (Some(pointer), Some(large)) = (entry.lose(why), self.shared.settings.large.clone()) {
            tokio::spawn(async move { large::discard(&large, &pointer).await });
        }
    }

    fn relist(&mut self, shards: Result<Vec<Shard>>) {
        let now = self.shared.clock.elapsed();
        self.refresh = None;
        match shards {
            Ok(shards) => {
                let map = ShardMap::new(shards, &self.map, self.shared.settings.pace, now);
                if !map.shards().is_empty() {
                    self.shared.set_map(Arc::new(map));
                    self.use_map(self.shared.map());
                }
            }
            Err(error) => {
                tracing::warn!(stream = %self.shared.stream, %error, "the shards cannot be listed");
                self.stale = true;
            }
        }
    }

    fn use_map(&mut self, map: Arc<ShardMap>) {
        metrics::shards(&self.shared.stream, map.shards().len());
        self.map = map;
        self.queue.remap(&self.map);
    }
}

/// Waits for something that may not be under way.
async fn ready<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
