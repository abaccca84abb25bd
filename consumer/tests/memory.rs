//! The memory of a worker is a limit: whatever waits in however many shards, no more is in hand, and everything arrives.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_consumer::{Consumer, ConsumerBuilder, Delivery, Reading, StreamChoice, process_fn};
use anabranch_model::aggregate::aggregate;
use anabranch_model::laws::reference::SimpleStreams;
use anabranch_model::{
    Batch, Capabilities, Follow, HashKey, NewRecord, Next, Page, Position, ReadLimit, Result, Shard, ShardId,
    ShardSource, StreamName, StreamStore,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream;
use parking_lot::Mutex;
use world::{World, pause, run, seconds};

mod world;

/// Bytes of payloads that somebody has in hand, and the most that it were.
#[derive(Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct Counted {
    data: Bytes,
    gauge: Arc<Gauge>,
}

impl Counted {
    fn bytes(data: Bytes, gauge: &Arc<Gauge>) -> Bytes {
        let now = gauge.now.fetch_add(data.len(), Ordering::Relaxed) + data.len();
        gauge.most.fetch_max(now, Ordering::Relaxed);
        Bytes::from_owner(Counted { data, gauge: gauge.clone() })
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.gauge.now.fetch_sub(self.data.len(), Ordering::Relaxed);
    }
}

/// A store far away, whose payloads are counted as long as anybody has them.
#[derive(Clone)]
struct Weighed {
    inner: SimpleStreams,
    gauge: Arc<Gauge>,
    /// What it pushes at a time.
    pushed: ReadLimit,
    /// Whether it says that it wants its payloads back.
    lends: bool,
}

const FAR: Duration = Duration::from_millis(10);

impl Weighed {
    fn new(inner: &SimpleStreams) -> Self {
        Weighed { inner: inner.clone(), gauge: Arc::default(), pushed: ReadLimit::default(), lends: false }
    }

    fn most(&self) -> usize {
        self.gauge.most.load(Ordering::Relaxed)
    }

    fn weigh(&self, mut batch: Batch) -> Batch {
        for record in &mut batch.records {
            record.data = Counted::bytes(record.data.clone(), &self.gauge);
        }
        batch
    }
}

#[async_trait]
impl ShardSource for Weighed {
    fn capabilities(&self) -> Capabilities {
        Capabilities { lends: self.lends, ..ShardSource::capabilities(&self.inner) }
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
        pause(FAR).await;
        let batch = self.inner.read(stream, shard, from, limit).await?;
        pause(FAR).await;
        Ok(self.weigh(batch))
    }

    /// Reads a batch when it is asked for one, and as much as it likes.
    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        let (source, stream, shard) = (self.clone(), stream.clone(), shard.clone());
        Ok(Box::pin(stream::unfold(Some(from), move |from| {
            let (source, stream, shard) = (source.clone(), stream.clone(), shard.clone());
            async move {
                let mut from = from?;
                loop {
                    pause(FAR).await;
                    let batch = match source.inner.read(&stream, &shard, from, source.pushed).await {
                        Ok(batch) => batch,
                        Err(error) => return Some((Err(error), None)),
                    };
                    let next = match batch.next {
                        Next::At(next) => Some(next),
                        Next::Ended(_) => None,
                    };
                    if !batch.records.is_empty() || next.is_none() {
                        return Some((Ok(source.weigh(batch)), next));
                    }
                    from = next?;
                }
            }
        })))
    }
}

/// Records that were seen, by shard, and how long each batch of a shard takes.
#[derive(Clone, Default)]
struct Sights {
    counts: Arc<Mutex<HashMap<ShardId, usize>>>,
    largest: Arc<AtomicUsize>,
}

impl Sights {
    fn total(&self) -> usize {
        self.counts.lock().values().sum()
    }
}

fn builder(
    world: &World,
    source: &Weighed,
    sights: &Sights,
    takes: impl Fn(&ShardId) -> Duration + Clone + Send + Sync + 'static,
) -> ConsumerBuilder {
    let sights = sights.clone();
    let process = process_fn(move |delivery: Delivery| {
        let (sights, takes) = (sights.clone(), takes(&delivery.shard.shard));
        async move {
            pause(takes).await;
            sights.largest.fetch_max(delivery.records.len(), Ordering::Relaxed);
            *sights.counts.lock().entry(delivery.shard.shard.clone()).or_default() += delivery.records.len();
            delivery.done()
        }
    });
    let (choice, tables) = ([StreamChoice::only(world.stream.clone())], Arc::new(world.tables.clone()));
    Consumer::builder("app-1", choice, Arc::new(source.clone()), tables, world.clock.clone(), process).seed(5)
}

const SHARDS: usize = 200;
const SIZE: usize = 1000;
const CAP: usize = 128 << 10;

/// As many records for each shard.
async fn fill(world: &World, each: usize, size: impl Fn(usize) -> usize) {
    let step = u128::MAX / SHARDS as u128;
    for shard in 0..SHARDS {
        let hash = Some(HashKey::new(step * shard as u128 + step / 2));
        let record = |number| NewRecord {
            explicit_hash_key: hash,
            ..NewRecord::new("k", vec![b'x'; size(shard * each + number)])
        };
        let stored = world.streams.append(&world.stream, (0..each).map(record).collect()).await.unwrap();
        assert!(stored.iter().all(Result::is_ok));
    }
}

async fn backlog(reading: Reading, size: impl Fn(usize) -> usize, over: usize, pushed: ReadLimit) {
    const EACH: usize = 20;
    let world = World::new(SHARDS).await;
    fill(&world, EACH, size).await;
    let source = Weighed { pushed, ..Weighed::new(&world.streams) };
    let sights = Sights::default();
    let worker =
        run(builder(&world, &source, &sights, |_| Duration::from_millis(20)).reading(reading).memory(CAP));
    world.until("everything", seconds(600), async || sights.total() >= SHARDS * EACH).await;
    pause(seconds(5)).await;
    worker.stop().await;
    let counts = sights.counts.lock().clone();
    assert_eq!(counts.len(), SHARDS);
    assert!(counts.values().all(|count| *count == EACH), "each once: {counts:?}");
    let most = source.most();
    assert!(most <= CAP + over, "{most} bytes were in hand, of {CAP} and {over}");
    assert!(most >= 4 * SIZE, "{most} bytes: several shards are read at a time");
    assert_eq!(source.gauge.now.load(Ordering::Relaxed), 0, "nothing is left in hand");
}

#[tokio::test(start_paused = true)]
async fn two_hundred_shards_share_little_memory_when_polled() {
    backlog(Reading::Poll, |_| SIZE, SIZE, ReadLimit::default()).await;
}

/// What is pushed is looked at once at a time, and what does not fit is dropped and read again.
#[tokio::test(start_paused = true)]
async fn two_hundred_shards_share_little_memory_when_followed() {
    backlog(Reading::Auto, |_| SIZE, 20 * SIZE, ReadLimit::default()).await;
    let small = ReadLimit { records: 3, bytes: 10 * SIZE };
    backlog(Reading::Auto, |_| SIZE, 3 * SIZE, small).await;
}

/// Records that are larger than what a shard may take, and some that are larger than all there is.
#[tokio::test(start_paused = true)]
async fn records_that_are_larger_than_the_memory_arrive_one_at_a_time() {
    const LARGE: usize = 2 * CAP;
    let size = |number: usize| match number % 97 {
        0 => LARGE,
        1..=5 => CAP / 6,
        6..10 => 5 * SIZE,
        _ => 100,
    };
    // One that is delivered, and one that is looked at to see how large it is.
    for reading in [Reading::Poll, Reading::Auto] {
        backlog(reading, size, 2 * LARGE, ReadLimit { records: 1, bytes: 1 }).await;
    }
}

/// One processor hangs; the others read everything that they have with what is left.
#[tokio::test(start_paused = true)]
async fn a_slow_processor_does_not_starve_the_other_shards() {
    const EACH: usize = 20;
    for reading in [Reading::Poll, Reading::Auto] {
        let world = World::new(SHARDS).await;
        fill(&world, EACH, |_| SIZE).await;
        let (source, sights) = (Weighed::new(&world.streams), Sights::default());
        // Every tenth hangs for as long as anybody looks.
        let hangs = |shard: &ShardId| shard.number().is_some_and(|number| number.is_multiple_of(10));
        let takes =
            move |shard: &ShardId| if hangs(shard) { seconds(5_000) } else { Duration::from_millis(5) };
        let worker = builder(&world, &source, &sights, takes)
            .reading(reading)
            .memory(CAP)
            .process_max(seconds(10_000))
            .drain_max(seconds(1));
        let worker = run(worker);
        let healthy = SHARDS / 10 * 9 * EACH;
        world.until("the others", seconds(600), async || sights.total() >= healthy).await;
        assert!(source.most() <= CAP + EACH * SIZE, "{} bytes were in hand", source.most());
        worker.stop().await;
    }
}

/// Every processor hangs, and what the source lent has come back all the same.
#[tokio::test(start_paused = true)]
async fn what_is_lent_is_given_back_however_long_a_processor_takes() {
    for reading in [Reading::Poll, Reading::Auto] {
        let world = World::new(SHARDS).await;
        fill(&world, 20, |_| SIZE).await;
        let source = Weighed { lends: true, ..Weighed::new(&world.streams) };
        let begun = Arc::new(AtomicUsize::new(0));
        let counting = begun.clone();
        let hang = process_fn(move |delivery: Delivery| {
            assert!(delivery.records.iter().all(|record| *record.data == vec![b'x'; SIZE]));
            counting.fetch_add(1, Ordering::Relaxed);
            std::future::pending()
        });
        let (choice, tables) = ([StreamChoice::only(world.stream.clone())], Arc::new(world.tables.clone()));
        let worker =
            Consumer::builder("app-1", choice, Arc::new(source.clone()), tables, world.clock.clone(), hang);
        let worker = run(worker.seed(5).reading(reading).process_max(seconds(10_000)).drain_max(seconds(1)));
        world.until("calls", seconds(60), async || begun.load(Ordering::Relaxed) == SHARDS).await;
        pause(seconds(5)).await;
        assert!(source.most() > 0, "something was lent");
        assert_eq!(source.gauge.now.load(Ordering::Relaxed), 0, "and is still in hand");
        worker.stop().await;
    }
}

/// A small aggregate of many records comes in pieces, however much room there is for its bytes.
#[tokio::test(start_paused = true)]
async fn an_aggregate_of_many_records_is_opened_piece_by_piece() {
    const PARTS: usize = 5_000;
    for reading in [Reading::Poll, Reading::Auto] {
        let world = World::new(1).await;
        let parts: Vec<_> = (0..PARTS).map(|n| NewRecord::new("key-0", format!("{n:04}"))).collect();
        let whole = NewRecord::new("a", aggregate(&parts).unwrap());
        world.streams.append(&world.stream, vec![whole, NewRecord::new("key-1", "5000")]).await.unwrap();
        let (source, sights) = (Weighed::new(&world.streams), Sights::default());
        let seen = world.seen.clone();
        let largest = sights.largest.clone();
        let process = process_fn(move |delivery: Delivery| {
            seen.note("one", &delivery);
            largest.fetch_max(delivery.records.len(), Ordering::Relaxed);
            async move { delivery.done() }
        });
        let (choice, tables) = ([StreamChoice::only(world.stream.clone())], Arc::new(world.tables.clone()));
        let source: Arc<dyn ShardSource> = Arc::new(source);
        let worker = Consumer::builder("app-1", choice, source, tables, world.clock.clone(), process)
            .seed(5)
            .reading(reading)
            .in_flight(300, 1 << 20);
        let worker = run(worker);
        world.until("all of it", seconds(60), async || world.seen.count() > PARTS).await;
        worker.stop().await;
        assert_eq!(world.seen.count(), PARTS + 1, "nothing twice");
        world.expect_all(PARTS + 1);
        let largest = sights.largest.load(Ordering::Relaxed);
        assert!((1..=300).contains(&largest), "{largest} records at once");
    }
}
