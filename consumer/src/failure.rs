//! What happens to records that a processor cannot process.
//!
//! ```text
//!   a record failed ───────▶ again by itself, with growing pauses ──▶ dead letter, or halt the shard
//!   a whole call failed ───▶ again as it was, with growing pauses ──▶ its halves, down to the bad record ──▲
//! ```
//!
//! What must hold: no record is passed over. It is processed, or it lies in full where dead letters go, or its shard stands
//! still.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{BlobStore, BucketName, QueueName, QueueStore, StreamName, StreamStore};

/// How often a record is tried, and what comes then.
#[derive(Clone)]
pub struct FailurePolicy {
    /// Deliveries of a record before it is given up; at least one.
    pub attempts: u32,
    /// The longest first pause; each further one may be twice as long.
    pub pause_first: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// What becomes of a record that is given up.
    pub finally: Finally,
}

/// What becomes of a record that cannot be processed.
#[derive(Clone)]
pub enum Finally {
    /// The shard stands still, with its lease held, until it is read anew.
    Halt,
    /// The record goes where dead letters go, and the shard goes on.
    DeadLetter(DeadLetters),
}

/// Where dead letters go.
#[derive(Clone)]
pub enum DeadLetters {
    /// To a queue, one message each.
    Queue(Arc<dyn QueueStore>, QueueName),
    /// To a stream, with the partition key of the record.
    Stream(Arc<dyn StreamStore>, StreamName),
    /// To a bucket, under a key that begins with this text; a letter that is written twice is one blob.
    Blobs(Arc<dyn BlobStore>, BucketName, String),
}

impl Default for FailurePolicy {
    fn default() -> Self {
        FailurePolicy {
            attempts: 5,
            pause_first: Duration::from_millis(200),
            pause_max: Duration::from_secs(30),
            finally: Finally::Halt,
        }
    }
}

impl std::fmt::Debug for FailurePolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let finally = match &self.finally {
            Finally::Halt => "halt".to_owned(),
            Finally::DeadLetter(DeadLetters::Queue(_, queue)) => format!("queue {queue}"),
            Finally::DeadLetter(DeadLetters::Stream(_, stream)) => format!("stream {stream}"),
            Finally::DeadLetter(DeadLetters::Blobs(_, bucket, prefix)) => format!("bucket {bucket}/{prefix}"),
        };
        f.debug_struct("FailurePolicy").field("attempts", &self.attempts).field("finally", &finally).finish()
    }
}
