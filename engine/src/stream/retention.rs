//! Retention: records older than their stream keeps them are trimmed, and closed shards without records go.
//!
//! The decision is made once, with the clock of that moment, and journalled: replaying it needs no clock, and a clock
//! that jumps back brings nothing back.

use std::sync::Arc;

use anabranch_model::Result;

use super::catalogue::{Effect, Stream};
use super::operation::{Operation, Trim};
use super::records::origin_of;
use super::shard::Shard;
use crate::core::Core;
use crate::journal::Urgency;
use crate::journal::sequencer::Done;

/// Bytes of one trim in a frame, generously.
const TRIM_BYTES: u64 = 32;
/// Shards that one operation trims at most.
const TRIMS_MAX: u64 = 1_000;

impl Core {
    /// Trims what is due. Returns who tells when it is durable, or `None` if nothing was due.
    pub fn trim(&self) -> Result<Option<Done>> {
        let now = self.now_ms();
        let mut trims = Vec::new();
        for (stream, shard) in self.catalogue.all_shards() {
            if let Some(trim) = self.trim_due(&stream, &shard, now)? {
                trims.push(trim);
            }
            if trims.len() as u64 == TRIMS_MAX.min(self.sequencer.frame_bytes_max() / TRIM_BYTES - 4) {
                break;
            }
        }
        if trims.is_empty() {
            return Ok(None);
        }
        let resolved = self.catalogue.resolve(trims.clone());
        match self.record(&Operation::Trim(trims), Urgency::Upkeep, |_| ((), Effect::Trimmed(resolved))) {
            Ok(((), done)) => Ok(Some(done)),
            // Without a turn it stays due; the next upkeep tries again.
            Err(_) => Ok(None),
        }
    }

    fn trim_due(&self, stream: &Arc<Stream>, shard: &Arc<Shard>, now: u64) -> Result<Option<Trim>> {
        let cutoff = now.saturating_sub(stream.visible.read().retention_ms);
        let (horizon, tail) = {
            let log = shard.log();
            let expired =
                log.closed.as_ref().is_some_and(|closed| closed.time.max(log.last_arrival) < cutoff);
            if expired {
                return Ok(Some(Trim { shard: shard.key, horizon: origin_of(log.tail) + 1, gone: true }));
            }
            (log.horizon, log.tail)
        };
        if self.oldest_arrival(shard, horizon)?.is_none_or(|oldest| oldest >= cutoff) {
            return Ok(None);
        }
        let first_kept = self.locate_time(shard, cutoff)?;
        let horizon_now = if first_kept >= tail { origin_of(tail) + 1 } else { origin_of(first_kept) };
        Ok((horizon_now > horizon).then_some(Trim { shard: shard.key, horizon: horizon_now, gone: false }))
    }

    fn oldest_arrival(&self, shard: &Shard, horizon: u64) -> Result<Option<u64>> {
        let first = self.locate(shard, super::records::sequence(horizon, 0), |_| true)?;
        Ok(first.first().map(|entry| entry.arrival))
    }
}
