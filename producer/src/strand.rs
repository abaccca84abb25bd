//! Records on their way to a store that keeps runs ([`StreamStore::keeps_runs`](anabranch_model::StreamStore::keeps_runs)).
//!
//! Such a store takes many records of a key in one append, so keys need no lanes. They are spread over a few strands instead, as many
//! as there may be appends; a strand has one append under way, and what comes meanwhile is the next.
//!
//! ```text
//!   left by senders ──▶ under way ──▶ told
//!                           └──refused──▶ held, with all that comes behind it in its key ──time──▶ under way
//! ```
//!
//! What must hold: of one key, what is held goes before what comes later, and nothing of it is under way meanwhile.

use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Appended, Error, HashKey, NewRecord, NextMove, Result};
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::map::ShardMap;
use crate::metrics;
use crate::outcome::{Lost, Outcome, Stored, Ticket, Why, in_doubt};
use crate::page::{Pages, Spot, tell};
use crate::pause::pause;
use crate::producer::Shared;
use crate::settings::Settings;

/// How often records are looked for whose deadline has passed while they wait.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// Room that is kept for the next records when the last ones were many.
const KEPT: usize = 2_048;

/// All strands of a producer; none if its store does not keep runs, or its records need lanes for another reason.
#[derive(Default)]
pub(crate) struct Strands(Vec<Strand>);

/// Where senders leave the records of some keys.
#[derive(Default)]
struct Strand {
    left: Mutex<Left>,
    worth_waking: Notify,
}

#[derive(Default)]
struct Left {
    items: VecDeque<Item>,
    pages: Pages,
    /// Whoever sends waits for the first record.
    asleep: bool,
    closed: bool,
}

/// A record on its way.
struct Item {
    record: NewRecord,
    deadline: Duration,
    /// What it takes of the buffer.
    room: u32,
    /// How often it was sent.
    attempts: u32,
    /// An attempt was made whose answer is not known.
    doubtful: bool,
    last_error: Option<Box<Error>>,
    spot: Spot,
}

/// A key that waits before it is sent again.
#[derive(Clone, Copy, Default)]
struct Pause {
    due: Duration,
    /// Appends in vain since a record of the key was stored.
    vain: u32,
}

impl Strands {
    pub(crate) fn new(count: usize) -> Self {
        Strands((0..count).map(|_| Strand::default()).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Leaves a record behind the others of its key. Returns nothing if nobody fetches it any more.
    pub(crate) fn leave(&self, mut record: NewRecord, deadline: Duration, room: u32) -> Option<Ticket> {
        let key = record.hash_key();
        // The store need not compute it again.
        record.explicit_hash_key = Some(key);
        let strand = &self.0[self.of(key)];
        let mut left = strand.left.lock();
        if left.closed {
            return None;
        }
        let spot = left.pages.next();
        let (page, index) = spot.place();
        let (attempts, doubtful, last_error) = (0, false, None);
        left.items.push_back(Item { record, deadline, room, attempts, doubtful, last_error, spot });
        let wake = std::mem::take(&mut left.asleep);
        drop(left);
        if wake {
            strand.worth_waking.notify_one();
        }
        Some(Ticket::on_page(page, index))
    }

    /// Nothing is taken any more; what is here is still sent.
    pub(crate) fn close(&self) {
        for strand in &self.0 {
            strand.left.lock().closed = true;
            strand.worth_waking.notify_one();
        }
    }

    /// Hash keys that somebody chose may lie close together, so all of their bits count.
    fn of(&self, key: HashKey) -> usize {
        let folded = (key.get() >> 64) as u64 ^ key.get() as u64;
        (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % self.0.len()
    }
}

/// The task of one strand.
pub(crate) struct Runner {
    shared: Arc<Shared>,
    number: usize,
    /// Fetched, and not sent yet.
    fresh: VecDeque<Item>,
    /// Refused, or behind one that was; those of a key in order.
    held: VecDeque<Item>,
    /// The keys of those, and of what is sent again.
    pausing: HashMap<HashKey, Pause>,
    swept_at: Duration,
    /// Records that an append stored, with the shard that is expected to have them.
    counted: Vec<(usize, HashKey, usize)>,
}

impl Drop for Runner {
    /// Whatever ended it, nobody waits for it any more.
    fn drop(&mut self) {
        let strand = &self.shared.strands.0[self.number];
        let mut left = strand.left.lock();
        left.closed = true;
        let items = std::mem::take(&mut left.items);
        drop(left);
        drop(items);
    }
}

impl Runner {
    pub(crate) fn new(shared: Arc<Shared>, number: usize) -> Self {
        let swept_at = shared.clock.elapsed();
        let (fresh, held, pausing, counted) = Default::default();
        Runner { shared, number, fresh, held, pausing, swept_at, counted }
    }

    /// Runs until the strand is closed and everything is concluded.
    pub(crate) async fn run(mut self) {
        loop {
            let now = self.shared.clock.elapsed();
            self.sweep(now);
            let sent = self.next_append(now);
            if !sent.is_empty() {
                self.append(sent).await;
            } else if self.rest(now).await {
                return;
            }
        }
    }

    /// Waits for something to do. Returns whether nothing will ever come.
    async fn rest(&mut self, now: Duration) -> bool {
        let shared = self.shared.clone();
        let strand = &shared.strands.0[self.number];
        {
            let mut left = strand.left.lock();
            if !left.items.is_empty() {
                return false;
            }
            if left.closed && self.held.is_empty() {
                return true;
            }
            left.asleep = true;
        }
        let due = self.pausing.values().map(|pause| pause.due).min();
        let due = due.map(|due| due.saturating_sub(now).min(SWEEP_EVERY));
        tokio::select! {
            biased;
            () = strand.worth_waking.notified() => {}
            () = pause(due.unwrap_or_default()), if due.is_some() => {}
        }
        false
    }

    /// What goes next: what was held long enough, and what came since, as much as fits.
    fn next_append(&mut self, now: Duration) -> Vec<Item> {
        let shared = self.shared.clone();
        let mut next = Next::default();
        if !self.held.is_empty() {
            for item in std::mem::take(&mut self.held) {
                let key = item.record.hash_key();
                let rests = self.pausing.get(&key).is_some_and(|pause| pause.due > now);
                let back = if rests { Some(item) } else { next.push(item, &shared.settings) };
                self.held.extend(back);
            }
        }
        while !next.full {
            if self.fresh.is_empty() && !self.fetch() {
                break;
            }
            let Some(item) = self.fresh.pop_front() else { break };
            if now >= item.deadline {
                self.lose(item);
            } else if !self.pausing.is_empty() && self.pausing.contains_key(&item.record.hash_key()) {
                self.held.push_back(item);
            } else if let Some(item) = next.push(item, &shared.settings) {
                self.fresh.push_front(item);
            }
        }
        next.sent
    }

    /// Fetches what senders have left. Returns whether there was anything.
    fn fetch(&mut self) -> bool {
        self.fresh.shrink_to(KEPT);
        let mut left = self.shared.strands.0[self.number].left.lock();
        std::mem::swap(&mut left.items, &mut self.fresh);
        !self.fresh.is_empty()
    }

    async fn append(&mut self, mut sent: Vec<Item>) {
        let shared = self.shared.clone();
        let records: Vec<NewRecord> = sent.iter().map(|item| item.record.clone()).collect();
        sent.iter_mut().for_each(|item| item.attempts += 1);
        let began = shared.clock.elapsed();
        let results = {
            let append = AssertUnwindSafe(shared.store.append(&shared.stream, records)).catch_unwind();
            let mut append = pin!(append);
            loop {
                tokio::select! {
                    biased;
                    results = &mut append => break results,
                    () = pause(SWEEP_EVERY) => self.sweep(shared.clock.elapsed()),
                }
            }
        };
        let now = shared.clock.elapsed();
        metrics::append(&shared.stream, now.saturating_sub(began));
        let broke_off = |_| Err(Error::Unavailable("the append did not end".to_owned()));
        let results =
            results.unwrap_or_else(broke_off).and_then(|results| match results.len() == sent.len() {
                true => Ok(results),
                false => Err(Error::Unavailable("the store answered about other records".to_owned())),
            });
        let whole = results.is_err();
        let results = results.unwrap_or_else(|error| vec![Err(error); sent.len()]);
        self.land(sent, results, whole, now);
    }

    /// Tells what became of the records of an append, and holds those that are to be sent again. `whole`: all of them failed
    /// as one.
    fn land(&mut self, sent: Vec<Item>, results: Vec<Result<Appended>>, whole: bool, now: Duration) {
        let shared = self.shared.clone();
        let (mut records, mut bytes, mut freed) = (0, 0, 0);
        let mut concluded: Vec<(Spot, Outcome)> = Vec::with_capacity(sent.len());
        let mut again: VecDeque<Item> = VecDeque::new();
        let mut failed: HashSet<HashKey> = HashSet::new();
        let map = shared.map();
        for (mut item, result) in sent.into_iter().zip(results) {
            let key = item.record.hash_key();
            let error = match result {
                Ok(Appended { shard, sequence }) => {
                    let slot = map.slot(key);
                    match map.shards().get(slot).is_some_and(|traffic| traffic.shard == shard) {
                        true => self.counted.push((slot, key, item.record.size())),
                        // A shard that is not known yet is counted from the next listing on.
                        false => shared.runs.resharded.notify_one(),
                    }
                    if let Some(pause) = self.pausing.get_mut(&key) {
                        pause.vain = 0;
                    }
                    (records, bytes) = (records + 1, bytes + item.record.size());
                    freed += item.room as usize;
                    let (attempts, repeated) = (item.attempts, item.doubtful);
                    concluded.push((item.spot, Ok(Stored { shard, sequence, attempts, repeated })));
                    continue;
                }
                Err(error) => error,
            };
            item.doubtful |= in_doubt(&error);
            // Behind one that failed it may have been refused for no reason of its own.
            if error.next_move() == NextMove::Retry || (!whole && failed.contains(&key)) {
                self.throttled(&error, now);
                if failed.insert(key) {
                    self.pause(key, &error, now);
                }
                item.last_error = Some(Box::new(error));
                again.push_back(item);
            } else {
                failed.insert(key);
                metrics::lost(&shared.stream, !item.doubtful);
                freed += item.room as usize;
                let lost = Lost::new(item.doubtful, Why::Refused(error));
                concluded.push((item.spot, Err(lost)));
            }
        }
        if !again.is_empty() {
            metrics::retried(&shared.stream, again.len());
            // Before what was held behind it while it was under way.
            again.append(&mut self.held);
            self.held = again;
        }
        if !self.pausing.is_empty() {
            self.forget_pauses();
        }
        self.count(&map, now);
        if records > 0 {
            metrics::stored(&shared.stream, records, bytes);
        }
        shared.room.add_permits(freed);
        tell(concluded);
    }

    /// A key failed and waits, the longer the more often it did in a row.
    fn pause(&mut self, key: HashKey, error: &Error, now: Duration) {
        let (settings, pause) = (&self.shared.settings, self.pausing.entry(key).or_default());
        pause.vain += 1;
        let mut wait = self.shared.dice.pause(pause.vain, settings.retry_first, settings.retry_max);
        if let Error::Throttled { retry_after, .. } | Error::SlowDown { retry_after, .. } = error {
            wait = wait.max((*retry_after).min(settings.retry_max));
        }
        pause.due = now + wait;
    }

    /// Counts a record that was refused because it was too much.
    fn throttled(&self, error: &Error, now: Duration) {
        if let Error::Throttled { .. } | Error::SlowDown { .. } = error {
            metrics::throttled(&self.shared.stream, 1);
        }
        if let Error::Throttled { shard, .. } = error
            && let Some(traffic) = self.shared.map().by_id(shard)
        {
            traffic.throttled(now, 1);
        }
    }

    /// Counts what was stored, that of each shard at once.
    fn count(&mut self, map: &ShardMap, now: Duration) {
        self.counted.sort_unstable_by_key(|(slot, ..)| *slot);
        for same in self.counted.chunk_by(|(a, ..), (b, ..)| a == b) {
            if let Some(traffic) = map.shards().get(same[0].0) {
                traffic.stored(now, same.iter().map(|(_, key, bytes)| (*key, *bytes)));
            }
        }
        self.counted.clear();
    }

    /// Gives up waiting records whose deadline has passed.
    fn sweep(&mut self, now: Duration) {
        if now < self.swept_at + SWEEP_EVERY {
            return;
        }
        self.swept_at = now;
        let over = |item: &Item| now >= item.deadline;
        let mut lost = Vec::new();
        for items in [&mut self.held, &mut self.fresh] {
            take_out(items, over, &mut lost);
        }
        take_out(&mut self.shared.strands.0[self.number].left.lock().items, over, &mut lost);
        if !lost.is_empty() {
            self.forget_pauses();
        }
        lost.into_iter().for_each(|item| self.lose(item));
    }

    /// Keys of which nothing is held do not pause.
    fn forget_pauses(&mut self) {
        let left: HashSet<HashKey> = self.held.iter().map(|item| item.record.hash_key()).collect();
        self.pausing.retain(|key, _| left.contains(key));
    }

    /// The time of a record is over.
    fn lose(&self, item: Item) {
        let Item { room, doubtful, last_error, spot, .. } = item;
        metrics::lost(&self.shared.stream, !doubtful);
        self.shared.room.add_permits(room as usize);
        tell([(spot, Err(Lost::new(doubtful, Why::Expired(last_error.map(|error| *error)))))]);
    }
}

/// An append in the making.
#[derive(Default)]
struct Next {
    sent: Vec<Item>,
    bytes: usize,
    full: bool,
}

impl Next {
    /// Adds a record, or gives it back if the append is full.
    fn push(&mut self, item: Item, settings: &Settings) -> Option<Item> {
        let bytes = self.bytes + item.record.size();
        let fits = self.sent.is_empty()
            || (self.sent.len() < settings.batch_records && bytes <= settings.batch_bytes);
        if self.full || !fits {
            self.full = true;
            return Some(item);
        }
        self.bytes = bytes;
        self.sent.push(item);
        None
    }
}

/// Moves what is over from one list to another.
fn take_out(items: &mut VecDeque<Item>, over: impl Fn(&Item) -> bool, to: &mut Vec<Item>) {
    if items.iter().any(&over) {
        let (out, kept): (VecDeque<Item>, VecDeque<Item>) = std::mem::take(items).into_iter().partition(over);
        to.extend(out);
        *items = kept;
    }
}
