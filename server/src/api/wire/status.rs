//! Numbers about a server.

use serde::{Deserialize, Serialize};

/// How a server and its engine are doing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatusReply {
    /// The version of the server.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// How long it has been answering.
    pub uptime_seconds: u64,
    /// The numbers of its engine.
    pub engine: EngineBody,
}

/// How the engine is doing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EngineBody {
    /// Which opening of the directory this is.
    pub epoch: u32,
    /// Whether the process before this one shut the directory down.
    pub opened_clean: bool,
    /// Why nothing can be written, if so.
    pub stopped: Option<String>,
    /// Whether the disk had no room.
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
    /// How far the stored state goes.
    pub covered_position: u64,
    /// Files of the journal in use.
    pub segments: usize,
    /// Files that wait to be used again.
    pub segments_dead: usize,
    /// Size of each file.
    pub segment_bytes: u64,
    /// Bytes of frames that a shard refers to.
    pub live_bytes: u64,
    /// The oldest file in use.
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

impl From<anabranch_engine::Status> for EngineBody {
    fn from(status: anabranch_engine::Status) -> Self {
        EngineBody {
            epoch: status.epoch,
            opened_clean: status.opened_clean,
            stopped: status.stopped,
            disk_full: status.disk_full,
            streams: status.streams,
            shards: status.shards,
            followers: status.followers,
            buckets: status.buckets,
            body_files_doomed: status.body_files_doomed,
            journal_position: status.journal_position,
            covered_position: status.covered_position,
            segments: status.segments,
            segments_dead: status.segments_dead,
            segment_bytes: status.segment_bytes,
            live_bytes: status.live_bytes,
            oldest_segment: status.oldest_segment,
            oldest_segment_live_bytes: status.oldest_segment_live_bytes,
            frames_waiting: status.frames_waiting,
            budget_bytes: status.budget_bytes,
            budget_used_bytes: status.budget_used_bytes,
        }
    }
}
