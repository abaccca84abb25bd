//! Dead letters: a message that was received too often goes to another queue, in the frame of the receive that would
//! have given it.

use anabranch_model::Result;

use super::frame::Frame;
use super::place::{Message, id};
use super::stored::Body;

impl Frame<'_> {
    /// Moves a message to the queue for dead letters.
    pub fn bury(&mut self, message: &Message, target: &mut Frame<'_>) -> Result<()> {
        let body = self.body(&message.place)?;
        let fifo = target.fifo();
        let name = id(&body, &message.place)?;
        let letter = Body {
            due: target.now,
            id: Some(body.id.unwrap_or(message.place.to_u128())),
            receives_before: body.receives_before + message.state.standing.receives,
            source: Some(self.queue.name.clone()),
            deduplication: fifo.then(|| name.to_string()),
            ..body
        };
        // In a standard queue the age counts from the send; where an order is kept it begins anew.
        let sent_at = if fifo { target.now } else { message.place.sent_at };
        target.add(&letter, sent_at)?;
        target.wakes += 1;
        self.take_out(message)
    }
}
