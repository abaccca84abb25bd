//! `queue ls`, always to the last page.

use std::fmt;
use std::time::Duration;

use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::queue::QueueSummary;
use anabranch_model::{QueueStore, Result};
use clap::Args;
use serde::Serialize;

use super::Session;
use crate::failure::Failure;
use crate::output::{table, table_text};
use crate::quantity::{Span, grouped, rfc3339};

/// Arguments of `queue ls`.
#[derive(Debug, Args)]
pub(super) struct LsArgs {
    /// Only queues whose names begin like this
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,
}

async fn all_queues(store: &dyn QueueStore, prefix: &str) -> Result<Vec<QueueSummary>> {
    let mut queues: Vec<QueueSummary> = Vec::new();
    loop {
        let after = queues.last().map(|queue| queue.name.clone());
        let page = store.queues(after.as_ref(), PAGE_ENTRIES_MAX, prefix).await?;
        let done = !page.more || page.entries.is_empty();
        queues.extend(page.entries);
        if done {
            return Ok(queues);
        }
    }
}

pub(super) async fn ls(session: &Session<'_>, args: &LsArgs) -> std::result::Result<(), Failure> {
    let queues = all_queues(session.store, &args.prefix).await?;
    session.output.print(&QueuesReport { queues: queues.iter().map(QueueReport::from).collect() })
}

/// A queue as `--json` shows it.
#[derive(Debug, Serialize)]
struct QueueReport {
    name: String,
    fifo: bool,
    visible: u64,
    in_flight: u64,
    delayed: u64,
    oldest_age_seconds: Option<u64>,
    delay_seconds: u64,
    visibility_seconds: u64,
    retention_seconds: u64,
    dead_letters: Option<String>,
    receives_max: Option<u32>,
    created_at: String,
}

impl From<&QueueSummary> for QueueReport {
    fn from(queue: &QueueSummary) -> Self {
        let redrive = queue.options.redrive.as_ref();
        QueueReport {
            name: queue.name.to_string(),
            fifo: queue.options.fifo,
            visible: queue.counts.visible,
            in_flight: queue.counts.in_flight,
            delayed: queue.counts.delayed,
            oldest_age_seconds: queue.oldest_age.map(|age| age.as_secs()),
            delay_seconds: queue.options.delay.as_secs(),
            visibility_seconds: queue.options.visibility.as_secs(),
            retention_seconds: queue.options.retention.as_secs(),
            dead_letters: redrive.map(|policy| policy.dead_letters.to_string()),
            receives_max: redrive.map(|policy| policy.receives_max),
            created_at: rfc3339(queue.created_at),
        }
    }
}

#[derive(Debug, Serialize)]
struct QueuesReport {
    queues: Vec<QueueReport>,
}

impl fmt::Display for QueuesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.queues.is_empty() {
            return f.write_str("no queues yet: `anabranch queue create NAME` makes one");
        }
        let headings =
            ["QUEUE", "VISIBLE", "IN FLIGHT", "DELAYED", "OLDEST", "RETENTION", "DEAD LETTERS", "CREATED"];
        let mut table = table(&headings, &[1, 2, 3, 4, 5]);
        for queue in &self.queues {
            let age = queue.oldest_age_seconds.map(|age| Span(Duration::from_secs(age)).to_string());
            table.add_row([
                queue.name.clone(),
                grouped(queue.visible),
                grouped(queue.in_flight),
                grouped(queue.delayed),
                age.unwrap_or_else(|| "-".to_owned()),
                Span(Duration::from_secs(queue.retention_seconds)).to_string(),
                queue.dead_letters.clone().unwrap_or_else(|| "-".to_owned()),
                queue.created_at.clone(),
            ]);
        }
        f.write_str(&table_text(&table))
    }
}
