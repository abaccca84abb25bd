//! Making tables, writing, and reading to the end.

use std::fmt::Display;
use std::future::Future;

use crate::laws::trial::{self, STEPS_MAX, differing, give_way};
use crate::table::{
    Change, ChangeView, Get, Item, KeyKind, KeySchema, Query, Scan, TableOptions, TableState, TableStore,
    TableSummary, Token, Write,
};
use crate::{
    Error, HashKey, IndexName, Next, Position, ReadLimit, Record, Shard, ShardGraph, ShardId, StreamName,
    TableName, limits,
};

/// How often a law looks for something that a store does in its own time.
const PATIENCE: usize = 1_000;

pub(super) type Trial = trial::Trial<dyn TableStore>;

impl Trial {
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
        let number = self.next_number();
        self.ok("naming a table", TableName::new(&format!("{}.{}.{number}", self.means.prefix, self.law)))
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

    /// The streams of a table's changes, those that have ended too.
    pub async fn change_streams(&self, table: &TableName) -> Vec<StreamName> {
        self.ok("listing streams of changes", self.store().change_streams(table).await)
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
