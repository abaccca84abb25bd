//! How a queue behaves.

use std::time::Duration;

use super::name::QueueName;
use crate::error::{Error, Result};
use crate::limits;

/// When a message becomes a dead letter, and where it goes then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedrivePolicy {
    /// The queue for messages that were received too often. It is of the same kind.
    pub dead_letters: QueueName,
    /// How often a message is received before it is one.
    pub receives_max: u32,
}

/// Whose dead letters a queue takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RedriveAllow {
    /// Every queue's.
    #[default]
    All,
    /// Nobody's.
    None,
    /// Those of these queues.
    Queues(Vec<QueueName>),
}

impl RedriveAllow {
    /// Whether dead letters of `source` are taken.
    pub fn allows(&self, source: &QueueName) -> bool {
        match self {
            RedriveAllow::All => true,
            RedriveAllow::None => false,
            RedriveAllow::Queues(queues) => queues.contains(source),
        }
    }
}

/// Among which messages a duplicate is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeduplicationScope {
    /// All of the queue.
    #[default]
    Queue,
    /// Those of the same group.
    Group,
}

/// What a limit of messages a second is counted for, where there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThroughputLimit {
    /// The queue.
    #[default]
    Queue,
    /// Each group; it goes with [`DeduplicationScope::Group`] only.
    Group,
}

/// How a queue behaves. Only `fifo` stays as it was made; changes of all else hold for calls that come later, and a
/// changed retention for messages that are there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// Whether the queue keeps the order of each group and recognises duplicates. Its name says the same.
    pub fifo: bool,
    /// How long nobody receives a message that has no delay of its own.
    pub delay: Duration,
    /// How long a received message is hidden from others.
    pub visibility: Duration,
    /// How long messages are kept.
    pub retention: Duration,
    /// The largest message that is taken, attributes included.
    pub message_bytes_max: usize,
    /// How long a receive waits that does not say so itself.
    pub receive_wait: Duration,
    /// What happens to messages that are received too often; without it they are received for ever.
    pub redrive: Option<RedrivePolicy>,
    /// Whose dead letters the queue takes.
    pub redrive_allow: RedriveAllow,
    /// Whether messages without a deduplication id are recognised by their body.
    pub deduplicates_content: bool,
    /// Among which messages a duplicate is looked for.
    pub deduplication_scope: DeduplicationScope,
    /// What a limit of messages a second is counted for.
    pub throughput_limit: ThroughputLimit,
}

impl Default for QueueOptions {
    fn default() -> Self {
        QueueOptions {
            fifo: false,
            delay: Duration::ZERO,
            visibility: limits::VISIBILITY_DEFAULT,
            retention: limits::MESSAGE_RETENTION_DEFAULT,
            message_bytes_max: limits::MESSAGE_BYTES_MAX,
            receive_wait: Duration::ZERO,
            redrive: None,
            redrive_allow: RedriveAllow::All,
            deduplicates_content: false,
            deduplication_scope: DeduplicationScope::Queue,
            throughput_limit: ThroughputLimit::Queue,
        }
    }
}

impl QueueOptions {
    /// A queue that keeps an order, otherwise like any other.
    pub fn fifo() -> Self {
        QueueOptions { fifo: true, ..QueueOptions::default() }
    }

    /// Whether a queue of this name may behave like this. Whether the queue for dead letters exists and takes them is
    /// the store's to check.
    pub fn check(&self, name: &QueueName) -> Result<()> {
        if self.fifo != name.is_fifo() {
            return Err(Error::Invalid(format!(
                "queue `{name}` cannot have `fifo` {}: a queue keeps an order if its name ends in `.fifo`, and only then",
                self.fifo
            )));
        }
        check_delay(self.delay)?;
        super::store::check_visibility(self.visibility)?;
        within("retention", self.retention, limits::MESSAGE_RETENTION_MIN, limits::MESSAGE_RETENTION_MAX)?;
        within("wait of a receive", self.receive_wait, Duration::ZERO, limits::RECEIVE_WAIT_MAX)?;
        let bytes = self.message_bytes_max;
        if !(limits::MESSAGE_BYTES_MAX_MIN..=limits::MESSAGE_BYTES_MAX).contains(&bytes) {
            return Err(Error::Invalid(format!(
                "largest message of {bytes} bytes is not allowed: {} to {} are",
                limits::MESSAGE_BYTES_MAX_MIN,
                limits::MESSAGE_BYTES_MAX
            )));
        }
        self.check_redrive(name)?;
        self.check_deduplication()
    }

    fn check_redrive(&self, name: &QueueName) -> Result<()> {
        if let RedriveAllow::Queues(queues) = &self.redrive_allow
            && !(1..=limits::REDRIVE_SOURCES_MAX).contains(&queues.len())
        {
            return Err(Error::Invalid(format!(
                "dead letters of {} queues cannot be allowed: 1 to {} may be named",
                queues.len(),
                limits::REDRIVE_SOURCES_MAX
            )));
        }
        let Some(policy) = &self.redrive else { return Ok(()) };
        let (target, receives) = (&policy.dead_letters, policy.receives_max);
        if !(1..=limits::RECEIVES_MAX).contains(&receives) {
            return Err(Error::Invalid(format!(
                "{receives} receives before a message is a dead letter are not allowed: 1 to {} are",
                limits::RECEIVES_MAX
            )));
        }
        if target.is_fifo() != self.fifo {
            return Err(Error::Invalid(format!(
                "dead letters of `{name}` cannot go to `{target}`: it must be a queue of the same kind"
            )));
        }
        Ok(())
    }

    fn check_deduplication(&self) -> Result<()> {
        let groups = self.deduplication_scope == DeduplicationScope::Group;
        let plain = QueueOptions::default();
        let deduplicates =
            self.deduplicates_content || groups || self.throughput_limit != plain.throughput_limit;
        if !self.fifo && deduplicates {
            return Err(Error::Invalid(
                "deduplication cannot be set: only queues that keep an order recognise duplicates"
                    .to_string(),
            ));
        }
        if self.throughput_limit == ThroughputLimit::Group && !groups {
            return Err(Error::Invalid(
                "a throughput limit for each group needs deduplication in the scope of a group".to_string(),
            ));
        }
        Ok(())
    }
}

pub(super) fn check_delay(delay: Duration) -> Result<()> {
    within("delay", delay, Duration::ZERO, limits::MESSAGE_DELAY_MAX)
}

pub(super) fn within(what: &str, value: Duration, least: Duration, most: Duration) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "{what} of {} seconds is not allowed: it must be {} to {} seconds",
        value.as_secs_f64(),
        least.as_secs(),
        most.as_secs()
    )))
}
