//! Answers that are lost: a write is durable, and its connection ends before the answer comes. Whoever wrote it finds its own
//! write when it tries again, and takes it for nobody else's.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::Checkpoint;
use anabranch_model::table::{Get, Item, TableStore};
use anabranch_model::{Dice, HashKey, ShardId, StreamStore, TableName};
use parking_lot::Mutex;
use world::faulty::{Audit, DRAIN_MAX, Faulty, Weather};
use world::{World, pause, run, seconds};

mod world;

const LEASE_TIME: Duration = seconds(10);

/// Two workers, each with a way of its own to the tables.
struct Fleet {
    world: World,
    audit: Arc<Audit>,
    weathers: [Arc<Mutex<Weather>>; 2],
}

impl Fleet {
    async fn new() -> Self {
        let world = World::new(2).await;
        let audit = Audit::new(world.clock.clone(), LEASE_TIME);
        Fleet { world, audit, weathers: Default::default() }
    }

    fn start(&self, number: usize) -> world::Running {
        let name = ["one", "two"][number];
        let tables = Faulty {
            inner: self.world.tables.clone(),
            leases: TableName::new("app-1").unwrap(),
            worker: name.to_owned(),
            weather: self.weathers[number].clone(),
            dice: Arc::new(Dice::new(number as u64)),
            audit: self.audit.clone(),
        };
        let streams = Arc::new(self.world.streams.clone());
        let builder = self.world.builder_on(name, streams, Arc::new(tables), Duration::from_millis(20));
        let builder = builder.lease_time(LEASE_TIME).drain_max(DRAIN_MAX).checkpoint_every(seconds(2));
        run(builder)
    }

    async fn seen(&self, count: usize) {
        let seen = self.world.seen.clone();
        self.world.until("everything is read", LEASE_TIME * 2, async || seen.different() == count).await;
    }

    async fn owned(&self, name: &str, count: usize) {
        let owned = async || self.world.owners().await.get(name) == Some(&count);
        self.world.until("an even share", LEASE_TIME * 6, owned).await;
    }

    /// Everything that happens to leases: they are made, taken, renewed, handed over, let go, and end. The answer to one write
    /// of one worker is lost; false if there was no such write.
    async fn live(self, number: usize, writes: usize) -> bool {
        let what = format!("answer {writes} to {}", ["one", "two"][number]);
        let world = &self.world;
        self.weathers[number].lock().answer_lost_behind = Some(writes);
        world.put(0..20).await;
        let one = self.start(0);
        self.seen(20).await;
        world.put(20..40).await;
        let two = self.start(1);
        self.owned("two", 1).await;
        self.seen(40).await;
        for (shard, middle) in [(0, 1 << 126), (1, 3 << 126)] {
            let shard = ShardId::numbered(shard);
            world.streams.split(&world.stream, &shard, HashKey::new(middle)).await.unwrap();
        }
        world.put(40..60).await;
        self.seen(60).await;
        self.owned("one", 2).await;
        pause(LEASE_TIME).await;
        world.put(60..80).await;
        self.seen(80).await;
        one.stop().await;
        self.owned("two", 4).await;
        world.put(80..100).await;
        self.seen(100).await;
        two.stop().await;

        let trace = || self.audit.trace().join("\n");
        world.expect_all(100);
        assert_eq!(world.seen.count(), 100, "{what}: something came twice\n{}", trace());
        let lost: Vec<_> =
            world.told.lock().iter().filter(|(.., word)| *word == "lease_lost").cloned().collect();
        assert!(lost.is_empty(), "{what}: {lost:?}\n{}", trace());
        assert_eq!(self.audit.violations(), [""; 0], "{what}");
        for (key, lease) in world.leases().await {
            let ended = key.as_str() < "shardId-000000000002";
            assert_eq!(lease.checkpoint == Checkpoint::ShardEnd, ended, "{what}: {lease:?}");
            assert_eq!(lease.reader(), None, "{what}: {lease:?}");
        }
        self.weathers[number].lock().answer_lost_behind.is_none()
    }
}

/// Loses the answer to each write of a worker's life, one a run.
fn lose_each(number: usize) {
    let mut writes = 0;
    loop {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        if !runtime.block_on(async { Fleet::new().await.live(number, writes).await }) {
            break;
        }
        writes += 1;
    }
    // Leases are made, taken, renewed, handed over and let go by both.
    assert!(writes > 15, "only {writes} writes");
}

#[test]
fn an_answer_that_is_lost_costs_the_first_worker_no_lease() {
    lose_each(0);
}

#[test]
fn an_answer_that_is_lost_costs_the_second_worker_no_lease() {
    lose_each(1);
}

/// Whoever leads goes on leading, or becomes the leader, as soon as it is heard again.
#[test]
fn an_answer_that_is_lost_leaves_no_application_without_a_leader() {
    for writes in 0..20 {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let fleet = Fleet::new().await;
            fleet.weathers[0].lock().answer_lost_behind = Some(writes);
            let one = fleet.start(0);
            let table = TableName::new("app-1-CoordinatorState").unwrap();
            let mut versions = Vec::new();
            for _ in 0..12 {
                // Heartbeats come every half of the time of a lease, and the first one behind a lost answer as well.
                pause(LEASE_TIME * 11 / 10).await;
                let get = Get::new(Item::new().with("key", "Leader")).consistent();
                let lock = fleet.world.tables.get(&table, get).await.unwrap().expect("a lock");
                versions.push(format!("{:?}", lock.get("recordVersionNumber")));
            }
            assert!(fleet.weathers[0].lock().answer_lost_behind.is_none(), "{writes}");
            let stands = versions.windows(2).filter(|two| two[0] == two[1]).count();
            assert_eq!(stands, 0, "write {writes}: {versions:?}");
            one.stop().await;
            let get = Get::new(Item::new().with("key", "Leader")).consistent();
            assert_eq!(fleet.world.tables.get(&table, get).await.unwrap(), None, "write {writes}");
        });
    }
}
