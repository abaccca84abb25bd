//! A stream, tables and workers in memory, with time that jumps to the next event.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{
    Checkpoint, Consumer, ConsumerBuilder, Delivery, Handle, Lease, LeaseTable, Outcome, Processor,
    ShardInfo, StreamChoice, TableNames,
};
use anabranch_model::laws::reference::{ReferenceTables, SimpleStreams};
use anabranch_model::{
    Clock, NewRecord, Result, ShardSource, StreamName, StreamOptions, StreamStore, TableStore, Timestamp,
};
use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

pub mod counts;
pub mod faulty;
pub mod source;

/// The clock of the runtime, which jumps when everybody waits.
pub struct RuntimeClock(tokio::time::Instant);

impl RuntimeClock {
    #[expect(clippy::disallowed_methods, reason = "the runtime's clock is the one that the test moves")]
    pub fn new() -> Arc<Self> {
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
pub async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

pub const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Everything that processors saw, in the order in which they saw it.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Sights>>);

#[derive(Default)]
struct Sights {
    all: Vec<Sight>,
    different: HashSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    pub worker: String,
    pub shard: String,
    pub key: String,
    pub data: String,
    pub sub_sequence: u64,
}

impl Seen {
    pub fn all(&self) -> Vec<Sight> {
        self.0.lock().all.clone()
    }

    pub fn data(&self) -> Vec<String> {
        self.all().into_iter().map(|sight| sight.data).collect()
    }

    pub fn count(&self) -> usize {
        self.0.lock().all.len()
    }

    /// How many different ones were seen.
    pub fn different(&self) -> usize {
        self.0.lock().different.len()
    }

    pub fn note(&self, worker: &str, delivery: &Delivery) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut sights = self.0.lock();
        for record in &delivery.records {
            sights.different.insert(text(&record.data));
            sights.all.push(Sight {
                worker: worker.to_owned(),
                shard: delivery.shard.shard.as_str().to_owned(),
                key: text(&record.partition_key),
                data: text(&record.data),
                sub_sequence: record.sub_sequence,
            });
        }
    }

    /// Per key the data in the order of their first sight.
    pub fn first_sights(&self) -> BTreeMap<String, Vec<String>> {
        let (mut keys, mut seen) = (BTreeMap::<String, Vec<String>>::new(), HashSet::new());
        for sight in self.all() {
            if seen.insert((sight.key.clone(), sight.data.clone())) {
                keys.entry(sight.key).or_default().push(sight.data);
            }
        }
        keys
    }
}

/// Notes what it sees, and what it is told.
pub struct Noting {
    pub worker: String,
    pub seen: Seen,
    pub told: Told,
    pub shard: String,
    pub pace: Pace,
}

/// How long batches take.
#[derive(Clone, Default)]
pub struct Pace {
    pub each: Duration,
    /// The next one takes this much longer.
    pub next: Arc<Mutex<Duration>>,
}

impl From<Duration> for Pace {
    fn from(each: Duration) -> Self {
        Pace { each, next: Arc::default() }
    }
}

/// What processors were told beside records: worker, shard, word.
pub type Told = Arc<Mutex<Vec<(String, String, &'static str)>>>;

#[async_trait]
impl Processor for Noting {
    async fn initialized(&mut self, shard: &ShardInfo, _: Checkpoint) {
        self.shard = shard.shard.as_str().to_owned();
        self.tell("initialized");
    }

    async fn process(&mut self, delivery: Delivery) -> Vec<Outcome> {
        let takes = self.pace.each + std::mem::take(&mut *self.pace.next.lock());
        if !takes.is_zero() {
            pause(takes).await;
        }
        self.seen.note(&self.worker, &delivery);
        delivery.done()
    }

    async fn lease_lost(&mut self) {
        self.tell("lease_lost");
    }

    async fn shard_ended(&mut self) {
        self.tell("shard_ended");
    }

    async fn shutdown(&mut self) {
        self.tell("shutdown");
    }
}

impl Noting {
    fn tell(&self, word: &'static str) {
        self.told.lock().push((self.worker.clone(), self.shard.clone(), word));
    }
}

pub struct World {
    pub streams: SimpleStreams,
    pub tables: ReferenceTables,
    pub clock: Arc<dyn Clock>,
    pub stream: StreamName,
    pub seen: Seen,
    pub told: Told,
}

/// A worker that runs.
pub struct Running {
    pub handle: Handle,
    pub task: JoinHandle<Result<()>>,
}

impl Running {
    /// Stops it properly.
    pub async fn stop(self) {
        self.handle.shutdown();
        self.task.await.expect("no panic").expect("it ran");
    }
}

impl World {
    pub async fn new(shards: usize) -> Self {
        let world = World {
            streams: SimpleStreams::new(),
            tables: ReferenceTables::new(),
            clock: RuntimeClock::new(),
            stream: StreamName::new("orders").unwrap(),
            seen: Seen::default(),
            told: Told::default(),
        };
        let options = StreamOptions { shards, ..StreamOptions::default() };
        world.streams.create_stream(&world.stream, options).await.unwrap();
        world
    }

    pub async fn put(&self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            let record = NewRecord::new(format!("key-{}", number % 23), format!("{number:04}"));
            let stored = self.streams.append(&self.stream, vec![record]).await.unwrap();
            assert!(stored.iter().all(Result::is_ok));
        }
    }

    pub fn builder(&self, worker: &str) -> ConsumerBuilder {
        self.builder_on(worker, Arc::new(self.streams.clone()), Arc::new(self.tables.clone()), Duration::ZERO)
    }

    pub fn builder_on(
        &self,
        worker: &str,
        source: Arc<dyn ShardSource>,
        tables: Arc<dyn TableStore>,
        pace: impl Into<Pace>,
    ) -> ConsumerBuilder {
        let pace = pace.into();
        let (seen, told, name) = (self.seen.clone(), self.told.clone(), worker.to_owned());
        let factory = move |_: &ShardInfo| Noting {
            worker: name.clone(),
            seen: seen.clone(),
            told: told.clone(),
            shard: String::new(),
            pace: pace.clone(),
        };
        let choice = [StreamChoice::only(self.stream.clone())];
        Consumer::builder("app-1", choice, source, tables, self.clock.clone(), factory).worker(worker).seed(7)
    }

    pub async fn table(&self) -> LeaseTable {
        let names = TableNames::new("{app}", "app-1").unwrap();
        LeaseTable::find(Arc::new(self.tables.clone()), names, seconds(3)).await.unwrap()
    }

    /// The leases by shard.
    pub async fn leases(&self) -> BTreeMap<String, Lease> {
        let leases = self.table().await.leases().await.unwrap_or_default();
        leases.into_iter().map(|lease| (lease.key.to_string(), lease)).collect()
    }

    /// How many shards each worker reads; finished ones do not count.
    pub async fn owners(&self) -> BTreeMap<String, usize> {
        let mut owners = BTreeMap::new();
        for lease in self.leases().await.values().filter(|lease| lease.checkpoint != Checkpoint::ShardEnd) {
            let owner = lease.reader().map_or("nobody", |reader| reader.as_str()).to_owned();
            *owners.entry(owner).or_default() += 1;
        }
        owners
    }

    /// Waits until something holds, and fails after a while.
    pub async fn until(&self, what: &str, limit: Duration, holds: impl AsyncFnMut() -> bool) -> Duration {
        self.until_looking(Duration::from_millis(10), what, limit, holds).await
    }

    /// The same, looking so often.
    pub async fn until_looking(
        &self,
        every: Duration,
        what: &str,
        limit: Duration,
        mut holds: impl AsyncFnMut() -> bool,
    ) -> Duration {
        let began = self.clock.elapsed();
        while !holds().await {
            let waited = self.clock.elapsed() - began;
            assert!(waited <= limit, "{what}: not within {limit:?}; {:?}", self.leases().await);
            pause(every).await;
        }
        self.clock.elapsed() - began
    }

    /// All the numbers that were put, as they are seen.
    pub fn expect_all(&self, numbers: usize) {
        let mut data = self.seen.data();
        data.sort();
        data.dedup();
        let expected: Vec<_> = (0..numbers).map(|number| format!("{number:04}")).collect();
        assert_eq!(data, expected);
        self.expect_order();
    }

    /// Of each key what was put first is seen first.
    pub fn expect_order(&self) {
        for (key, data) in self.seen.first_sights() {
            assert!(data.is_sorted(), "{key}: {data:?}");
        }
    }
}

pub fn run(builder: ConsumerBuilder) -> Running {
    let consumer = builder.build().expect("a consumer");
    Running { handle: consumer.handle(), task: tokio::spawn(consumer.run()) }
}
