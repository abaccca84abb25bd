//! The telemetry bot from the queue to the stream, with a scaler beside it, on a stream whose shards have limits. Time jumps to
//! the next event.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anabranch_bus::telemetry::{Explode, Exploder, SUBMISSION_SCHEMA, Samples, StreamRuns, waiting};
use anabranch_bus::{Bot, Handle, Queue, Source};
use anabranch_consumer::{DeadLetters, FailurePolicy, Finally};
use anabranch_model::laws::reference::{ReferenceTables, SimpleQueues, SimpleStreams};
use anabranch_model::{
    Appended, Batch, Capabilities, Clock, Dice, Error, Follow, HashKey, NewMessage, NewRecord, Next, Page,
    Position, QueueName, QueueOptions, QueueStore, ReadLimit, Result, Shard, ShardId, ShardSource,
    StreamName, StreamOptions, StreamStore, StreamSummary, TableName, Timestamp,
};
use anabranch_producer::scaler::{Scaler, ScalerSettings, ScalerTable, report};
use anabranch_producer::{Pace, Producer, Settings};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};

/// What a shard takes in a second.
const LIMIT: f64 = 100.0;

struct RuntimeClock(tokio::time::Instant);

impl RuntimeClock {
    #[expect(clippy::disallowed_methods, reason = "the runtime's clock is the one that the test moves")]
    fn new() -> Arc<Self> {
        Arc::new(RuntimeClock(tokio::time::Instant::now()))
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000).plus(self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[expect(clippy::disallowed_methods, reason = "time is simulated")]
async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A stream with limits, as one process sees it.
struct Limited {
    inner: SimpleStreams,
    clock: Arc<RuntimeClock>,
    /// Of each shard what it can still take, and when that was so.
    buckets: Arc<Mutex<HashMap<ShardId, (f64, Duration)>>>,
    /// Records refused, by the second.
    refused: Arc<Mutex<BTreeMap<u64, u64>>>,
    dice: Dice,
    /// Records in a hundred that are refused for no reason.
    spite: u64,
    /// The process lives; calls of a dead one never come back.
    alive: Arc<AtomicBool>,
}

impl Limited {
    async fn lives(&self) {
        pause(self.dice.between(Duration::from_millis(1), Duration::from_millis(4))).await;
        if !self.alive.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    fn admit(&self, shards: &[Shard], record: &NewRecord) -> Result<()> {
        let now = self.clock.elapsed();
        let owner = shards.iter().find(|shard| shard.range.unwrap().contains(record.hash_key())).unwrap();
        let mut buckets = self.buckets.lock();
        let (have, at) = buckets.entry(owner.id.clone()).or_insert((LIMIT, now));
        *have = (*have + (now - *at).as_secs_f64() * LIMIT).min(LIMIT);
        *at = now;
        let spite = self.dice.roll() % 100 < self.spite;
        if *have >= 1.0 && !spite {
            *have -= 1.0;
            return Ok(());
        }
        if !spite {
            *self.refused.lock().entry(now.as_secs()).or_default() += 1;
        }
        Err(Error::Throttled {
            shard: owner.id.clone(),
            limit: "records",
            retry_after: Duration::from_millis(100),
        })
    }
}

#[async_trait]
impl ShardSource for Limited {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        self.lives().await;
        self.inner.shards(stream, after, limit).await
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        self.inner.read(stream, shard, from, limit).await
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        self.inner.follow(stream, shard, from).await
    }
}

#[async_trait]
impl StreamStore for Limited {
    async fn create_stream(&self, stream: &StreamName, options: StreamOptions) -> Result<()> {
        self.inner.create_stream(stream, options).await
    }

    async fn delete_stream(&self, stream: &StreamName) -> Result<()> {
        self.inner.delete_stream(stream).await
    }

    async fn streams(&self, after: Option<&StreamName>, limit: usize) -> Result<Page<StreamSummary>> {
        self.inner.streams(after, limit).await
    }

    async fn stream(&self, stream: &StreamName) -> Result<StreamSummary> {
        self.inner.stream(stream).await
    }

    async fn set_retention(&self, stream: &StreamName, retention: Duration) -> Result<()> {
        self.inner.set_retention(stream, retention).await
    }

    async fn append(&self, stream: &StreamName, records: Vec<NewRecord>) -> Result<Vec<Result<Appended>>> {
        self.lives().await;
        let open = open(&self.inner).await;
        let mut results = Vec::new();
        for record in records {
            results.push(match self.admit(&open, &record) {
                Ok(()) => self.inner.append(stream, vec![record]).await?.pop().unwrap(),
                Err(error) => Err(error),
            });
        }
        self.lives().await;
        Ok(results)
    }

    async fn split(&self, stream: &StreamName, shard: &ShardId, at: HashKey) -> Result<[ShardId; 2]> {
        self.lives().await;
        self.inner.split(stream, shard, at).await
    }

    async fn merge(&self, stream: &StreamName, shard: &ShardId, neighbour: &ShardId) -> Result<ShardId> {
        self.lives().await;
        self.inner.merge(stream, shard, neighbour).await
    }
}

async fn open(streams: &SimpleStreams) -> Vec<Shard> {
    let shards = streams.shards(&events(), None, 1000).await.unwrap().entries;
    shards.into_iter().filter(Shard::is_open).collect()
}

fn events() -> StreamName {
    StreamName::new("events").unwrap()
}

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

struct World {
    streams: SimpleStreams,
    queues: SimpleQueues,
    tables: ReferenceTables,
    clock: Arc<RuntimeClock>,
    buckets: Arc<Mutex<HashMap<ShardId, (f64, Duration)>>>,
    refused: Arc<Mutex<BTreeMap<u64, u64>>>,
    /// The submissions that are valid, with the number of their events.
    sent: Mutex<BTreeMap<String, usize>>,
    numbers: AtomicU64,
    spite: u64,
}

/// A process that runs the bot.
struct Process {
    handle: Handle,
    task: tokio::task::JoinHandle<Result<()>>,
    alive: Arc<AtomicBool>,
    producer: Producer,
}

fn settings() -> ScalerSettings {
    ScalerSettings {
        max_capacity: 1e6,
        max_records: LIMIT,
        observation_period: seconds(3),
        entry_lifetime: seconds(10),
        merge_cooldown: seconds(15),
        ..ScalerSettings::default()
    }
}

impl World {
    async fn new(spite: u64) -> Arc<Self> {
        let world = Arc::new(World {
            streams: SimpleStreams::new(),
            queues: SimpleQueues::new(),
            tables: ReferenceTables::new(),
            clock: RuntimeClock::new(),
            buckets: Arc::default(),
            refused: Arc::default(),
            sent: Mutex::default(),
            numbers: AtomicU64::new(0),
            spite,
        });
        world
            .streams
            .create_stream(&events(), StreamOptions { shards: 1, ..StreamOptions::default() })
            .await
            .unwrap();
        for name in ["submissions", "broken", "dead"] {
            world.queues.create_queue(&queue(name), QueueOptions::default()).await.unwrap();
        }
        // The clocks of the stores follow that of the runtime.
        let ticking = world.clone();
        tokio::spawn(async move {
            loop {
                pause(Duration::from_millis(250)).await;
                ticking.streams.advance(Duration::from_millis(250));
                ticking.queues.advance(Duration::from_millis(250));
            }
        });
        world
    }

    async fn start(&self, name: &str) -> Process {
        let alive = Arc::new(AtomicBool::new(true));
        let store: Arc<dyn StreamStore> = Arc::new(Limited {
            inner: self.streams.clone(),
            clock: self.clock.clone(),
            buckets: self.buckets.clone(),
            refused: self.refused.clone(),
            dice: Dice::new(name.len() as u64),
            spite: self.spite,
            alive: alive.clone(),
        });
        let capacity = Pace { records: LIMIT, bytes: 1e6 };
        let settings_of_producer = Settings {
            capacity,
            pace: Some(capacity),
            linger: Duration::ZERO,
            refresh_every: seconds(2),
            seed: Some(7),
            ..Settings::default()
        };
        let clock: Arc<dyn Clock> = self.clock.clone();
        let producer =
            Producer::start(store.clone(), events(), clock.clone(), settings_of_producer).await.unwrap();
        let table = ScalerTable::open(Arc::new(self.tables.clone()), TableName::new("scaler").unwrap())
            .await
            .unwrap();
        let (telling, scaling) = (alive.clone(), alive.clone());
        let exploder = Exploder::new(SUBMISSION_SCHEMA, "built in").unwrap();
        let samples = Samples { queues: Arc::new(self.queues.clone()), queue: queue("broken"), one_in: 5 };
        let step = Explode::new(exploder, Some(samples), clock.clone());
        let (queues, period) = (Arc::new(self.queues.clone()), settings().observation_period);
        let waits = waiting(queues, queue("submissions"), step.yielded(), period);
        tokio::spawn(report(
            producer.clone(),
            table.clone(),
            name.to_owned(),
            seconds(1),
            Some(waits),
            clock.clone(),
            dead(telling),
        ));
        let scaler = Scaler::new(store, table, events(), name, settings(), clock.clone(), 3).unwrap();
        tokio::spawn(scaler.run(dead(scaling)));
        let source = Queue {
            visibility: seconds(10),
            in_flight: 300,
            ..Queue::new(Arc::new(self.queues.clone()), queue("submissions"))
        };
        let failure = FailurePolicy {
            attempts: 1_000,
            finally: Finally::DeadLetter(DeadLetters::Queue(Arc::new(self.queues.clone()), queue("dead"))),
            ..FailurePolicy::default()
        };
        let bot = Bot::builder(
            "telemetry",
            Source::Queue(source),
            Arc::new(StreamRuns::new(producer.clone())),
            clock.clone(),
        )
        .step(Arc::new(step))
        .failure(failure)
        .seed(5)
        .build()
        .unwrap();
        Process { handle: bot.handle(), task: tokio::spawn(bot.run()), alive, producer }
    }

    /// Sends submissions, so many a second; the broken share is a tenth.
    async fn fleet(&self, per_second: u64, length: Duration) {
        let until = self.clock.elapsed() + length;
        while self.clock.elapsed() < until {
            for _ in 0..per_second / 10 {
                let number = self.numbers.fetch_add(1, Ordering::SeqCst);
                let body = self.submission(number);
                let sent =
                    self.queues.send(&queue("submissions"), vec![NewMessage::new(body)]).await.unwrap();
                assert!(sent[0].is_ok());
            }
            pause(Duration::from_millis(100)).await;
        }
    }

    fn submission(&self, number: u64) -> String {
        let id = format!("00000000-0000-4000-8000-{number:012x}");
        let events = (number % 9) as usize;
        let process = |order: usize| json!({"cmdl": format!("{number}/{order}"), "user": "john"});
        let mut submission = json!({
            "submission_id": id,
            "device_id": "8c0b7e3e-3a80-45a5-8a3e-8b8f6a7cbb02",
            "time_created": "2021-03-28T15:44:18.592840",
            "events": {"new_process": (0..events).map(process).collect::<Vec<_>>(), "network_connection": []},
        });
        match number % 30 {
            0 => submission["device_id"] = json!("broken"),
            1 => return "not base64!".to_owned(),
            2 => return STANDARD.encode("{"),
            _ => drop(self.sent.lock().insert(id, events)),
        }
        STANDARD.encode(submission.to_string())
    }

    async fn left(&self) -> u64 {
        let counts = self.queues.queue(&queue("submissions")).await.unwrap().counts;
        counts.visible + counts.in_flight + counts.delayed
    }

    async fn drained(&self) {
        for _ in 0..600 {
            if self.left().await == 0 {
                return;
            }
            pause(seconds(1)).await;
        }
        panic!("{} submissions are left", self.left().await);
    }

    /// Everything in the stream: each event of each valid submission once and in order, repetitions aside. Returns how many
    /// were repeated.
    async fn check(&self) -> usize {
        let (mut seen, mut orders, mut repeated) = (HashSet::new(), BTreeMap::<String, Vec<u64>>::new(), 0);
        let mut all = Vec::new();
        for shard in self.streams.shards(&events(), None, 1000).await.unwrap().entries {
            let mut from = Position::TrimHorizon;
            loop {
                let batch =
                    self.streams.read(&events(), &shard.id, from, ReadLimit::default()).await.unwrap();
                let empty = batch.records.is_empty();
                all.extend(batch.records);
                match batch.next {
                    Next::At(next) if !empty => from = next,
                    _ => break,
                }
            }
        }
        all.sort_by_key(|record| record.sequence);
        for record in all {
            let event: Json = serde_json::from_slice(&record.data).unwrap();
            let submission = event["submission_id"].as_str().unwrap().to_owned();
            if seen.insert(event["event_id"].to_string()) {
                orders.entry(submission).or_default().push(event["order"].as_u64().unwrap());
            } else {
                repeated += 1;
            }
        }
        let sent = self.sent.lock().clone();
        for (submission, events) in &sent {
            let expected: Vec<u64> = (0..*events as u64).collect();
            assert_eq!(orders.remove(submission).unwrap_or_default(), expected, "{submission}");
        }
        assert!(orders.is_empty(), "none of the broken ones has events: {orders:?}");
        repeated
    }

    fn refused_since(&self, second: u64) -> u64 {
        self.refused.lock().range(second..).map(|(_, count)| count).sum()
    }
}

async fn dead(alive: Arc<AtomicBool>) {
    while alive.load(Ordering::SeqCst) {
        pause(Duration::from_millis(100)).await;
    }
}

impl Process {
    async fn stop(self) {
        self.handle.stop();
        self.task.await.unwrap().unwrap();
        self.producer.close().await;
        self.alive.store(false, Ordering::SeqCst);
    }

    /// From one moment to the next nothing of it does anything any more.
    fn kill(self) {
        self.alive.store(false, Ordering::SeqCst);
        self.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn the_stream_grows_with_the_fleet_and_shrinks_behind_it() {
    let world = World::new(0).await;
    let process = world.start("one").await;
    // About a thousand events a second: ten times what the only shard takes.
    world.fleet(250, seconds(60)).await;
    let shards = open(&world.streams).await.len();
    let table = ScalerTable::existing(Arc::new(world.tables.clone()), TableName::new("scaler").unwrap());
    let decisions = table.decisions(&events(), 100).await.unwrap();
    let decisions: Vec<_> = decisions.iter().map(|decision| decision.get("why")).collect();
    assert!((11..=18).contains(&shards), "the load, not what it left behind: {shards} {decisions:#?}");
    let now = world.clock.elapsed().as_secs();
    assert_eq!(world.refused_since(now - 15), 0, "{:?}", world.refused.lock());
    world.drained().await;
    pause(seconds(180)).await;
    assert_eq!(open(&world.streams).await.len(), 1, "it shrinks when nobody sends");
    process.stop().await;
    assert_eq!(world.check().await, 0, "without a fault nothing is repeated");
    let broken = world.queues.queue(&queue("broken")).await.unwrap().counts.visible;
    let numbers = world.numbers.load(Ordering::SeqCst);
    assert!(
        (numbers / 60..=numbers / 45).contains(&broken),
        "a fifth of a tenth is kept: {broken} of {numbers}"
    );
    assert_eq!(world.queues.queue(&queue("dead")).await.unwrap().counts.visible, 0);
}

#[tokio::test(start_paused = true)]
async fn with_a_tenth_of_all_records_refused_nothing_is_lost_and_the_stream_does_not_explode() {
    let world = World::new(10).await;
    let process = world.start("one").await;
    world.fleet(50, seconds(60)).await;
    world.drained().await;
    let shards = open(&world.streams).await.len();
    assert!(shards <= 8, "refusals without a reason are no load: {shards}");
    process.stop().await;
    assert_eq!(world.check().await, 0, "a refusal is no repetition");
}

#[tokio::test(start_paused = true)]
async fn killed_at_random_nothing_is_lost_and_order_holds() {
    for seed in 0..3 {
        let world = World::new(3).await;
        let dice = Dice::new(seed);
        let sending = tokio::spawn({
            let world = world.clone();
            async move { world.fleet(60, seconds(60)).await }
        });
        let mut steady = world.start("steady").await;
        for round in 0..6 {
            let other = world.start(&format!("round-{round}")).await;
            pause(dice.between(seconds(1), seconds(9))).await;
            // Either of the two may be the one that holds the lease.
            let victim =
                if dice.roll().is_multiple_of(2) { std::mem::replace(&mut steady, other) } else { other };
            victim.kill();
        }
        sending.await.unwrap();
        world.drained().await;
        steady.stop().await;
        world.check().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_submission_that_takes_longer_than_a_call_is_written_once() {
    let world = World::new(0).await;
    let process = world.start("one").await;
    // At a hundred records a second it takes more than three minutes, and a call to a sink is given two.
    let events: Vec<Json> =
        (0..20_000).map(|order| json!({"cmdl": format!("{order}"), "user": "john"})).collect();
    let id = "00000000-0000-4000-8000-00000000ffff";
    let submission = json!({
        "submission_id": id,
        "device_id": "8c0b7e3e-3a80-45a5-8a3e-8b8f6a7cbb02",
        "time_created": "2021-03-28T15:44:18.592840",
        "events": {"new_process": events, "network_connection": []},
    });
    let body = STANDARD.encode(submission.to_string());
    let sent = world.queues.send(&queue("submissions"), vec![NewMessage::new(body)]).await.unwrap();
    assert!(sent[0].is_ok(), "{sent:?}");
    world.sent.lock().insert(id.to_owned(), 20_000);
    world.drained().await;
    process.stop().await;
    assert_eq!(world.check().await, 0);
}
