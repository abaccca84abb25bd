//! Looking at applications from outside, and setting their checkpoints.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::table::TableStore;
use anabranch_model::{Error, Result, SequenceNumber, Shard, ShardSource, TableName, Timestamp, limits};

use crate::lease::item::LEASE_KEY;
use crate::lease::{Checkpoint, Lease, LeaseTable, TableNames, write};
use crate::settings::StreamChoice;
use crate::shards;

/// How long one call may take.
const CALL_MAX: Duration = Duration::from_secs(10);

/// An application as its tables show it.
pub struct Application {
    table: LeaseTable,
}

impl Application {
    /// The application whose table of leases this is.
    pub async fn open(tables: Arc<dyn TableStore>, leases: &TableName) -> Result<Self> {
        let found = tables.table(leases).await?;
        if !is_lease_table(&found.options) {
            return Err(Error::Invalid(format!(
                "table `{leases}` holds no leases: its key is not the text `{LEASE_KEY}`"
            )));
        }
        let names = TableNames::new(leases.as_str(), "")?;
        Ok(Application { table: LeaseTable::find(tables, names, CALL_MAX).await? })
    }

    /// Its leases, in the order of their keys.
    pub async fn leases(&self) -> Result<Vec<Lease>> {
        let mut leases = self.table.leases().await?;
        leases.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(leases)
    }

    /// Its tables.
    pub fn table(&self) -> &LeaseTable {
        &self.table
    }

    /// Sets the checkpoint of a lease, forwards or backwards, while the application runs: its owner loses the lease, and
    /// whoever takes it begins there. Tried again if the owner writes at the same moment.
    pub async fn set_checkpoint(&self, key: &str, to: Checkpoint) -> Result<()> {
        const ATTEMPTS_MAX: usize = 10;
        for _ in 0..ATTEMPTS_MAX {
            let lease = self.table.lease(key).await?;
            let lease = lease.ok_or_else(|| Error::Invalid(format!("there is no lease `{key}`")))?;
            if self.table.unless_refused(write::rewind(&lease, to)).await? {
                return Ok(());
            }
        }
        Err(Error::Unavailable(format!("lease `{key}` changes too often; try again")))
    }

    /// Makes leases for shards of a stream that have none, because they were read to their end long ago and their leases
    /// were removed. Whoever goes back beyond them begins with those. Shards that were closed before `since` are left
    /// out. Returns what was made, parents before children.
    pub async fn revive(
        &self,
        source: &Arc<dyn ShardSource>,
        choice: &StreamChoice,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<Lease>> {
        let graph = shards::list(source, choice).await?;
        let known = self.leases().await?;
        let mut made = Vec::new();
        let wanted =
            |shard: &&Shard| !shard.is_open() && shard.closed_at.is_none_or(|closed| closed >= since);
        for shard in graph.iter().filter(wanted) {
            let lease = shards::lease_of(shard, choice, Checkpoint::TrimHorizon);
            if known.iter().any(|known| known.key == lease.key) {
                continue;
            }
            // The counter begins as that of every lease that is made.
            let lease = Lease { counter: now.as_millis(), ..lease };
            if self.table.create(&lease).await? {
                made.push(lease);
            }
        }
        Ok(made)
    }

    /// Removes the leases of a stream that does not exist any more, by what stands in front of the shards in their keys.
    /// Returns those whose shards were not processed to their end.
    pub async fn forget(&self, identifier: &str) -> Result<Vec<Lease>> {
        let mut unfinished = Vec::new();
        for lease in self.leases().await? {
            let is_of_stream = lease.stream.as_deref() == Some(identifier);
            if is_of_stream && self.table.unless_refused(write::remove(&lease)).await? {
                unfinished.push(lease);
            }
        }
        unfinished.retain(|lease| lease.checkpoint != Checkpoint::ShardEnd);
        Ok(unfinished)
    }

    /// The checkpoint that makes a record the next one.
    pub fn before(sequence: SequenceNumber) -> Checkpoint {
        sequence.previous().map_or(Checkpoint::TrimHorizon, Checkpoint::behind)
    }
}

fn is_lease_table(options: &anabranch_model::table::TableOptions) -> bool {
    options.key.range.is_none() && options.key.hash.name == LEASE_KEY
}

/// The tables of leases that a store has.
pub async fn applications(tables: &Arc<dyn TableStore>) -> Result<Vec<TableName>> {
    let mut found = Vec::new();
    for name in names(tables).await? {
        match tables.table(&name).await {
            Ok(summary) if is_lease_table(&summary.options) => found.push(name),
            Ok(_) | Err(Error::TableNotFound(_) | Error::TableBusy(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The tables of an application that nobody works for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The application: the name of its table of leases.
    pub application: TableName,
    /// All its tables. They hold the only word on how far its streams were processed.
    pub tables: Vec<TableName>,
}

/// Applications without any worker: none of their leases has an owner.
pub async fn leftovers(tables: &Arc<dyn TableStore>) -> Result<Vec<Leftover>> {
    let (names, mut unused) = (names(tables).await?, Vec::new());
    for name in applications(tables).await? {
        let application = Application::open(tables.clone(), &name).await?;
        if application.leases().await?.iter().any(|lease| lease.reader().is_some()) {
            continue;
        }
        let own = application.table.names().clone();
        let all = [own.leases, own.coordinator, own.workers];
        let tables = all.into_iter().filter(|table| names.contains(table)).collect();
        unused.push(Leftover { application: name, tables });
    }
    Ok(unused)
}

async fn names(tables: &Arc<dyn TableStore>) -> Result<Vec<TableName>> {
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let page = tables.tables(after.as_ref(), limits::PAGE_ENTRIES_MAX).await?;
        after = page.entries.last().cloned();
        names.extend(page.entries);
        if !page.more || after.is_none() {
            return Ok(names);
        }
    }
}
