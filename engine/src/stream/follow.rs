//! Following: the buffer that became durable is handed to whoever waits for it.
//!
//! ```text
//!             read to the tail, then register under the shard's lock
//!   catching up ─────────────────────────────────────────────────▶ live
//!        ▲                                                          │
//!        └────────── the queue is full, or the budget is ───────────┘
//! ```
//!
//! What must hold: a follower never makes a writer wait. One that is too slow loses its queue, not its place: it goes
//! on reading the journal from the number it had reached.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Batch, Error, Follow, Next, Position, ReadLimit, Result, ShardId, StreamName};
use bytes::Bytes;
use futures_util::stream;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::locate::end_of;
use super::records::{decode, number};
use super::shard::Shard;
use crate::budget::{Budget, Held};
use crate::core::Core;
use crate::journal::frame::HEADER_BYTES;
use crate::state::Entry;

/// Frames that wait for one follower at most.
const QUEUE_FRAMES_MAX: usize = 64;
/// Bytes that a follower reads in one batch while it catches up.
const CATCH_UP_BYTES: usize = 1 << 20;

/// The near end of a follower: where the committer leaves frames.
#[derive(Default)]
pub struct Follower {
    queue: Mutex<Queue>,
    changed: Notify,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<(Entry, Bytes)>,
    /// Something was published that is not in the queue.
    behind: bool,
}

impl Follower {
    /// Tells the follower to look at the shard again.
    pub fn wake(&self) {
        self.queue.lock().behind = true;
        self.changed.notify_one();
    }
}

/// Gives a frame that became durable to every follower that keeps up.
pub fn push(budget: &Budget, followers: &[Arc<Follower>], entry: Entry, frame: Vec<u8>) {
    let Some(permit) = budget.try_read(frame.len()) else {
        return followers.iter().for_each(|follower| follower.wake());
    };
    let frame = Bytes::from_owner(Held::new(frame, permit));
    for follower in followers {
        let mut queue = follower.queue.lock();
        if queue.behind || queue.frames.len() >= QUEUE_FRAMES_MAX {
            queue.behind = true;
            queue.frames.clear();
        } else {
            queue.frames.push_back((entry, frame.clone()));
        }
        drop(queue);
        follower.changed.notify_one();
    }
}

impl Core {
    /// Follows a shard. See [`ShardSource::follow`](anabranch_model::ShardSource::follow).
    pub fn follow(self: &Arc<Self>, name: &StreamName, id: &ShardId, from: Position) -> Result<Follow> {
        let (_, shard) = self.catalogue.shard(name, id)?;
        let from = match from {
            // "Latest" is the moment of this call, not of the first poll.
            Position::Latest => Position::At(shard.log().tail_number()),
            other => other,
        };
        let following =
            Following { core: self.clone(), shard, name: name.clone(), at: from, registered: None };
        Ok(Box::pin(stream::unfold(Some(following), |following| async {
            let mut following = following?;
            let batch = following.next().await;
            let over = matches!(&batch, Err(_) | Ok(Batch { next: Next::Ended(_), .. }));
            Some((batch, (!over).then_some(following)))
        })))
    }
}

/// The far end of a follower.
struct Following {
    core: Arc<Core>,
    shard: Arc<Shard>,
    name: StreamName,
    at: Position,
    registered: Option<Arc<Follower>>,
}

impl Following {
    async fn next(&mut self) -> Result<Batch> {
        loop {
            if self.shard.log().doomed {
                return Err(self.gone());
            }
            let batch = match self.registered.clone() {
                Some(follower) => self.live(&follower).await?,
                None => self.catch_up().await?,
            };
            let Some(batch) = batch else { continue };
            if let Next::At(position) = &batch.next {
                self.at = *position;
            }
            if !batch.records.is_empty() || matches!(batch.next, Next::Ended(_)) {
                return Ok(batch);
            }
        }
    }

    /// Reads from the journal; registers for what comes once there is nothing left.
    async fn catch_up(&mut self) -> Result<Option<Batch>> {
        let limit = ReadLimit { bytes: CATCH_UP_BYTES, ..ReadLimit::default() };
        let batch = self.core.read_shard(&self.shard, self.at, limit).await?;
        if let Next::At(Position::At(next)) = batch.next
            && batch.records.is_empty()
        {
            let mut log = self.shard.log();
            // Nothing may be published between looking and registering, so both happen under the lock.
            let nothing_missed = next.as_u128().is_some_and(|next| next >= log.tail) && log.closed.is_none();
            if nothing_missed && !log.doomed {
                let follower = Arc::new(Follower::default());
                log.followers.push(follower.clone());
                self.registered = Some(follower);
            }
        }
        Ok(Some(batch))
    }

    /// Waits for frames; `None` if the follower has to look at the journal again.
    async fn live(&mut self, follower: &Arc<Follower>) -> Result<Option<Batch>> {
        loop {
            let (frames, behind) = {
                let mut queue = follower.queue.lock();
                (std::mem::take(&mut queue.frames), queue.behind)
            };
            if !frames.is_empty() {
                return self.decode(frames).map(Some);
            }
            if behind {
                self.unregister();
                return Ok(None);
            }
            follower.changed.notified().await;
        }
    }

    fn decode(&self, frames: VecDeque<(Entry, Bytes)>) -> Result<Batch> {
        let mut records = Vec::new();
        let mut next = match self.at {
            Position::At(next) => next.as_u128().unwrap_or(u128::MAX),
            _ => 0,
        };
        for (entry, frame) in frames {
            // The bytes came from memory, not from the disk; only a defect of ours can make them unreadable.
            let payload = frame.slice(HEADER_BYTES..);
            let payload = payload.slice(..payload_bytes(&frame));
            decode(&payload, entry.origin, entry.arrival, next, &mut records, |_, _| false)
                .map_err(|_| Error::Corrupt("a frame in memory cannot be read".into()))?;
            next = next.max(end_of(&entry));
        }
        Ok(Batch { records, next: Next::At(Position::At(number(next))), behind: Duration::ZERO })
    }

    fn unregister(&mut self) {
        if let Some(follower) = self.registered.take() {
            self.shard.log().followers.retain(|other| !Arc::ptr_eq(other, &follower));
        }
    }

    fn gone(&self) -> Error {
        match self.core.catalogue.stream(&self.name) {
            Ok(stream) if stream.id == self.shard.key.stream => {
                Error::ShardNotFound(self.name.clone(), self.shard.id.clone())
            }
            _ => Error::StreamNotFound(self.name.clone()),
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.unregister();
    }
}

fn payload_bytes(frame: &[u8]) -> usize {
    u32::from_le_bytes([frame[8], frame[9], frame[10], frame[11]]) as usize
}
