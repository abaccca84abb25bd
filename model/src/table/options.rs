//! How a table is made, and what a store says about it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::key::{Key, KeyAttribute, KeyKind, KeySchema};
use super::keyspace::KeyspaceShape;
use super::value::{Item, Value};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::limits;
use crate::name::{IndexName, StreamName, TableName, excerpt};

/// How a table is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// Finds an item.
    pub key: KeySchema,
    /// Other ways to find items.
    pub indexes: Vec<IndexOptions>,
    /// The attribute that says when an item expires, in seconds since the Unix epoch.
    pub time_to_live: Option<String>,
    /// What is written down about each change, if anything.
    pub changes: Option<ChangeView>,
    /// How the table looks as a table of a keyspace, if it is one.
    pub keyspace: Option<KeyspaceShape>,
}

/// Another way to find the items of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// Unique within the table.
    pub name: IndexName,
    /// Across all items, or within those of one hash value.
    pub scope: IndexScope,
    /// Items without one of its attributes are not in the index.
    pub key: KeySchema,
    /// What the index shows of an item.
    pub projection: IndexProjection,
}

/// What an index orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexScope {
    /// All items, by any attributes. It may lag behind the table and is never read consistently.
    Global,
    /// The items of one hash value of the table, by another range attribute.
    Local,
}

/// What an index shows of an item; the keys of the table and of the index always.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexProjection {
    /// Everything.
    All,
    /// Nothing more.
    Keys,
    /// These attributes.
    Include(BTreeSet<String>),
}

/// What is written down about a change, beside the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeView {
    /// Nothing more.
    Keys,
    /// The item as it is afterwards.
    New,
    /// The item as it was before.
    Old,
    /// Both.
    Both,
}

/// A change to a living table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alteration {
    /// Adds a global index and fills it.
    AddIndex(IndexOptions),
    /// Removes a global index.
    DropIndex(IndexName),
    /// Items expire by this attribute, or do not expire any more.
    TimeToLive(Option<String>),
    /// Changes are written down from now on, or not any more. To see other images, turn it off and on.
    Changes(Option<ChangeView>),
}

/// Where a table or an index stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableState {
    /// It is being made and not ready yet.
    Creating,
    /// It is ready.
    Active,
    /// It is ready, and something about it is being changed.
    Updating,
    /// It is being removed.
    Deleting,
}

/// A table as a store describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSummary {
    /// Its name.
    pub name: TableName,
    /// Where it stands.
    pub state: TableState,
    /// When it was made.
    pub created_at: Timestamp,
    /// How it is made now, alterations included.
    pub options: TableOptions,
    /// Items in it.
    pub items: u64,
    /// Their sizes.
    pub bytes: u64,
    /// Its indexes, in the order of the options.
    pub indexes: Vec<IndexSummary>,
    /// The stream of its changes, if they are written down. Each time they are turned on it is another stream.
    pub changes: Option<StreamName>,
    /// When they were turned on.
    pub changes_since: Option<Timestamp>,
}

/// An index as a store describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSummary {
    /// Its name.
    pub name: IndexName,
    /// Where it stands.
    pub state: TableState,
    /// Items in it.
    pub items: u64,
    /// The sizes of what it shows of them.
    pub bytes: u64,
}

impl IndexOptions {
    /// An index across all items that shows everything.
    pub fn global(name: IndexName, key: KeySchema) -> Self {
        IndexOptions { name, scope: IndexScope::Global, key, projection: IndexProjection::All }
    }

    /// An index within one hash value that shows everything.
    pub fn local(name: IndexName, key: KeySchema) -> Self {
        IndexOptions { name, scope: IndexScope::Local, key, projection: IndexProjection::All }
    }

    /// This index with another projection.
    pub fn showing(mut self, projection: IndexProjection) -> Self {
        self.projection = projection;
        self
    }
}

/// Making options.
impl TableOptions {
    /// A table with this key and nothing else.
    pub fn new(key: KeySchema) -> Self {
        TableOptions { key, indexes: Vec::new(), time_to_live: None, changes: None, keyspace: None }
    }

    /// This table with one index more.
    pub fn with_index(mut self, index: IndexOptions) -> Self {
        self.indexes.push(index);
        self
    }

    /// This table with items that expire.
    pub fn with_time_to_live(mut self, attribute: impl Into<String>) -> Self {
        self.time_to_live = Some(attribute.into());
        self
    }

    /// This table with changes written down.
    pub fn with_changes(mut self, view: ChangeView) -> Self {
        self.changes = Some(view);
        self
    }

    /// Whether a table may be made like this.
    pub fn check(&self) -> Result<()> {
        self.key.check()?;
        if self.key.has_several() {
            return Err(Error::Invalid(
                "the key of a table has one hash and one range attribute".to_string(),
            ));
        }
        let mut names = BTreeSet::new();
        for index in &self.indexes {
            self.check_index(index)?;
            if !names.insert(&index.name) {
                return Err(Error::Invalid(format!("the index name `{}` is given twice", index.name)));
            }
        }
        let global = self.indexes.iter().filter(|index| index.scope == IndexScope::Global).count();
        at_most("global indexes", global, limits::GLOBAL_INDEXES_MAX)?;
        at_most("local indexes", self.indexes.len() - global, limits::LOCAL_INDEXES_MAX)?;
        let included = |index: &IndexOptions| match &index.projection {
            IndexProjection::Include(names) => names.len(),
            _ => 0,
        };
        at_most(
            "attributes in the indexes",
            self.indexes.iter().map(included).sum(),
            limits::INDEX_INCLUDED_MAX,
        )?;
        self.check_kinds()?;
        self.keyspace.as_ref().map_or(Ok(()), KeyspaceShape::check)
    }

    fn check_index(&self, index: &IndexOptions) -> Result<()> {
        let refuse = |why: &str| Err(Error::Invalid(format!("index `{}` is not allowed: {why}", index.name)));
        index.key.check()?;
        if let IndexProjection::Include(names) = &index.projection
            && names.is_empty()
        {
            return refuse("it includes no attribute");
        }
        match (index.scope, &self.key.range, &index.key.range) {
            (IndexScope::Global, ..) => Ok(()),
            (IndexScope::Local, ..) if index.key.has_several() => {
                refuse("a local index has one range attribute")
            }
            (IndexScope::Local, None, _) => refuse("a table without a range attribute has no local index"),
            (IndexScope::Local, _, None) => refuse("a local index needs a range attribute"),
            (IndexScope::Local, ..) if index.key.hash != self.key.hash => {
                refuse("a local index has the hash attribute of its table")
            }
            _ => Ok(()),
        }
    }

    /// One attribute has one kind in all the keys.
    fn check_kinds(&self) -> Result<()> {
        let mut kinds: BTreeMap<&str, KeyKind> = BTreeMap::new();
        let keys = std::iter::once(&self.key).chain(self.indexes.iter().map(|index| &index.key));
        for KeyAttribute { name, kind } in keys.flat_map(KeySchema::attributes) {
            if *kinds.entry(name).or_insert(*kind) != *kind {
                let name = excerpt(name);
                return Err(Error::Invalid(format!("the key attribute {name} has two kinds")));
            }
        }
        Ok(())
    }

    /// These options after an alteration; none if it cannot be made. `table` is for the error.
    pub fn altered(&self, table: &TableName, alteration: &Alteration) -> Result<TableOptions> {
        let mut options = self.clone();
        match alteration {
            Alteration::AddIndex(index) if index.scope == IndexScope::Local => {
                return Err(Error::Invalid("a local index is made with its table or not at all".to_string()));
            }
            Alteration::AddIndex(index) => options.indexes.push(index.clone()),
            Alteration::DropIndex(name) => {
                let index = self.index(table, name)?;
                if index.scope == IndexScope::Local {
                    return Err(Error::Invalid(format!("the local index `{name}` goes with its table only")));
                }
                options.indexes.retain(|index| index.name != *name);
            }
            Alteration::TimeToLive(attribute) => options.time_to_live = attribute.clone(),
            Alteration::Changes(Some(_)) if self.changes.is_some() => {
                return Err(Error::Invalid(format!(
                    "the changes of table `{table}` are written down already"
                )));
            }
            Alteration::Changes(view) => options.changes = *view,
        }
        options.check()?;
        Ok(options)
    }
}

/// What follows from options.
impl TableOptions {
    /// The index with this name; `table` is for the error.
    pub fn index(&self, table: &TableName, name: &IndexName) -> Result<&IndexOptions> {
        let found = self.indexes.iter().find(|index| index.name == *name);
        found.ok_or_else(|| Error::IndexNotFound(table.clone(), name.clone()))
    }

    /// The key of an item, if the table may hold it.
    pub fn check_item(&self, item: &Item) -> Result<Key> {
        let key = self.key.key_of(item)?;
        item.check()?;
        for index in &self.indexes {
            index.key.index_key_of(item)?;
        }
        Ok(key)
    }

    /// What an index shows of an item; none if the item is not in it. The item has passed [`TableOptions::check_item`],
    /// or was there before the index: what does not fit its key is not in it.
    pub fn shown(&self, index: &IndexOptions, item: &Item) -> Option<Item> {
        index.key.index_key_of(item).ok().flatten()?;
        Some(match &index.projection {
            IndexProjection::All => item.clone(),
            _ => item
                .iter()
                .filter(|(name, _)| self.shows(index, name))
                .map(|(name, value)| (name, value.clone()))
                .collect(),
        })
    }

    /// Whether an index shows an attribute.
    pub fn shows(&self, index: &IndexOptions, attribute: &str) -> bool {
        self.key.names(attribute)
            || index.key.names(attribute)
            || match &index.projection {
                IndexProjection::All => true,
                IndexProjection::Keys => false,
                IndexProjection::Include(names) => names.contains(attribute),
            }
    }

    /// The bytes that order an item in the table, or in an index: the key there, and behind it the table's.
    pub fn place(&self, index: Option<&IndexOptions>, item: &Item) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(index) = index {
            index.key.key_of(item)?.encode(&mut bytes);
        }
        self.key.key_of(item)?.encode(&mut bytes);
        Ok(bytes)
    }

    /// The attributes that place an item in the table, or in an index.
    pub fn place_attributes(&self, index: Option<&IndexOptions>, item: &Item) -> Item {
        let wanted = |name: &str| self.key.names(name) || index.is_some_and(|index| index.key.names(name));
        let attributes = item.iter().filter(|(name, _)| wanted(name));
        attributes.map(|(name, value)| (name, value.clone())).collect()
    }

    /// When an item expires, if it does. A number that is no time of the last five years or later is none; the fraction
    /// of a second counts for nothing.
    pub fn expires_at(&self, item: &Item) -> Option<Timestamp> {
        let Value::Number(seconds) = item.get(self.time_to_live.as_ref()?)? else { return None };
        let seconds = u64::try_from(seconds.truncated()?).ok()?;
        Some(Timestamp::EPOCH.plus(Duration::from_secs(seconds)))
    }

    /// Whether an item has expired at this moment.
    pub fn has_expired(&self, item: &Item, now: Timestamp) -> bool {
        let due = |at: Timestamp| at < now && now.since(at) <= limits::EXPIRY_AGE_MAX;
        self.expires_at(item).is_some_and(due)
    }
}

fn at_most(what: &str, count: usize, limit: usize) -> Result<()> {
    if count <= limit {
        return Ok(());
    }
    Err(Error::Invalid(format!("a table cannot have {count} {what}: at most {limit} are allowed")))
}
