//! What goes wrong in us and around us: tasks that panic, permissions that are missing, answers that nobody waits for.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_consumer::Checkpoint;
use anabranch_model::table::{KeyKind, KeySchema, TableOptions, TableStore};
use anabranch_model::{
    Batch, Capabilities, Dice, Error, Follow, Page, Position, ReadLimit, Result, Shard, ShardId, ShardSource,
    StreamName, TableName,
};
use async_trait::async_trait;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use parking_lot::Mutex;
use world::faulty::{Audit, Faulty, Weather};
use world::{World, pause, run, seconds};

mod world;

/// Counts panics by task.
#[derive(Default)]
struct Panics(Mutex<std::collections::BTreeMap<String, Arc<AtomicU64>>>);

impl Panics {
    fn of(&self, task: &str) -> u64 {
        self.0.lock().get(task).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

impl Recorder for Panics {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        if key.name() != "anabranch_consumer_panics_total" {
            return Counter::noop();
        }
        let task = key.labels().map(|label| label.value().to_owned()).collect::<String>();
        Counter::from_arc(self.0.lock().entry(task).or_default().clone())
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// Runs a test with its panics counted.
fn counted(test: impl AsyncFnOnce(&Panics)) {
    let panics = Panics::default();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&panics, || runtime.block_on(test(&panics)));
}

fn faulty(world: &World, weather: &Arc<Mutex<Weather>>) -> Arc<Faulty> {
    Arc::new(Faulty {
        inner: world.tables.clone(),
        leases: TableName::new("app-1").unwrap(),
        worker: "one".to_owned(),
        weather: weather.clone(),
        dice: Arc::new(Dice::new(3)),
        audit: Audit::new(world.clock.clone(), seconds(10)),
    })
}

/// Every call to the tables ends the task that made it: those that decide, renew and checkpoint begin anew, are counted,
/// and go on when it is over.
#[test]
fn tasks_that_panic_begin_anew_and_are_counted() {
    counted(async |panics| {
        let world = World::new(3).await;
        world.put(0..30).await;
        let weather = Arc::new(Mutex::new(Weather::default()));
        let streams = Arc::new(world.streams.clone());
        let builder = world.builder_on("one", streams, faulty(&world, &weather), seconds(0));
        let one = run(builder.checkpoint_every(seconds(1)));
        world.until("it reads", seconds(5), async || world.seen.count() == 30).await;
        weather.lock().panics = 100;
        world.put(30..60).await;
        pause(seconds(8)).await;
        *weather.lock() = Weather::default();
        world.put(60..90).await;
        world.until("all of it", seconds(30), async || world.seen.different() == 90).await;
        world.expect_all(90);
        for task in ["coordinator", "renewal"] {
            assert!(panics.of(task) > 0, "{task}");
        }
        one.stop().await;
        for lease in world.leases().await.values() {
            assert_eq!(lease.owner, None, "{lease:?}");
            assert!(matches!(lease.checkpoint, Checkpoint::At { .. }), "{lease:?}");
        }
    });
}

/// A checkpoint that ends its pipeline: the shard begins anew behind the last one that was written.
#[test]
fn a_pipeline_that_panics_begins_anew_and_is_counted() {
    counted(async |panics| {
        let world = World::new(1).await;
        world.put(0..30).await;
        let weather = Arc::new(Mutex::new(Weather::default()));
        let streams = Arc::new(world.streams.clone());
        let builder = world.builder_on("one", streams, faulty(&world, &weather), seconds(0));
        let one = run(builder.checkpoint_every(std::time::Duration::from_millis(200)));
        world.until("it reads", seconds(5), async || world.seen.count() == 30).await;
        pause(seconds(1)).await;
        weather.lock().write_panics = 100;
        world.put(30..60).await;
        world.until("a panic", seconds(1), async || panics.of("pipeline") > 0).await;
        *weather.lock() = Weather::default();
        world.put(60..90).await;
        world.until("all of it", seconds(30), async || world.seen.different() == 90).await;
        world.expect_all(90);
        one.stop().await;
    });
}

/// A source that ends the task of its reader once.
struct Panicking {
    world: Arc<dyn ShardSource>,
    left: AtomicU64,
}

#[async_trait]
impl ShardSource for Panicking {
    fn capabilities(&self) -> Capabilities {
        Capabilities { push: false, ..self.world.capabilities() }
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        self.world.shards(stream, after, limit).await
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_ok() {
            std::panic::resume_unwind(Box::new("planted"));
        }
        self.world.read(stream, shard, from, limit).await
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        self.world.follow(stream, shard, from).await
    }
}

#[test]
fn a_fetcher_that_panics_begins_anew_with_its_lease_kept() {
    counted(async |panics| {
        let world = World::new(1).await;
        world.put(0..10).await;
        let source = Panicking { world: Arc::new(world.streams.clone()), left: AtomicU64::new(3) };
        let tables = Arc::new(world.tables.clone());
        let one = run(world.builder_on("one", Arc::new(source), tables, seconds(0)));
        world.until("it reads", seconds(5), async || world.seen.count() == 10).await;
        assert_eq!(panics.of("fetcher"), 3);
        let leases = world.leases().await;
        assert_eq!(leases["shardId-000000000000"].owner_switches, 1, "it was taken once: {leases:?}");
        one.stop().await;
    });
}

/// Tables that refuse one kind of call.
struct Denying;

impl Denying {
    fn error() -> Error {
        Error::Denied { action: "dynamodb:DescribeTable".into(), message: "no".into() }
    }
}

/// What is not allowed is said at once, by the name of the permission, and not tried for ever.
#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_named() {
    let world = World::new(1).await;
    let weather = Arc::new(Mutex::new(Weather { denied: Some(Denying::error()), ..Weather::default() }));
    let streams = Arc::new(world.streams.clone());
    let consumer = world.builder_on("one", streams, faulty(&world, &weather), seconds(0)).build().unwrap();
    let error = consumer.run().await.unwrap_err();
    assert_eq!(error, Denying::error());
    assert!(error.to_string().contains("dynamodb:DescribeTable"), "{error}");
}

/// Two workers begin an application at once: for a moment the tables of one exist for the other only when it makes them.
#[tokio::test(start_paused = true)]
async fn tables_that_somebody_else_is_making_are_waited_for() {
    let world = World::new(1).await;
    world.put(0..10).await;
    let weather = Arc::new(Mutex::new(Weather { in_the_making: true, ..Weather::default() }));
    let streams = Arc::new(world.streams.clone());
    let one = run(world.builder_on("one", streams, faulty(&world, &weather), seconds(0)));
    pause(seconds(20)).await;
    assert!(!one.task.is_finished(), "it waits");
    weather.lock().in_the_making = false;
    world.until("it reads", seconds(5), async || world.seen.count() == 10).await;
    one.stop().await;
}

/// A permission that is taken away while it runs stops nothing for good.
#[tokio::test(start_paused = true)]
async fn a_permission_that_comes_back_is_used() {
    let world = World::new(2).await;
    world.put(0..10).await;
    let weather = Arc::new(Mutex::new(Weather::default()));
    let streams = Arc::new(world.streams.clone());
    let one = run(world.builder_on("one", streams, faulty(&world, &weather), seconds(0)));
    world.until("it reads", seconds(5), async || world.seen.count() == 10).await;
    weather.lock().denied = Some(Denying::error());
    pause(seconds(60)).await;
    weather.lock().denied = None;
    world.put(10..20).await;
    world.until("the rest", seconds(20), async || world.seen.different() == 20).await;
    one.stop().await;
}

/// Tables that somebody made before, as the Java library makes them or without the index, are joined as they are.
#[tokio::test(start_paused = true)]
async fn tables_made_beforehand_are_accepted() {
    let world = World::new(1).await;
    world.put(0..10).await;
    for (name, key) in
        [("app-1", "leaseKey"), ("app-1-CoordinatorState", "key"), ("app-1-WorkerMetricStats", "wid")]
    {
        let options = TableOptions::new(KeySchema::hash(key, KeyKind::Text));
        world.tables.create_table(&TableName::new(name).unwrap(), options).await.unwrap();
    }
    let one = run(world.builder("one"));
    world.until("it reads", seconds(5), async || world.seen.count() == 10).await;
    one.stop().await;
    let leases = world.tables.table(&TableName::new("app-1").unwrap()).await.unwrap();
    assert!(leases.options.indexes.is_empty(), "what somebody made stays as it is");
}
