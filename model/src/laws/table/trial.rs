//! One law in front of one store: making tables, writing, reading to the end, and saying what was seen.
//!
//! Calls that a law takes for granted panic when they fail; every message begins with the name of the law.

use std::fmt::{Debug, Display};
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::fixture::{Crash, Store, TableFixture};
use crate::laws::fixture::{Spawn, Turn, Upkeep};
use crate::laws::trial::{differing, give_way};
use crate::table::{
    Change, ChangeView, Get, Item, KeyKind, KeySchema, Query, Scan, TableOptions, TableState, TableSummary,
    Token, Write,
};
use crate::{
    Error, HashKey, IndexName, Next, Position, ReadLimit, Record, Result, Shard, ShardGraph, ShardId,
    StreamName, TableName, limits,
};

/// More steps than any law needs: a loop that reaches it means that the store goes round in circles.
const STEPS_MAX: usize = 100_000;
/// How often a law looks for something that a store does in its own time.
const PATIENCE: usize = 1_000;

pub(super) struct Trial {
    law: &'static str,
    store: Mutex<Option<Store>>,
    prefix: String,
    tables: AtomicUsize,
    advance: Option<Turn>,
    upkeep: Option<Upkeep>,
    crash: Option<Crash>,
    spawn: Spawn,
    _kept: Vec<Box<dyn std::any::Any + Send + Sync>>,
}

impl Trial {
    pub fn new(law: &'static str, fixture: TableFixture) -> Self {
        Trial {
            law,
            store: Mutex::new(Some(fixture.store)),
            prefix: fixture.prefix,
            tables: AtomicUsize::new(0),
            advance: fixture.advance,
            upkeep: fixture.upkeep,
            crash: fixture.crash,
            spawn: fixture.spawn,
            _kept: fixture.kept,
        }
    }
}

/// Saying what was seen.
impl Trial {
    #[track_caller]
    pub fn fail(&self, seen: impl Display) -> ! {
        panic!("law `{}`: {seen}", self.law)
    }

    #[track_caller]
    pub fn holds(&self, condition: bool, seen: impl Display) {
        if !condition {
            self.fail(seen)
        }
    }

    #[track_caller]
    pub fn same<T: PartialEq + Debug>(&self, what: impl Display, seen: T, expected: T) {
        if seen != expected {
            let [seen, expected] = differing(&format!("{seen:?}"), &format!("{expected:?}"));
            self.fail(format!("{what}:\n  saw      {seen}\n  expected {expected}"))
        }
    }

    #[track_caller]
    pub fn ok<T>(&self, what: impl Display, result: Result<T>) -> T {
        result.unwrap_or_else(|error| self.fail(format!("{what} failed: {error} ({error:?})")))
    }

    /// Asserts that a call was refused with an error that `fits`.
    #[track_caller]
    pub fn refused<T: Debug>(&self, what: impl Display, result: Result<T>, fits: impl Fn(&Error) -> bool) {
        match result {
            Ok(value) => self.fail(format!("{what} was not refused, but gave {value:?}")),
            Err(error) => {
                self.holds(fits(&error), format!("{what} was refused with {error:?}"));
                self.holds(!error.to_string().is_empty(), format!("{what} was refused without a word"));
            }
        }
    }

    /// Says why the law cannot be put to the test here.
    pub fn skip(&self, why: &str) {
        eprintln!("law `{}` was not put to the test: {why}", self.law);
    }
}

/// What the fixture can do.
impl Trial {
    pub fn store(&self) -> Store {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).clone();
        store.unwrap_or_else(|| self.fail("the store has crashed and is not open again"))
    }

    pub fn can_crash(&self) -> bool {
        self.crash.is_some()
    }

    /// Ends the store without warning and goes on with what is left of it.
    pub async fn crash(&self) {
        let Some(crash) = &self.crash else { self.fail("the fixture cannot crash") };
        let last_handle = self.store.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(last_handle);
        let store = crash().await;
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(store);
    }

    pub fn can_advance(&self) -> bool {
        self.advance.is_some()
    }

    /// Moves the clock and lets the store tidy up.
    pub async fn advance(&self, duration: Duration) {
        if let Some(advance) = &self.advance {
            advance(duration);
        }
        self.upkeep().await;
    }

    pub async fn upkeep(&self) {
        if let Some(upkeep) = &self.upkeep {
            upkeep().await;
        }
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
        (self.spawn)(Box::pin(task))
    }

    /// Looks again and again until `look` says that it has seen what it waits for, or what it saw instead.
    pub async fn eventually<F>(&self, what: impl Display, mut look: impl FnMut() -> F)
    where
        F: Future<Output = std::result::Result<(), String>>,
    {
        let mut seen = String::new();
        for _ in 0..PATIENCE {
            match look().await {
                Ok(()) => return,
                Err(saw) => seen = saw,
            }
            self.upkeep().await;
            give_way().await;
        }
        self.fail(format!("{what} does not come about:\n  {seen}"))
    }
}

/// Tables and writing.
impl Trial {
    /// A name that no other law uses.
    pub fn fresh_name(&self) -> TableName {
        let number = self.tables.fetch_add(1, Ordering::Relaxed);
        self.ok("naming a table", TableName::new(&format!("{}.{}.{number}", self.prefix, self.law)))
    }

    pub fn index_name(&self, name: &str) -> IndexName {
        self.ok("naming an index", IndexName::new(name))
    }

    pub async fn table(&self, options: TableOptions) -> TableName {
        let (store, name) = (self.store(), self.fresh_name());
        match store.delete_table(&name).await {
            Ok(()) | Err(Error::TableNotFound(_)) => {}
            Err(error) => self.fail(format!("deleting what an earlier run left failed: {error}")),
        }
        self.ok("making a table", store.create_table(&name, options).await);
        name
    }

    /// A new table whose key is the text `id`.
    pub async fn simple(&self) -> TableName {
        self.table(TableOptions::new(by_id())).await
    }

    /// A new table whose key is the text `group` and the number `at`.
    pub async fn grouped(&self) -> TableName {
        self.table(TableOptions::new(by_group())).await
    }

    /// A new table whose key is the text `id` and whose changes have a stream, for tokens of its own.
    pub async fn with_tokens(&self) -> TableName {
        self.table(TableOptions::new(by_id()).with_changes(ChangeView::Keys)).await
    }

    /// A token that was not used before, whatever ran against the store: the stream of a table's changes has a name of
    /// its own, which says so even of tables with one name.
    pub async fn token(&self, table: &TableName, label: &str) -> Token {
        let unique = HashKey::of(format!("{}/{label}", self.stream(table).await).as_bytes());
        self.ok("a token", Token::new(format!("{:032x}", unique.get())))
    }

    pub async fn summary(&self, table: &TableName) -> TableSummary {
        self.ok("describing a table", self.store().table(table).await)
    }

    /// Waits until the table and all its indexes are ready.
    pub async fn active(&self, table: &TableName) {
        let look = || async {
            let summary = self.summary(table).await;
            let ready = |state: TableState| state == TableState::Active;
            let all = ready(summary.state) && summary.indexes.iter().all(|index| ready(index.state));
            if all { Ok(()) } else { Err(format!("{summary:?}")) }
        };
        self.eventually("a table with active indexes", look).await;
    }

    pub async fn put(&self, table: &TableName, item: Item) {
        self.ok("a put", self.store().write(table, Write::put(item)).await);
    }

    pub async fn put_all(&self, table: &TableName, items: impl IntoIterator<Item = Item>) {
        for item in items {
            self.put(table, item).await;
        }
    }

    pub async fn write(&self, table: &TableName, write: Write) -> Option<Item> {
        let what = format!("{write:?}");
        self.ok(what, self.store().write(table, write).await)
    }
}

/// Reading.
impl Trial {
    pub async fn get(&self, table: &TableName, key: Item) -> Option<Item> {
        self.ok("a read", self.store().get(table, Get::new(key).consistent()).await)
    }

    /// All pages of a query.
    pub async fn query_all(&self, table: &TableName, query: Query) -> Vec<Item> {
        let mut items = Vec::new();
        let mut query = query;
        for _ in 0..STEPS_MAX {
            let page = self.ok("a query", self.store().query(table, query.clone()).await);
            self.same("the count of a page", page.returned, page.items.len());
            items.extend(page.items);
            if page.last.is_none() {
                return items;
            }
            query = query.start(page.last);
        }
        self.fail("a query does not end")
    }

    /// All pages of a scan.
    pub async fn scan_all(&self, table: &TableName, scan: Scan) -> Vec<Item> {
        let mut items = Vec::new();
        let mut scan = scan;
        for _ in 0..STEPS_MAX {
            let page = self.ok("a scan", self.store().scan(table, scan.clone()).await);
            self.same("the count of a page", page.returned, page.items.len());
            items.extend(page.items);
            if page.last.is_none() {
                return items;
            }
            scan = scan.start(page.last);
        }
        self.fail("a scan does not end")
    }

    /// Everything in a table, in an order that does not depend on the store.
    pub async fn contents(&self, table: &TableName) -> Vec<Item> {
        sorted(self.scan_all(table, Scan::new().consistent()).await)
    }

    /// Waits until a scan of an index shows these items; a store without lag must do so at once.
    pub async fn index_shows(&self, table: &TableName, index: &IndexName, expected: Vec<Item>) {
        let expected = sorted(expected);
        if self.store().capabilities().immediate {
            let seen = sorted(self.scan_all(table, Scan::new().index(index)).await);
            return self.same(format!("what index {index} shows"), seen, expected);
        }
        let look = || async {
            let seen = sorted(self.scan_all(table, Scan::new().index(index)).await);
            if seen == expected { Ok(()) } else { Err(differing_items(&seen, &expected)) }
        };
        self.eventually(format!("what index {index} should show"), look).await;
    }

    /// The stream of a table's changes.
    pub async fn stream(&self, table: &TableName) -> StreamName {
        let summary = self.summary(table).await;
        summary.changes.unwrap_or_else(|| self.fail("the changes of the table are not written down"))
    }

    /// The shards of a stream of changes, parents first.
    pub async fn shards(&self, stream: &StreamName) -> Vec<Shard> {
        let store = self.store();
        let mut shards: Vec<Shard> = Vec::new();
        loop {
            let after = shards.last().map(|shard| shard.id.clone());
            let page = store.changes().shards(stream, after.as_ref(), limits::PAGE_ENTRIES_MAX).await;
            let page = self.ok("listing the shards of changes", page);
            shards.extend(page.entries);
            if !page.more {
                return ShardGraph::new(shards).iter().cloned().collect();
            }
        }
    }

    /// All records of a stream of changes with their shards, in an order that holds for each item.
    pub async fn records(&self, stream: &StreamName) -> Vec<(ShardId, Record)> {
        let store = self.store();
        let mut records = Vec::new();
        for shard in self.shards(stream).await {
            let mut position = Position::TrimHorizon;
            for _ in 0..STEPS_MAX {
                let batch = store.changes().read(stream, &shard.id, position, ReadLimit::default()).await;
                let batch = self.ok("reading changes", batch);
                let caught_up = batch.records.is_empty() && batch.behind.is_zero();
                records.extend(batch.records.into_iter().map(|record| (shard.id.clone(), record)));
                match batch.next {
                    Next::At(next) if !caught_up => position = next,
                    _ => break,
                }
            }
        }
        records
    }

    /// All changes, in an order that holds for each item.
    pub async fn changes(&self, stream: &StreamName) -> Vec<Change> {
        let mut changes = Vec::new();
        for (_, record) in self.records(stream).await {
            self.holds(
                std::str::from_utf8(&record.partition_key).is_ok(),
                format!("the partition key of {record:?} is not UTF-8"),
            );
            changes.push(self.ok("decoding a change", Change::decode(&record.data)));
        }
        changes
    }
}

/// A key of one text.
pub(super) fn by_id() -> KeySchema {
    KeySchema::hash("id", KeyKind::Text)
}

/// A key of a text and a number.
pub(super) fn by_group() -> KeySchema {
    KeySchema::hash("group", KeyKind::Text).and_range("at", KeyKind::Number)
}

/// A key, or an item, of a table by [`by_id`].
pub(super) fn id(id: &str) -> Item {
    Item::new().with("id", id)
}

/// A key, or an item, of a table by [`by_group`].
pub(super) fn at(group: &str, at: i32) -> Item {
    Item::new().with("group", group).with("at", at)
}

/// Items in an order of their own.
pub(super) fn sorted(mut items: Vec<Item>) -> Vec<Item> {
    items.sort_by_cached_key(|item| {
        let mut bytes = Vec::new();
        item.encode(&mut bytes);
        bytes
    });
    items
}

fn differing_items(seen: &[Item], expected: &[Item]) -> String {
    let [seen, expected] = differing(&format!("{seen:?}"), &format!("{expected:?}"));
    format!("saw      {seen}\n  expected {expected}")
}
