//! `queue create`, `queue purge` and `queue rm`.

use std::fmt;
use std::time::Duration;

use anabranch_model::limits::{MESSAGE_RETENTION_DEFAULT, VISIBILITY_DEFAULT};
use anabranch_model::queue::{QueueName, QueueOptions, RedrivePolicy};
use clap::Args;
use serde::Serialize;

use super::Session;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::quantity::{Span, counted};

/// Arguments of `queue create`.
#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Its name: 1 to 80 of a-z, A-Z, 0-9, `_` and `-`; with `.fifo` at the end it keeps an order
    name: String,
    /// How long nobody receives a new message: up to 15m
    #[arg(long, default_value_t = Span(Duration::ZERO), value_name = "DURATION")]
    delay: Span,
    /// How long a received message is hidden from others: up to 12h
    #[arg(long, default_value_t = Span(VISIBILITY_DEFAULT), value_name = "DURATION")]
    visibility: Span,
    /// How long messages are kept: 1m to 14d
    #[arg(long, default_value_t = Span(MESSAGE_RETENTION_DEFAULT), value_name = "DURATION")]
    retention: Span,
    /// Where messages go that were received too often; the queue must exist
    #[arg(long, value_name = "QUEUE")]
    dead_letters: Option<String>,
    /// How often a message is received before it is a dead letter
    #[arg(long, default_value_t = 10, requires = "dead_letters", value_name = "COUNT")]
    receives_max: u32,
    /// Recognise duplicates by their bodies; only for queues that keep an order
    #[arg(long)]
    deduplicate_content: bool,
}

impl CreateArgs {
    fn options(&self, name: &QueueName) -> Result<QueueOptions, Failure> {
        let dead_letters = self.dead_letters.as_deref().map(QueueName::new).transpose()?;
        Ok(QueueOptions {
            fifo: name.is_fifo(),
            delay: self.delay.0,
            visibility: self.visibility.0,
            retention: self.retention.0,
            redrive: dead_letters
                .map(|dead_letters| RedrivePolicy { dead_letters, receives_max: self.receives_max }),
            deduplicates_content: self.deduplicate_content,
            ..QueueOptions::default()
        })
    }
}

pub(super) async fn create(session: &Session<'_>, args: &CreateArgs) -> Result<(), Failure> {
    let name = QueueName::new(&args.name)?;
    let options = args.options(&name)?;
    let report = Created {
        name: name.to_string(),
        fifo: options.fifo,
        visibility_seconds: options.visibility.as_secs(),
        retention_seconds: options.retention.as_secs(),
        dead_letters: options.redrive.as_ref().map(|policy| policy.dead_letters.to_string()),
    };
    session.store.create_queue(&name, options).await?;
    session.output.print(&report)
}

#[derive(Serialize)]
struct Created {
    name: String,
    fifo: bool,
    visibility_seconds: u64,
    retention_seconds: u64,
    dead_letters: Option<String>,
}

impl fmt::Display for Created {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let retention = Span(Duration::from_secs(self.retention_seconds));
        let visibility = Span(Duration::from_secs(self.visibility_seconds));
        write!(
            f,
            "created queue {}: received messages are hidden for {visibility}, messages are kept for {retention}",
            self.name
        )?;
        match &self.dead_letters {
            Some(queue) => write!(f, ", dead letters go to {queue}"),
            None => Ok(()),
        }
    }
}

/// Arguments of `queue purge`.
#[derive(Debug, Args)]
pub(super) struct PurgeArgs {
    /// The queue
    name: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn purge(session: &Session<'_>, args: &PurgeArgs) -> Result<(), Failure> {
    let name = QueueName::new(&args.name)?;
    // Asked before the person is, so that nobody confirms the removal of nothing.
    let counts = session.store.queue(&name).await?.counts;
    let messages = counted(counts.visible + counts.in_flight + counts.delayed, "message");
    if !args.yes {
        confirm(&format!("purging queue `{name}`"), &format!("Delete {messages} of queue {name}?")).await?;
    }
    session.store.purge(&name).await?;
    session.output.print(&Purged { purged: name.to_string() })
}

#[derive(Serialize)]
struct Purged {
    purged: String,
}

impl fmt::Display for Purged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deleted all messages of queue {}", self.purged)
    }
}

/// Arguments of `queue rm`.
#[derive(Debug, Args)]
pub(super) struct RmArgs {
    /// The queue
    name: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn rm(session: &Session<'_>, args: &RmArgs) -> Result<(), Failure> {
    let name = QueueName::new(&args.name)?;
    session.store.queue(&name).await?;
    if !args.yes {
        let question = format!("Remove queue {name} with all its messages?");
        confirm(&format!("removing queue `{name}`"), &question).await?;
    }
    session.store.delete_queue(&name).await?;
    session.output.print(&Removed { removed: name.to_string() })
}

#[derive(Serialize)]
struct Removed {
    removed: String,
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "removed queue {} with all its messages", self.removed)
    }
}
