//! Tables as they are: accepted, which is what writes are checked against, and visible, which is what readers see.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use anabranch_model::table::{IndexOptions, IndexSummary, Item, TableOptions, TableState, TableSummary};
use anabranch_model::{Error, IndexName, Result, TableName, Timestamp};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use super::changes::{Log, Logs};
use super::layout::{IndexRow, TableRow, tally_key};
use crate::encoding::{Malformed, Put, Take};
use crate::rows::{Order, Snapshot, Space};

/// All tables.
#[derive(Default)]
pub struct Tables {
    visible: RwLock<BTreeMap<TableName, Arc<Table>>>,
    /// The streams of their changes.
    pub logs: Logs,
}

/// One table.
pub struct Table {
    /// Its name.
    pub name: TableName,
    /// The owner of its items.
    pub number: u64,
    /// When it was made, in milliseconds.
    pub created_at: u64,
    /// What writes are checked against. Held for reading by a write, for writing by whoever changes the table.
    pub accepted: RwLock<Accepted>,
    /// Counts in the order of the journal. Held from counting until the write has its place.
    pub tally: Mutex<Tally>,
    /// What readers see.
    pub visible: RwLock<View>,
    /// The first item that the next look for expired ones takes in.
    pub looked_at: Mutex<Option<Bytes>>,
}

/// A table in the order of the journal.
pub struct Accepted {
    /// A delete has its place in the journal.
    pub deleted: bool,
    /// How it is made.
    pub shape: Arc<Shape>,
}

/// A table as readers see it.
pub struct View {
    /// How it is made.
    pub shape: Arc<Shape>,
    /// What it holds.
    pub tally: Tally,
}

/// How a table is made.
pub struct Shape {
    /// As its maker sees it.
    pub options: TableOptions,
    /// In the order of the options.
    pub indexes: Vec<IndexRow>,
    /// The stream of its changes.
    pub log: Option<Arc<Log>>,
}

/// Items and bytes: of the table, and of its indexes in the order of the options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Of the table.
    pub table: Count,
    /// Of its indexes.
    pub indexes: Vec<Count>,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Items.
    pub items: u64,
    /// Their sizes.
    pub bytes: u64,
}

impl Count {
    /// One item was replaced by another, or by none.
    pub fn replace(&mut self, old: Option<&Item>, new: Option<&Item>) {
        let size = |item: Option<&Item>| item.map_or(0, |item| item.size() as u64);
        self.items = self.items + u64::from(new.is_some()) - u64::from(old.is_some());
        self.bytes = self.bytes + size(new) - size(old);
    }
}

impl Tally {
    /// Nothing, in a table with so many indexes.
    pub fn empty(indexes: usize) -> Tally {
        Tally { table: Count::default(), indexes: vec![Count::default(); indexes] }
    }

    /// The value of the row.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 * (1 + self.indexes.len()));
        for count in std::iter::once(&self.table).chain(&self.indexes) {
            bytes.put_u64(count.items);
            bytes.put_u64(count.bytes);
        }
        bytes
    }

    fn decode(bytes: &[u8], indexes: usize) -> std::result::Result<Tally, Malformed> {
        let mut take = Take(bytes);
        let mut count = || Ok(Count { items: take.u64()?, bytes: take.u64()? });
        let table = count()?;
        let indexes = (0..indexes).map(|_| count()).collect::<std::result::Result<_, Malformed>>()?;
        take.end().map(|()| Tally { table, indexes })
    }
}

impl Shape {
    /// The index that is asked for, if any, with its row. One that is being filled cannot be read.
    pub fn index(
        &self,
        table: &TableName,
        name: Option<&IndexName>,
    ) -> Result<Option<(&IndexOptions, &IndexRow)>> {
        let Some(name) = name else { return Ok(None) };
        let options = self.options.index(table, name)?;
        let place = self.options.indexes.iter().position(|index| index.name == *name);
        let row = &self.indexes[place.expect("it was found just now")];
        if row.filled_to.is_some() {
            return Err(Error::TableBusy(table.clone()));
        }
        Ok(Some((options, row)))
    }
}

impl Table {
    /// A table that holds nothing or what the tally says.
    pub fn new(name: TableName, row: TableRow, log: Option<Arc<Log>>, tally: Tally) -> Table {
        let TableRow { number, created_at, options, indexes, .. } = row;
        let shape = Arc::new(Shape { options, indexes, log });
        Table {
            name,
            number,
            created_at,
            accepted: RwLock::new(Accepted { deleted: false, shape: shape.clone() }),
            tally: Mutex::new(tally.clone()),
            visible: RwLock::new(View { shape, tally }),
            looked_at: Mutex::default(),
        }
    }

    /// The row of the table when it is made like this.
    pub fn row(&self, shape: &Shape) -> TableRow {
        TableRow {
            number: self.number,
            created_at: self.created_at,
            options: shape.options.clone(),
            indexes: shape.indexes.clone(),
            changes: shape.log.as_ref().map(|log| log.name.clone()),
        }
    }

    /// How readers see it made.
    pub fn shape(&self) -> Arc<Shape> {
        self.visible.read().shape.clone()
    }

    /// What a store says about it.
    pub fn summary(&self) -> TableSummary {
        let view = self.visible.read();
        let shape = &view.shape;
        let state = |row: &IndexRow| match row.filled_to {
            Some(_) => TableState::Creating,
            None => TableState::Active,
        };
        let indexes = shape.options.indexes.iter().zip(&shape.indexes).zip(&view.tally.indexes).map(
            |((options, row), count)| IndexSummary {
                name: options.name.clone(),
                state: state(row),
                items: count.items,
                bytes: count.bytes,
            },
        );
        let filling = shape.indexes.iter().any(|index| index.filled_to.is_some());
        TableSummary {
            name: self.name.clone(),
            state: if filling { TableState::Updating } else { TableState::Active },
            created_at: Timestamp::from_millis(self.created_at),
            options: shape.options.clone(),
            items: view.tally.table.items,
            bytes: view.tally.table.bytes,
            indexes: indexes.collect(),
            changes: shape.log.as_ref().map(|log| log.name.clone()),
            changes_since: shape.log.as_ref().map(|log| Timestamp::from_millis(log.begun_at())),
        }
    }
}

impl Tables {
    /// Reads all tables and streams of changes from their rows.
    pub fn load(rows: &Snapshot) -> Result<Tables> {
        let tables = Tables { visible: RwLock::default(), logs: Logs::load(rows)? };
        let mut found = Vec::new();
        let bounds = [[Space::Tables as u8], [Space::Tables as u8 + 1]];
        rows.range(
            (Bound::Included(&bounds[0]), Bound::Excluded(&bounds[1])),
            Order::Forward,
            |key, value| {
                let name = std::str::from_utf8(&key[1..]).ok().and_then(|name| TableName::new(name).ok());
                let row = TableRow::decode(value).ok();
                found.push(name.zip(row).ok_or_else(|| damaged("table"))?);
                Ok(ControlFlow::Continue(()))
            },
        )?;
        for (name, row) in found {
            let tally = rows.get(&tally_key(row.number))?.unwrap_or_default();
            let tally = Tally::decode(&tally, row.indexes.len()).map_err(|_| damaged("table"))?;
            let log = row.changes.as_ref().map(|name| tables.logs.log(name)).transpose()?;
            log.iter().for_each(|log| log.belongs_to(&name));
            tables.show(Arc::new(Table::new(name, row, log, tally)));
        }
        Ok(tables)
    }

    /// The table with this name.
    pub fn table(&self, name: &TableName) -> Result<Arc<Table>> {
        self.visible.read().get(name).cloned().ok_or_else(|| Error::TableNotFound(name.clone()))
    }

    /// All tables.
    pub fn all(&self) -> Vec<Arc<Table>> {
        self.visible.read().values().cloned().collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.visible.read().len()
    }

    /// Names behind `after`, and whether there are more.
    pub fn names(&self, after: Option<&TableName>, limit: usize) -> (Vec<TableName>, bool) {
        let visible = self.visible.read();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut behind =
            visible.range::<TableName, _>((from, Bound::Unbounded)).map(|(name, _)| name.clone());
        let names = behind.by_ref().take(limit).collect();
        (names, behind.next().is_some())
    }

    /// Shows a table to readers.
    pub fn show(&self, table: Arc<Table>) {
        self.visible.write().insert(table.name.clone(), table);
    }

    /// Hides a table from readers, unless a younger one has its name.
    pub fn hide(&self, table: &Table) {
        let mut visible = self.visible.write();
        if visible.get(&table.name).is_some_and(|shown| shown.number == table.number) {
            visible.remove(&table.name);
        }
    }
}

/// An item from its row.
pub fn item(row: &[u8]) -> Result<Item> {
    let mut from = row;
    Item::decode(&mut from)
}

/// The row of an item.
pub fn item_row(item: &Item) -> Bytes {
    let mut bytes = Vec::with_capacity(item.size() + 16);
    item.encode(&mut bytes);
    bytes.into()
}

/// A row of a catalogue cannot be read.
pub fn damaged(what: &str) -> Error {
    Error::Corrupt(format!("the row of a {what} makes no sense: put the directory back from a backup"))
}
