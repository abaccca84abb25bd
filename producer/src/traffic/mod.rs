//! What goes into each shard: counters by the second, and where in its range the load lies.
//!
//! What must hold: counting takes no lock that two shards share, and reading stops nobody. Whoever writes the counters of a
//! shard holds its lock; anybody reads them.

mod encoding;
mod ring;
mod sketch;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_model::{HashKey, HashRange, ShardId};
use parking_lot::Mutex;

pub use self::encoding::{decode, encode};
pub use self::ring::{RING_SECONDS, Second};
pub use self::sketch::{BUCKETS, HITTERS_MAX, Hitter, Load, Sketch};
use crate::pace::Bucket;
use crate::settings::Pace;

/// The traffic of one shard as one process sees it.
#[derive(Debug)]
pub struct ShardTraffic {
    /// The shard.
    pub shard: ShardId,
    /// The keys it takes.
    pub range: HashRange,
    /// When this process saw it first, by its stopwatch.
    pub seen_at: Duration,
    ring: ring::Ring,
    sketch: Mutex<Sketch>,
    /// What it may still be sent.
    pub(crate) bucket: Mutex<Bucket>,
    /// Groups of records that are being written here.
    active: AtomicU64,
}

/// The traffic of one shard at one moment, which can be sent to others and added up.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardSnapshot {
    /// The shard.
    pub shard: ShardId,
    /// The keys it takes.
    pub range: HashRange,
    /// The last seconds, the oldest first, the one under way left out.
    pub seconds: Vec<Second>,
    /// Where the load lies.
    pub sketch: Sketch,
    /// Groups of records that are being written here.
    pub active: u64,
}

impl ShardTraffic {
    pub(crate) fn new(shard: ShardId, range: HashRange, pace: Option<Pace>, now: Duration) -> Self {
        ShardTraffic {
            shard,
            range,
            seen_at: now,
            ring: ring::Ring::default(),
            sketch: Mutex::new(Sketch::new(range)),
            bucket: Mutex::new(Bucket::new(pace, now)),
            active: AtomicU64::new(0),
        }
    }

    /// Counts records that the shard took.
    pub(crate) fn stored(&self, now: Duration, records: impl IntoIterator<Item = (HashKey, usize)>) {
        let mut sketch = self.sketch.lock();
        sketch.decay_to(now);
        let (mut count, mut sum) = (0, 0);
        for (key, bytes) in records {
            sketch.add(key, bytes as f64, 1.0);
            (count, sum) = (count + 1, sum + bytes as u64);
        }
        self.ring.add(now, Second { records: count, bytes: sum, throttles: 0 });
    }

    /// Counts records of one key that the shard took.
    pub(crate) fn stored_run(&self, now: Duration, key: HashKey, records: usize, bytes: usize) {
        let mut sketch = self.sketch.lock();
        sketch.decay_to(now);
        sketch.add(key, bytes as f64, records as f64);
        self.ring.add(now, Second { records: records as u64, bytes: bytes as u64, throttles: 0 });
    }

    /// Counts records that the shard refused, or that waited because it could take no more.
    pub(crate) fn throttled(&self, now: Duration, records: u64) {
        let _counting = self.sketch.lock();
        self.ring.add(now, Second { throttles: records, ..Second::default() });
    }

    /// How much of its capacity was used in the last seconds, and how much the groups under way may add.
    pub(crate) fn load(&self, now: Duration, capacity: Pace) -> f64 {
        let seconds = self.ring.last(now, 2);
        let usage = seconds.iter().map(|second| second.usage(capacity)).fold(0.0, f64::max);
        usage + self.active.load(Ordering::Relaxed) as f64 / capacity.records
    }

    pub(crate) fn group_begins(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn group_ends(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    /// Everything as it is now.
    pub fn snapshot(&self, now: Duration) -> ShardSnapshot {
        let sketch = {
            let mut sketch = self.sketch.lock();
            sketch.decay_to(now);
            sketch.clone()
        };
        let known = now.saturating_sub(self.seen_at).as_secs().min(RING_SECONDS as u64 - 2);
        ShardSnapshot {
            shard: self.shard.clone(),
            range: self.range,
            seconds: self.ring.last(now, known as usize),
            sketch,
            active: self.active.load(Ordering::Relaxed),
        }
    }
}

impl ShardSnapshot {
    /// Adds what another process sent to the same shard.
    pub fn add(&mut self, other: &ShardSnapshot) {
        let (ours, theirs) = (self.seconds.len(), other.seconds.len());
        if theirs > ours {
            self.seconds.splice(..0, std::iter::repeat_n(Second::default(), theirs - ours));
        }
        // The last second of both is the one that ended last.
        for (second, more) in self.seconds.iter_mut().rev().zip(other.seconds.iter().rev()) {
            second.records += more.records;
            second.bytes += more.bytes;
            second.throttles += more.throttles;
        }
        self.sketch.merge(&other.sketch);
        self.active += other.active;
    }

    /// The sum of the last `count` seconds.
    pub fn sum(&self, count: usize) -> Second {
        let from = self.seconds.len().saturating_sub(count);
        self.seconds[from..].iter().fold(Second::default(), |sum, second| Second {
            records: sum.records + second.records,
            bytes: sum.bytes + second.bytes,
            throttles: sum.throttles + second.throttles,
        })
    }
}
