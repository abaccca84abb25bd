//! The byte budget: one number for everything that grows with load.
//!
//! It is dealt out in fixed shares, so that no share can starve another: what waits to be written always drains and so
//! may wait for room; what was read stays with its reader for as long as he likes and so may not.
//!
//! | share | of the budget | what happens when it is used up |
//! |---|---|---|
//! | writes | three eighths | appends wait for the disk |
//! | rows that no checkpoint has stored | an eighth | writers wait for the checkpoint |
//! | reads and followers | a quarter | reads wait briefly, then `Busy`; followers fall back to the journal |
//! | cache of the state | a quarter | it evicts |

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Error, Result};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit of the shares: a permit for every started KiB.
const UNIT: u64 = 1024;
/// How long a read waits for other readers to let go.
const READ_WAIT: Duration = Duration::from_secs(5);
/// The smallest budget: the largest append and the largest read must fit their shares.
pub const BUDGET_BYTES_MIN: u64 = 48 << 20;

/// The shares.
pub struct Budget {
    total: u64,
    writes: Share,
    reads: Share,
    /// Buffers for reads.
    pub buffers: Arc<Buffers>,
}

struct Share {
    permits: u32,
    semaphore: Arc<Semaphore>,
}

impl Share {
    fn new(bytes: u64) -> Share {
        let permits = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
        Share { permits, semaphore: Arc::new(Semaphore::new(permits as usize)) }
    }

    /// Permits for this many bytes; a request for more than the share takes the whole share.
    fn cost(&self, bytes: usize) -> u32 {
        (bytes as u64).div_ceil(UNIT).clamp(1, u64::from(self.permits)) as u32
    }

    fn used(&self) -> u64 {
        (u64::from(self.permits) - self.semaphore.available_permits() as u64) * UNIT
    }
}

impl Budget {
    /// Deals out `total` bytes.
    pub fn new(total: u64) -> Budget {
        let total = total.max(BUDGET_BYTES_MIN);
        Budget {
            total,
            writes: Share::new(total / 8 * 3),
            reads: Share::new(total / 4),
            buffers: Arc::default(),
        }
    }

    /// The share of the state's cache.
    pub fn cache_bytes(&self) -> usize {
        usize::try_from(self.total / 4).unwrap_or(usize::MAX)
    }

    /// The share of rows that no checkpoint has stored yet.
    pub fn rows_bytes(&self) -> usize {
        usize::try_from(self.total / 8).unwrap_or(usize::MAX)
    }

    /// Waits for room for an append; it comes, because the disk drains what was admitted.
    pub async fn write(&self, bytes: usize) -> OwnedSemaphorePermit {
        let share = &self.writes;
        share
            .semaphore
            .clone()
            .acquire_many_owned(share.cost(bytes))
            .await
            .expect("the share is never closed")
    }

    /// Waits a little for room for a read.
    pub async fn read(&self, bytes: usize) -> Result<OwnedSemaphorePermit> {
        let share = &self.reads;
        let acquired = share.semaphore.clone().acquire_many_owned(share.cost(bytes));
        match tokio::time::timeout(READ_WAIT, acquired).await {
            Ok(permit) => Ok(permit.expect("the share is never closed")),
            Err(_) => Err(Error::Busy { budget_bytes: self.total }),
        }
    }

    /// Room for a follower, if there is some now.
    pub fn try_read(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let share = &self.reads;
        share.semaphore.clone().try_acquire_many_owned(share.cost(bytes)).ok()
    }

    /// Bytes that are in use.
    pub fn used(&self) -> u64 {
        self.writes.used() + self.reads.used()
    }

    /// The whole budget.
    pub fn total(&self) -> u64 {
        self.total
    }
}

/// Takes as much from a permit as a part of what it is for occupies; the last part gets what is left.
pub fn part_of(permit: &mut OwnedSemaphorePermit, bytes: usize) -> OwnedSemaphorePermit {
    let wanted = (bytes as u64).div_ceil(UNIT).min(permit.num_permits() as u64);
    permit.split(wanted as usize).expect("it is no more than there is")
}

/// A buffer that gives its share back when the last slice of it is dropped, and itself to the pool it came from.
pub struct Held {
    bytes: Vec<u8>,
    length: usize,
    _permit: OwnedSemaphorePermit,
    pool: Option<Arc<Buffers>>,
}

impl Held {
    /// Ties a buffer to its share.
    pub fn new(bytes: Vec<u8>, permit: OwnedSemaphorePermit) -> Held {
        Held { length: bytes.len(), bytes, _permit: permit, pool: None }
    }

    /// The part that is in use.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.put_back(std::mem::take(&mut self.bytes));
        }
    }
}

/// Buffers for reads, used again: the kernel hands out fresh memory page by page, which costs as much as the read.
#[derive(Default)]
pub struct Buffers {
    free: Mutex<Vec<Vec<u8>>>,
}

/// Reads below this size get a buffer of their own size.
const SMALL_BYTES: usize = 64 << 10;
/// Bytes that are kept.
const BUFFERS_BYTES_MAX: usize = 16 << 20;

impl Buffers {
    /// A buffer of this length, with whatever bytes in it. It is at most twice as large, because the reader may hold on
    /// to it and has paid for its length only; powers of two fit the next read too.
    pub fn take(self: &Arc<Self>, length: usize, permit: OwnedSemaphorePermit) -> Held {
        if length < SMALL_BYTES {
            return Held::new(vec![0; length], permit);
        }
        let mut free = self.free.lock();
        // The one that was used last is still in the processor's cache.
        let found = free.iter().rposition(|buffer| (length..=2 * length).contains(&buffer.len()));
        let found = found.map(|index| free.remove(index));
        drop(free);
        let bytes = found.unwrap_or_else(|| vec![0; length.next_power_of_two()]);
        Held { bytes, length, _permit: permit, pool: Some(self.clone()) }
    }

    /// Gives everything back to the system.
    pub fn clear(&self) {
        self.free.lock().clear();
    }

    fn put_back(&self, bytes: Vec<u8>) {
        let mut free = self.free.lock();
        free.push(bytes);
        while free.iter().map(Vec::len).sum::<usize>() > BUFFERS_BYTES_MAX {
            free.remove(0);
        }
    }
}
