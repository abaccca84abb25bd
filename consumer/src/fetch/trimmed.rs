//! Notices that retention has removed records before they were read. Sources pass over what is gone and say nothing, so it is
//! looked where that may have been: at the first read from a checkpoint, where records are nearly as old as any are kept, after
//! a long time without a read, and where there was nothing although the place moved on.

use std::time::Duration;

use anabranch_model::limits::RETENTION_MIN;
use anabranch_model::{Batch, Next, Position, SequenceNumber};

use super::Fetcher;
use crate::lease::Checkpoint;
use crate::metrics;

/// Records that are younger are far from being removed, and so are those behind a read that is no longer ago.
const AGE_MIN: Duration = Duration::from_secs(RETENTION_MIN.as_secs() / 2);
/// How long the source may take to say what it has removed.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// How far a shard is read.
pub(super) struct Reached {
    /// The checkpoint with which the next read begins, before the first one.
    begins: Option<Checkpoint>,
    /// Everything up to here is read.
    sequence: Option<SequenceNumber>,
    /// The last batch began with an old record.
    was_old: bool,
    /// When the last read was, on the stopwatch.
    at: Duration,
}

impl Reached {
    /// Nothing is read yet, and what the checkpoint covers need not be.
    pub(super) fn by(from: Checkpoint, now: Duration) -> Self {
        let sequence = match from {
            Checkpoint::At { sequence, .. } => Some(sequence),
            _ => None,
        };
        Reached { begins: Some(from), sequence, was_old: false, at: now }
    }

    /// Looks whether something was removed behind the place where a read began, and says what.
    pub(super) async fn notice(&mut self, fetcher: &Fetcher, from: Position, batch: &Batch) {
        let clock = &fetcher.settings.clock;
        let (begins, first) = (self.begins.take(), batch.records.first());
        let read = self.sequence.max(read_before(from));
        let is_old = first.is_some_and(|record| clock.now().since(record.arrival) >= AGE_MIN);
        let was_long_ago = clock.elapsed().saturating_sub(self.at) >= AGE_MIN;
        let has_moved = match (first, &batch.next) {
            (Some(_), _) => false,
            (None, Next::At(next)) => read_before(*next) > read,
            (None, Next::Ended(_)) => true,
        };
        let is_suspicious = begins.is_some() || is_old || self.was_old || was_long_ago || has_moved;
        (self.sequence, self.was_old, self.at) = (read, is_old, clock.elapsed());
        let Some(read) = read.filter(|_| is_suspicious) else { return };
        let next = first.map(|record| record.sequence);
        let last = match fetcher.removed_last().await {
            Some(last) => Some(last),
            // The source does not tell. An old record that is not the one of the checkpoint stands at the beginning of the shard.
            None if is_old && begins.is_some_and(is_record) => next.and_then(SequenceNumber::previous),
            None => None,
        };
        let Some(last) = last.filter(|last| *last > read && next.is_none_or(|next| *last < next)) else {
            return;
        };
        // Said once, even if nothing comes for a long time.
        self.sequence = Some(last);
        metrics::trimmed(&fetcher.shard);
        let (stream, shard) = (&fetcher.shard.stream, &fetcher.shard.shard);
        tracing::warn!(%stream, %shard, read_to = %read, lost_to = %last, next = next.map(tracing::field::display),
            "records were removed by retention before they were read");
    }
}

impl Fetcher {
    async fn removed_last(&self) -> Option<SequenceNumber> {
        let asked = self.source.trimmed(&self.shard.stream, &self.shard.shard);
        tokio::time::timeout(ANSWER_MAX, asked).await.ok()?.ok()?
    }
}

/// The number up to which everything was read when reading goes on here.
fn read_before(position: Position) -> Option<SequenceNumber> {
    match position {
        Position::After(sequence) => Some(sequence),
        Position::At(sequence) => sequence.previous(),
        Position::TrimHorizon | Position::Latest | Position::AtTimestamp(_) => None,
    }
}

/// Whether a checkpoint names a record that was processed, and not merely a place.
fn is_record(checkpoint: Checkpoint) -> bool {
    matches!(checkpoint, Checkpoint::At { sequence, .. } if checkpoint != Checkpoint::behind(sequence))
}
