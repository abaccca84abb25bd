//! Leases that are made side by side, and streams that are not ready yet.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anabranch_model::laws::reference::SimpleStreams;
use anabranch_model::{
    Batch, Capabilities, Dice, Error, Follow, Page, Position, ReadLimit, Result, Shard, ShardId, ShardSource,
    StreamName, TableName,
};
use async_trait::async_trait;
use parking_lot::Mutex;
use world::faulty::{Audit, Faulty, Weather};
use world::{World, pause, run, seconds};

mod world;

fn far_away(world: &World, worker: &str, weather: &Arc<Mutex<Weather>>, audit: &Arc<Audit>) -> Arc<Faulty> {
    Arc::new(Faulty {
        inner: world.tables.clone(),
        leases: TableName::new("app-1").unwrap(),
        worker: worker.to_owned(),
        weather: weather.clone(),
        dice: Arc::new(Dice::new(5)),
        audit: audit.clone(),
    })
}

/// Two workers find hundreds of shards without a lease at the same moment: each makes many at once and not all at once, and
/// whoever is slower with one takes no harm.
#[tokio::test(start_paused = true)]
async fn many_leases_are_made_side_by_side_and_each_once() {
    let world = World::new(300).await;
    world.put(0..600).await;
    let weather = Arc::new(Mutex::new(Weather::default()));
    let workers = ["one", "two"].map(|name| {
        let audit = Audit::new(world.clock.clone(), seconds(10));
        let tables = far_away(&world, name, &weather, &audit);
        (run(world.builder_on(name, Arc::new(world.streams.clone()), tables, seconds(0))), audit)
    });
    world.until("all leases", seconds(60), async || world.leases().await.len() == 300).await;
    world.until("all of it", seconds(60), async || world.seen.different() == 600).await;
    world.expect_all(600);
    for (worker, audit) in workers {
        let most = audit.creations_max();
        assert!((8..=32).contains(&most), "{most} at once");
        worker.stop().await;
    }
    assert_eq!(world.leases().await.len(), 300);
    assert_eq!(world.seen.count(), 600, "one lease for a shard, and so nothing twice");
}

/// A table that refuses every fifth call does not make a thousand leases wait for one another.
#[tokio::test(start_paused = true)]
async fn leases_are_made_though_the_table_is_busy() {
    let world = World::new(300).await;
    let weather = Arc::new(Mutex::new(Weather { throttled: 20, ..Weather::default() }));
    let audit = Audit::new(world.clock.clone(), seconds(10));
    let tables = far_away(&world, "one", &weather, &audit);
    let one = run(world.builder_on("one", Arc::new(world.streams.clone()), tables, seconds(0)));
    world.until("all leases", seconds(60), async || world.leases().await.len() == 300).await;
    *weather.lock() = Weather::default();
    one.stop().await;
    assert!((8..=32).contains(&audit.creations_max()), "{} at once", audit.creations_max());
}

/// A stream that is being made: it is there for nobody until it is ready.
struct Creating {
    inner: SimpleStreams,
    is_ready: AtomicBool,
    refused: AtomicU64,
}

impl Creating {
    fn check(&self, stream: &StreamName) -> Result<()> {
        if self.is_ready.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(Error::StreamBusy(stream.clone()))
    }
}

#[async_trait]
impl ShardSource for Creating {
    fn capabilities(&self) -> Capabilities {
        ShardSource::capabilities(&self.inner)
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        self.check(stream)?;
        self.inner.shards(stream, after, limit).await
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        self.check(stream)?;
        self.inner.read(stream, shard, from, limit).await
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        self.check(stream)?;
        self.inner.follow(stream, shard, from).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_being_made_is_waited_for() {
    let world = World::new(3).await;
    world.put(0..30).await;
    let source = Arc::new(Creating {
        inner: world.streams.clone(),
        is_ready: AtomicBool::new(false),
        refused: AtomicU64::new(0),
    });
    let worker =
        |name: &str| run(world.builder_on(name, source.clone(), Arc::new(world.tables.clone()), seconds(0)));
    let (one, two) = (worker("one"), worker("two"));
    pause(seconds(120)).await;
    let refused = source.refused.load(Ordering::Relaxed);
    assert!((100..300).contains(&refused), "asked for again and again, with pauses: {refused}");
    assert!(!one.task.is_finished() && world.seen.count() == 0);
    // Whoever does not want to wait any longer need not.
    let began = world.clock.elapsed();
    two.stop().await;
    assert!(world.clock.elapsed() - began < seconds(1));
    source.is_ready.store(true, Ordering::Relaxed);
    world.until("all of it", seconds(10), async || world.seen.count() == 30).await;
    world.expect_all(30);
    one.stop().await;
}
