//! The scaler at work: one of several acts, on everyone's traffic, and its decisions are written down.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod world;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_model::laws::reference::{ReferenceTables, SimpleStreams};
use anabranch_model::table::Value;
use anabranch_model::{
    Clock, HashKey, HashRange, Shard, ShardId, ShardSource, StreamStore, TableName, TableStore,
};
use anabranch_producer::scaler::{Backlog, Scaler, ScalerSettings, ScalerTable, TABLE_DEFAULT};
use anabranch_producer::traffic::{Second, ShardSnapshot, Sketch};
use world::{Faulty, RuntimeClock, Weather, pause, stream, streams};

struct World {
    streams: SimpleStreams,
    tables: ReferenceTables,
    clock: Arc<RuntimeClock>,
}

impl World {
    async fn new(shards: usize) -> Self {
        World { streams: streams(shards).await, tables: ReferenceTables::new(), clock: RuntimeClock::new() }
    }

    async fn table(&self) -> ScalerTable {
        let name = TableName::new(TABLE_DEFAULT).unwrap();
        ScalerTable::open(Arc::new(self.tables.clone()), name).await.unwrap()
    }

    async fn scaler(&self, process: &str, settings: ScalerSettings) -> Scaler {
        self.scaler_on(Arc::new(self.streams.clone()), process, settings).await
    }

    async fn scaler_on(
        &self,
        store: Arc<dyn StreamStore>,
        process: &str,
        settings: ScalerSettings,
    ) -> Scaler {
        let table = self.table().await;
        let seed = process.len() as u64;
        Scaler::new(store, table, stream(), process, settings, self.clock.clone(), seed).unwrap()
    }

    async fn open(&self) -> Vec<Shard> {
        let shards = self.streams.shards(&stream(), None, 1000).await.unwrap().entries;
        let mut open: Vec<_> = shards.into_iter().filter(Shard::is_open).collect();
        open.sort_by_key(|shard| shard.range.unwrap().first());
        open
    }

    /// A process tells that it sends this many records a second to each shard, on keys that are spread evenly.
    async fn tell(&self, process: &str, records: u64) {
        let snapshot = |shard: &Shard| {
            let range: HashRange = shard.range.unwrap();
            let mut sketch = Sketch::new(range);
            let step = (range.last().get() - range.first().get()) / 500;
            for place in 0..500u128 {
                sketch.add(HashKey::new(range.first().get() + place * step), 10.0, 1.0);
            }
            let seconds = vec![Second { records, bytes: records, throttles: 0 }; 70];
            ShardSnapshot { shard: shard.id.clone(), range, seconds, sketch, active: 0 }
        };
        let shards: Vec<_> = self.open().await.iter().map(snapshot).collect();
        self.table().await.tell(&stream(), process, &shards, None, self.clock.now()).await.unwrap();
    }

    /// Time passes for everybody.
    async fn pass(&self, time: Duration) {
        self.streams.advance(time);
        pause(time).await;
    }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn the_traffic_of_all_processes_counts_together() {
    let world = World::new(1).await;
    let mut scaler = world.scaler("one", ScalerSettings::default()).await;
    world.tell("one", 500).await;
    assert_eq!(scaler.pass().await.unwrap().unwrap(), [], "half full");
    world.tell("two", 500).await;
    let decided = scaler.pass().await.unwrap().unwrap();
    assert_eq!(decided.len(), 1, "{decided:?}");
    assert_eq!(world.open().await.len(), 2);
    let at = world.open().await[1].range.unwrap().first().get() as f64 / (1u128 << 127) as f64;
    assert!((0.9..1.1).contains(&at), "in the middle of an even load: {at}");
    let written = world.table().await.decisions(&stream(), 10).await.unwrap();
    assert_eq!(written.len(), 1);
    let text = |name: &str| match written[0].get(name) {
        Some(Value::Text(text)) => text.clone(),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(text("kind"), "split");
    assert!(text("result").starts_with("split into shardId-"), "{}", text("result"));
    assert!(text("why").contains("100 % of its capacity for 10 s"), "{}", text("why"));
    assert_eq!(written[0].get("usage"), Some(&Value::number("1").unwrap()));
}

#[tokio::test(start_paused = true)]
async fn what_was_told_long_ago_does_not_count() {
    let world = World::new(1).await;
    let mut scaler = world.scaler("one", ScalerSettings::default()).await;
    world.tell("one", 1_000).await;
    world.pass(seconds(20)).await;
    assert_eq!(scaler.pass().await.unwrap().unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn of_several_scalers_one_acts_and_another_takes_over_when_it_dies() {
    let world = World::new(1).await;
    let mut one = world.scaler("one", ScalerSettings::default()).await;
    let mut other = world.scaler("other", ScalerSettings::default()).await;
    for _ in 0..30 {
        assert!(one.pass().await.unwrap().is_some());
        assert!(other.pass().await.unwrap().is_none());
        world.pass(seconds(1)).await;
    }
    // The first one is gone without a word.
    let mut waited = 0;
    while other.pass().await.unwrap().is_none() {
        world.pass(seconds(1)).await;
        waited += 1;
        assert!(waited < 20, "nobody takes over");
    }
    assert!((14..=16).contains(&waited), "{waited}");
    assert!(one.pass().await.unwrap().is_none(), "the first one notices");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_given_back_is_free_at_once() {
    let world = World::new(1).await;
    let one = world.scaler("one", ScalerSettings::default()).await;
    let stop = Arc::new(tokio::sync::Notify::new());
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { one.run(stop.notified()).await }
    });
    pause(seconds(3)).await;
    stop.notify_one();
    running.await.unwrap();
    let mut other = world.scaler("other", ScalerSettings::default()).await;
    assert!(other.pass().await.unwrap().is_some());
}

/// A stream as Kinesis has it: a change takes a minute, and no other begins meanwhile.
fn slow(world: &World) -> Arc<Faulty> {
    let slow = Faulty::new(world.streams.clone(), Weather::default(), 0);
    *slow.change_takes.lock() = seconds(60);
    slow
}

#[tokio::test(start_paused = true)]
async fn whoever_changes_a_stream_holds_the_lease_however_long_it_takes() {
    let world = World::new(2).await;
    let store = slow(&world);
    let mut one = world.scaler_on(store.clone(), "one", ScalerSettings::default()).await;
    let mut other = world.scaler_on(store.clone(), "other", ScalerSettings::default()).await;
    world.tell("one", 1_000).await;
    // Both shards are too full.
    let acting = tokio::spawn(async move { one.pass().await.map(|_| one) });
    pause(seconds(1)).await;
    let began = world.clock.elapsed();
    while !acting.is_finished() {
        world.tell("one", 1_000).await;
        assert!(
            other.pass().await.unwrap().is_none(),
            "another acts {:?} later",
            world.clock.elapsed() - began
        );
        world.pass(seconds(1)).await;
    }
    let mut one = acting.await.unwrap().unwrap();
    assert!(one.pass().await.unwrap().is_some(), "it still has the lease");
    assert!(world.clock.elapsed() - began >= seconds(100), "several changes were made one after the other");
    assert_eq!(store.too_early.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_over_in_the_middle_of_a_change_waits_for_its_end() {
    let world = World::new(2).await;
    let store = slow(&world);
    let settings = ScalerSettings { max_shards: 8, ..ScalerSettings::default() };
    let (one, mut other) = (
        world.scaler_on(store.clone(), "one", settings).await,
        world.scaler_on(store.clone(), "other", settings).await,
    );
    world.tell("one", 1_000).await;
    let stop = Arc::new(tokio::sync::Notify::new());
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { one.run(stop.notified()).await }
    });
    pause(seconds(5)).await;
    stop.notify_one();
    let asked = world.clock.elapsed();
    running.await.unwrap();
    assert!(world.clock.elapsed() - asked < seconds(1), "it does not wait for the stream");
    let recorded = world.table().await.decisions(&stream(), 10).await.unwrap();
    assert!(format!("{recorded:?}").contains("begun, and not waited for"), "{recorded:?}");
    let mut seen = [0, 0, 0];
    for _ in 0..100 {
        world.tell("one", 1_000).await;
        match other.pass().await {
            Ok(None) => seen[0] += 1,
            Ok(Some(_)) => seen[2] += 1,
            Err(error) => {
                assert!(matches!(error, anabranch_model::Error::StreamBusy(_)), "{error}");
                seen[1] += 1;
            }
        }
        world.pass(seconds(1)).await;
    }
    assert!((10..=16).contains(&seen[0]), "the lease expires: {seen:?}");
    assert!(seen[1] > 0, "it would act while the stream is changed: {seen:?}");
    assert_eq!(store.too_early.load(Ordering::SeqCst), 0);
    assert!(world.open().await.len() <= 8, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn it_grows_and_shrinks_with_the_load_and_does_not_flap() {
    let world = World::new(2).await;
    let settings =
        ScalerSettings { max_shards: 16, merge_cooldown: seconds(60), ..ScalerSettings::default() };
    let mut scaler = world.scaler("one", settings).await;
    let mut counts = Vec::new();
    // 5,000 records a second over the whole stream for a while, and then 50.
    for second in 0..600u64 {
        let total = if second < 120 { 5_000 } else { 50 };
        let open = world.open().await.len() as u64;
        world.tell("one", total / open).await;
        scaler.pass().await.unwrap();
        world.pass(seconds(1)).await;
        counts.push(world.open().await.len());
    }
    assert!((7..=12).contains(&counts[119]), "{counts:?}");
    assert!(counts[..120].is_sorted(), "it only grows under load: {counts:?}");
    assert!(counts[120..].iter().rev().is_sorted(), "and only shrinks afterwards: {counts:?}");
    assert_eq!(counts[599], 1, "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() {
    let world = World::new(1).await;
    world.tell("one", 1_000).await;
    let mut scaler = world.scaler("one", ScalerSettings::default()).await;
    let decided = scaler.decide().await.unwrap();
    assert_eq!(decided[0].action.word(), "split");
    assert_eq!(world.open().await.len(), 1);
    assert!(world.table().await.decisions(&stream(), 10).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn many_operations_take_their_time() {
    let world = World::new(10).await;
    world.tell("one", 1_000).await;
    let mut scaler = world.scaler("one", ScalerSettings::default()).await;
    let began = world.clock.elapsed();
    scaler.pass().await.unwrap();
    let (took, open) = (world.clock.elapsed() - began, world.open().await.len());
    assert_eq!(open, 20);
    assert!(took >= seconds(2), "ten splits within {took:?} are more than five a second");
}

#[tokio::test(start_paused = true)]
async fn a_table_with_another_key_is_refused() {
    use anabranch_model::table::{KeyKind, KeySchema, TableOptions};
    let tables = ReferenceTables::new();
    let name = TableName::new(TABLE_DEFAULT).unwrap();
    tables.create_table(&name, TableOptions::new(KeySchema::hash("id", KeyKind::Text))).await.unwrap();
    let error = ScalerTable::open(Arc::new(tables), name).await.err().unwrap().to_string();
    assert!(error.contains("another key"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn many_shards_are_told_in_several_items_and_read_as_one() {
    let world = World::new(150).await;
    world.tell("one", 5).await;
    let told = world.table().await.told(&stream(), world.clock.now().minus(seconds(5))).await.unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].shards.len(), 150);
    assert_eq!(told[0].shards[149].shard, ShardId::numbered(149));
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_told_and_decides() {
    let world = World::new(1).await;
    world.tell("one", 1_000).await;
    let (table, now) = (world.table().await, world.clock.now());
    let told = table.told(&stream(), now.minus(seconds(5))).await.unwrap();
    assert_eq!(told[0].backlog, None, "nobody has said anything");
    let tell = async |growth| {
        let backlog = Backlog { place: "submissions".to_owned(), records: 4_000.0, growth };
        table.tell(&stream(), "one", &told[0].shards, Some(&backlog), now).await.unwrap();
        let again = table.told(&stream(), now.minus(seconds(5))).await.unwrap();
        assert_eq!(again[0].backlog, Some(backlog));
    };
    let mut scaler = world.scaler("one", ScalerSettings::default()).await;
    // It is full, but half of that only makes up for what was.
    tell(-500.0).await;
    let decided = scaler.pass().await.unwrap().unwrap();
    assert_eq!((decided[0].action.word(), world.open().await.len()), ("hold", 1), "{decided:?}");
    let written = table.decisions(&stream(), 10).await.unwrap();
    assert_eq!(written.len(), 1, "a decision to leave a shard alone is written down as well");
    tell(2_000.0).await;
    scaler.pass().await.unwrap();
    assert_eq!(world.open().await.len(), 5, "three times what it takes");
}
