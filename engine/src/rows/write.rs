//! Writing rows: the one way from accepted changes to a frame of the journal.

use anabranch_model::{Error, Result};
use tokio::sync::OwnedSemaphorePermit;

use super::change::draft;
use super::{Accepting, Change};
use crate::core::{Attempt, Core};
use crate::journal::Urgency;
use crate::stream::catalogue::Effect;

/// What happens when a frame of rows is durable.
pub struct Written {
    /// Its changes.
    pub changes: Vec<Change>,
    /// Accepted rows that are settled with it.
    pub accepted: Vec<bytes::Bytes>,
    /// What follows from it, called in the order of the journal right after the rows are visible. It does not wait.
    pub then: Option<Then>,
}

/// Called with the position of the frame.
pub type Then = Box<dyn FnOnce(u64) + Send>;

impl Core {
    /// Gives changes their place in the journal, as one frame. To be called in an attempt of [`Core::submit`].
    pub fn write_rows(
        &self,
        accepting: Accepting<'_>,
        changes: Vec<Change>,
        urgency: Urgency,
        permit: &mut Option<OwnedSemaphorePermit>,
        then: Option<Then>,
    ) -> Attempt<u64> {
        self.write_rows_noted(accepting, changes, urgency, permit, then, |_, _| {})
    }

    /// The same. `note` learns the place and the changes with their complete keys before anybody else gets a place.
    pub fn write_rows_noted(
        &self,
        accepting: Accepting<'_>,
        mut changes: Vec<Change>,
        urgency: Urgency,
        permit: &mut Option<OwnedSemaphorePermit>,
        then: Option<Then>,
        note: impl FnOnce(u64, &[Change]),
    ) -> Attempt<u64> {
        let draft = draft(&changes);
        if draft.bytes() > self.sequencer.frame_bytes_max() {
            return Err(too_large(draft.bytes()).into());
        }
        let mut turn = self.turn(std::iter::once(draft.bytes()), urgency)?;
        let position = turn.push(draft, |position| {
            changes.iter_mut().for_each(|change| change.key.complete(position));
            let accepted = accepting.accepted(position, &changes);
            note(position, &changes);
            Some(Effect::Rows(Box::new(Written { changes, accepted, then })))
        });
        Ok((position, turn.finish(permit.take())))
    }

    /// Waits for room in memory for a write of about this many bytes.
    pub async fn admit_rows(&self, bytes: usize) -> Result<OwnedSemaphorePermit> {
        self.rows.room(|| self.sequencer.wake_upkeep()).await?;
        Ok(self.budget.write(bytes).await)
    }
}

fn too_large(bytes: u64) -> Error {
    Error::Invalid(format!("a write of {bytes} bytes does not fit into a segment"))
}
