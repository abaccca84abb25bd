//! The memory that the records of all shards may take together, from before they are read until they are delivered.
//!
//! ```text
//!   wait until the shard has less than its share ──▶ take room ──▶ read ──▶ give back what was not needed ──▶ deliver ──▶ give back
//! ```
//!
//! What must hold: there is never more in hand than there is memory, and one record. Every shard has the same share, so
//! one whose processor is slow takes nothing from the others. And nobody who waits for room has anything in hand that is
//! not on its way to a processor, so room comes back however little there is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Memory is counted in pieces of this size.
const UNIT: usize = 1024;
/// Batches of a shard that are in hand: the one that is delivered, and the one behind it.
const BATCHES: usize = 2;
/// Room that is taken at least: nobody knows how large the next record is before it is read.
const ROOM_MIN: usize = 64 << 10;
/// The part of all memory beyond which a record is large. Large ones come one at a time and beside what is counted, or those
/// that are small would wait until nearly everything is free.
const LARGE_PART: usize = 8;

/// The memory of a worker.
pub(crate) struct Memory {
    bytes: usize,
    free: Arc<Semaphore>,
    large: Arc<Semaphore>,
    shards: AtomicUsize,
}

impl Memory {
    /// A memory of this many bytes.
    pub(crate) fn new(bytes: usize) -> Arc<Self> {
        let units = bytes.div_ceil(UNIT).min(u32::MAX as usize).min(Semaphore::MAX_PERMITS);
        let (free, large) = (Arc::new(Semaphore::new(units)), Arc::new(Semaphore::new(1)));
        Arc::new(Memory { bytes: units.saturating_mul(UNIT), free, large, shards: AtomicUsize::new(0) })
    }

    fn large_from(&self) -> usize {
        (self.bytes / LARGE_PART).max(UNIT)
    }
}

/// What one shard may take of the memory.
pub(crate) struct Share {
    memory: Arc<Memory>,
    batch_max: usize,
    taken: Arc<Taken>,
}

#[derive(Default)]
struct Taken {
    /// Bytes and records.
    sum: Mutex<(usize, usize)>,
    freed: Notify,
}

impl Share {
    /// The share of one shard more, whose batches need never be larger than this.
    pub(crate) fn new(memory: &Arc<Memory>, batch_max: usize) -> Self {
        memory.shards.fetch_add(1, Ordering::Relaxed);
        Share { memory: memory.clone(), batch_max, taken: Arc::default() }
    }

    /// Records that are in hand.
    pub(crate) fn records(&self) -> usize {
        self.taken.sum.lock().1
    }

    /// Waits until something is given back, from the moment of this call on.
    pub(crate) fn freed(&self) -> tokio::sync::futures::Notified<'_> {
        self.taken.freed.notified()
    }

    /// What a batch may take. It depends on how many shards there are at the moment.
    fn batch(&self) -> usize {
        let shards = self.memory.shards.load(Ordering::Relaxed).max(1);
        (self.memory.bytes / shards / BATCHES).min(self.batch_max).max(1)
    }

    /// Waits until there is room for a batch, and for a record of `needed` bytes.
    pub(crate) async fn take(&self, needed: usize) -> Room {
        let batch = loop {
            let freed = self.taken.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            let batch = self.batch();
            let taken = self.taken.sum.lock().0;
            if taken == 0 || taken.saturating_add(batch.max(needed)) <= batch.saturating_mul(BATCHES) {
                break batch;
            }
            freed.await;
        };
        let bytes = needed.max(batch).max(ROOM_MIN.min(self.memory.large_from()));
        let is_large = needed > batch.max(self.memory.large_from());
        // Nobody closes the semaphores; without a permit reading goes on all the same.
        let permit = if is_large {
            self.memory.large.clone().acquire_owned().await.ok()
        } else {
            self.memory.free.clone().acquire_many_owned(units(bytes)).await.ok()
        };
        self.taken.sum.lock().0 += bytes;
        Room { bytes, batch, records: 0, is_large, permit, taken: self.taken.clone() }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.memory.shards.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A part of the memory, which is given back when this is dropped.
pub(crate) struct Room {
    bytes: usize,
    batch: usize,
    records: usize,
    is_large: bool,
    permit: Option<OwnedSemaphorePermit>,
    taken: Arc<Taken>,
}

impl Room {
    /// Bytes that a batch may take here, and those that its first record may.
    pub(crate) fn bounds(&self) -> (usize, usize) {
        if self.is_large { (1, self.bytes) } else { (self.batch, self.bytes) }
    }

    /// This much is needed, for so many records. The rest is given back.
    pub(crate) fn settle(&mut self, bytes: usize, records: usize) {
        let bytes = bytes.min(self.bytes);
        if let Some(permit) = self.permit.as_mut().filter(|_| !self.is_large) {
            let rest = permit.num_permits().saturating_sub(units(bytes) as usize);
            drop(permit.split(rest));
        }
        self.count(bytes, records);
        self.taken.freed.notify_waiters();
    }

    fn count(&mut self, bytes: usize, records: usize) {
        let mut sum = self.taken.sum.lock();
        *sum = (sum.0 - self.bytes + bytes, sum.1 - self.records + records);
        (self.bytes, self.records) = (bytes, records);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        drop(self.permit.take());
        self.count(0, 0);
        self.taken.freed.notify_waiters();
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_shard_takes_no_more_than_its_share() {
        let memory = Memory::new(1 << 20);
        let [slow, other] = [0, 1].map(|_| Share::new(&memory, usize::MAX));
        let [mut one, two] = [slow.take(0).await, slow.take(0).await];
        assert_eq!(one.bounds(), (256 << 10, 256 << 10));
        assert!(slow.take(0).now_or_never().is_none(), "it has its share");
        let rest = [other.take(0).await, other.take(0).await];
        assert_eq!(memory.free.available_permits(), 0);
        // What was not needed is there for the next batch, and not before.
        one.settle(100, 1);
        assert!(slow.take(0).now_or_never().is_none());
        drop(two);
        assert!(slow.take(0).now_or_never().is_some());
        drop((one, rest));
        assert_eq!(memory.free.available_permits(), 1024);
    }

    #[tokio::test]
    async fn shares_shrink_when_shards_come_and_grow_when_they_go() {
        let memory = Memory::new(1 << 20);
        let shares: Vec<_> = (0..64).map(|_| Share::new(&memory, 400 << 10)).collect();
        assert_eq!(shares[0].batch(), 8 << 10);
        let room = shares[0].take(0).await;
        assert_eq!(room.bounds(), (8 << 10, 64 << 10), "a record may be larger than the share");
        drop(shares);
        assert_eq!(Share::new(&memory, 400 << 10).batch(), 400 << 10);
    }

    /// A large record needs nothing that small ones wait for, and there is one of them at a time.
    #[tokio::test]
    async fn large_records_come_one_at_a_time_beside_the_others() {
        let memory = Memory::new(64 << 10);
        let shares: Vec<_> = (0..16).map(|_| Share::new(&memory, usize::MAX)).collect();
        let held: Vec<_> = shares[..8].iter().map(|share| share.take(0).now_or_never().unwrap()).collect();
        assert_eq!(memory.free.available_permits(), 0);
        let mut large = shares[8].take(1 << 20).now_or_never().unwrap();
        assert_eq!(large.bounds(), (1, 1 << 20));
        large.settle(1 << 20, 1);
        assert!(shares[9].take(1 << 20).now_or_never().is_none());
        assert!(shares[10].take(0).now_or_never().is_none());
        drop(held);
        assert!(shares[10].take(0).now_or_never().is_some());
        drop(large);
        assert!(shares[9].take(1 << 20).now_or_never().is_some());
        assert_eq!(memory.free.available_permits(), 64);
    }

    /// However small the memory is, one read is possible.
    #[tokio::test]
    async fn the_smallest_memory_has_room_for_one_read() {
        let memory = Memory::new(1);
        let shares: Vec<_> = (0..9).map(|_| Share::new(&memory, 1 << 20)).collect();
        let room = shares[0].take(0).now_or_never().unwrap();
        assert!(shares[1].take(0).now_or_never().is_none());
        drop(room);
        assert!(shares[1].take(0).now_or_never().is_some());
    }
}
