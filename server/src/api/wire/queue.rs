//! Queues as they are asked for and as listings show them.

use std::time::Duration;

use anabranch_model::limits::{MESSAGE_BATCH_MAX, REDRIVE_SOURCES_MAX};
use anabranch_model::queue::{
    DeduplicationScope, MoveId, MoveStatus, MoveSummary, QueueCounts, QueueName, QueueOptions, QueueSummary,
    Receipt, RedriveAllow, RedrivePolicy, ThroughputLimit,
};
use anabranch_model::{Error, Result, Timestamp};
use serde::{Deserialize, Serialize};

use super::super::text::Text;
use super::bounded::bounded;

/// Asks for one queue.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueRequest {
    /// Its name.
    pub queue: Text<QueueName>,
}

/// Makes a queue, or changes how it behaves.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueOptionsRequest {
    /// Its name.
    pub queue: Text<QueueName>,
    /// All options.
    pub options: QueueOptionsBody,
}

/// Asks for a page of queues.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueuesRequest {
    /// The last queue of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Text<QueueName>>,
    /// Most entries.
    pub limit: usize,
    /// What names begin with.
    #[serde(default)]
    pub prefix: String,
}

/// Deletes messages.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteMessagesRequest {
    /// Whose messages.
    pub queue: Text<QueueName>,
    /// What came with them.
    #[serde(deserialize_with = "bounded::<_, _, MESSAGE_BATCH_MAX>")]
    pub receipts: Vec<Text<Receipt>>,
}

/// Hides messages for longer or shorter.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VisibilityRequest {
    /// Whose messages.
    pub queue: Text<QueueName>,
    /// One change a message.
    #[serde(deserialize_with = "bounded::<_, _, MESSAGE_BATCH_MAX>")]
    pub changes: Vec<(Text<Receipt>, Duration)>,
}

/// Starts to move dead letters.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartMoveRequest {
    /// The queue that messages are taken from.
    pub from: Text<QueueName>,
    /// The queue that they go to; without it each goes back to where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Text<QueueName>>,
    /// Most messages in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages_per_second: Option<u32>,
}

/// Asks for one move, or names one that was started.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveBody {
    /// What the store calls it.
    pub id: Text<MoveId>,
}

/// How many messages were moved.
#[derive(Debug, Serialize, Deserialize)]
pub struct MovedReply {
    /// Messages.
    pub moved: u64,
}

/// How a queue behaves.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are those of the model's options")]
pub struct QueueOptionsBody {
    pub fifo: bool,
    pub delay: Duration,
    pub visibility: Duration,
    pub retention: Duration,
    pub message_bytes_max: usize,
    pub receive_wait: Duration,
    pub redrive: Option<RedriveBody>,
    pub redrive_allow: RedriveAllowBody,
    pub deduplicates_content: bool,
    pub deduplication_scope: ScopeBody,
    pub throughput_limit: ScopeBody,
}

/// When a message becomes a dead letter, and where it goes then.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedriveBody {
    /// The queue for dead letters.
    pub dead_letters: Text<QueueName>,
    /// How often a message is received before it is one.
    pub receives_max: u32,
}

/// Whose dead letters a queue takes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedriveAllowBody {
    /// Every queue's.
    All,
    /// Nobody's.
    None,
    /// Those of these queues. One more than allowed is let through, for the store to refuse.
    #[serde(deserialize_with = "bounded::<_, _, { REDRIVE_SOURCES_MAX + 1 }>")]
    Queues(Vec<Text<QueueName>>),
}

/// What something is counted or looked for in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeBody {
    /// The queue.
    Queue,
    /// Each group.
    Group,
}

impl From<QueueOptions> for QueueOptionsBody {
    fn from(options: QueueOptions) -> Self {
        QueueOptionsBody {
            fifo: options.fifo,
            delay: options.delay,
            visibility: options.visibility,
            retention: options.retention,
            message_bytes_max: options.message_bytes_max,
            receive_wait: options.receive_wait,
            redrive: options.redrive.map(|policy| RedriveBody {
                dead_letters: Text(policy.dead_letters),
                receives_max: policy.receives_max,
            }),
            redrive_allow: match options.redrive_allow {
                RedriveAllow::All => RedriveAllowBody::All,
                RedriveAllow::None => RedriveAllowBody::None,
                RedriveAllow::Queues(queues) => {
                    RedriveAllowBody::Queues(queues.into_iter().map(Text).collect())
                }
            },
            deduplicates_content: options.deduplicates_content,
            deduplication_scope: match options.deduplication_scope {
                DeduplicationScope::Queue => ScopeBody::Queue,
                DeduplicationScope::Group => ScopeBody::Group,
            },
            throughput_limit: match options.throughput_limit {
                ThroughputLimit::Queue => ScopeBody::Queue,
                ThroughputLimit::Group => ScopeBody::Group,
            },
        }
    }
}

impl From<QueueOptionsBody> for QueueOptions {
    fn from(body: QueueOptionsBody) -> Self {
        QueueOptions {
            fifo: body.fifo,
            delay: body.delay,
            visibility: body.visibility,
            retention: body.retention,
            message_bytes_max: body.message_bytes_max,
            receive_wait: body.receive_wait,
            redrive: body.redrive.map(|policy| RedrivePolicy {
                dead_letters: policy.dead_letters.0,
                receives_max: policy.receives_max,
            }),
            redrive_allow: match body.redrive_allow {
                RedriveAllowBody::All => RedriveAllow::All,
                RedriveAllowBody::None => RedriveAllow::None,
                RedriveAllowBody::Queues(queues) => {
                    RedriveAllow::Queues(queues.into_iter().map(|queue| queue.0).collect())
                }
            },
            deduplicates_content: body.deduplicates_content,
            deduplication_scope: match body.deduplication_scope {
                ScopeBody::Queue => DeduplicationScope::Queue,
                ScopeBody::Group => DeduplicationScope::Group,
            },
            throughput_limit: match body.throughput_limit {
                ScopeBody::Queue => ThroughputLimit::Queue,
                ScopeBody::Group => ThroughputLimit::Group,
            },
        }
    }
}

/// A queue as a listing shows it.
#[derive(Debug, Serialize, Deserialize)]
pub struct QueueBody {
    /// Its name.
    pub name: Text<QueueName>,
    /// How it behaves.
    pub options: QueueOptionsBody,
    /// Messages that can be received.
    pub visible: u64,
    /// Messages that were received and are hidden.
    pub in_flight: u64,
    /// Messages that cannot be received yet.
    pub delayed: u64,
    /// How long ago the oldest message was sent.
    pub oldest_age: Option<Duration>,
    /// When it was made, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// When its options were changed the last time.
    pub changed_at_ms: u64,
}

impl From<QueueSummary> for QueueBody {
    fn from(summary: QueueSummary) -> Self {
        QueueBody {
            name: Text(summary.name),
            options: summary.options.into(),
            visible: summary.counts.visible,
            in_flight: summary.counts.in_flight,
            delayed: summary.counts.delayed,
            oldest_age: summary.oldest_age,
            created_at_ms: summary.created_at.as_millis(),
            changed_at_ms: summary.changed_at.as_millis(),
        }
    }
}

impl TryFrom<QueueBody> for QueueSummary {
    type Error = Error;

    fn try_from(body: QueueBody) -> Result<Self> {
        Ok(QueueSummary {
            name: body.name.0,
            options: body.options.into(),
            counts: QueueCounts { visible: body.visible, in_flight: body.in_flight, delayed: body.delayed },
            oldest_age: body.oldest_age,
            created_at: Timestamp::from_millis(body.created_at_ms),
            changed_at: Timestamp::from_millis(body.changed_at_ms),
        })
    }
}

/// The moves out of a queue, the youngest first.
#[derive(Debug, Serialize, Deserialize)]
pub struct MovesReply {
    /// The moves.
    pub moves: Vec<MoveSummaryBody>,
}

/// A move as a listing shows it.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of the model's summary")]
pub struct MoveSummaryBody {
    pub id: Text<MoveId>,
    pub from: Text<QueueName>,
    pub to: Option<Text<QueueName>>,
    pub messages_per_second: Option<u32>,
    pub status: MoveStatusBody,
    pub moved: u64,
    pub to_move: u64,
    pub started_at_ms: u64,
}

/// How far a move is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveStatusBody {
    /// Messages are being moved.
    Running,
    /// Every message that could be moved was.
    Completed,
    /// It was told to stop.
    Cancelled,
    /// It could not go on, for this reason.
    Failed(String),
}

impl From<MoveSummary> for MoveSummaryBody {
    fn from(summary: MoveSummary) -> Self {
        MoveSummaryBody {
            id: Text(summary.id),
            from: Text(summary.from),
            to: summary.to.map(Text),
            messages_per_second: summary.messages_per_second,
            status: match summary.status {
                MoveStatus::Running => MoveStatusBody::Running,
                MoveStatus::Completed => MoveStatusBody::Completed,
                MoveStatus::Cancelled => MoveStatusBody::Cancelled,
                MoveStatus::Failed(reason) => MoveStatusBody::Failed(reason),
            },
            moved: summary.moved,
            to_move: summary.to_move,
            started_at_ms: summary.started_at.as_millis(),
        }
    }
}

impl From<MoveSummaryBody> for MoveSummary {
    fn from(body: MoveSummaryBody) -> Self {
        MoveSummary {
            id: body.id.0,
            from: body.from.0,
            to: body.to.map(|queue| queue.0),
            messages_per_second: body.messages_per_second,
            status: match body.status {
                MoveStatusBody::Running => MoveStatus::Running,
                MoveStatusBody::Completed => MoveStatus::Completed,
                MoveStatusBody::Cancelled => MoveStatus::Cancelled,
                MoveStatusBody::Failed(reason) => MoveStatus::Failed(reason),
            },
            moved: body.moved,
            to_move: body.to_move,
            started_at: Timestamp::from_millis(body.started_at_ms),
        }
    }
}
