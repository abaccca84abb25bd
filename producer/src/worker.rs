//! The task that owns everything on its way: it takes records from senders, forms appends, and hands out what became of
//! each. Its handlers do not wait; what takes time is under way beside it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Appended, Error, NextMove, Result, Shard};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, watch};

use crate::batch::{AGGREGATE_OVERHEAD, Batch, Landed, Unit};
use crate::lane::{Entry, LaneKey};
use crate::map::{self, ShardMap};
use crate::outcome::{Why, in_doubt};
use crate::pace::Bucket;
use crate::pause::pause;
use crate::producer::Shared;
use crate::queue::Queue;
use crate::settings::Pace;
use crate::{large, metrics};

/// How often records are looked for whose deadline has passed while they wait.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// Shards are not listed more often than this, whatever happens.
const REFRESH_MIN: Duration = Duration::from_millis(250);
/// Records that are taken from senders at once.
const INTAKE: usize = 512;
/// Lanes of a shard that are looked at when those are counted that it holds back.
const HELD_MAX: usize = 1_000;
/// How long a shard that refused is left alone at most.
const SHUT_MAX: Duration = Duration::from_secs(1);
/// Faster than anything: nobody is held back.
const UNPACED: Pace = Pace { records: 1e15, bytes: 1e18 };

pub(crate) struct Worker {
    shared: Arc<Shared>,
    map: Arc<ShardMap>,
    queue: Queue,
    /// By the slot of the map.
    buckets: Vec<Bucket>,
    /// The slot that is looked at first next time.
    turn: usize,
    flights: FuturesUnordered<BoxFuture<'static, Landed>>,
    refresh: Option<BoxFuture<'static, Result<Vec<Shard>>>>,
    refreshed_at: Duration,
    /// A record went to another shard than expected.
    stale: bool,
    swept_at: Duration,
    /// When the first shard that was held back can take more.
    paced_until: Option<Duration>,
    closing: bool,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let (map, now) = (shared.map(), shared.clock.elapsed());
        let mut worker = Worker {
            shared,
            map: Arc::default(),
            queue: Queue::default(),
            buckets: Vec::new(),
            turn: 0,
            flights: FuturesUnordered::new(),
            refresh: None,
            refreshed_at: now,
            stale: false,
            swept_at: now,
            paced_until: None,
            closing: false,
        };
        worker.use_map(map, now);
        worker
    }

    /// Runs until it is asked to end and everything is concluded.
    pub(crate) async fn run(mut self, mut entries: mpsc::Receiver<Entry>, mut close: watch::Receiver<bool>) {
        let mut taken = Vec::with_capacity(INTAKE);
        loop {
            let now = self.shared.clock.elapsed();
            self.upkeep(now);
            while self.flights.len() < self.shared.settings.appends_max
                && let Some(batch) = self.next_batch(now)
            {
                self.dispatch(batch);
            }
            if self.closing && entries.is_empty() && self.queue.is_empty() && self.flights.is_empty() {
                return;
            }
            let wait = self.next_event(now).map(|at| at.saturating_sub(now));
            tokio::select! {
                biased;
                Some(landed) = self.flights.next() => self.land(landed),
                shards = ready(&mut self.refresh) => self.relist(shards),
                count = entries.recv_many(&mut taken, INTAKE), if !(self.closing && entries.is_empty()) => {
                    self.closing |= count == 0;
                    let now = self.shared.clock.elapsed();
                    taken.drain(..).for_each(|entry| self.queue.push(entry, &self.map, now));
                }
                _ = close.wait_for(|close| *close), if !self.closing => {
                    self.closing = true;
                    entries.close();
                }
                () = self.shared.runs.resharded.notified() => self.stale = true,
                () = pause(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
    }

    fn upkeep(&mut self, now: Duration) {
        self.queue.wake(&self.map, now);
        if now >= self.swept_at + SWEEP_EVERY {
            self.swept_at = now;
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
        let sweeps = (!self.queue.is_empty()).then_some(self.swept_at + SWEEP_EVERY);
        let interval = if self.stale { REFRESH_MIN } else { settings.refresh_every };
        let refreshes = self.refresh.is_none().then_some(self.refreshed_at + interval);
        [goes, sweeps, refreshes, self.queue.wakes_at()].into_iter().flatten().min()
    }

    /// What goes next, if it is time: enough for a whole append, or somebody has waited long enough.
    fn next_batch(&mut self, now: Duration) -> Option<Batch> {
        let settings = &self.shared.settings;
        let full = self.queue.ready_count() >= settings.batch_records
            || self.queue.ready_bytes() >= settings.batch_bytes;
        if !full && !self.closing && now < self.queue.ready_since()? + settings.linger {
            return None;
        }
        let (records_max, bytes_max) = (settings.batch_records, settings.batch_bytes);
        let (mut units, mut bytes) = (Vec::new(), 0);
        let slots = self.queue.slots();
        self.paced_until = None;
        for step in 0..slots {
            let slot = (self.turn + step) % slots;
            while units.len() < records_max {
                let room = if units.is_empty() { usize::MAX } else { bytes_max.saturating_sub(bytes) };
                let Some(unit) = self.next_unit(slot, now, room) else { break };
                bytes += unit.records().map(Entry::size).sum::<usize>();
                units.push(unit);
            }
        }
        self.turn = (self.turn + 1) % slots.max(1);
        (!units.is_empty()).then_some(Batch { units })
    }

    /// What goes next to a shard, if it takes more and there is room.
    fn next_unit(&mut self, slot: usize, now: Duration, room: usize) -> Option<Unit> {
        let limit = self.shared.settings.aggregate_bytes;
        let mut unit = Unit { entries: Vec::new(), shard: self.map.shards().get(slot)?.shard.clone() };
        let mut bytes = 0;
        while let Some(first) = self.first(slot, now) {
            let size = first + AGGREGATE_OVERHEAD;
            let fits = match limit {
                _ if unit.entries.is_empty() => first <= room,
                Some(limit) => bytes + size <= limit.min(room),
                None => false,
            };
            if !fits || (unit.entries.is_empty() && self.held_back(slot, first, now)) {
                break;
            }
            let (key, entries) = self.take(slot, limit.map(|limit| limit.min(room).saturating_sub(bytes)))?;
            bytes += entries.iter().map(|entry| entry.size() + AGGREGATE_OVERHEAD).sum::<usize>();
            unit.entries.push((key, entries));
        }
        if unit.entries.is_empty() {
            return None;
        }
        self.buckets[slot].take(unit.records().map(Entry::size).sum());
        Some(unit)
    }

    /// The size of the record whose turn it is at a shard. Those that are over are concluded on the way.
    fn first(&mut self, slot: usize, now: Duration) -> Option<usize> {
        loop {
            let entry = self.queue.front(slot)?.waiting.front()?;
            let Some(why) = entry.over(now) else { return Some(entry.size()) };
            let (key, lane) = self.queue.take(slot)?;
            let entry = lane.waiting.pop_front();
            self.queue.landed(key, &self.map, now);
            if let Some(entry) = entry {
                self.lose(entry, why);
            }
        }
    }

    /// Whether a shard can take no more at the moment. Those who wait for it are counted.
    fn held_back(&mut self, slot: usize, bytes: usize, now: Duration) -> bool {
        let wait = self.buckets[slot].wait(now, bytes);
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

    /// Takes the first record of the lane whose turn it is; for an aggregate also those behind it that fit.
    fn take(&mut self, slot: usize, aggregate: Option<usize>) -> Option<(LaneKey, Vec<Entry>)> {
        let (key, lane) = self.queue.take(slot)?;
        let mut entries: Vec<Entry> = lane.waiting.pop_front().into_iter().collect();
        let mut left = aggregate.unwrap_or_default();
        for entry in &entries {
            left = left.saturating_sub(entry.size() + AGGREGATE_OVERHEAD);
        }
        while let Some(next) = lane.waiting.front()
            && next.size() + AGGREGATE_OVERHEAD <= left
        {
            left -= next.size() + AGGREGATE_OVERHEAD;
            entries.extend(lane.waiting.pop_front());
        }
        entries.iter_mut().for_each(|entry| entry.attempts += 1);
        Some((key, entries))
    }

    fn dispatch(&mut self, batch: Batch) {
        let shared = self.shared.clone();
        self.flights.push(Box::pin(async move {
            let began = shared.clock.elapsed();
            let results = match batch.encode() {
                Ok(records) => shared.store.append(&shared.stream, records).await,
                Err(error) => Err(error),
            };
            metrics::append(&shared.stream, shared.clock.elapsed().saturating_sub(began));
            let results = results.and_then(|results| match results.len() == batch.units.len() {
                true => Ok(results),
                false => Err(Error::Unavailable("the store answered about other records".to_owned())),
            });
            Landed { batch, results }
        }));
    }

    fn land(&mut self, landed: Landed) {
        let now = self.shared.clock.elapsed();
        let Landed { batch, results } = landed;
        let (mut records, mut bytes) = (0, 0);
        match results {
            Ok(results) => {
                for (unit, result) in batch.units.into_iter().zip(results) {
                    match result {
                        Ok(appended) => {
                            records += unit.records().count();
                            bytes += unit.records().map(Entry::size).sum::<usize>();
                            self.conclude(unit, appended, now);
                        }
                        Err(error) => self.fail(unit, &error, now),
                    }
                }
            }
            Err(error) => batch.units.into_iter().for_each(|unit| self.fail(unit, &error, now)),
        }
        metrics::stored(&self.shared.stream, records, bytes);
    }

    fn conclude(&mut self, unit: Unit, appended: Appended, now: Duration) {
        if appended.shard != unit.shard {
            self.stale = true;
            if unit.is_spread() {
                // A part of it now lies in a shard that does not own it, where readers may pass it over: it is sent
                // again, each part to its own shard.
                let error = Error::ShardClosed(unit.shard.clone());
                self.again(unit, &error, true, now);
                return;
            }
        }
        let place = unit.entries.first().map_or(0, |(lane, _)| self.map.slot(lane.hash_key));
        match self.map.shards().get(place) {
            Some(traffic) if traffic.shard == appended.shard => {
                traffic.stored(now, unit.records().map(|entry| (entry.hash_key, entry.size())));
            }
            // A shard that is not known yet is counted from the next listing on.
            _ => {}
        }
        for (key, entries) in unit.entries {
            for entry in entries {
                entry.store(appended.shard.clone(), appended.sequence);
            }
            self.queue.landed(key, &self.map, now);
        }
    }

    fn fail(&mut self, unit: Unit, error: &Error, now: Duration) {
        if let Error::Throttled { retry_after, .. } | Error::SlowDown { retry_after, .. } = error {
            let count = unit.records().count();
            metrics::throttled(&self.shared.stream, count);
            if let Some(slot) = self.map.shards().iter().position(|shard| shard.shard == unit.shard) {
                self.map.shards()[slot].throttled(now, count as u64);
                self.buckets[slot].shut(now, (*retry_after).min(SHUT_MAX));
            }
        }
        if error.next_move() == NextMove::Retry {
            self.again(unit, error, in_doubt(error), now);
            return;
        }
        for (key, entries) in unit.entries {
            for mut entry in entries {
                entry.doubtful |= in_doubt(error);
                self.lose(entry, Why::Refused(error.clone()));
            }
            self.queue.landed(key, &self.map, now);
        }
    }

    /// Sends the records of a unit again after a pause.
    fn again(&mut self, unit: Unit, error: &Error, doubtful: bool, now: Duration) {
        metrics::retried(&self.shared.stream, unit.records().count());
        let shared = self.shared.clone();
        for (key, mut entries) in unit.entries {
            for entry in &mut entries {
                entry.doubtful |= doubtful;
                entry.last_error = Some(error.clone());
            }
            let attempts = entries.first().map_or(1, |entry| entry.attempts);
            let wait = shared.dice.pause(attempts, shared.settings.retry_first, shared.settings.retry_max);
            self.queue.push_back(key, entries, now + wait);
        }
    }

    fn lose(&self, entry: Entry, why: Why) {
        metrics::lost(&self.shared.stream, !entry.doubtful);
        tracing::debug!(stream = %self.shared.stream, %why, "a record is lost");
        if let (Some(pointer), Some(large)) = (entry.lose(why), self.shared.settings.large.clone()) {
            tokio::spawn(async move { large::discard(&large, &pointer).await });
        }
    }

    fn relist(&mut self, shards: Result<Vec<Shard>>) {
        let now = self.shared.clock.elapsed();
        self.refresh = None;
        match shards {
            Ok(shards) => {
                let map = ShardMap::new(shards, &self.map, now);
                if !map.shards().is_empty() {
                    self.shared.set_map(Arc::new(map));
                    self.use_map(self.shared.map(), now);
                }
            }
            Err(error) => {
                tracing::warn!(stream = %self.shared.stream, %error, "the shards cannot be listed");
                self.stale = true;
            }
        }
    }

    fn use_map(&mut self, map: Arc<ShardMap>, now: Duration) {
        let pace = self.shared.settings.pace.unwrap_or(UNPACED);
        let old = self.map.shards().iter().map(|shard| shard.shard.clone());
        let mut old: HashMap<_, _> = old.zip(self.buckets.drain(..)).collect();
        let bucket = |id| old.remove(id).unwrap_or_else(|| Bucket::new(pace, now));
        self.buckets = map.shards().iter().map(|shard| &shard.shard).map(bucket).collect();
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
