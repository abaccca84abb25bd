//! Tables as one worker sees them: far away, throttled, cut off, and not always honest about what they did. What is
//! written all the same is watched.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::Lease;
use anabranch_model::laws::reference::ReferenceTables;
use anabranch_model::table::{
    Action, Alteration, Get, Got, Item, ItemPage, Query, Scan, TableCapabilities, TableOptions, TableStore,
    TableSummary, Token, Write,
};
use anabranch_model::{Clock, Dice, Error, Page, Result, ShardSource, StreamName, TableName};
use async_trait::async_trait;
use parking_lot::Mutex;

use super::pause;

/// How long the workers of a storm drain.
pub const DRAIN_MAX: Duration = Duration::from_secs(5);

/// What is wrong at the moment, in percent of the calls where it is a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weather {
    pub cut_off: bool,
    /// The worker's process is stopped: it sends nothing and hears nothing.
    pub frozen: bool,
    pub throttled: u64,
    /// Carried out, but the answer is lost.
    pub lies: u64,
    /// Writes that are carried out long after their caller gave up.
    pub late: u64,
    /// Calls that end the task of their caller, as a mistake of ours would.
    pub panics: u64,
    /// The same, of writes alone.
    pub write_panics: u64,
    /// Somebody else is making the tables: they cannot be made, and are not there yet.
    pub in_the_making: bool,
    /// Every call is refused with this.
    pub denied: Option<Error>,
    /// The answer to one write is lost, behind so many others.
    pub answer_lost_behind: Option<usize>,
}

/// Watches every write to the leases.
pub struct Audit {
    clock: Arc<dyn Clock>,
    lease_time: Duration,
    state: Mutex<AuditState>,
}

#[derive(Default)]
struct AuditState {
    /// When the counter of a lease last changed.
    changed: BTreeMap<String, Duration>,
    /// Since when a worker is asked to hand a lease over.
    asked: BTreeMap<String, (String, Duration)>,
    violations: Vec<String>,
    /// Leases that are being made, and the most at once.
    creations: (usize, usize),
    /// Everything that happened, to compare two runs.
    trace: Vec<String>,
}

impl Audit {
    pub fn new(clock: Arc<dyn Clock>, lease_time: Duration) -> Arc<Self> {
        Arc::new(Audit { clock, lease_time, state: Mutex::default() })
    }

    pub fn violations(&self) -> Vec<String> {
        self.state.lock().violations.clone()
    }

    /// How many leases were being made at the same time, at most.
    pub fn creations_max(&self) -> usize {
        self.state.lock().creations.1
    }

    fn creating(&self) -> Creation<'_> {
        let mut state = self.state.lock();
        state.creations.0 += 1;
        state.creations.1 = state.creations.1.max(state.creations.0);
        Creation(self)
    }

    /// Notes something that is no write.
    pub fn note(&self, what: &str) {
        let now = self.clock.elapsed().as_millis();
        self.state.lock().trace.push(format!("{now} {what}"));
    }

    pub fn trace(&self) -> Vec<String> {
        self.state.lock().trace.clone()
    }

    /// Checks one write that was carried out.
    fn look(&self, worker: &str, old: Option<&Lease>, new: Option<&Lease>) {
        let now = self.clock.elapsed();
        let mut state = self.state.lock();
        let key = new.or(old).map(|lease| lease.key.to_string()).unwrap_or_default();
        let shown = new.map(|lease| format!("{} {:?} {}", lease.counter, lease.owner, lease.checkpoint));
        state.trace.push(format!("{} {worker} {key} {shown:?}", now.as_millis()));
        if let (Some(old), Some(new)) = (old, new) {
            if new.checkpoint < old.checkpoint {
                state.violations.push(format!("{worker}: {key} goes back: {old:?} to {new:?}"));
            }
            if new.checkpoint != old.checkpoint && old.reader().map(|reader| reader.as_str()) != Some(worker)
            {
                state.violations.push(format!("{worker} checkpoints {key} of {:?}", old.reader()));
            }
            if new.counter < old.counter {
                state.violations.push(format!("{worker}: the counter of {key} goes back"));
            }
            // A lease that is taken from somebody who reads it must have stood still for its whole time.
            let robbed = old.reader().filter(|reader| reader.as_str() != worker);
            if robbed.is_some() && new.reader() != old.reader() {
                let still = now.saturating_sub(state.changed.get(&key).copied().unwrap_or_default());
                // Or it was asked for, for as long as two drains and a lease take.
                let asked = state.asked.get(&key).map_or(Duration::ZERO, |(_, since)| now - *since);
                if still < self.lease_time && asked < DRAIN_MAX * 2 + self.lease_time {
                    let reader = old.reader();
                    state.violations.push(format!("{worker} takes {key} of {reader:?} after {still:?}"));
                }
            }
        }
        match new.and_then(|lease| lease.checkpoint_owner.as_ref()) {
            Some(owner) if state.asked.get(&key).is_none_or(|(asked, _)| asked != owner.as_str()) => {
                state.asked.insert(key.clone(), (owner.to_string(), now));
            }
            Some(_) => {}
            None => drop(state.asked.remove(&key)),
        }
        if old.map(|lease| lease.counter) != new.map(|lease| lease.counter) {
            state.changed.insert(key, now);
        }
    }
}

/// A lease that is being made.
struct Creation<'a>(&'a Audit);

impl Drop for Creation<'_> {
    fn drop(&mut self) {
        self.0.state.lock().creations.0 -= 1;
    }
}

/// The tables as one worker sees them.
#[derive(Clone)]
pub struct Faulty {
    pub inner: ReferenceTables,
    pub leases: TableName,
    pub worker: String,
    pub weather: Arc<Mutex<Weather>>,
    pub dice: Arc<Dice>,
    pub audit: Arc<Audit>,
}

impl Faulty {
    async fn thawed(&self) {
        while self.weather.lock().frozen {
            pause(Duration::from_millis(50)).await;
        }
    }

    /// The way there.
    async fn before(&self) -> Result<()> {
        self.thawed().await;
        pause(self.dice.between(Duration::from_millis(1), Duration::from_millis(20))).await;
        let weather = self.weather.lock().clone();
        if weather.cut_off {
            // Some calls are refused, and some are never answered.
            if self.dice.roll().is_multiple_of(2) {
                std::future::pending::<()>().await;
            }
            return Err(Error::Unavailable("cut off".to_owned()));
        }
        if let Some(error) = weather.denied {
            return Err(error);
        }
        if self.dice.roll() % 100 < weather.panics {
            // Nobody needs to read of it.
            std::panic::resume_unwind(Box::new("planted"));
        }
        if self.dice.roll() % 100 < weather.throttled {
            let retry_after = Duration::from_millis(50);
            return Err(Error::SlowDown { what: "too many calls".to_owned(), retry_after });
        }
        Ok(())
    }

    /// The way back.
    async fn after<T>(&self, result: Result<T>) -> Result<T> {
        self.thawed().await;
        pause(self.dice.between(Duration::from_millis(1), Duration::from_millis(10))).await;
        let weather = self.weather.lock().clone();
        if weather.cut_off || self.dice.roll() % 100 < weather.lies {
            return Err(Error::Unavailable("the answer was lost".to_owned()));
        }
        result
    }

    /// Counts a write that was carried out, and loses its answer if it is the one.
    fn answer(&self) -> Result<()> {
        let behind = &mut self.weather.lock().answer_lost_behind;
        match behind.take() {
            None => Ok(()),
            Some(0) => {
                self.audit.note("the answer is lost");
                Err(Error::Unavailable("the connection was reset".to_owned()))
            }
            Some(writes) => {
                *behind = Some(writes - 1);
                Ok(())
            }
        }
    }

    /// Carries a write out. Nothing happens between the looks before and behind it: there is no wait in between.
    async fn carry_out(&self, table: &TableName, write: Write) -> Result<Option<Item>> {
        if *table != self.leases {
            return self.inner.write(table, write).await;
        }
        let key = match &write.action {
            Action::Put(item) | Action::Update(item, _) | Action::Delete(item) | Action::Check(item) => item,
        };
        let key = Item::new().with("leaseKey", key.get("leaseKey").cloned().expect("a key"));
        let lease = |item: Option<Item>| item.and_then(|item| Lease::read(&item).expect("a lease"));
        let old = lease(self.inner.get(table, Get::new(key.clone())).await?);
        let result = self.inner.write(table, write).await;
        let new = lease(self.inner.get(table, Get::new(key)).await?);
        if result.is_ok() && (old.is_some() || new.is_some()) {
            self.audit.look(&self.worker, old.as_ref(), new.as_ref());
        }
        result
    }
}

#[async_trait]
impl TableStore for Faulty {
    fn capabilities(&self) -> TableCapabilities {
        TableStore::capabilities(&self.inner)
    }

    async fn create_table(&self, table: &TableName, options: TableOptions) -> Result<()> {
        self.before().await?;
        if self.weather.lock().in_the_making {
            return Err(Error::TableExists(table.clone()));
        }
        let result = self.inner.create_table(table, options).await;
        self.after(result).await
    }

    async fn delete_table(&self, table: &TableName) -> Result<()> {
        self.inner.delete_table(table).await
    }

    async fn tables(&self, after: Option<&TableName>, limit: usize) -> Result<Page<TableName>> {
        self.inner.tables(after, limit).await
    }

    async fn table(&self, table: &TableName) -> Result<TableSummary> {
        self.before().await?;
        if self.weather.lock().in_the_making {
            return Err(Error::TableNotFound(table.clone()));
        }
        let result = self.inner.table(table).await;
        self.after(result).await
    }

    async fn alter(&self, table: &TableName, alteration: Alteration) -> Result<()> {
        self.inner.alter(table, alteration).await
    }

    async fn get(&self, table: &TableName, get: Get) -> Result<Option<Item>> {
        self.before().await?;
        let result = self.inner.get(table, get).await;
        self.after(result).await
    }

    async fn write(&self, table: &TableName, write: Write) -> Result<Option<Item>> {
        let is_creation = *table == self.leases && matches!(write.action, Action::Put(_));
        let _creating = is_creation.then(|| self.audit.creating());
        self.before().await?;
        let weather = self.weather.lock().clone();
        if self.dice.roll() % 100 < weather.write_panics {
            std::panic::resume_unwind(Box::new("planted"));
        }
        if self.dice.roll() % 100 < weather.late {
            let (late, table) = (self.clone(), table.clone());
            let by = self.dice.between(Duration::from_secs(1), Duration::from_secs(30));
            tokio::spawn(async move {
                pause(by).await;
                let _ = late.carry_out(&table, write).await;
            });
            std::future::pending::<()>().await;
            return Ok(None);
        }
        let result = self.carry_out(table, write).await;
        self.answer()?;
        self.after(result).await
    }

    async fn batch_get(&self, gets: Vec<(TableName, Get)>) -> Result<Vec<Got>> {
        self.inner.batch_get(gets).await
    }

    async fn batch_write(&self, writes: Vec<(TableName, Action)>) -> Result<Vec<(TableName, Action)>> {
        self.inner.batch_write(writes).await
    }

    async fn transact_get(&self, gets: Vec<(TableName, Get)>) -> Result<Vec<Option<Item>>> {
        self.inner.transact_get(gets).await
    }

    async fn transact_write(&self, writes: Vec<(TableName, Write)>, token: Option<Token>) -> Result<()> {
        self.inner.transact_write(writes, token).await
    }

    async fn query(&self, table: &TableName, query: Query) -> Result<ItemPage> {
        self.inner.query(table, query).await
    }

    async fn scan(&self, table: &TableName, scan: Scan) -> Result<ItemPage> {
        self.before().await?;
        let result = self.inner.scan(table, scan).await;
        self.after(result).await
    }

    fn changes(&self) -> &dyn ShardSource {
        self.inner.changes()
    }

    async fn change_streams(&self, table: &TableName) -> Result<Vec<StreamName>> {
        self.inner.change_streams(table).await
    }
}
