//! The tables of an application: made if they are missing, joined if they are there, refused if they are something else.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::table::{
    Get, IndexOptions, IndexProjection, Item, KeyKind, KeySchema, Scan, TableOptions, TableStore, Write,
};
use anabranch_model::{Error, IndexName, Result, TableName};

use super::item::{ENTITY, LEASE_KEY, Lease, OWNER, text};
use super::layout::{Layout, TableNames};
use super::write;

/// The index that finds the leases of a worker.
const OWNER_INDEX: &str = "LeaseOwnerToLeaseKeyIndex";
/// The key of the leader's table, and of the workers'.
pub(crate) const COORDINATOR_KEY: &str = "key";
pub(crate) const WORKER_KEY: &str = "wid";
/// The item that says how far an application has moved to one table.
const TABLE_MIGRATION: &str = "TableMigration3.5";
/// The item that says which version of the client library an application has moved to.
const VERSION_MIGRATION: &str = "Migration3.0";

/// The tables of an application.
#[derive(Clone)]
pub struct LeaseTable {
    tables: Arc<dyn TableStore>,
    names: TableNames,
    layout: Layout,
    /// How long one call may take.
    call_max: Duration,
}

/// Where an item of the leader or of a worker lies.
pub(crate) struct Place<'a> {
    pub(crate) table: &'a TableName,
    /// The attribute of the key.
    pub(crate) key: &'static str,
    /// What `entityType` says, if it says anything.
    pub(crate) entity: Option<&'static str>,
}

impl LeaseTable {
    /// Finds the tables of an application, and makes those that are missing. `now_ms` is written down as the time of that.
    pub async fn open(
        tables: Arc<dyn TableStore>,
        names: TableNames,
        call_max: Duration,
        now_ms: u64,
        worker: &str,
    ) -> Result<Self> {
        let table = Self::find(tables, names, call_max).await?;
        match table.make(now_ms, worker).await {
            Ok(()) => Ok(table),
            // Another worker is about to make it: it exists for whoever wants to make it, and not yet for a reader.
            Err(Error::TableNotFound(name)) => Err(Error::TableBusy(name)),
            Err(error) => Err(error),
        }
    }

    /// Makes the tables that are missing, and refuses those that are something else.
    pub(crate) async fn make(&self, now_ms: u64, worker: &str) -> Result<()> {
        let options = TableOptions::new(KeySchema::hash(LEASE_KEY, KeyKind::Text)).with_index(owner_index()?);
        self.ensure(&self.names.leases, options).await?;
        if self.layout == Layout::Three {
            let options = |key: &str| TableOptions::new(KeySchema::hash(key, KeyKind::Text));
            self.ensure(&self.names.coordinator, options(COORDINATOR_KEY)).await?;
            self.ensure(&self.names.workers, options(WORKER_KEY)).await?;
            self.note_version(now_ms, worker).await?;
        }
        Ok(())
    }

    /// Finds the tables of an application without making any.
    pub async fn find(tables: Arc<dyn TableStore>, names: TableNames, call_max: Duration) -> Result<Self> {
        let mut table = LeaseTable { tables, names, layout: Layout::Three, call_max };
        if table.is_single().await? {
            table.layout = Layout::One;
        }
        Ok(table)
    }

    /// How many tables there are.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The names of the tables.
    pub fn names(&self) -> &TableNames {
        &self.names
    }

    /// Every lease, in no particular order.
    pub async fn leases(&self) -> Result<Vec<Lease>> {
        let items = self.scan(&self.names.leases).await?;
        let mut leases = Vec::with_capacity(items.len());
        for item in &items {
            match Lease::read(item) {
                Ok(lease) => leases.extend(lease),
                Err(error) => tracing::error!(%error, table = %self.names.leases, "a lease cannot be read"),
            }
        }
        Ok(leases)
    }

    /// One lease.
    pub async fn lease(&self, key: &str) -> Result<Option<Lease>> {
        let item = self.get(&self.names.leases, write::key(key)).await?;
        item.as_ref().map_or(Ok(None), Lease::read)
    }

    /// Makes a lease; false if it is there already.
    pub async fn create(&self, lease: &Lease) -> Result<bool> {
        self.unless_refused(write::create(lease, self.layout)).await
    }

    /// Writes to a lease; false if its condition does not hold.
    pub(crate) async fn unless_refused(&self, write: Write) -> Result<bool> {
        match self.write(write).await {
            Ok(_) => Ok(true),
            Err(Error::ConditionFailed { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes to a lease.
    pub(crate) async fn write(&self, write: Write) -> Result<Option<Item>> {
        self.write_at(&self.names.leases, write).await
    }

    pub(crate) async fn write_at(&self, table: &TableName, write: Write) -> Result<Option<Item>> {
        self.limited(self.tables.write(table, write)).await
    }

    pub(crate) async fn get(&self, table: &TableName, key: Item) -> Result<Option<Item>> {
        self.limited(self.tables.get(table, Get::new(key).consistent())).await
    }

    pub(crate) async fn scan(&self, table: &TableName) -> Result<Vec<Item>> {
        let (mut items, mut last) = (Vec::new(), None);
        loop {
            let scan = Scan::new().consistent().start(last);
            let mut page = self.limited(self.tables.scan(table, scan)).await?;
            items.append(&mut page.items);
            last = page.last;
            if last.is_none() {
                return Ok(items);
            }
        }
    }

    /// Where the leader's item lies.
    pub(crate) fn leader_place(&self) -> Place<'_> {
        self.place(&self.names.coordinator, COORDINATOR_KEY, "LEADER")
    }

    /// Where the workers' items lie.
    pub(crate) fn worker_place(&self) -> Place<'_> {
        self.place(&self.names.workers, WORKER_KEY, "WORKER_METRIC_STATS")
    }

    fn place<'a>(&'a self, table: &'a TableName, key: &'static str, entity: &'static str) -> Place<'a> {
        match self.layout {
            Layout::Three => Place { table, key, entity: None },
            Layout::One => Place { table: &self.names.leases, key: LEASE_KEY, entity: Some(entity) },
        }
    }

    /// An application has one table if it says so itself, and no table of its own for the leader.
    async fn is_single(&self) -> Result<bool> {
        match self.limited(self.tables.table(&self.names.coordinator)).await {
            Ok(_) => return Ok(false),
            Err(Error::TableNotFound(_)) => {}
            Err(error) => return Err(error),
        }
        match self.get(&self.names.leases, write::key(TABLE_MIGRATION)).await {
            Ok(item) => Ok(item.is_some()),
            Err(Error::TableNotFound(_)) => Ok(false),
            // The table has another key, which is said in better words when it is looked at.
            Err(Error::Invalid(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn ensure(&self, name: &TableName, options: TableOptions) -> Result<()> {
        // Making a table takes AWS longer than a call to it may take.
        let found = match self.tables.table(name).await {
            Err(Error::TableNotFound(_)) => match self.tables.create_table(name, options.clone()).await {
                Ok(()) => {
                    tracing::info!(table = %name, "made a table");
                    return Ok(());
                }
                // Another worker was quicker.
                Err(Error::TableExists(_) | Error::TableBusy(_)) => self.tables.table(name).await?,
                Err(error) => return Err(error),
            },
            found => found?,
        };
        if found.options.key == options.key {
            return Ok(());
        }
        let names: Vec<_> = found.options.key.attributes().map(|attribute| attribute.name.as_str()).collect();
        Err(Error::Misconfigured(format!(
            "table `{name}` is not a table of this kind: its key is `{}` and should be the text `{}`; choose another \
             application name, or another template for names of tables",
            names.join("`, `"),
            options.key.hash.name
        )))
    }

    /// Says that the application is past the second version of the client library, as its workers want to know.
    async fn note_version(&self, now_ms: u64, worker: &str) -> Result<()> {
        let item = Item::new()
            .with(COORDINATOR_KEY, VERSION_MIGRATION)
            .with("cv", "CLIENT_VERSION_3X")
            .with("mb", worker)
            .with("mts", now_ms)
            .with("h", Vec::new());
        let condition = anabranch_model::table::expression::missing(COORDINATOR_KEY);
        match self.write_at(&self.names.coordinator, Write::put(item).when(condition)).await {
            Ok(_) | Err(Error::ConditionFailed { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn limited<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        match tokio::time::timeout(self.call_max, call).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::Unavailable(format!("no answer within {} ms", self.call_max.as_millis()))),
        }
    }
}

impl Place<'_> {
    /// The key of an item.
    pub(crate) fn key_of(&self, name: &str) -> Item {
        Item::new().with(self.key, name)
    }

    /// An item with nothing but what the layout demands.
    pub(crate) fn item(&self, name: &str) -> Item {
        let item = self.key_of(name);
        match self.entity {
            Some(entity) => item.with(ENTITY, entity),
            None => item,
        }
    }

    /// Whether an item of the table is of this kind.
    pub(crate) fn holds(&self, item: &Item) -> bool {
        self.entity.is_none_or(|entity| text(item, ENTITY).ok().flatten() == Some(entity))
    }
}

fn owner_index() -> Result<IndexOptions> {
    let key = KeySchema::hash(OWNER, KeyKind::Text).and_range(LEASE_KEY, KeyKind::Text);
    Ok(IndexOptions::global(IndexName::new(OWNER_INDEX)?, key).showing(IndexProjection::Keys))
}
