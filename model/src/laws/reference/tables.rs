//! Tables in a sorted map, without time, tasks or files. Indexes are not kept but looked for.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::log::Log;
use crate::table::{
    Action, Alteration, Change, Get, Got, IndexOptions, IndexSummary, Item, ItemPage, PageFilling, Query,
    Reading, Scan, Segment, TableOptions, TableState, TableSummary, Token, Write, check_parts,
    check_read_bytes, check_transaction_bytes,
};
use crate::{Cancelled, Error, IndexName, Result, SequenceNumber, StreamName, TableName, Timestamp, limits};

/// Everything that a store of tables remembers. A clone is a picture of the moment.
#[derive(Clone, Default, Debug)]
pub struct Tables {
    tables: BTreeMap<TableName, Table>,
    pub(super) logs: BTreeMap<StreamName, Log>,
    /// The last number that was given to a change or a stream of changes.
    numbers: u128,
    tokens: HashMap<Token, (Vec<(TableName, Write)>, Timestamp)>,
}

#[derive(Clone, Debug)]
struct Table {
    options: TableOptions,
    created_at: Timestamp,
    /// By the bytes of their keys.
    items: BTreeMap<Vec<u8>, Item>,
    changes: Option<StreamName>,
    changes_since: Option<Timestamp>,
}

/// Tables as such.
impl Tables {
    /// Makes a table.
    pub fn create(&mut self, name: &TableName, options: TableOptions, now: Timestamp) -> Result<()> {
        options.check()?;
        if self.tables.contains_key(name) {
            return Err(Error::TableExists(name.clone()));
        }
        let changes = options.changes.map(|_| self.open_log(name));
        let changes_since = changes.as_ref().map(|_| now);
        let table = Table { options, created_at: now, items: BTreeMap::new(), changes, changes_since };
        self.tables.insert(name.clone(), table);
        Ok(())
    }

    /// Removes a table.
    pub fn delete(&mut self, name: &TableName, now: Timestamp) -> Result<()> {
        let table = self.tables.remove(name).ok_or_else(|| Error::TableNotFound(name.clone()))?;
        self.close_log(table.changes, now);
        Ok(())
    }

    /// The names of all tables, in their order.
    pub fn names(&self) -> impl Iterator<Item = &TableName> {
        self.tables.keys()
    }

    /// How a table is made.
    pub fn options(&self, name: &TableName) -> Result<&TableOptions> {
        Ok(&self.table(name)?.options)
    }

    /// What is known about a table.
    pub fn summary(&self, name: &TableName) -> Result<TableSummary> {
        let table = self.table(name)?;
        let indexes = table.options.indexes.iter().map(|index| {
            let entries = table.entries(Some(index), &Reading::default(), |_| true);
            let bytes = entries.values().map(|item| item.size() as u64).sum();
            let (name, items) = (index.name.clone(), entries.len() as u64);
            IndexSummary { name, state: TableState::Active, items, bytes }
        });
        Ok(TableSummary {
            name: name.clone(),
            state: TableState::Active,
            created_at: table.created_at,
            options: table.options.clone(),
            items: table.items.len() as u64,
            bytes: table.items.values().map(|item| item.size() as u64).sum(),
            indexes: indexes.collect(),
            changes: table.changes.clone(),
            changes_since: table.changes_since,
        })
    }

    /// The streams of the changes of a table, the oldest first.
    pub fn change_streams(&self, name: &TableName) -> Vec<StreamName> {
        let mut logs: Vec<_> = self.logs.iter().filter(|(_, log)| log.table() == name).collect();
        logs.sort_by_key(|(_, log)| log.shard().starts_at);
        logs.into_iter().map(|(stream, _)| stream.clone()).collect()
    }

    /// Changes a table.
    pub fn alter(&mut self, name: &TableName, alteration: &Alteration, now: Timestamp) -> Result<()> {
        let options = self.table(name)?.options.altered(name, alteration)?;
        if let Alteration::Changes(view) = alteration {
            let old = self.table(name)?.changes.clone();
            self.close_log(old, now);
            let log = view.map(|_| self.open_log(name));
            let table = self.table_mut(name)?;
            table.changes_since = log.as_ref().map(|_| now);
            table.changes = log;
        }
        self.table_mut(name)?.options = options;
        Ok(())
    }

    fn table(&self, name: &TableName) -> Result<&Table> {
        self.tables.get(name).ok_or_else(|| Error::TableNotFound(name.clone()))
    }

    fn table_mut(&mut self, name: &TableName) -> Result<&mut Table> {
        self.tables.get_mut(name).ok_or_else(|| Error::TableNotFound(name.clone()))
    }

    fn fresh_number(&mut self) -> SequenceNumber {
        self.numbers += 1;
        SequenceNumber::from_u128(self.numbers)
    }

    fn open_log(&mut self, table: &TableName) -> StreamName {
        let number = self.fresh_number();
        let name = StreamName::new(&format!("changes-{number}")).unwrap_or_else(|_| unreachable!("short"));
        self.logs.insert(name.clone(), Log::new(table.clone(), number));
        name
    }

    fn close_log(&mut self, name: Option<StreamName>, now: Timestamp) {
        let number = self.fresh_number();
        if let Some(log) = name.and_then(|name| self.logs.get_mut(&name)) {
            log.close(number, now);
        }
    }
}

/// Writing.
impl Tables {
    /// Writes an item.
    pub fn write(&mut self, name: &TableName, write: &Write, now: Timestamp) -> Result<Option<Item>> {
        if let Action::Check(_) = write.action {
            return Err(Error::Invalid("a check is part of a transaction only".to_string()));
        }
        let (key, old) = self.current(name, write)?;
        let outcome = write.apply(&self.table(name)?.options, old.as_ref())?;
        self.store(name, key, outcome.new, now, false)?;
        Ok(outcome.returned)
    }

    /// Writes a batch.
    pub fn batch_write(&mut self, writes: &[(TableName, Action)], now: Timestamp) -> Result<()> {
        check_parts("a batch of writes", writes.len(), limits::BATCH_WRITE_ITEMS_MAX)?;
        let writes: Vec<_> = writes.iter().map(|(name, a)| (name.clone(), Write::from(a.clone()))).collect();
        let kind = |write: &Write| matches!(write.action, Action::Put(_) | Action::Delete(_));
        if !writes.iter().all(|(_, write)| kind(write)) {
            return Err(Error::Invalid("a batch of writes has puts and deletes only".to_string()));
        }
        self.check_distinct(&writes)?;
        writes.iter().try_for_each(|(name, write)| self.write(name, write, now).map(drop))
    }

    /// Writes all or nothing.
    pub fn transact_write(
        &mut self,
        writes: &[(TableName, Write)],
        token: Option<&Token>,
        now: Timestamp,
    ) -> Result<()> {
        check_parts("a transaction", writes.len(), limits::TRANSACTION_ITEMS_MAX)?;
        self.check_distinct(writes)?;
        check_transaction_bytes(writes.iter().map(|(_, write)| write))?;
        self.tokens.retain(|_, (_, at)| now.since(*at) < limits::TRANSACTION_TOKEN_LIFE);
        if let Some((known, _)) = token.and_then(|token| self.tokens.get(token)) {
            return if known == writes { Ok(()) } else { Err(Error::TokenReused) };
        }
        let mut results = Vec::new();
        for (name, write) in writes {
            let (key, old) = self.current(name, write)?;
            let outcome = write.apply(&self.table(name)?.options, old.as_ref());
            results.push(outcome.map(|outcome| (key, outcome.new)));
        }
        if results.iter().any(|result| result.is_err()) {
            let reasons = results.into_iter().map(|result| result.err().map(cancelled)).collect();
            return Err(Error::TransactionCancelled { reasons });
        }
        for ((name, _), (key, new)) in writes.iter().zip(results.into_iter().flatten()) {
            self.store(name, key, new, now, false)?;
        }
        if let Some(token) = token {
            self.tokens.insert(token.clone(), (writes.to_vec(), now));
        }
        Ok(())
    }

    /// Removes the items whose time has come.
    pub fn expire(&mut self, now: Timestamp) {
        for name in self.tables.keys().cloned().collect::<Vec<_>>() {
            let due = |table: &Table| {
                let expired = table.items.iter().filter(|(_, item)| table.options.has_expired(item, now));
                expired.map(|(key, _)| key.clone()).collect::<Vec<_>>()
            };
            for key in self.tables.get(&name).map(due).unwrap_or_default() {
                // The table is there, so nothing is refused.
                self.store(&name, key, None, now, true).unwrap_or_default();
            }
        }
    }

    /// Forgets changes that were kept for a day, and streams that ended a day ago.
    pub fn trim(&mut self, now: Timestamp) {
        let day = limits::CHANGES_RETENTION.as_millis() as u64;
        let horizon = Timestamp::from_millis(now.as_millis().saturating_sub(day));
        self.logs.retain(|_, log| !log.trim(horizon));
    }

    /// The bytes of the key of a write, and the item as it is.
    fn current(&self, name: &TableName, write: &Write) -> Result<(Vec<u8>, Option<Item>)> {
        let table = self.table(name)?;
        let key = write.check(&table.options)?.bytes();
        let old = table.items.get(&key).cloned();
        Ok((key, old))
    }

    fn check_distinct(&self, writes: &[(TableName, Write)]) -> Result<()> {
        let mut seen = HashSet::new();
        for (name, write) in writes {
            let (key, _) = self.current(name, write)?;
            check_fresh(seen.insert((name, key)))?;
        }
        Ok(())
    }

    fn store(
        &mut self,
        name: &TableName,
        key: Vec<u8>,
        new: Option<Item>,
        now: Timestamp,
        expired: bool,
    ) -> Result<()> {
        let number = self.fresh_number();
        let table = self.table_mut(name)?;
        let old = match &new {
            Some(item) => table.items.insert(key, item.clone()),
            None => table.items.remove(&key),
        };
        let Some((view, stream)) = table.options.changes.zip(table.changes.clone()) else { return Ok(()) };
        let Some(image) = new.as_ref().or(old.as_ref()) else { return Ok(()) };
        let key = table.options.key.key_of(image)?;
        let keys = table.options.key.item(&key);
        let change = Change::between(keys, old.as_ref(), new.as_ref(), view, now, expired);
        if let (Some(change), Some(log)) = (change, self.logs.get_mut(&stream)) {
            log.append(number, now, key.hash.text(), change.encode());
        }
        Ok(())
    }
}

fn check_fresh(fresh: bool) -> Result<()> {
    if fresh { Ok(()) } else { Err(Error::Invalid("two parts of a call are about one item".to_string())) }
}

fn cancelled(error: Error) -> Cancelled {
    match error {
        Error::ConditionFailed { item } => Cancelled::ConditionFailed { item },
        other => Cancelled::Invalid(other.to_string()),
    }
}

/// Reading.
impl Tables {
    /// Reads an item.
    pub fn get(&self, name: &TableName, get: &Get) -> Result<Option<Item>> {
        let table = self.table(name)?;
        let key = get.check(&table.options)?;
        table.items.get(&key.bytes()).cloned().map(|item| get.show(item)).transpose()
    }

    /// Reads some items of this moment.
    pub fn transact_get(&self, gets: &[(TableName, Get)]) -> Result<Vec<Option<Item>>> {
        check_parts("a transaction", gets.len(), limits::TRANSACTION_ITEMS_MAX)?;
        let whole = |(name, get): &(TableName, Get)| {
            let found = self.get(name, &Get { projection: None, ..get.clone() })?;
            Ok(found.as_ref().map_or(0, Item::size))
        };
        let found = self.each_get(gets)?;
        check_read_bytes(gets.iter().map(whole).sum::<Result<_>>()?)?;
        Ok(found)
    }

    fn each_get(&self, gets: &[(TableName, Get)]) -> Result<Vec<Option<Item>>> {
        let mut seen = HashSet::new();
        for (name, get) in gets {
            check_fresh(seen.insert((name, get.check(&self.table(name)?.options)?)))?;
        }
        gets.iter().map(|(name, get)| self.get(name, get)).collect()
    }

    /// Reads a batch.
    pub fn batch_get(&self, gets: &[(TableName, Get)]) -> Result<Vec<Got>> {
        check_parts("a batch of reads", gets.len(), limits::BATCH_GET_ITEMS_MAX)?;
        let mut bytes = 0;
        let found = self.each_get(gets)?;
        let got = found.into_iter().map(|item| match item {
            None => Got::Missing,
            Some(item) if bytes == 0 || bytes + item.size() <= limits::BATCH_GET_BYTES_MAX => {
                bytes += item.size();
                Got::Item(item)
            }
            Some(_) => {
                bytes = limits::BATCH_GET_BYTES_MAX;
                Got::NotRead
            }
        });
        Ok(got.collect())
    }

    /// Reads items of one hash value.
    pub fn query(&self, name: &TableName, query: &Query) -> Result<ItemPage> {
        let table = self.table(name)?;
        let index = table.index(name, query.reading.index.as_ref())?;
        query.check(&table.options, index)?;
        let within = |item: &Item| query.key.holds(item);
        let entries = table.entries(index, &query.reading, within);
        if query.backward {
            table.page(index, entries.iter().rev(), &query.reading, true)
        } else {
            table.page(index, entries.iter(), &query.reading, false)
        }
    }

    /// Reads items of all hash values.
    pub fn scan(&self, name: &TableName, scan: &Scan) -> Result<ItemPage> {
        let table = self.table(name)?;
        let index = table.index(name, scan.reading.index.as_ref())?;
        scan.check(&table.options, index)?;
        let schema = index.map_or(&table.options.key, |index| &index.key);
        let within = |item: &Item| {
            let contains = |segment: Segment| schema.key_of(item).is_ok_and(|key| segment.contains(&key));
            scan.segment.is_none_or(contains)
        };
        let entries = table.entries(index, &scan.reading, within);
        table.page(index, entries.iter(), &scan.reading, false)
    }
}

impl Table {
    fn index(&self, table: &TableName, name: Option<&IndexName>) -> Result<Option<&IndexOptions>> {
        name.map(|name| self.options.index(table, name)).transpose()
    }

    /// What the table or an index holds within something, in its order. A local index finds in the table what it does
    /// not show itself.
    fn entries(
        &self,
        index: Option<&IndexOptions>,
        reading: &Reading,
        within: impl Fn(&Item) -> bool,
    ) -> BTreeMap<Vec<u8>, Item> {
        let items = self.items.iter().filter(|(_, item)| within(item));
        let Some(index) = index else {
            return items.map(|(key, item)| (key.clone(), item.clone())).collect();
        };
        let looks_up = reading.looks_up(&self.options, index);
        let entry = |(_, item): (_, &Item)| {
            let shown = self.options.shown(index, item)?;
            let place = self.options.place(Some(index), &shown).ok()?;
            Some((place, if looks_up { item.clone() } else { shown }))
        };
        items.filter_map(entry).collect()
    }

    fn page<'a>(
        &self,
        index: Option<&IndexOptions>,
        entries: impl Iterator<Item = (&'a Vec<u8>, &'a Item)>,
        reading: &Reading,
        backward: bool,
    ) -> Result<ItemPage> {
        let start = reading.start.as_ref().map(|start| self.options.place(index, start)).transpose()?;
        let behind = |place: &Vec<u8>| match &start {
            Some(start) if backward => place < start,
            Some(start) => place > start,
            None => true,
        };
        let mut page = PageFilling::new(reading, &self.options, index);
        for (_, item) in entries.filter(|(place, _)| behind(place)) {
            if !page.look_at(item.clone())? {
                return Ok(page.full());
            }
        }
        Ok(page.complete())
    }
}
