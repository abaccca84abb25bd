//! A store of tables with one fault, as a wrapper around one that is right.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_model::laws::reference::{ReferenceTables, Tables};
use anabranch_model::laws::table::TableFixture;
use anabranch_model::table::{
    Action, Alteration, Change, Condition, Get, Got, Item, ItemPage, Query, Reading, Returning, Scan,
    TableCapabilities, TableOptions, TableStore, TableSummary, Token, Update, Value, Write,
};
use anabranch_model::{
    Batch, Capabilities, Follow, Next, NextMove, Page, Position, ReadLimit, Result, SequenceNumber, Shard,
    ShardId, ShardSource, StreamName, TableName,
};
use async_trait::async_trait;
use futures_util::stream::{self, StreamExt};

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The fault of the innocent: it says that indexes lag, though they do not.
    ClaimsToLag,
    MiscountsItems,
    ListsBackwards,
    DeletesNoTable,
    DropsNulls,
    MergesPuts,
    DeletesNothing,
    FoldsKeys,
    ShowsWholeItems,
    CutsLongTexts,
    ReturnsNothing,
    IgnoresConditions,
    HidesFailedItem,
    ForgetsNegation,
    UpdatesOneByOne,
    UpdatesTopOnly,
    AddsTwice,
    RemovalsMakeItems,
    UpdatesMakeNothing,
    SortsByText,
    IgnoresRange,
    PagesSkip,
    IgnoresLimits,
    CountsReturnedOnly,
    EverySegmentIsAll,
    IgnoresIndexes,
    AnswersBackwards,
    BatchesWithoutEnd,
    DropsLastWrite,
    HalfTransactions,
    ForgetsTokens,
    KeepsTokens,
    LosesOldImages,
    RepeatsChanges,
    ChangesNeverEnd,
    NeverExpires,
    ExpiresEarly,
    SwallowsErrors,
    LosesLastChange,
    LosesChangesInCrash,
    FollowsTwice,
    FollowsBackwards,
    NeverEndsFollowing,
    KeepsChanges,
    TrimsEarly,
    ForgetsEndedStreams,
    ListsYoungestFirst,
}

#[derive(Clone)]
pub struct BrokenTables {
    inner: ReferenceTables,
    fault: Fault,
    tokens: Arc<Mutex<HashSet<Token>>>,
    /// The state before the last change.
    before: Arc<Mutex<Tables>>,
    crashed: Arc<AtomicBool>,
}

impl BrokenTables {
    pub fn fixture(fault: Fault) -> TableFixture {
        let inner = ReferenceTables::new();
        let store = BrokenTables {
            inner: inner.clone(),
            fault,
            tokens: Arc::default(),
            before: Arc::default(),
            crashed: Arc::default(),
        };
        let (survivor, tidy) = (store.clone(), inner.clone());
        inner
            .fixture(Arc::new(store))
            .with_upkeep(move || {
                match fault {
                    Fault::NeverExpires => {}
                    Fault::KeepsChanges => tidy.state().expire(tidy.now()),
                    Fault::TrimsEarly => {
                        tidy.tidy();
                        tidy.state().trim(tidy.now().plus(Duration::from_secs(12 * 3600)));
                    }
                    Fault::ExpiresEarly => {
                        let soon = tidy.now().plus(Duration::from_secs(5 * 24 * 3600));
                        tidy.state().expire(soon);
                    }
                    _ => tidy.tidy(),
                }
                std::future::ready(())
            })
            .with_crash(move || {
                survivor.crashed.store(true, Ordering::SeqCst);
                if fault == Fault::LosesLastChange {
                    *survivor.inner.state() = lock(&survivor.before).clone();
                }
                std::future::ready(Arc::new(survivor.clone()) as Arc<dyn TableStore>)
            })
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn before_change(&self) {
        if self.has(Fault::LosesLastChange) {
            *lock(&self.before) = self.inner.state().clone();
        }
    }

    /// The value of a call that was refused, if this store does not mind.
    fn swallow<T>(&self, result: Result<T>, instead: impl FnOnce() -> T) -> Result<T> {
        match result {
            Err(error) if self.has(Fault::SwallowsErrors) && error.next_move() == NextMove::FixCall => {
                Ok(instead())
            }
            other => other,
        }
    }

    fn spoil_key(&self, mut key: Item) -> Item {
        if let (Fault::FoldsKeys, Some(Value::Text(text))) = (self.fault, key.get("h").cloned()) {
            key.insert("h", text.to_lowercase());
        }
        key
    }

    fn spoil_item(&self, item: Item) -> Item {
        let spoil = |(name, value): (String, Value)| match (self.fault, value) {
            (Fault::DropsNulls, Value::Null) => None,
            (Fault::CutsLongTexts, Value::Text(text)) => {
                Some((name, Value::Text(text.chars().take(100 << 10).collect())))
            }
            (_, value) => Some((name, value)),
        };
        self.spoil_key(item.into_iter().filter_map(spoil).collect())
    }

    fn spoil_update(&self, mut update: Update) -> Update {
        match self.fault {
            Fault::UpdatesTopOnly => update.set.retain(|(path, _)| path.steps.is_empty()),
            Fault::AddsTwice => update.add.iter_mut().for_each(|(_, value)| {
                if let Value::Number(number) = value {
                    *number = number.plus(*number).unwrap_or(*number);
                }
            }),
            _ => {}
        }
        update
    }

    fn spoil_write(&self, mut write: Write) -> Write {
        write.action = match write.action {
            Action::Put(item) if self.has(Fault::MergesPuts) => {
                let (key, rest): (Vec<_>, Vec<_>) = item.into_iter().partition(|(name, _)| name == "id");
                let set = |update: Update, (name, value): (String, Value)| update.set(name.as_str(), value);
                Action::Update(key.into_iter().collect(), rest.into_iter().fold(Update::new(), set))
            }
            Action::Put(item) => Action::Put(self.spoil_item(item)),
            Action::Update(key, update) => Action::Update(self.spoil_key(key), self.spoil_update(update)),
            Action::Delete(key) if self.has(Fault::DeletesNothing) => {
                Action::Delete(key.with("id", "elsewhere"))
            }
            Action::Delete(key) => Action::Delete(self.spoil_key(key)),
            Action::Check(key) => Action::Check(key),
        };
        match self.fault {
            Fault::ReturnsNothing => write.returning = Returning::Nothing,
            Fault::HidesFailedItem => write.item_on_failure = false,
            Fault::IgnoresConditions => write.condition = None,
            Fault::ForgetsNegation => {
                if let Some(Condition::Not(inner)) = write.condition {
                    write.condition = Some(*inner);
                }
            }
            _ => {}
        }
        write
    }

    fn spoil_reading(&self, reading: &mut Reading) {
        match self.fault {
            Fault::ShowsWholeItems => reading.projection = None,
            Fault::IgnoresLimits => reading.limit = reading.limit.filter(|limit| *limit == 0),
            Fault::IgnoresIndexes => reading.index = None,
            _ => {}
        }
    }

    fn spoil_page(&self, page: &mut ItemPage, starts: bool) {
        match self.fault {
            Fault::PagesSkip if starts && !page.items.is_empty() => {
                page.items.remove(0);
                page.returned -= 1;
            }
            Fault::CountsReturnedOnly => page.evaluated = page.returned,
            Fault::SortsByText => page.items.sort_by_key(|item| format!("{item:?}")),
            _ => {}
        }
    }

    fn spoil_batch(&self, batch: &mut Batch) {
        let crashed = self.crashed.load(Ordering::SeqCst);
        match self.fault {
            Fault::LosesChangesInCrash if crashed => drop(batch.records.pop()),
            Fault::RepeatsChanges => {
                batch.records = batch.records.iter().flat_map(|r| [r.clone(), r.clone()]).collect()
            }
            Fault::LosesOldImages => batch.records.iter_mut().for_each(|record| {
                let change = Change::decode(&record.data).expect("a change");
                record.data = Change { old: None, ..change }.encode().into();
            }),
            Fault::ChangesNeverEnd if matches!(batch.next, Next::Ended(_)) => {
                batch.next = Next::At(Position::At(SequenceNumber::MAX));
            }
            _ => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl TableStore for BrokenTables {
    fn capabilities(&self) -> TableCapabilities {
        TableCapabilities { exact_counts: true, immediate: !self.has(Fault::ClaimsToLag) }
    }

    async fn create_table(&self, table: &TableName, options: TableOptions) -> Result<()> {
        self.before_change();
        self.swallow(self.inner.create_table(table, options).await, || ())
    }

    async fn delete_table(&self, table: &TableName) -> Result<()> {
        if self.has(Fault::DeletesNoTable) {
            return self.inner.table(table).await.map(drop);
        }
        self.before_change();
        self.inner.delete_table(table).await
    }

    async fn tables(&self, after: Option<&TableName>, limit: usize) -> Result<Page<TableName>> {
        let mut page = self.inner.tables(after, limit).await?;
        if self.has(Fault::ListsBackwards) {
            page.entries.reverse();
        }
        Ok(page)
    }

    async fn table(&self, table: &TableName) -> Result<TableSummary> {
        let mut summary = self.inner.table(table).await?;
        summary.items += u64::from(self.has(Fault::MiscountsItems));
        Ok(summary)
    }

    async fn alter(&self, table: &TableName, alteration: Alteration) -> Result<()> {
        self.before_change();
        self.swallow(self.inner.alter(table, alteration).await, || ())
    }

    async fn get(&self, table: &TableName, mut get: Get) -> Result<Option<Item>> {
        get.key = self.spoil_key(get.key);
        if self.has(Fault::ShowsWholeItems) {
            get.projection = None;
        }
        self.swallow(self.inner.get(table, get).await, || None)
    }

    async fn write(&self, table: &TableName, write: Write) -> Result<Option<Item>> {
        self.before_change();
        let write = self.spoil_write(write);
        if let (Fault::UpdatesOneByOne, Action::Update(key, update)) = (self.fault, &write.action) {
            for (path, value) in &update.set {
                let one = Update { set: vec![(path.clone(), value.clone())], ..Update::new() };
                self.inner.write(table, Write::update(key.clone(), one)).await?;
            }
            return Ok(None);
        }
        if let (Fault::UpdatesMakeNothing, Action::Update(key, _)) = (self.fault, &write.action)
            && self.inner.get(table, Get::new(key.clone())).await?.is_none()
        {
            return Ok(None);
        }
        if let (Fault::RemovalsMakeItems, Action::Update(key, update)) = (self.fault, &write.action)
            && update.set.is_empty()
        {
            self.inner.write(table, Write::update(key.clone(), Update::new())).await?;
        }
        self.swallow(self.inner.write(table, write).await, || None)
    }

    async fn batch_get(&self, gets: Vec<(TableName, Get)>) -> Result<Vec<Got>> {
        let mut got = self.inner.batch_get(gets.clone()).await;
        if self.has(Fault::AnswersBackwards) {
            got = got.map(|got| got.into_iter().rev().collect());
        }
        if let (Fault::BatchesWithoutEnd, Ok(got)) = (self.fault, &mut got) {
            for (got, (table, get)) in got.iter_mut().zip(gets) {
                *got = self.inner.get(&table, get).await?.map_or(Got::Missing, Got::Item);
            }
        }
        self.swallow(got, Vec::new)
    }

    async fn batch_write(&self, mut writes: Vec<(TableName, Action)>) -> Result<Vec<(TableName, Action)>> {
        self.before_change();
        if self.has(Fault::DropsLastWrite) && writes.len() > 1 {
            writes.pop();
        }
        self.swallow(self.inner.batch_write(writes).await, Vec::new)
    }

    async fn transact_get(&self, gets: Vec<(TableName, Get)>) -> Result<Vec<Option<Item>>> {
        if self.has(Fault::HalfTransactions) {
            let mut items = Vec::new();
            for (table, get) in gets {
                items.push(self.inner.get(&table, get).await?);
                tokio::task::yield_now().await;
            }
            return Ok(items);
        }
        self.swallow(self.inner.transact_get(gets).await, Vec::new)
    }

    async fn transact_write(&self, mut writes: Vec<(TableName, Write)>, token: Option<Token>) -> Result<()> {
        self.before_change();
        match self.fault {
            Fault::HalfTransactions => {
                for (table, write) in writes {
                    let write = if let Action::Check(_) = write.action { continue } else { write };
                    self.inner.write(&table, write).await?;
                    tokio::task::yield_now().await;
                }
                return Ok(());
            }
            Fault::KeepsTokens if token.clone().is_some_and(|token| !lock(&self.tokens).insert(token)) => {
                return Ok(());
            }
            Fault::DropsLastWrite if writes.len() > 1 => drop(writes.pop()),
            _ => {}
        }
        let token = token.filter(|_| !self.has(Fault::ForgetsTokens) && !self.has(Fault::KeepsTokens));
        let result = self.inner.transact_write(writes, token).await;
        self.swallow(result, || ())
    }

    async fn query(&self, table: &TableName, mut query: Query) -> Result<ItemPage> {
        self.spoil_reading(&mut query.reading);
        if self.has(Fault::IgnoresRange) {
            query.key.range = None;
        }
        let starts = query.reading.start.is_some();
        let mut page = self.swallow(self.inner.query(table, query).await, ItemPage::default)?;
        self.spoil_page(&mut page, starts);
        Ok(page)
    }

    async fn scan(&self, table: &TableName, mut scan: Scan) -> Result<ItemPage> {
        self.spoil_reading(&mut scan.reading);
        if self.has(Fault::EverySegmentIsAll) {
            scan.segment = None;
        }
        let starts = scan.reading.start.is_some();
        let mut page = self.swallow(self.inner.scan(table, scan).await, ItemPage::default)?;
        self.spoil_page(&mut page, starts);
        Ok(page)
    }

    fn changes(&self) -> &dyn ShardSource {
        self
    }

    async fn change_streams(&self, table: &TableName) -> Result<Vec<StreamName>> {
        let mut streams = self.inner.change_streams(table).await?;
        match self.fault {
            Fault::ForgetsEndedStreams => streams = streams.pop().into_iter().collect(),
            Fault::ListsYoungestFirst => streams.reverse(),
            _ => {}
        }
        Ok(streams)
    }
}

#[async_trait]
impl ShardSource for BrokenTables {
    fn capabilities(&self) -> Capabilities {
        ShardSource::capabilities(&self.inner)
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        self.inner.shards(stream, after, limit).await
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        let mut batch = self.inner.read(stream, shard, from, limit).await?;
        self.spoil_batch(&mut batch);
        Ok(batch)
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        let follow = self.inner.follow(stream, shard, from).await?;
        Ok(match self.fault {
            // The second batch comes once more.
            Fault::FollowsTwice => Box::pin(follow.enumerate().flat_map(|(number, batch)| {
                stream::iter(std::iter::repeat_n(batch, if number == 1 { 2 } else { 1 }))
            })),
            Fault::FollowsBackwards => Box::pin(follow.map(|batch| {
                batch.map(|mut batch| {
                    batch.records.reverse();
                    batch
                })
            })),
            Fault::NeverEndsFollowing => Box::pin(
                follow.map(|batch| batch.map(|batch| Batch { next: Next::At(Position::Latest), ..batch })),
            ),
            _ => follow,
        })
    }
}
