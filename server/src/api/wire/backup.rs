//! Backups as they travel: a request, and lines that say how far it is.

use anabranch_engine::{Contents, Progress};
use anabranch_model::Error;
use serde::{Deserialize, Serialize};

use crate::api::error::ErrorBody;

/// Asks for a backup.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// An absolute path on the machine of the server.
    pub target: String,
}

/// One line of a backup. The last one has `done` or `error`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BackupLine {
    /// Bytes that are at their place.
    pub copied_bytes: u64,
    /// All bytes.
    pub total_bytes: u64,
    /// What the backup holds, when it is whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<ContentsBody>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentsBody {
    /// Bytes of all its files.
    pub bytes: u64,
    /// Streams.
    pub streams: u64,
    /// Queues.
    pub queues: u64,
    /// Tables.
    pub tables: u64,
    /// Buckets.
    pub buckets: u64,
    /// Bodies of blobs that the source has lost.
    pub lost_bodies: u64,
}

impl BackupLine {
    /// The last line.
    pub fn last(outcome: Result<Contents, Error>) -> Self {
        match outcome {
            Ok(contents) => BackupLine { done: Some(contents.into()), ..BackupLine::default() },
            Err(error) => BackupLine { error: Some(error.into()), ..BackupLine::default() },
        }
    }
}

impl From<Progress> for BackupLine {
    fn from(progress: Progress) -> Self {
        let Progress { copied_bytes, total_bytes } = progress;
        BackupLine { copied_bytes, total_bytes, ..BackupLine::default() }
    }
}

impl From<Contents> for ContentsBody {
    fn from(contents: Contents) -> Self {
        let Contents { bytes, streams, queues, tables, buckets, lost_bodies } = contents;
        ContentsBody { bytes, streams, queues, tables, buckets, lost_bodies }
    }
}
