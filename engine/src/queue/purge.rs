//! Purging and deleting a queue: its messages go as a whole, and checkpoints sweep up their rows.

use std::sync::Arc;

use anabranch_model::Result;
use anabranch_model::queue::QueueName;

use super::catalogue::QUEUE_BYTES;
use super::frame::Frame;
use super::held::Queue;
use super::keys;
use super::options::QueueRow;
use crate::admin as documents;
use crate::core::Core;
use crate::journal::Urgency;
use crate::rows::accept::next_number_key;
use crate::rows::{Change, bury};

impl Core {
    /// Removes a queue and its messages. Whoever waits for messages hears that it is gone.
    pub async fn delete_queue(&self, name: &QueueName) -> Result<()> {
        let mut permit = Some(self.budget.write(QUEUE_BYTES).await);
        self.submit(|| {
            let _changing = self.queues.changing.lock();
            let queue = self.queues.get(name)?;
            let mut held = queue.lock();
            let documents = documents::of_queue(queue.born);
            let mut changes =
                vec![Change::remove(keys::queue(name)), bury(&keys::owner(queue.born)), bury(&documents)];
            if held.number != queue.born {
                changes.push(bury(&keys::owner(held.number)));
            }
            let gone = queue.clone();
            let then = Box::new(move |_| gone.changed.notify_waiters());
            let none = self.rows.accept(Vec::new());
            let written = self.write_rows(none, changes, Urgency::Upkeep, &mut permit, Some(then))?;
            held.deleted = true;
            self.queues.forget(name);
            Ok(written)
        })
        .await
        .map(drop)
    }

    /// Removes every message of a queue, and forgets what was sent lately: what comes later lies under another number.
    pub async fn purge_queue(&self, name: &QueueName) -> Result<()> {
        let mut permit = Some(self.budget.write(QUEUE_BYTES).await);
        self.submit(|| {
            let _changing = self.queues.changing.lock();
            let queue: Arc<Queue> = self.queues.get(name)?;
            let mut frame = Frame::new(self, &queue)?;
            let accepting = self.rows.accept(vec![next_number_key()]);
            let (number, counted) = accepting.next_number()?;
            let row = QueueRow { number, ..queue.row(&frame.held) };
            let changes = vec![
                counted,
                Change::put(keys::queue(name), row.encode()),
                bury(&keys::messages(frame.held.number)),
                bury(&keys::recents(frame.held.number)),
            ];
            let settled = queue.clone();
            let then = Box::new(move |position| settled.settle(position));
            let (position, done) =
                self.write_rows(accepting, changes, Urgency::Upkeep, &mut permit, Some(then))?;
            frame.held.empty(number);
            // Whoever finds a message gone waits until that is durable.
            frame.held.remember(position, std::iter::empty());
            Ok((position, done))
        })
        .await
        .map(drop)
    }
}
