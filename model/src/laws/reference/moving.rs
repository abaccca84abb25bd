//! Moves of [`SimpleQueues`](super::SimpleQueues): they go on whenever someone looks.

use super::queue::Held;
use super::queues::SimpleQueuesState;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::queue::{MessageId, MoveStatus, MoveSummary};

impl SimpleQueuesState {
    /// Brings every move that runs to where it should be by now.
    pub(super) fn go_on_moving(&mut self, now: Timestamp) {
        for index in 0..self.moves.len() {
            let mut moving = self.moves[index].clone();
            while moving.status == MoveStatus::Running {
                let due = moving.messages_per_second.map_or(u64::MAX, |rate| {
                    (now.since(moving.started_at).as_millis() as u64).saturating_mul(rate.into()) / 1_000
                });
                if moving.moved >= moving.to_move {
                    moving.status = MoveStatus::Completed;
                } else if moving.moved >= due {
                    break;
                } else {
                    match self.move_one(&moving, now) {
                        Ok(true) => moving.moved += 1,
                        Ok(false) => moving.status = MoveStatus::Completed,
                        Err(error) => moving.status = MoveStatus::Failed(error.to_string()),
                    }
                }
            }
            self.moves[index] = moving;
        }
    }

    /// Moves the next message, if there is one.
    fn move_one(&mut self, moving: &MoveSummary, now: Timestamp) -> Result<bool> {
        let from = self.queue(&moving.from)?;
        let Some(place) = from.available(now).first().copied() else { return Ok(false) };
        let held = from.messages[&place].clone();
        let target = moving.to.clone().or(held.source).ok_or_else(|| {
            Error::Invalid(format!("message `{}` was sent to `{}` itself", held.id, moving.from))
        })?;
        let number = self.fresh_number();
        let id = MessageId::new(&format!("message-{number}"))?;
        let to = self.queue_mut(&target)?;
        let due = now.plus(to.options.delay);
        let moved = Held { due, ..Held::new(id, held.message, held.deduplication, now) };
        to.messages.insert(number, moved);
        self.queue_mut(&moving.from)?.messages.remove(&place);
        Ok(true)
    }
}
