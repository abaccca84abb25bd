//! Reading items: a call looks at one moment.

use std::collections::HashSet;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use anabranch_model::table::{
    Get, Got, IndexOptions, Item, ItemPage, Names, PageFilling, Query, Reading, Scan, check_parts,
    check_read_bytes,
};
use anabranch_model::{Error, Result, TableName, limits};

use super::catalogue::{Shape, Table, item};
use super::layout::{IndexRow, entries, items, within};
use crate::core::Core;
use crate::rows::{Order, Snapshot};

impl Core {
    /// Reads an item.
    pub fn get_item(&self, name: &TableName, get: &Get) -> Result<Option<Item>> {
        let table = self.tables.table(name)?;
        let key = get.check(&table.shape().options)?;
        let row = self.rows.get(&within(items(table.number), &key.bytes()))?;
        row.map(|row| get.show(item(&row)?)).transpose()
    }

    /// Reads items of one moment.
    pub fn transact_get(&self, gets: &[(TableName, Get)]) -> Result<Vec<Option<Item>>> {
        check_parts("a transaction", gets.len(), limits::TRANSACTION_ITEMS_MAX)?;
        let (mut found, mut bytes) = (Vec::with_capacity(gets.len()), 0);
        self.each_get(gets, |get, item| {
            bytes += item.as_ref().map_or(0, Item::size);
            check_read_bytes(bytes)?;
            found.push(item.map(|item| get.show(item)).transpose()?);
            Ok(true)
        })?;
        Ok(found)
    }

    /// Reads a batch.
    pub fn batch_get(&self, gets: &[(TableName, Get)]) -> Result<Vec<Got>> {
        check_parts("a batch of reads", gets.len(), limits::BATCH_GET_ITEMS_MAX)?;
        let (mut got, mut bytes) = (Vec::with_capacity(gets.len()), 0);
        self.each_get(gets, |get, item| {
            let Some(item) = item.map(|item| get.show(item)).transpose()? else {
                got.push(Got::Missing);
                return Ok(true);
            };
            if bytes > 0 && bytes + item.size() > limits::BATCH_GET_BYTES_MAX {
                return Ok(false);
            }
            bytes += item.size();
            got.push(Got::Item(item));
            Ok(true)
        })?;
        got.resize(gets.len(), Got::NotRead);
        Ok(got)
    }

    fn each_get(
        &self,
        gets: &[(TableName, Get)],
        mut show: impl FnMut(&Get, Option<Item>) -> Result<bool>,
    ) -> Result<()> {
        let (mut seen, mut keys) = (HashSet::new(), Vec::with_capacity(gets.len()));
        for (name, get) in gets {
            let table = self.tables.table(name)?;
            let key = get.check(&table.shape().options)?;
            let row = within(items(table.number), &key.bytes());
            if !seen.insert(row.clone()) {
                return Err(Error::Invalid("two parts of a call are about one item".to_string()));
            }
            keys.push(row);
        }
        let rows = self.rows.snapshot()?;
        for ((_, get), key) in gets.iter().zip(keys) {
            let found = rows.get(&key)?.map(|row| item(&row)).transpose()?;
            if !show(get, found)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads items of one hash value.
    pub fn query(&self, name: &TableName, query: &Query) -> Result<ItemPage> {
        let table = self.tables.table(name)?;
        let shape = table.shape();
        let stretch = Stretch::new(&table, &shape, &query.reading)?;
        query.check(&shape.options, stretch.index.map(|(options, _)| options))?;
        let schema = stretch.index.map_or(&shape.options.key, |(options, _)| &options.key);
        let bounds = query.key.bounds(schema)?;
        let order = if query.backward { Order::Backward } else { Order::Forward };
        stretch.page(&self.rows.snapshot()?, &bounds.from, bounds.before.as_deref(), order)
    }

    /// Reads items of all hash values.
    pub fn scan(&self, name: &TableName, scan: &Scan) -> Result<ItemPage> {
        let table = self.tables.table(name)?;
        let shape = table.shape();
        let stretch = Stretch::new(&table, &shape, &scan.reading)?;
        scan.check(&shape.options, stretch.index.map(|(options, _)| options))?;
        let first = scan.segment.map_or(0, |segment| segment.first());
        let behind = scan.segment.and_then(|segment| segment.last().checked_add(1));
        let (from, before) = (first.to_be_bytes(), behind.map(u64::to_be_bytes));
        stretch.page(&self.rows.snapshot()?, &from, before.as_ref().map(|b| &b[..]), Order::Forward)
    }
}

/// The items of a table or the entries of an index, to be read in pages.
struct Stretch<'a> {
    table: &'a Arc<Table>,
    shape: &'a Shape,
    index: Option<(&'a IndexOptions, &'a IndexRow)>,
    reading: &'a Reading,
    prefix: Vec<u8>,
    /// Whether the items of an index are taken from the table.
    looks_up: bool,
}

impl<'a> Stretch<'a> {
    fn new(table: &'a Arc<Table>, shape: &'a Shape, reading: &'a Reading) -> Result<Stretch<'a>> {
        let index = shape.index(&table.name, reading.index.as_ref())?;
        let prefix = index.map_or_else(|| items(table.number), |(_, row)| entries(row.number));
        let looks_up = index.is_some_and(|(index, _)| reading.looks_up(&shape.options, index));
        Ok(Stretch { table, shape, index, reading, prefix, looks_up })
    }

    /// A page of what lies from `from` on and before `before`, behind the start of the reading.
    fn page(&self, rows: &Snapshot, from: &[u8], before: Option<&[u8]>, order: Order) -> Result<ItemPage> {
        let key = |place: &[u8]| within(self.prefix.clone(), place);
        let options = self.index.map(|(options, _)| options);
        let start = self.reading.start.as_ref();
        let start = start.map(|start| self.shape.options.place(options, start)).transpose()?;
        let (from, before, start) = (
            key(from),
            before.map_or_else(|| behind(&self.prefix), |b| key(b).to_vec()),
            start.map(|s| key(&s)),
        );
        let bounds = match (&start, order) {
            (None, _) => (Bound::Included(&from[..]), Bound::Excluded(&before[..])),
            (Some(start), Order::Forward) => (Bound::Excluded(&start[..]), Bound::Excluded(&before[..])),
            (Some(start), Order::Backward) => (Bound::Included(&from[..]), Bound::Excluded(&start[..])),
        };
        let mut page = PageFilling::new(self.reading, &self.shape.options, options);
        let (mut full, mut names) = (false, Names::default());
        rows.range(bounds, order, |_, mut row| {
            if !page.look_at(self.item(rows, names.decode(&mut row)?)?)? {
                full = true;
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(if full { page.full() } else { page.complete() })
    }

    /// What a reader is shown of an entry: a local index finds in the table what it does not show itself.
    fn item(&self, rows: &Snapshot, entry: Item) -> Result<Item> {
        if !self.looks_up {
            return Ok(entry);
        }
        let key = self.shape.options.key.key_of(&entry)?;
        let row = rows.get(&within(items(self.table.number), &key.bytes()))?;
        row.map_or(Ok(entry), |row| item(&row))
    }
}

/// The first key behind all that begin with `prefix`.
fn behind(prefix: &[u8]) -> Vec<u8> {
    let mut behind = prefix.to_vec();
    // The last byte says what kind of row it is, and no kind is the largest byte.
    *behind.last_mut().expect("a prefix has a space") += 1;
    behind
}
