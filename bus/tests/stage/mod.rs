//! The telemetry bot of `flows/telemetry.toml` on the real engine and in real time, in one process: a fleet that sends, a
//! consumer that reads all the while, and an audit of what it read.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

pub mod audit;
pub mod spiteful;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_bus::flow::{Flow, Ports};
use anabranch_bus::{Bot, Handle, Shards, Source};
use anabranch_consumer::StreamChoice;
use anabranch_engine::{Engine, Options, SystemClock, SystemDisk};
use anabranch_model::table::Value;
use anabranch_model::{
    Clock, NewMessage, QueueName, QueueOptions, QueueStore, Shard, ShardSource, StreamName, StreamOptions,
    StreamStore, TableName,
};
use anabranch_producer::scaler::{ScalerTable, TABLE_DEFAULT};
use audit::Audit;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use spiteful::Spiteful;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// The longest that anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(100);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(200);
/// How often the fleet sends what is due.
const TICK: Duration = Duration::from_millis(40);
/// Messages of one send; they hold no more than one send may.
const BATCH: usize = 3;

const FLOW: &str = include_str!("../../../flows/telemetry.toml");

/// Everything that a run stands on.
pub struct Stage {
    pub engine: Engine,
    pub streams: Arc<Spiteful>,
    pub clock: Arc<SystemClock>,
    pub audit: Arc<Audit>,
    /// The valid submissions that were sent, with the number of their events.
    pub valid: parking_lot::Mutex<BTreeMap<String, u64>>,
    pub numbers: AtomicU64,
    pub peak: AtomicU64,
    _folder: TempDir,
}

/// A bot that runs.
pub struct Running {
    handle: Handle,
    task: JoinHandle<anabranch_model::Result<()>>,
}

impl Running {
    fn start(bot: Bot) -> Self {
        Running { handle: bot.handle(), task: tokio::spawn(bot.run()) }
    }

    pub async fn stop(self) {
        self.handle.stop();
        self.task.await.unwrap().unwrap();
    }
}

pub fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

pub fn events() -> StreamName {
    StreamName::new("events").unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the engine and the scaler run in real time")]
pub async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Looks until something is so; until then a look says how things are instead.
pub async fn eventually(what: &str, mut look: impl AsyncFnMut() -> Result<(), String>) {
    let mut last = String::new();
    let looking = async {
        while let Err(state) = look().await {
            last = state;
            pause(LOOK).await;
        }
    };
    let so = tokio::time::timeout(PATIENCE, looking).await.is_ok();
    assert!(so, "it did not come to this: {what}; at last {last}");
}

/// What a look says.
pub fn so(is: bool, state: impl FnOnce() -> String) -> Result<(), String> {
    if is { Ok(()) } else { Err(state()) }
}

impl Stage {
    /// A directory with what the flow names. Of a hundred records, so many are refused for no reason.
    pub async fn new(shard_limits: bool, spite: u64) -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path(), shard_limits);
        let options = StreamOptions { shards: 1, ..StreamOptions::default() };
        engine.create_stream(&events(), options).await.unwrap();
        for name in ["submissions", "submissions-broken", "submissions-dead"] {
            engine.create_queue(&queue(name), QueueOptions::default()).await.unwrap();
        }
        let clock = Arc::new(SystemClock::new());
        let streams = Arc::new(Spiteful::new(engine.clone(), clock.clone(), spite));
        Arc::new(Stage {
            engine,
            streams,
            clock,
            audit: Arc::default(),
            valid: parking_lot::Mutex::default(),
            numbers: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            _folder: folder,
        })
    }

    /// Starts the bot of the flow, with these words of it replaced.
    pub async fn telemetry(&self, changes: &[(&str, &str)]) -> Running {
        let mut text = FLOW.to_owned();
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, to);
        }
        let flow = Flow::parse("telemetry.toml", &text).unwrap();
        let ports = Ports {
            streams: self.streams.clone(),
            queues: Arc::new(self.engine.clone()),
            tables: Arc::new(self.engine.clone()),
            blobs: Arc::new(self.engine.clone()),
            keyspaces: None,
            clock: self.clock.clone(),
            region: "us-east-1".to_owned(),
            steps: BTreeMap::new(),
        };
        Running::start(flow.assemble(&flow.bots[0], &ports).await.unwrap())
    }

    /// Starts a consumer that hands everything to the audit.
    pub fn reader(&self) -> Running {
        let (engine, stream) = (Arc::new(self.engine.clone()), StreamChoice::only(events()));
        let shards = Shards {
            lease_time: Duration::from_secs(3),
            ..Shards::new(engine.clone(), stream, engine, "readers")
        };
        let bot = Bot::builder("reader", Source::Shards(shards), self.audit.clone(), self.clock.clone());
        Running::start(bot.build().unwrap())
    }

    /// Sends so many submissions a second until it is told to stop, as late ones as there may be.
    pub async fn fleet(&self, per_second: u64, bytes: usize, stop: tokio::sync::watch::Receiver<bool>) {
        let began = self.clock.elapsed();
        let mut made = 0;
        while !*stop.borrow() {
            let due = ((self.clock.elapsed() - began).as_secs_f64() * per_second as f64) as u64;
            let bodies: Vec<String> = (made..due).map(|_| self.submission(bytes)).collect();
            made = due;
            let sends = bodies.chunks(BATCH).map(|batch| self.send(batch));
            futures_util::future::join_all(sends).await;
            pause(TICK).await;
        }
    }

    pub async fn send(&self, bodies: &[String]) {
        let messages = bodies.iter().map(|body| NewMessage::new(body.clone())).collect();
        for sent in self.engine.send(&queue("submissions"), messages).await.unwrap() {
            sent.unwrap();
        }
    }

    /// The next submission; one of ten is broken.
    fn submission(&self, bytes: usize) -> String {
        let number = self.numbers.fetch_add(1, Ordering::SeqCst);
        let id = format!("00000000-0000-4000-8000-{number:012x}");
        let (count, padding) = (number % 9, "x".repeat(bytes));
        let process = |order| format!(r#"{{"cmdl":"{number}/{order} {padding}","user":"john"}}"#);
        let processes: Vec<String> = (0..count).map(process).collect();
        let device =
            if number.is_multiple_of(30) { "broken" } else { "8c0b7e3e-3a80-45a5-8a3e-8b8f6a7cbb02" };
        let text = format!(
            r#"{{"submission_id":"{id}","device_id":"{device}","time_created":"2021-03-28T15:44:18.592840",
            "events":{{"new_process":[{}],"network_connection":[]}}}}"#,
            processes.join(",")
        );
        match number % 30 {
            0 => {}
            1 => return format!("not base64! {text}"),
            2 => return STANDARD.encode(&text[..text.len() - 1]),
            _ => drop(self.valid.lock().insert(id, count)),
        }
        STANDARD.encode(text)
    }

    pub async fn open_shards(&self) -> usize {
        let shards = self.engine.shards(&events(), None, 1000).await.unwrap().entries;
        let open = shards.iter().filter(|shard: &&Shard| shard.is_open()).count();
        self.peak.fetch_max(open as u64, Ordering::SeqCst);
        open
    }

    /// What the scaler decided, the newest first.
    pub async fn decisions(&self) -> Vec<Option<Value>> {
        let name = TableName::new(TABLE_DEFAULT).unwrap();
        let table = ScalerTable::existing(Arc::new(self.engine.clone()), name);
        let decisions = table.decisions(&events(), 1000).await.unwrap();
        decisions.iter().map(|decision| decision.get("why").cloned()).collect()
    }

    pub async fn waiting(&self, name: &str) -> u64 {
        self.engine.queue(&queue(name)).await.unwrap().counts.visible
    }

    /// Waits until every submission is done with, and every event of the valid ones is read.
    pub async fn drained(&self) {
        eventually("an empty queue", async || {
            let counts = self.engine.queue(&queue("submissions")).await.unwrap().counts;
            so(counts.visible + counts.in_flight + counts.delayed == 0, || format!("{counts:?}"))
        })
        .await;
        let sent: u64 = self.valid.lock().values().sum();
        eventually("a consumer that has read everything", async || {
            let read = self.audit.count() as u64;
            so(read >= sent, || format!("{read} of {sent}"))
        })
        .await;
    }
}

fn open(folder: &Path, shard_limits: bool) -> Engine {
    let disk = SystemDisk::open(folder).unwrap();
    let options = Options { shard_limits, ..Options::default() };
    Engine::open(Arc::new(disk), Arc::new(SystemClock::new()), options).unwrap()
}
