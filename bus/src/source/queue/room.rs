//! The memory for messages under way.

use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_model::Message;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::RECEIVERS_MIN;

/// Bodies of messages under way, in bytes: with large messages there are fewer than `in_flight`.
const BYTES_MAX: usize = 32 << 20;
/// How large a message is taken to be before one was seen.
const BYTES_EXPECTED: usize = 4 << 10;

/// The memory for messages under way. Nobody knows how large the next ones are: they are taken to be as large as the last.
pub(super) struct Room {
    free: Semaphore,
    expected: AtomicUsize,
}

impl Room {
    pub(super) fn new() -> Self {
        Room { free: Semaphore::new(BYTES_MAX), expected: AtomicUsize::new(BYTES_EXPECTED) }
    }

    /// How many receives of so many messages leave memory for other receivers, at least one and at most so many.
    pub(super) fn receives(&self, at_most: usize, messages: usize) -> usize {
        let each = self.expected.load(Ordering::Relaxed).saturating_mul(messages).max(1);
        (BYTES_MAX / RECEIVERS_MIN / each).clamp(1, at_most)
    }

    /// Waits for the memory of so many messages.
    pub(super) async fn take(&self, messages: usize) -> Option<SemaphorePermit<'_>> {
        let bytes = self.expected.load(Ordering::Relaxed).saturating_mul(messages);
        self.free.acquire_many(bytes.clamp(1, BYTES_MAX) as u32).await.ok()
    }

    /// Gives back what was too much, or takes what was too little if it is there: what was received is not put back.
    pub(super) fn fit<'a>(&'a self, room: &mut SemaphorePermit<'a>, messages: &[Message]) {
        let bytes: usize = messages.iter().map(|message| message.body.len()).sum();
        let held = room.num_permits();
        if let Some(more) = bytes.checked_sub(held) {
            if let Ok(more) = self.free.try_acquire_many(more.min(BYTES_MAX) as u32) {
                room.merge(more);
            }
        } else {
            drop(room.split(held - bytes));
        }
        if let Some(mean) = bytes.checked_div(messages.len()) {
            // It rises at once and falls slowly.
            let last = self.expected.load(Ordering::Relaxed);
            self.expected.store(mean.max(last - last / 8), Ordering::Relaxed);
        }
    }
}
