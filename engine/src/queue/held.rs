//! One queue: what of it is in memory, and the lock that orders the calls on it.
//!
//! Nothing here grows with the messages that wait, except what is counted by the millisecond while it is hidden. Rows
//! that were accepted and are not visible yet are kept until the disk has them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anabranch_model::queue::{QueueName, QueueOptions};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::counts::Counts;
use super::keys::Place;
use super::options::{MoveRow, QueueRow};
use super::window::Window;

/// A queue.
pub struct Queue {
    /// Its name.
    pub name: QueueName,
    /// Tells it from every other queue, and from earlier and later ones of the same name.
    pub born: u64,
    /// When it was made, in milliseconds.
    pub created_at: u64,
    /// Told when messages can be received, once for each; and to all when nobody can receive any more.
    pub changed: Notify,
    accepted: Mutex<Accepted>,
    /// The youngest frame of the queue that is visible.
    settled: AtomicU64,
    /// The frame that made it is durable.
    visible: AtomicBool,
}

/// A queue in the order of the journal.
pub struct Accepted {
    /// The number that its messages lie under.
    pub number: u64,
    /// How it behaves.
    pub options: QueueOptions,
    /// When that was changed the last time.
    pub changed_at: u64,
    /// A delete has its place in the journal.
    pub deleted: bool,
    /// How many messages there are.
    pub counts: Counts,
    /// The latest time that a call saw. Time does not go back for a queue.
    pub now: u64,
    /// The next messages.
    pub window: Window,
    /// No message lies before this place.
    pub oldest: Place,
    /// No message that nobody has received and that has no row in the order of visibility lies before this place.
    pub unlisted_from: Place,
    /// No message behind this place was received.
    pub received_to: Place,
    /// What receives that can be repeated gave lately.
    pub attempts: HashMap<String, Attempt>,
    /// Moves out of the queue, the oldest first.
    pub moves: Vec<MoveRow>,
    pending: BTreeMap<Bytes, Pending>,
    frames: VecDeque<(u64, Vec<Bytes>)>,
}

/// An accepted row that is not visible yet.
pub struct Pending {
    position: u64,
    /// What it is then.
    pub value: Option<Bytes>,
}

/// What a receive that can be repeated gave.
#[derive(Clone)]
pub struct Attempt {
    /// When.
    pub at: u64,
    /// How long the messages were hidden.
    pub visibility: Duration,
    /// Places, counts of receives and ends of hiding.
    pub given: Vec<(Place, u32, u64)>,
}

/// Repeatable receives of a queue that are remembered at most.
pub const ATTEMPTS_MAX: usize = 10_000;

impl Queue {
    /// A queue without messages.
    pub fn new(name: QueueName, row: QueueRow, visible: bool) -> Queue {
        let accepted = Accepted {
            number: row.number,
            options: row.options,
            changed_at: row.changed_at,
            deleted: false,
            counts: Counts::default(),
            now: 0,
            window: Window::new(row.number),
            oldest: Place::FIRST,
            unlisted_from: Place::LAST,
            received_to: Place::FIRST,
            attempts: HashMap::new(),
            moves: Vec::new(),
            pending: BTreeMap::new(),
            frames: VecDeque::new(),
        };
        Queue {
            name,
            born: row.born,
            created_at: row.created_at,
            changed: Notify::new(),
            accepted: Mutex::new(accepted),
            settled: AtomicU64::new(0),
            visible: AtomicBool::new(visible),
        }
    }

    /// Locks the queue. What has become visible meanwhile is no longer pending.
    pub fn lock(&self) -> MutexGuard<'_, Accepted> {
        let mut accepted = self.accepted.lock();
        accepted.settle(self.settled.load(Ordering::Acquire));
        accepted
    }

    /// A frame of this queue is visible. Called in the order of the journal.
    pub fn settle(&self, position: u64) {
        self.settled.fetch_max(position, Ordering::Release);
    }

    /// Whether the queue is durable.
    pub fn is_visible(&self) -> bool {
        self.visible.load(Ordering::Acquire)
    }

    /// The frame that made it is durable.
    pub fn show(&self) {
        self.visible.store(true, Ordering::Release);
    }

    /// The queue as the catalogue stores it.
    pub fn row(&self, accepted: &Accepted) -> QueueRow {
        QueueRow {
            born: self.born,
            number: accepted.number,
            created_at: self.created_at,
            changed_at: accepted.changed_at,
            options: accepted.options.clone(),
        }
    }
}

impl Accepted {
    /// The time for a call.
    pub fn at(&mut self, now: u64) -> u64 {
        self.now = self.now.max(now);
        self.now
    }

    /// What is known of a row before it is visible.
    pub fn pending(&self, key: &[u8]) -> Option<&Option<Bytes>> {
        self.pending.get(key).map(|pending| &pending.value)
    }

    /// Rows that are not visible yet, from one key to another.
    pub fn pending_range(&self, from: &Bytes, end: &Bytes) -> impl Iterator<Item = (&Bytes, &Option<Bytes>)> {
        self.pending.range(from.clone()..end.clone()).map(|(key, pending)| (key, &pending.value))
    }

    /// Whether there are frames that the disk does not have yet.
    pub fn is_pending(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Remembers what a frame does.
    pub fn remember(&mut self, position: u64, rows: impl ExactSizeIterator<Item = (Bytes, Option<Bytes>)>) {
        let mut keys = Vec::with_capacity(rows.len());
        for (key, value) in rows {
            keys.push(key.clone());
            self.pending.insert(key, Pending { position, value });
        }
        self.frames.push_back((position, keys));
    }

    fn settle(&mut self, settled: u64) {
        while let Some((position, keys)) = self.frames.pop_front_if(|(position, _)| *position <= settled) {
            for key in keys {
                if self.pending.get(&key).is_some_and(|pending| pending.position == position) {
                    self.pending.remove(&key);
                }
            }
        }
    }

    /// Forgets all messages: they lie under another number from now on.
    pub fn empty(&mut self, number: u64) {
        let now = self.now;
        self.number = number;
        self.counts = Counts::default();
        self.counts.at(now);
        self.window = Window::new(number);
        (self.oldest, self.unlisted_from, self.received_to) = (Place::FIRST, Place::LAST, Place::FIRST);
    }
}
