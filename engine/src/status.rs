//! Plain numbers about a running engine, for people and for metrics.

use crate::core::Core;
use crate::upkeep::Upkeep;

/// How an engine is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Which opening of the directory this is.
    pub epoch: u32,
    /// Whether the process before this one shut the directory down.
    pub opened_clean: bool,
    /// Why nothing can be written, if so.
    pub stopped: Option<String>,
    /// Whether the disk had no room for the next segment.
    pub disk_full: bool,
    /// Streams.
    pub streams: usize,
    /// Shards, open and closed.
    pub shards: usize,
    /// Who follows a shard now.
    pub followers: usize,
    /// Buckets.
    pub buckets: usize,
    /// Files of bodies that no blob owns any more and that are still to be removed.
    pub body_files_doomed: usize,
    /// The end of the journal.
    pub journal_position: u64,
    /// How far the stored state goes; an opening after a crash walks the rest.
    pub covered_position: u64,
    /// Files of the journal in use.
    pub segments: usize,
    /// Files that wait to be used again.
    pub segments_dead: usize,
    /// Size of each.
    pub segment_bytes: u64,
    /// Bytes that a shard or a row refers to.
    pub live_bytes: u64,
    /// The oldest segment in use.
    pub oldest_segment: Option<u64>,
    /// The live bytes that keep it.
    pub oldest_segment_live_bytes: u64,
    /// Frames that wait for the disk.
    pub frames_waiting: usize,
    /// The byte budget.
    pub budget_bytes: u64,
    /// How much of it is in use.
    pub budget_used_bytes: u64,
}

impl Status {
    pub(crate) fn of(core: &Core, upkeep: &Upkeep, opened_clean: bool) -> Status {
        let segments = core.segments.all();
        let shards = core.catalogue.all_shards();
        Status {
            epoch: core.epoch,
            opened_clean,
            stopped: core.read_only.clone().or_else(|| core.sequencer.stopped()),
            disk_full: core.sequencer.is_full(),
            streams: core.catalogue.streams(None, usize::MAX).0.len(),
            shards: shards.len(),
            followers: shards.iter().map(|(_, shard)| shard.log().followers.len()).sum(),
            buckets: core.blobs.bucket_count(),
            body_files_doomed: core.blobs.files.doomed(),
            journal_position: core.published.lock().position,
            covered_position: upkeep.covered(),
            segments: segments.len(),
            segments_dead: core.segments.dead_count(),
            segment_bytes: core.segments.bytes,
            live_bytes: segments.iter().map(|segment| segment.live()).sum(),
            oldest_segment: segments.first().map(|segment| segment.number),
            oldest_segment_live_bytes: segments.first().map_or(0, |segment| segment.live()),
            frames_waiting: core.sequencer.waiting(),
            budget_bytes: core.budget.total(),
            budget_used_bytes: core.budget.used(),
        }
    }
}
