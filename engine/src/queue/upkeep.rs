//! What happens to queues by itself: messages past their retention go, recent sends are forgotten, and receivers who
//! wait look again.

use std::sync::Arc;

use anabranch_model::{Error, Result};
use bytes::Bytes;

use super::frame::{Frame, done, write};
use super::held::Queue;
use super::keys::{self, Place};
use super::place::Message;
use super::send::window;
use super::stored::{HEAD_BYTES, Head, corrupt};
use crate::core::{Attempt, Core, Halt};
use crate::journal::Urgency;
use crate::journal::sequencer::Done;

/// Messages that one frame removes at most.
const REMOVED_MAX: usize = 32;
/// Frames for one queue in one go.
const FRAMES_MAX: usize = 1_000;

impl Core {
    /// Tidies all queues up. `settle` waits until frames are durable.
    pub fn tidy_queues(&self, settle: &mut dyn FnMut(Done)) {
        for queue in self.queues.all() {
            for _ in 0..FRAMES_MAX {
                match self.tidy_queue(&queue) {
                    Ok((true, done)) => settle(done),
                    Ok((false, _)) | Err(Halt::Refused(_)) | Err(Halt::Failed(Error::QueueNotFound(_))) => {
                        break;
                    }
                    Err(Halt::Failed(error)) => {
                        tracing::error!(%error, queue = %queue.name, "retention cannot be applied");
                        break;
                    }
                }
                // A checkpoint makes room first.
                if self.rows.is_checkpoint_due() || self.sequencer.stopped().is_some() {
                    return self.sequencer.wake_upkeep();
                }
            }
            queue.changed.notify_waiters();
        }
    }

    /// Removes a few messages and recent sends. Returns false if there are none to remove.
    fn tidy_queue(&self, queue: &Arc<Queue>) -> Attempt<bool> {
        let mut frame = Frame::new(self, queue)?;
        frame.forget_attempts();
        frame.held.window.rest();
        frame.expire()?;
        frame.forget_sends()?;
        if frame.is_empty() {
            return Ok((false, done()));
        }
        let none = self.rows.accept(Vec::new());
        let (_, done) = write(self, none, vec![frame], Vec::new(), Urgency::Upkeep, &mut None)?;
        Ok((true, done))
    }
}

impl Frame<'_> {
    /// Takes out messages that are too old.
    fn expire(&mut self) -> Result<()> {
        let (from, end) = keys::bodies(self.held.number, &self.held.oldest);
        for (key, row) in self.scan_cut(&from, &end, REMOVED_MAX, HEAD_BYTES)? {
            let place = keys::place_of(&key).ok_or_else(|| corrupt("a message"))?;
            if !self.is_old(&place) {
                return Ok(());
            }
            let message = self.unread(place, Head::decode(&row)?)?;
            self.take_out(&message)?;
            // What comes behind it in its group can be received.
            self.wakes += usize::from(self.fifo());
        }
        Ok(())
    }

    fn unread(&self, place: Place, head: Head) -> Result<Message> {
        let row = self.get(&keys::state(self.held.number, &place))?;
        row.map_or_else(|| Ok(Message::new(place, head)), |row| Message::standing(place, &row))
    }

    /// Forgets sends whose duplicates are no longer recognised.
    fn forget_sends(&mut self) -> Result<()> {
        if !self.fifo() {
            return Ok(());
        }
        let from: Bytes = keys::recent(self.held.number, 0).into();
        let end: Bytes = keys::recent(self.held.number, window(self.now).saturating_sub(1)).into();
        for (key, _) in self.scan(&from, &end, REMOVED_MAX)? {
            self.remove(key);
        }
        Ok(())
    }
}
