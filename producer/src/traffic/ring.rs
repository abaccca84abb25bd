//! Counters of the last seconds, in a ring of atomics.
//!
//! One adds at a time; whoever reads at the turn of a second may miss what is being added, never more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::settings::Pace;

/// Seconds in the ring, the one under way included.
pub const RING_SECONDS: usize = 128;
/// The mark of a slot that was never used.
const NEVER: u64 = u64::MAX;

/// What happened in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Records that were stored.
    pub records: u64,
    /// Their bytes, keys included.
    pub bytes: u64,
    /// Records that were refused or held back because the shard could take no more.
    pub throttles: u64,
}

impl Second {
    /// The share of a capacity that one second like this uses: the worse of records and bytes.
    pub fn usage(&self, capacity: Pace) -> f64 {
        (self.records as f64 / capacity.records).max(self.bytes as f64 / capacity.bytes)
    }
}

#[derive(Debug)]
pub(super) struct Ring {
    slots: Box<[Slot]>,
}

#[derive(Debug)]
struct Slot {
    second: AtomicU64,
    records: AtomicU64,
    bytes: AtomicU64,
    throttles: AtomicU64,
}

impl Default for Ring {
    fn default() -> Self {
        let slot = |_| Slot {
            second: AtomicU64::new(NEVER),
            records: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            throttles: AtomicU64::new(0),
        };
        Ring { slots: (0..RING_SECONDS).map(slot).collect() }
    }
}

impl Ring {
    pub(super) fn add(&self, now: Duration, add: Second) {
        let second = now.as_secs();
        let slot = self.slot(second);
        if slot.second.load(Ordering::Acquire) != second {
            slot.second.store(NEVER, Ordering::Release);
            for counter in [&slot.records, &slot.bytes, &slot.throttles] {
                counter.store(0, Ordering::Release);
            }
            slot.second.store(second, Ordering::Release);
        }
        slot.records.fetch_add(add.records, Ordering::Relaxed);
        slot.bytes.fetch_add(add.bytes, Ordering::Relaxed);
        slot.throttles.fetch_add(add.throttles, Ordering::Relaxed);
    }

    /// The last `count` whole seconds, the oldest first.
    pub(super) fn last(&self, now: Duration, count: usize) -> Vec<Second> {
        let now = now.as_secs();
        let count = (count as u64).min(RING_SECONDS as u64 - 2).min(now);
        (now - count..now).map(|second| self.at(second)).collect()
    }

    fn at(&self, second: u64) -> Second {
        let slot = self.slot(second);
        if slot.second.load(Ordering::Acquire) != second {
            return Second::default();
        }
        Second {
            records: slot.records.load(Ordering::Relaxed),
            bytes: slot.bytes.load(Ordering::Relaxed),
            throttles: slot.throttles.load(Ordering::Relaxed),
        }
    }

    fn slot(&self, second: u64) -> &Slot {
        &self.slots[(second % RING_SECONDS as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_kept_apart_and_forgotten_after_a_round() {
        let ring = Ring::default();
        let at = Duration::from_secs;
        ring.add(at(10), Second { records: 1, bytes: 10, throttles: 0 });
        ring.add(at(10), Second { records: 2, bytes: 20, throttles: 1 });
        ring.add(at(12), Second { records: 5, bytes: 50, throttles: 0 });
        let tenth = Second { records: 3, bytes: 30, throttles: 1 };
        assert_eq!(ring.last(at(12), 2), [tenth, Second::default()]);
        assert_eq!(ring.last(at(13), 1), [Second { records: 5, bytes: 50, throttles: 0 }]);
        let round = RING_SECONDS as u64;
        ring.add(at(10 + round), Second { records: 9, bytes: 9, throttles: 9 });
        assert!(ring.last(at(12 + round), 200)[1..].iter().filter(|second| second.records > 0).count() == 1);
    }
}
