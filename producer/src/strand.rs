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
//! Records are left in groups that are an append each, so that a group goes and is told as a whole. What is refused, or late,
//! leaves its group, and goes record by record from then on.
//!
//! What must hold: of one key, what is held goes before what comes later, and nothing of it is under way meanwhile.

use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Appended, Error, HashKey, NewRecord, NextMove, Result, ShardId};
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::map::ShardMap;
use crate::metrics;
use crate::outcome::{Lost, Outcome, Stored, Ticket, Why, in_doubt};
use crate::page::{Places, Spot, tell};
use crate::pause::pause;
use crate::producer::Shared;

/// How often records are looked for whose deadline has passed while they wait.
const SWEEP_EVERY: Duration = Duration::from_millis(100);

/// All strands of a producer; none if its store does not keep runs, or its records need lanes for another reason.
pub(crate) struct Strands {
    all: Vec<Strand>,
    most: Most,
}

/// The most that goes in one append.
#[derive(Clone, Copy)]
struct Most {
    records: usize,
    bytes: usize,
}

/// Where senders leave the records of some keys.
#[derive(Default)]
struct Strand {
    left: Mutex<Left>,
    worth_waking: Notify,
}

#[derive(Default)]
struct Left {
    groups: VecDeque<Group>,
    /// Records of the group that was fetched last: the next one will be about as large.
    expected: usize,
    /// Whoever sends waits for the first record.
    asleep: bool,
    closed: bool,
}

/// Records that fit in one append, in the order in which they were left.
#[derive(Default)]
struct Group {
    records: Vec<NewRecord>,
    notes: Vec<Note>,
    /// Of all records, keys included.
    bytes: usize,
    /// The earliest deadline.
    deadline: Duration,
    places: Places,
}

/// What is known of a record that was left.
#[derive(Clone, Copy)]
struct Note {
    deadline: Duration,
    /// What it takes of the buffer.
    room: u32,
}

/// A record that goes by itself.
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
    pub(crate) fn new(count: usize, records: usize, bytes: usize) -> Self {
        Strands { all: (0..count).map(|_| Strand::default()).collect(), most: Most { records, bytes } }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Leaves a record behind the others of its key. Returns nothing if nobody fetches it any more.
    pub(crate) fn leave(&self, record: NewRecord, deadline: Duration, room: u32) -> Option<Ticket> {
        let strand = &self.all[self.of(&record.partition_key)];
        let mut left = strand.left.lock();
        if left.closed {
            return None;
        }
        let size = record.size();
        if !left
            .groups
            .back()
            .is_some_and(|group| self.most.allow(group.records.len() + 1, group.bytes + size))
        {
            let group = Group::new(left.expected, deadline);
            left.groups.push_back(group);
        }
        let ticket = left.groups.back_mut()?.push(record, size, Note { deadline, room });
        let wake = std::mem::take(&mut left.asleep);
        drop(left);
        if wake {
            strand.worth_waking.notify_one();
        }
        Some(ticket)
    }

    /// Nothing is taken any more; what is here is still sent.
    pub(crate) fn close(&self) {
        for strand in &self.all {
            strand.left.lock().closed = true;
            strand.worth_waking.notify_one();
        }
    }

    /// The strand of a partition key, wherever its records are sent. Their hash keys are computed later, many at once.
    fn of(&self, key: &[u8]) -> usize {
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let (words, rest) = key.as_chunks();
        let hash = words.iter().fold(key.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
        let hash = rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)));
        (mix(hash, 0) >> 32) as usize % self.all.len()
    }
}

impl Most {
    fn allow(self, records: usize, bytes: usize) -> bool {
        records <= self.records && bytes <= self.bytes
    }
}

impl Group {
    fn new(expected: usize, deadline: Duration) -> Self {
        let (records, notes) = (Vec::with_capacity(expected), Vec::with_capacity(expected));
        Group { records, notes, deadline, ..Group::default() }
    }

    fn push(&mut self, record: NewRecord, bytes: usize, note: Note) -> Ticket {
        self.records.push(record);
        self.bytes += bytes;
        self.deadline = self.deadline.min(note.deadline);
        self.notes.push(note);
        let (page, index) = self.places.next();
        Ticket::on_page(page, index)
    }

    /// Computes where records go, so that nobody has to do it again.
    fn locate(&mut self) {
        let keys = NewRecord::hash_keys(self.records.iter());
        self.records.iter_mut().zip(keys).for_each(|(record, key)| record.explicit_hash_key = Some(key));
    }

    fn into_items(self) -> impl Iterator<Item = Item> {
        let parts = self.records.into_iter().zip(self.notes).zip(self.places.each());
        parts.map(|((record, Note { deadline, room }), spot)| Item {
            record,
            deadline,
            room,
            attempts: 0,
            doubtful: false,
            last_error: None,
            spot,
        })
    }
}

/// The task of one strand.
pub(crate) struct Runner {
    shared: Arc<Shared>,
    number: usize,
    /// Out of their groups, and not sent yet.
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
        let mut left = self.strand().left.lock();
        left.closed = true;
        let groups = std::mem::take(&mut left.groups);
        drop(left);
        drop(groups);
    }
}

impl Runner {
    pub(crate) fn new(shared: Arc<Shared>, number: usize) -> Self {
        let swept_at = shared.clock.elapsed();
        let (fresh, held, pausing, counted) = Default::default();
        Runner { shared, number, fresh, held, pausing, swept_at, counted }
    }

    fn strand(&self) -> &Strand {
        &self.shared.strands.all[self.number]
    }

    /// Runs until the strand is closed and everything is concluded.
    pub(crate) async fn run(mut self) {
        loop {
            let now = self.shared.clock.elapsed();
            self.sweep(now);
            if let Some(group) = self.whole_group(now) {
                self.append_group(group).await;
                continue;
            }
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
        {
            let mut left = self.strand().left.lock();
            if !left.groups.is_empty() {
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
            () = self.strand().worth_waking.notified() => {}
            () = pause(due.unwrap_or_default()), if due.is_some() => {}
        }
        false
    }

    /// The next group, if it may go as it is: nothing goes before it, and nothing of it is late.
    fn whole_group(&mut self, now: Duration) -> Option<Group> {
        if !self.held.is_empty() || !self.fresh.is_empty() {
            return None;
        }
        // A sweep may have taken many groups apart, and it is empty again.
        self.fresh.shrink_to(self.shared.strands.most.records);
        let group = self.fetch()?;
        if now >= group.deadline {
            self.fresh.extend(group.into_items());
            return None;
        }
        Some(group)
    }

    /// What goes next record by record: what was held long enough, and what came since, as much as fits.
    fn next_append(&mut self, now: Duration) -> Vec<Item> {
        let mut next = Next::new(self.shared.strands.most);
        if !self.held.is_empty() {
            for item in std::mem::take(&mut self.held) {
                let key = item.record.hash_key();
                let rests = self.pausing.get(&key).is_some_and(|pause| pause.due > now);
                let back = if rests { Some(item) } else { next.push(item) };
                self.held.extend(back);
            }
        }
        while !next.full {
            if self.fresh.is_empty()
                && let Some(group) = self.fetch()
            {
                self.fresh.extend(group.into_items());
            }
            let Some(item) = self.fresh.pop_front() else { break };
            if now >= item.deadline {
                self.lose(item);
            } else if !self.pausing.is_empty() && self.pausing.contains_key(&item.record.hash_key()) {
                self.held.push_back(item);
            } else if let Some(item) = next.push(item) {
                self.fresh.push_front(item);
            }
        }
        next.sent
    }

    /// Fetches what senders have left first.
    fn fetch(&self) -> Option<Group> {
        let mut left = self.strand().left.lock();
        let mut group = left.groups.pop_front()?;
        left.expected = group.records.len();
        drop(left);
        group.locate();
        Some(group)
    }

    /// Sends a group. Where all of it is stored, nothing is moved for a single record.
    async fn append_group(&mut self, group: Group) {
        let (results, now) = self.store(&group.records).await;
        match results {
            Ok(results) if results.iter().all(Result::is_ok) => self.land_group(group, results, now),
            results => self.land(group.into_items().collect(), results, now),
        }
    }

    async fn append(&mut self, sent: Vec<Item>) {
        let records: Vec<NewRecord> = sent.iter().map(|item| item.record.clone()).collect();
        let (results, now) = self.store(&records).await;
        self.land(sent, results, now);
    }

    /// Appends records, and gives up others that wait meanwhile. Returns when the answer came as well.
    async fn store(&mut self, records: &[NewRecord]) -> (Result<Vec<Result<Appended>>>, Duration) {
        let shared = self.shared.clone();
        let began = shared.clock.elapsed();
        let results = {
            let append = AssertUnwindSafe(shared.store.append_kept(&shared.stream, records)).catch_unwind();
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
            results.unwrap_or_else(broke_off).and_then(|results| match results.len() == records.len() {
                true => Ok(results),
                false => Err(Error::Unavailable("the store answered about other records".to_owned())),
            });
        (results, now)
    }

    /// Tells that all of a group is stored, which was sent once.
    fn land_group(&mut self, group: Group, results: Vec<Result<Appended>>, now: Duration) {
        let shared = self.shared.clone();
        let map = shared.map();
        let outcome = |(record, result): (&NewRecord, Result<Appended>)| {
            let stored = result.map(|Appended { shard, sequence }| {
                self.note(&map, &shard, record);
                Stored { shard, sequence, attempts: 1, repeated: false }
            });
            Some(stored.map_err(|error| Lost::new(false, Why::Refused(error))))
        };
        let outcomes: Vec<Option<Outcome>> = group.records.iter().zip(results).map(outcome).collect();
        self.count(&map, now);
        metrics::stored(&shared.stream, group.records.len(), group.bytes);
        shared.room.add_permits(group.notes.iter().map(|note| note.room as usize).sum());
        group.places.tell(outcomes);
    }

    /// Tells what became of the records of an append, and holds those that are to be sent again.
    fn land(&mut self, sent: Vec<Item>, results: Result<Vec<Result<Appended>>>, now: Duration) {
        let shared = self.shared.clone();
        // All of them failed as one.
        let whole = results.is_err();
        let results = results.unwrap_or_else(|error| vec![Err(error); sent.len()]);
        let (mut records, mut bytes, mut freed) = (0, 0, 0);
        let mut concluded: Vec<(Spot, Outcome)> = Vec::with_capacity(sent.len());
        let mut again: VecDeque<Item> = VecDeque::new();
        let mut failed: HashSet<HashKey> = HashSet::new();
        let map = shared.map();
        for (mut item, result) in sent.into_iter().zip(results) {
            let key = item.record.hash_key();
            item.attempts += 1;
            let error = match result {
                Ok(Appended { shard, sequence }) => {
                    self.note(&map, &shard, &item.record);
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

    /// Notes where a record was stored, to be counted.
    fn note(&mut self, map: &ShardMap, shard: &ShardId, record: &NewRecord) {
        let key = record.hash_key();
        let slot = map.slot(key);
        match map.shards().get(slot).is_some_and(|traffic| traffic.shard == *shard) {
            true => self.counted.push((slot, key, record.size())),
            // A shard that is not known yet is counted from the next listing on.
            false => self.shared.runs.resharded.notify_one(),
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
        let late = self.strand().left.lock().groups.iter().any(|group| now >= group.deadline);
        while late && let Some(group) = self.fetch() {
            self.fresh.extend(group.into_items());
        }
        for items in [&mut self.held, &mut self.fresh] {
            take_out(items, over, &mut lost);
        }
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
struct Next {
    sent: Vec<Item>,
    bytes: usize,
    most: Most,
    full: bool,
}

impl Next {
    fn new(most: Most) -> Self {
        Next { sent: Vec::new(), bytes: 0, most, full: false }
    }

    /// Adds a record, or gives it back if the append is full.
    fn push(&mut self, item: Item) -> Option<Item> {
        let bytes = self.bytes + item.record.size();
        let fits = self.sent.is_empty() || self.most.allow(self.sent.len() + 1, bytes);
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
