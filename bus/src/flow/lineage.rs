//! The streams of changes of one table, for a bot that outlives them.

use std::sync::Arc;

use anabranch_consumer::StreamChoice;
use anabranch_model::table::{ChangeView, TableSummary};
use anabranch_model::{Error, Result, ShardId, ShardSource, StreamName, TableName, TableStore};
use async_trait::async_trait;
use parking_lot::RwLock;

use super::assemble::Keyspaces;
use crate::archive::{Documents, NO_KEYSPACE, Shape};
use crate::event::Event;
use crate::source::Lineage;
use crate::step::{Refusal, Step};

/// The streams of a table.
pub(super) struct OfTable {
    pub(super) tables: Arc<dyn TableStore>,
    pub(super) source: Arc<dyn ShardSource>,
    pub(super) table: TableName,
    /// The keyspace that the keys of blobs and the leases name.
    pub(super) keyspace: String,
    /// What is made of the changes of the youngest.
    pub(super) documents: Arc<Current>,
}

#[async_trait]
impl Lineage for OfTable {
    async fn streams(&self) -> Result<Vec<StreamChoice>> {
        let summary = match self.tables.table(&self.table).await {
            Ok(summary) => Some(summary),
            Err(Error::TableNotFound(_)) => None,
            Err(error) => return Err(error),
        };
        let current = summary.as_ref().and_then(|summary| summary.changes.clone());
        let mut names = self.tables.change_streams(&self.table).await?;
        // A listing may be behind.
        names.extend(current.filter(|current| !names.contains(current)));
        let streams = choices(&self.source, names).await?;
        if let Some(summary) = &summary {
            self.follow(summary)?;
        }
        Ok(streams)
    }
}

impl OfTable {
    /// The table may be another one by now.
    fn follow(&self, summary: &TableSummary) -> Result<()> {
        let Some(view) = summary.options.changes else { return Ok(()) };
        let keyspace = summary.options.keyspace.as_ref().map_or(NO_KEYSPACE, |shape| shape.keyspace.as_str());
        if keyspace != self.keyspace {
            return Err(Error::Misconfigured(format!(
                "table `{}` was made again in another keyspace: stop the bot and begin it anew",
                self.table
            )));
        }
        self.documents.turn_to(view, shape(summary));
        Ok(())
    }
}

/// How the rows of a table are told of.
pub(super) fn shape(summary: &TableSummary) -> Shape {
    match &summary.options.keyspace {
        Some(shape) => Shape::Cells(Some(shape.clone())),
        None => Shape::Items,
    }
}

/// The streams of a table of a keyspace that only its changes tell of.
pub(super) struct OfKeyspace {
    pub(super) keyspaces: Keyspaces,
    pub(super) keyspace: String,
    pub(super) table: String,
}

#[async_trait]
impl Lineage for OfKeyspace {
    async fn streams(&self) -> Result<Vec<StreamChoice>> {
        let names = (self.keyspaces.streams_of)(self.keyspace.clone(), self.table.clone()).await?;
        choices(&self.keyspaces.source, names).await
    }
}

async fn choices(source: &Arc<dyn ShardSource>, names: Vec<StreamName>) -> Result<Vec<StreamChoice>> {
    let mut choices = Vec::with_capacity(names.len());
    for name in names {
        match choice(source, name).await {
            Ok(choice) => choices.push(choice),
            // It has gone since it was listed, or is not ready yet.
            Err(Error::StreamNotFound(_) | Error::StreamBusy(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(choices)
}

/// Where shards are merely numbered, those of a stream that was turned on anew are called like those before: there the
/// keys of leases name the stream.
pub(super) async fn choice(source: &Arc<dyn ShardSource>, name: StreamName) -> Result<StreamChoice> {
    let page = source.shards(&name, None, 1).await?;
    let numbered = |id: &ShardId| {
        let digits = id.as_str().strip_prefix("shardId-");
        digits.is_some_and(|digits| digits.len() <= 12 && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let repeats = page.entries.iter().any(|shard| numbered(&shard.id));
    let identifier = repeats.then(|| name.as_str().into());
    Ok(StreamChoice { name, identifier })
}

/// Makes documents of changes, as the table is now.
pub(super) struct Current(RwLock<Arc<Documents>>);

impl Current {
    pub(super) fn new(documents: Documents) -> Arc<Self> {
        Arc::new(Current(RwLock::new(Arc::new(documents))))
    }

    fn turn_to(&self, view: ChangeView, shape: Shape) {
        let mut documents = self.0.write();
        if documents.view != view || documents.shape != shape {
            *documents = Arc::new(Documents { region: documents.region.clone(), view, shape });
        }
    }
}

#[async_trait]
impl Step for Current {
    fn name(&self) -> &str {
        "document"
    }

    async fn apply(&self, event: Event) -> std::result::Result<Vec<Event>, Refusal> {
        let documents = self.0.read().clone();
        documents.apply(event).await
    }
}
