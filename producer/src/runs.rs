//! Runs that share appends, where the store keeps them ([`StreamStore::keeps_runs`](anabranch_model::StreamStore::keeps_runs)).
//!
//! Elsewhere a run goes record by record through its lane. Here as much of it goes in one append as fits, together with
//! other runs of the same caller, and nothing is handed to another task: the caller waits for the store and not for a queue. Where
//! shards are paced, a run goes as a whole when its first record may, and the shard is left alone for longer.
//!
//! What must hold: a record is sent only behind those before it in its run, in the same append or in a later one; what is
//! refused is sent again from the first record on that is not stored.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anabranch_model::{Appended, Error, NewRecord, NextMove, PartitionKey, Result, StreamStore};
use bytes::Bytes;
use tokio::sync::{Notify, RwLock};

use crate::map::ShardMap;
use crate::metrics;
use crate::outcome::{Lost, Outcome, Stored, Why, in_doubt};
use crate::pause::pause;
use crate::place::Place;
use crate::producer::Shared;
use crate::settings::Settings;
use crate::traffic::ShardTraffic;
use crate::worker::SHUT_MAX;

/// Records that stay together and in order: see [`Producer::send_run`](crate::Producer::send_run).
#[derive(Debug)]
pub struct NewRun {
    /// Where they go.
    pub place: Place,
    /// Their partition key.
    pub key: PartitionKey,
    /// They, in order.
    pub payloads: Vec<Bytes>,
}

/// What those who write runs share with the rest of a producer.
pub(crate) struct Runs {
    /// Whether they can share appends: the store keeps runs, and nothing else is asked of the records on their way.
    pub(crate) share_appends: bool,
    /// Held by whoever writes runs, and by the one who waits for their end.
    under_way: RwLock<()>,
    closed: AtomicBool,
    /// A run went to another shard than expected.
    pub(crate) resharded: Notify,
}

impl Runs {
    pub(crate) fn new(store: &dyn StreamStore, settings: &Settings) -> Self {
        let plain = settings.large.is_none() && settings.aggregate_bytes.is_none();
        let share_appends = plain && store.keeps_runs();
        let (under_way, closed, resharded) = Default::default();
        Runs { share_appends, under_way, closed, resharded }
    }

    /// Lets no more runs begin, and waits for those that have.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        drop(self.under_way.write().await);
    }
}

/// Writes runs, and says of every record of each what became of it.
pub(crate) async fn send(shared: &Shared, runs: Vec<NewRun>) -> Vec<Vec<Outcome>> {
    let _under_way = shared.runs.under_way.read().await;
    let now = shared.clock.elapsed();
    let mut all: Vec<Going> = runs.into_iter().map(|run| Going::new(run, now, shared)).collect();
    if shared.runs.closed.load(Ordering::Acquire) {
        all.iter_mut().for_each(|run| run.lose(shared, Why::Closed));
    }
    loop {
        let now = shared.clock.elapsed();
        all.iter_mut().for_each(|run| run.give_up(shared, now));
        let (sent, records) = next_append(shared, &mut all, now);
        if !records.is_empty() {
            append(shared, &mut all, &sent, records).await;
        } else if let Some(due) = all.iter().filter(|run| !run.is_over()).map(|run| run.due).min() {
            pause(due.saturating_sub(now)).await;
        } else {
            return all.into_iter().map(|run| run.outcomes).collect();
        }
    }
}

/// A run on its way.
struct Going {
    run: NewRun,
    /// Of the records that are concluded.
    outcomes: Vec<Outcome>,
    /// How often records were sent in vain, by their place in the run.
    vain: Vec<u32>,
    /// Records before this one were sent in an append whose outcome nobody knows.
    doubtful_to: usize,
    last_error: Option<Error>,
    /// When it is given up, unless another record is stored before.
    deadline: Duration,
    /// When it may be sent again.
    due: Duration,
    /// Its shard could take no more when its turn came; counted once.
    held: bool,
}

/// How many records of which run an append has.
type Sent = Vec<(usize, usize)>;

impl Going {
    fn new(run: NewRun, now: Duration, shared: &Shared) -> Self {
        Going {
            outcomes: Vec::with_capacity(run.payloads.len()),
            run,
            vain: Vec::new(),
            doubtful_to: 0,
            last_error: None,
            deadline: now + shared.settings.lifetime,
            due: now,
            held: false,
        }
    }

    /// The place of the first record that is not concluded.
    fn next(&self) -> usize {
        self.outcomes.len()
    }

    fn is_over(&self) -> bool {
        self.next() >= self.run.payloads.len()
    }

    fn record(&self, place: usize) -> NewRecord {
        NewRecord {
            partition_key: self.run.key.clone(),
            explicit_hash_key: Some(self.run.place.hash_key()),
            data: self.run.payloads[place].clone(),
        }
    }

    /// Ends a run whose time has passed, or whose next record nobody would take.
    fn give_up(&mut self, shared: &Shared, now: Duration) {
        if self.is_over() {
            return;
        }
        if now >= self.deadline {
            let why = Why::Expired(self.last_error.take());
            self.lose(shared, why);
        } else if let Err(error) = self.record(self.next()).check() {
            self.lose(shared, Why::Refused(error));
        }
    }

    /// Whether its shard can take no more at the moment. What waits for a shard is counted, once.
    fn held_back(&mut self, traffic: &ShardTraffic, now: Duration) -> bool {
        let first = self.run.payloads[self.next()].len() + self.run.key.len();
        let wait = traffic.bucket.lock().wait(now, first);
        if wait.is_zero() {
            return false;
        }
        self.due = now + wait;
        if !std::mem::replace(&mut self.held, true) {
            traffic.throttled(now, (self.run.payloads.len() - self.next()) as u64);
        }
        true
    }

    /// The next record is lost, and so are those behind it.
    fn lose(&mut self, shared: &Shared, why: Why) {
        let mut why = Some(why);
        for place in self.next()..self.run.payloads.len() {
            let doubtful = place < self.doubtful_to;
            metrics::lost(&shared.stream, !doubtful);
            self.outcomes.push(Err(Lost::new(doubtful, why.take().unwrap_or(Why::Behind))));
        }
    }

    fn store(&mut self, appended: Appended) {
        let place = self.next();
        let attempts = self.vain.get(place).copied().unwrap_or_default() + 1;
        let Appended { shard, sequence } = appended;
        let repeated = place < self.doubtful_to;
        self.outcomes.push(Ok(Stored { shard, sequence, attempts, repeated }));
    }

    /// The next `count` records were sent, and this is what the first of them met.
    fn fail(&mut self, shared: &Shared, count: usize, error: &Error, now: Duration) {
        let (next, end) = (self.next(), self.next() + count);
        if in_doubt(error) {
            self.doubtful_to = self.doubtful_to.max(end);
        }
        if error.next_move() != NextMove::Retry {
            self.lose(shared, Why::Refused(error.clone()));
            return;
        }
        metrics::retried(&shared.stream, count);
        self.vain.resize(self.vain.len().max(end), 0);
        self.vain[next..end].iter_mut().for_each(|times| *times += 1);
        let settings = &shared.settings;
        let mut wait = shared.dice.pause(self.vain[next], settings.retry_first, settings.retry_max);
        if let Error::Throttled { retry_after, .. } | Error::SlowDown { retry_after, .. } = error {
            metrics::throttled(&shared.stream, count);
            wait = wait.max((*retry_after).min(settings.retry_max));
        }
        self.last_error = Some(error.clone());
        self.due = now + wait;
    }
}

/// What goes next: of each run that does not pause as much as fits, in the order of the runs.
fn next_append(shared: &Shared, all: &mut [Going], now: Duration) -> (Sent, Vec<NewRecord>) {
    let settings = &shared.settings;
    let map = settings.pace.map(|_| shared.map());
    let (mut sent, mut records, mut bytes) = (Sent::new(), Vec::new(), 0);
    for (number, run) in all.iter_mut().enumerate().filter(|(_, run)| run.due <= now && !run.is_over()) {
        let traffic = map.as_ref().and_then(|map| map.shards().get(map.slot(run.run.place.hash_key())));
        if traffic.is_some_and(|traffic| run.held_back(traffic, now)) {
            continue;
        }
        let (before, mut of_run) = (records.len(), 0);
        for place in run.next()..run.run.payloads.len() {
            let record = run.record(place);
            let size = record.size();
            let fits = records.is_empty()
                || (records.len() < settings.batch_records && bytes + size <= settings.batch_bytes);
            let count = records.len() - before + 1;
            let paced = traffic.is_none_or(|traffic| traffic.bucket.lock().holds(count, of_run + size));
            // One that nobody takes waits for its turn, and breaks the run off then.
            if !fits || (count > 1 && (!paced || record.check().is_err())) {
                break;
            }
            (bytes, of_run) = (bytes + size, of_run + size);
            records.push(record);
        }
        let count = records.len() - before;
        if count == 0 {
            break;
        }
        if let Some(traffic) = traffic {
            traffic.bucket.lock().take_run(count, of_run);
        }
        run.held = false;
        sent.push((number, count));
    }
    (sent, records)
}

async fn append(shared: &Shared, all: &mut [Going], sent: &Sent, records: Vec<NewRecord>) {
    let (began, count) = (shared.clock.elapsed(), records.len());
    let results = shared.store.append(&shared.stream, records).await;
    let now = shared.clock.elapsed();
    metrics::append(&shared.stream, now.saturating_sub(began));
    let results = results.and_then(|results| match results.len() == count {
        true => Ok(results),
        false => Err(Error::Unavailable("the store answered about other records".to_owned())),
    });
    match results {
        Err(error) => sent.iter().for_each(|(number, count)| all[*number].fail(shared, *count, &error, now)),
        Ok(results) => {
            let (mut results, map, mut stored) = (results.into_iter(), shared.map(), (0, 0));
            for (number, count) in sent {
                let (records, bytes) =
                    land(shared, &map, &mut all[*number], results.by_ref().take(*count), *count, now);
                stored = (stored.0 + records, stored.1 + bytes);
            }
            if stored.0 > 0 {
                metrics::stored(&shared.stream, stored.0, stored.1);
            }
        }
    }
}

/// What became of the records of a run that were in one append. Returns how many were stored, and their bytes.
fn land(
    shared: &Shared,
    map: &ShardMap,
    run: &mut Going,
    results: impl Iterator<Item = Result<Appended>>,
    count: usize,
    now: Duration,
) -> (usize, usize) {
    let (first, mut refused) = (run.next(), None);
    let mut shard = None;
    for (place, result) in (first..).zip(results) {
        match result {
            Ok(appended) if refused.is_none() => {
                shard.get_or_insert_with(|| appended.shard.clone());
                run.store(appended);
            }
            // The store does not keep its word. The record is there, and will be once more.
            Ok(_) => run.doubtful_to = run.doubtful_to.max(place + 1),
            Err(error) => drop(refused.get_or_insert(error)),
        }
    }
    let stored = run.next() - first;
    let bytes: usize =
        run.run.payloads[first..run.next()].iter().map(|data| data.len() + run.run.key.len()).sum();
    if let Some(shard) = shard {
        run.deadline = now + shared.settings.lifetime;
        let key = run.run.place.hash_key();
        match map.shards().get(map.slot(key)).filter(|traffic| traffic.shard == shard) {
            Some(traffic) => traffic.stored_run(now, key, stored, bytes),
            // A shard that is not known yet is counted from the next listing on.
            None => shared.runs.resharded.notify_one(),
        }
    }
    if let Some(error) = refused {
        if let Error::Throttled { shard, retry_after, .. } = &error
            && let Some(traffic) = map.by_id(shard)
        {
            traffic.throttled(now, (count - stored) as u64);
            traffic.bucket.lock().shut(now, (*retry_after).min(SHUT_MAX));
        }
        run.fail(shared, count - stored, &error, now);
    }
    (stored, bytes)
}
