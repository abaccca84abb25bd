//! What processes tell each other about a stream, in one table.
//!
//! ```text
//!   stream (hash) │ entry (range)                    │ attributes
//!   orders        │ lease                            │ owner, version, duration_ms
//!                 │ traffic#<process>#<part>         │ at, traffic, place, waiting, growth, expires
//!                 │ decision#<milliseconds>#<number> │ at, kind, action, why, usage …, result, expires
//! ```

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::table::{
    Get, Item, KeyCondition, KeyKind, KeySchema, Query, RangeCondition, TableOptions, Value, Write,
};
use anabranch_model::{Error, Result, StreamName, TableName, TableStore, Timestamp};

use super::backlog::Backlog;
use super::decision::Decision;
use crate::traffic::{ShardSnapshot, decode, encode};

/// The table's name, unless another is given.
pub const TABLE_DEFAULT: &str = "anabranch-scaler";

const STREAM: &str = "stream";
const ENTRY: &str = "entry";
const EXPIRES: &str = "expires";
const AT: &str = "at";
const TRAFFIC: &str = "traffic";
/// What waits in front of the process, where, and how many records more it becomes in a second.
const PLACE: &str = "place";
const WAITING: &str = "waiting";
const GROWTH: &str = "growth";
const TRAFFIC_PREFIX: &str = "traffic#";
const DECISION_PREFIX: &str = "decision#";
/// Shards whose traffic fits into one item, however busy they are.
const SHARDS_PER_ITEM: usize = 60;
/// How long a decision is kept.
const DECISION_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long traffic is kept that nobody renews.
const TRAFFIC_KEPT: Duration = Duration::from_secs(3600);

/// What one process says about a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The process.
    pub process: String,
    /// When it said so.
    pub at: Timestamp,
    /// The traffic of its shards.
    pub shards: Vec<ShardSnapshot>,
    /// What waits in front of it, if it can say.
    pub backlog: Option<Backlog>,
}

/// The table of a scaler.
#[derive(Clone)]
pub struct ScalerTable {
    tables: Arc<dyn TableStore>,
    name: TableName,
}

impl ScalerTable {
    /// Opens the table, and makes it if it does not exist.
    pub async fn open(tables: Arc<dyn TableStore>, name: TableName) -> Result<Self> {
        match tables.table(&name).await {
            Ok(summary) if summary.options.key == key_schema() => {}
            Ok(_) => {
                return Err(Error::Invalid(format!(
                    "table `{name}` has another key than the table of a scaler: choose another name, or remove it"
                )));
            }
            Err(Error::TableNotFound(_)) => {
                let options = TableOptions::new(key_schema()).with_time_to_live(EXPIRES);
                match tables.create_table(&name, options).await {
                    Ok(()) | Err(Error::TableExists(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        }
        Ok(ScalerTable { tables, name })
    }

    /// Uses the table as it is; nothing is made.
    pub fn existing(tables: Arc<dyn TableStore>, name: TableName) -> Self {
        ScalerTable { tables, name }
    }

    /// Writes down what a process sees.
    pub async fn tell(
        &self,
        stream: &StreamName,
        process: &str,
        shards: &[ShardSnapshot],
        backlog: Option<&Backlog>,
        now: Timestamp,
    ) -> Result<()> {
        for (part, shards) in shards.chunks(SHARDS_PER_ITEM).enumerate() {
            let mut item = key(stream, &format!("{TRAFFIC_PREFIX}{process}#{part}"))
                .with(AT, now.as_millis())
                .with(TRAFFIC, encode(shards))
                .with(EXPIRES, now.plus(TRAFFIC_KEPT).as_millis() / 1000);
            if let Some(backlog) = backlog.filter(|_| part == 0) {
                item = item
                    .with(PLACE, backlog.place.as_str())
                    .with(WAITING, Value::number(&format!("{:.0}", backlog.records))?)
                    .with(GROWTH, Value::number(&format!("{:.0}", backlog.growth))?);
            }
            self.tables.write(&self.name, Write::put(item)).await?;
        }
        Ok(())
    }

    /// What all processes said since a moment.
    pub async fn told(&self, stream: &StreamName, since: Timestamp) -> Result<Vec<Told>> {
        let mut told: Vec<Told> = Vec::new();
        for item in self.entries(stream, TRAFFIC_PREFIX, usize::MAX, false).await? {
            let at = Timestamp::from_millis(number(&item, AT).unwrap_or(0));
            let (Some(entry), Some(Value::Binary(bytes))) = (text(&item, ENTRY), item.get(TRAFFIC)) else {
                continue;
            };
            if at < since {
                continue;
            }
            let process =
                entry.trim_start_matches(TRAFFIC_PREFIX).rsplit_once('#').map_or(entry, |(name, _)| name);
            let shards = decode(bytes)?;
            let backlog = backlog(&item);
            match told.iter_mut().find(|known| known.process == process) {
                Some(known) => {
                    known.shards.extend(shards);
                    known.backlog = known.backlog.take().or(backlog);
                }
                None => told.push(Told { process: process.to_owned(), at, shards, backlog }),
            }
        }
        Ok(told)
    }

    /// Writes down a decision and what came of it.
    pub async fn record(
        &self,
        stream: &StreamName,
        number: usize,
        decision: &Decision,
        result: &str,
        now: Timestamp,
    ) -> Result<()> {
        let share = |value: f64| Value::number(&format!("{value:.4}"));
        let figures = &decision.figures;
        let item = key(stream, &format!("{DECISION_PREFIX}{:013}#{number}", now.as_millis()))
            .with(AT, now.as_millis())
            .with("kind", decision.action.word())
            .with("action", decision.action.to_string())
            .with("why", decision.why.as_str())
            .with("result", result)
            .with("usage", share(figures.usage)?)
            .with("bytes", share(figures.bytes)?)
            .with("records", share(figures.records)?)
            .with("demand", share(figures.demand)?)
            .with("threshold", share(figures.threshold)?)
            .with("throttles", figures.throttles)
            .with(EXPIRES, now.plus(DECISION_KEPT).as_millis() / 1000);
        self.tables.write(&self.name, Write::put(item)).await.map(drop)
    }

    /// The last decisions, the newest first.
    pub async fn decisions(&self, stream: &StreamName, limit: usize) -> Result<Vec<Item>> {
        self.entries(stream, DECISION_PREFIX, limit, true).await
    }

    pub(super) async fn get(&self, stream: &StreamName, entry: &str) -> Result<Option<Item>> {
        self.tables.get(&self.name, Get::new(key(stream, entry)).consistent()).await
    }

    pub(super) async fn write(&self, write: Write) -> Result<()> {
        self.tables.write(&self.name, write).await.map(drop)
    }

    async fn entries(
        &self,
        stream: &StreamName,
        prefix: &str,
        limit: usize,
        backward: bool,
    ) -> Result<Vec<Item>> {
        let range = RangeCondition::begins_with(prefix);
        let mut query = Query::new(KeyCondition::of(STREAM, stream.as_str()).and(ENTRY, range));
        query.backward = backward;
        query.reading.consistent = true;
        let mut items = Vec::new();
        loop {
            query.reading.limit = (limit != usize::MAX).then(|| limit - items.len());
            let page = match self.tables.query(&self.name, query.clone()).await {
                // Whoever only looks makes no table: then nobody has told anything.
                Err(Error::TableNotFound(_)) => return Ok(items),
                page => page?,
            };
            items.extend(page.items);
            match page.last {
                Some(last) if items.len() < limit => query.reading.start = Some(last),
                _ => return Ok(items),
            }
        }
    }
}

fn key_schema() -> KeySchema {
    KeySchema::hash(STREAM, KeyKind::Text).and_range(ENTRY, KeyKind::Text)
}

pub(super) fn key(stream: &StreamName, entry: &str) -> Item {
    Item::new().with(STREAM, stream.as_str()).with(ENTRY, entry)
}

fn backlog(item: &Item) -> Option<Backlog> {
    let count = |name| match item.get(name)? {
        Value::Number(number) => number.as_i128().map(|number| number as f64),
        _ => None,
    };
    Some(Backlog { place: text(item, PLACE)?.to_owned(), records: count(WAITING)?, growth: count(GROWTH)? })
}

pub(super) fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    match item.get(name)? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

pub(super) fn number(item: &Item, name: &str) -> Option<u64> {
    match item.get(name)? {
        Value::Number(number) => number.as_i128().and_then(|number| u64::try_from(number).ok()),
        _ => None,
    }
}
