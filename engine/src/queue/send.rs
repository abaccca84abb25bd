//! Sending: messages get their places, and duplicates are recognised.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_model::limits::DEDUPLICATION_WINDOW;
use anabranch_model::queue::{DeduplicationScope, NewMessage, QueueName, Sent, check_send};
use anabranch_model::{Error, Result};

use super::frame::{Frame, settled, write};
use super::held::Queue;
use super::keys::{self, Place};
use super::options::millis;
use super::stored::{Body, corrupt};
use crate::core::Core;
use crate::journal::Urgency;

/// What small rows of a message take in memory, about.
pub const SMALL_ROWS_BYTES: usize = 512;

/// What becomes of one message of a send.
enum Slot {
    Refused(Error),
    /// It is a duplicate of this one.
    Known(Place),
    /// It gets the place with this index in the frame.
    New(u16),
}

impl Core {
    /// Sends messages. See [`QueueStore::send`](anabranch_model::QueueStore::send).
    pub async fn send_messages(
        &self,
        name: &QueueName,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Result<Sent>>> {
        let queue = self.queues.get(name)?;
        check_send(&messages)?;
        let bytes = messages.iter().map(|message| message.size() + SMALL_ROWS_BYTES).sum();
        let mut permit = Some(self.admit_rows(bytes).await?);
        let (slots, sent_at, position) = self
            .submit(|| {
                let mut frame = Frame::new(self, &queue)?;
                let slots = frame.send(&messages)?;
                let now = frame.now;
                if frame.is_empty() {
                    return Ok(((slots, now, 0), settled(self, frame, &mut permit)?));
                }
                let (none, normal) = (self.rows.accept(Vec::new()), Urgency::Normal);
                let (position, done) = write(self, none, vec![frame], Vec::new(), normal, &mut permit)?;
                Ok(((slots, now, position), done))
            })
            .await?;
        let answer = |slot| match slot {
            Slot::Refused(error) => Err(error),
            Slot::Known(place) => sent(&queue, place),
            Slot::New(index) => sent(&queue, Place { sent_at, position, index }),
        };
        Ok(slots.into_iter().map(answer).collect())
    }
}

fn sent(queue: &Arc<Queue>, place: Place) -> Result<Sent> {
    Ok(Sent { id: place.id()?, sequence: queue.name.is_fifo().then(|| place.sequence()) })
}

impl Frame<'_> {
    fn send(&mut self, messages: &[NewMessage]) -> Result<Vec<Slot>> {
        let mut slots = Vec::with_capacity(messages.len());
        // Duplicates within one send: the first has no place to look up yet.
        let mut own = HashMap::new();
        for message in messages {
            if let Err(error) = message.check(&self.held.options) {
                slots.push(Slot::Refused(error));
                continue;
            }
            let delay = message.delay.unwrap_or(self.held.options.delay);
            let deduplication = self.fifo().then(|| message.deduplication_id());
            if let Some(id) = &deduplication {
                let by_group = self.held.options.deduplication_scope == DeduplicationScope::Group;
                let scope = message.group.as_deref().filter(|_| by_group).unwrap_or("");
                if let Some(index) = own.get(&(scope, id.clone())) {
                    slots.push(Slot::New(*index));
                    continue;
                }
                if let Some(place) = self.recent(scope, id)? {
                    slots.push(Slot::Known(place));
                    continue;
                }
                let prefix = keys::recent_prefix(self.held.number, window(self.now), scope, id);
                own.insert((scope, id.clone()), self.added);
                self.put_placed(prefix, self.added, self.now.to_le_bytes().to_vec());
            }
            let due = self.now.saturating_add(millis(delay));
            let body = Body { due, ..Body::of(message.clone(), deduplication) };
            slots.push(Slot::New(self.add(&body, self.now)?));
            self.wakes += 1;
        }
        Ok(slots)
    }

    /// The message that was sent lately with this deduplication id.
    fn recent(&self, scope: &str, id: &str) -> Result<Option<Place>> {
        let last = window(self.now);
        for window in last.saturating_sub(1)..=last {
            let prefix = keys::recent_prefix(self.held.number, window, scope, id);
            let end = keys::behind(&prefix);
            let Some((key, row)) = self.scan(&prefix.into(), &end, 1)?.pop() else { continue };
            let parts = keys::placed(&key).zip(row.as_ref().try_into().ok().map(u64::from_le_bytes));
            let ((position, index), sent_at) = parts.ok_or_else(|| corrupt("a recent send"))?;
            if self.now.saturating_sub(sent_at) < millis(DEDUPLICATION_WINDOW) {
                return Ok(Some(Place { sent_at, position, index }));
            }
        }
        Ok(None)
    }
}

/// In which window of time something was sent. A duplicate is in the window of the first, or in the next.
pub fn window(now: u64) -> u32 {
    u32::try_from(now / millis(DEDUPLICATION_WINDOW)).unwrap_or(u32::MAX)
}
