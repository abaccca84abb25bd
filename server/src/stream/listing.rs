//! Listings, always to their last page, and `stream ls`.

use std::fmt;

use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::{Result, Shard, ShardSource, StreamName, StreamStore, StreamSummary};
use serde::Serialize;

use super::Session;
use crate::failure::Failure;
use crate::output::{table, table_text};
use crate::quantity::{Span, grouped, rfc3339};

/// All shards of a stream in the order of their creation.
pub(super) async fn all_shards(
    store: &(impl ShardSource + ?Sized),
    stream: &StreamName,
) -> Result<Vec<Shard>> {
    let mut shards: Vec<Shard> = Vec::new();
    loop {
        let after = shards.last().map(|shard| shard.id.clone());
        let page = store.shards(stream, after.as_ref(), PAGE_ENTRIES_MAX).await?;
        let done = !page.more || page.entries.is_empty();
        shards.extend(page.entries);
        if done {
            return Ok(shards);
        }
    }
}

/// All streams in the order of their names.
async fn all_streams(store: &dyn StreamStore) -> Result<Vec<StreamSummary>> {
    let mut streams: Vec<StreamSummary> = Vec::new();
    loop {
        let after = streams.last().map(|stream| stream.name.clone());
        let page = store.streams(after.as_ref(), PAGE_ENTRIES_MAX).await?;
        let done = !page.more || page.entries.is_empty();
        streams.extend(page.entries);
        if done {
            return Ok(streams);
        }
    }
}

pub(super) async fn ls(session: &Session<'_>) -> std::result::Result<(), Failure> {
    let streams = all_streams(session.store).await?;
    session.output.print(&StreamsReport { streams: streams.iter().map(StreamReport::from).collect() })
}

/// A stream as `--json` shows it.
#[derive(Debug, Serialize)]
pub(super) struct StreamReport {
    pub(super) name: String,
    pub(super) created_at: String,
    pub(super) retention_seconds: u64,
    pub(super) open_shards: usize,
    pub(super) closed_shards: usize,
}

impl From<&StreamSummary> for StreamReport {
    fn from(summary: &StreamSummary) -> Self {
        StreamReport {
            name: summary.name.to_string(),
            created_at: rfc3339(summary.created_at),
            retention_seconds: summary.retention.as_secs(),
            open_shards: summary.open_shards,
            closed_shards: summary.closed_shards,
        }
    }
}

impl StreamReport {
    pub(super) fn retention(&self) -> Span {
        Span(std::time::Duration::from_secs(self.retention_seconds))
    }
}

#[derive(Debug, Serialize)]
struct StreamsReport {
    streams: Vec<StreamReport>,
}

impl fmt::Display for StreamsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.streams.is_empty() {
            return f.write_str("no streams yet: `anabranch stream create NAME` makes one");
        }
        let mut table = table(&["STREAM", "OPEN", "CLOSED", "RETENTION", "CREATED"], &[1, 2, 3]);
        for stream in &self.streams {
            table.add_row([
                stream.name.clone(),
                grouped(stream.open_shards as u64),
                grouped(stream.closed_shards as u64),
                stream.retention().to_string(),
                stream.created_at.clone(),
            ]);
        }
        f.write_str(&table_text(&table))
    }
}
