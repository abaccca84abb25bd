//! Where the end of a shard is.
//!
//! The model wants a position that stays: the one behind the newest record. Kinesis knows only "from now on", for as long
//! as an iterator lives. So the newest record is looked for, in a window that reaches back from now and is widened while
//! it is empty. A busy shard shows a record in the first window, and the position is behind it. A shard with nothing in
//! the widest window has its position at the beginning of that window: whatever comes later lies in it.
//!
//! Nothing depends on the clock of this machine: if it is ahead, the first windows are empty or refused, and a wider one
//! decides; if it is behind, the windows are merely wider. A clock that is further off than the widest window makes
//! every signature invalid.

use std::time::Duration;

use anabranch_model::{Batch, Next, Position, ReadLimit, Result};

use super::Streams;
use super::read::Place;

/// How far the windows reach back.
const WINDOWS: [Duration; 4] =
    [Duration::from_secs(2), Duration::from_secs(15), Duration::from_secs(90), Duration::from_secs(10 * 60)];
/// Batches that one window may have: a shard gives ten mebibytes at a time and takes one a second.
const BATCHES_MAX: usize = 1_000;

impl Streams {
    /// An empty batch that goes on behind the newest record.
    pub(super) async fn read_latest(&self, place: &Place<'_>) -> Result<Batch> {
        let now = self.caller.clock().now();
        let mut start = Position::TrimHorizon;
        for window in WINDOWS {
            start = Position::AtTimestamp(now.minus(window));
            let Some(next) = self.end_from(place, start).await? else { continue };
            // A position that has not moved is one that nothing lies behind.
            if next != Next::At(start) {
                return Ok(at_the_end(next));
            }
        }
        Ok(at_the_end(Next::At(start)))
    }

    /// Where reading from `start` has caught up. None if that lies in the future.
    async fn end_from(&self, place: &Place<'_>, start: Position) -> Result<Option<Next>> {
        let mut position = start;
        for _ in 0..BATCHES_MAX {
            let Some(batch) = self.read_from(place, position, ReadLimit::default()).await? else {
                return Ok(None);
            };
            match batch.next {
                Next::At(next) if batch.behind.is_zero() => return Ok(Some(Next::At(next))),
                Next::At(next) => position = next,
                ended => return Ok(Some(ended)),
            }
        }
        Ok(Some(Next::At(position)))
    }
}

fn at_the_end(next: Next) -> Batch {
    Batch { records: Vec::new(), next, behind: Duration::ZERO }
}
