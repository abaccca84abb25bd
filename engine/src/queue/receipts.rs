//! What receivers do with their receipts: they delete messages, or hide them for another while.

use std::time::Duration;

use anabranch_model::queue::{QueueName, Receipt, check_batch, check_extension};
use anabranch_model::{Error, Result};

use super::frame::{Frame, settled, write};
use super::keys::Place;
use super::options::millis;
use super::place::{Message, timestamp};
use super::send::SMALL_ROWS_BYTES;
use super::stored::Standing;
use crate::core::Core;
use crate::journal::Urgency;

impl Core {
    /// Deletes messages. See [`QueueStore::delete`](anabranch_model::QueueStore::delete). It gives room back, so it
    /// does not wait for any.
    pub async fn delete_messages(&self, name: &QueueName, receipts: Vec<Receipt>) -> Result<Vec<Result<()>>> {
        let queue = self.queues.get(name)?;
        check_batch(receipts.len())?;
        let mut permit = Some(self.budget.write(SMALL_ROWS_BYTES * receipts.len()).await);
        self.submit(|| {
            let mut frame = Frame::new(self, &queue)?;
            let mut results = Vec::with_capacity(receipts.len());
            for receipt in &receipts {
                results.push(sorted(frame.delete(receipt))?);
            }
            if frame.is_empty() {
                return Ok((results, settled(self, frame, &mut permit)?));
            }
            let none = self.rows.accept(Vec::new());
            let (_, done) = write(self, none, vec![frame], Vec::new(), Urgency::Upkeep, &mut permit)?;
            Ok((results, done))
        })
        .await
    }

    /// Hides messages for another while. See
    /// [`QueueStore::change_visibility`](anabranch_model::QueueStore::change_visibility).
    pub async fn change_visibility(
        &self,
        name: &QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> Result<Vec<Result<()>>> {
        let queue = self.queues.get(name)?;
        check_batch(changes.len())?;
        let mut permit = Some(self.admit_rows(SMALL_ROWS_BYTES * changes.len()).await?);
        self.submit(|| {
            let mut frame = Frame::new(self, &queue)?;
            let mut results = Vec::with_capacity(changes.len());
            for (receipt, visibility) in &changes {
                results.push(sorted(frame.hide(receipt, *visibility))?);
            }
            if frame.is_empty() {
                return Ok((results, settled(self, frame, &mut permit)?));
            }
            let none = self.rows.accept(Vec::new());
            let (_, done) = write(self, none, vec![frame], Vec::new(), Urgency::Normal, &mut permit)?;
            Ok((results, done))
        })
        .await
    }
}

/// Tells what is wrong with one entry from what is wrong with the store.
fn sorted(result: Result<()>) -> Result<Result<()>> {
    match result {
        Err(error) if error.next_move() != anabranch_model::NextMove::FixCall => Err(error),
        result => Ok(result),
    }
}

impl Frame<'_> {
    /// The message of a receipt, if it is still there, and the count of receives that the receipt is good for.
    fn received(&self, receipt: &Receipt) -> Result<(Place, u64, Option<Message>)> {
        let parts = receipt.parts().filter(|parts| parts.queue == self.queue.born);
        let place = parts.and_then(|parts| Some((Place::parse(parts.message.as_str())?, parts.receive)));
        let invalid = || Error::ReceiptInvalid(self.queue.name.clone(), receipt.clone());
        let (place, receive) = place.ok_or_else(invalid)?;
        Ok((place, receive, self.find(place)?))
    }

    /// Deletes a message. An old receipt leaves the message to whoever received it since.
    fn delete(&mut self, receipt: &Receipt) -> Result<()> {
        let (place, receive, message) = self.received(receipt)?;
        let Some(message) = message else { return Ok(()) };
        let Standing { due, receives, .. } = message.state.standing;
        let latest = receive == u64::from(receives);
        if self.fifo() && !(latest && due > self.now) {
            return Err(Error::ReceiptExpired(self.id_of(&place)?));
        }
        if latest {
            // What comes behind it in its group can be received.
            self.wakes += usize::from(self.fifo());
            self.take_out(&message)?;
        }
        Ok(())
    }

    fn hide(&mut self, receipt: &Receipt, visibility: Duration) -> Result<()> {
        let (place, receive, message) = self.received(receipt)?;
        let Some(message) = message else { return Err(Error::NotInFlight(place.id()?)) };
        let standing = message.state.standing;
        if receive != u64::from(standing.receives) {
            return Err(Error::ReceiptExpired(self.id_of(&place)?));
        }
        // Where no order is kept, what is visible again and nobody has received since may be hidden once more.
        if self.fifo() && standing.due <= self.now {
            return Err(Error::NotInFlight(self.id_of(&place)?));
        }
        check_extension(timestamp(standing.received_at), timestamp(self.now), visibility)?;
        let due = self.now.saturating_add(millis(visibility));
        self.change(&message, Standing { due, ..standing })?;
        // A receiver that waits for a later moment has to look again.
        self.wakes += 1;
        Ok(())
    }
}
