//! Who lives keeps its leases, who does not loses them in time, and nobody gives a lease to the dead.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_model::{Clock, Dice, NewRecord, StreamStore, TableName, Timestamp};
use parking_lot::Mutex;
use world::faulty::{Audit, Faulty, Weather};
use world::{World, pause, run, seconds};

mod world;

const LEASE_TIME: Duration = seconds(10);

/// A clock on which time passes between any two looks, as it does on a real one.
struct Ticking(Arc<dyn Clock>, AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed() + Duration::from_micros(self.1.fetch_add(1, Ordering::Relaxed))
    }
}

/// A lease is renewed in every round, not in every second one.
#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_thrice_in_its_time_by_a_clock_that_never_stands_still() {
    let mut world = World::new(1).await;
    world.clock = Arc::new(Ticking(world.clock.clone(), AtomicU64::new(0)));
    let one = run(world.builder("one"));
    pause(seconds(5)).await;
    let counter = async || world.leases().await["shardId-000000000000"].counter;
    let before = counter().await;
    pause(seconds(100)).await;
    let writes = counter().await - before;
    assert!((28..=31).contains(&writes), "{writes} in 100 seconds");
    one.stop().await;
}

/// A renewal says how far the shard is processed, and a checkpoint renews: however much there is to write down, a lease takes one
/// write in a round. Who wants more checkpoints than that has no renewals beside them.
#[tokio::test(start_paused = true)]
async fn a_busy_lease_takes_one_write_in_a_round() {
    const SHARDS: u64 = 8;
    for (checkpoint_every, writes_max, behind_max) in
        [(60, 31, 4), (10, 31, 4), (4, 31, 4), (2, 51, 3), (1, 101, 2)]
    {
        let world = World::new(SHARDS as usize).await;
        let one = run(world.builder("one").checkpoint_every(seconds(checkpoint_every)));
        let counters = async || world.leases().await.values().map(|lease| lease.counter).collect::<Vec<_>>();
        world.put(0..200).await;
        pause(seconds(5)).await;
        let (mut put, mut written, before) = (200, Vec::new(), counters().await);
        for _ in 0..100 {
            world.put(put..put + 50).await;
            put += 50;
            written.push(world.leases().await);
            pause(seconds(1)).await;
        }
        for (after, before) in counters().await.into_iter().zip(before) {
            let writes = after - before;
            assert!(writes <= writes_max, "{writes} in 100 s with a checkpoint every {checkpoint_every} s");
            assert!(writes >= 28, "{writes} are too few to keep a lease");
        }
        // Every shard gets something every second, so its checkpoint moves with every write.
        for two in written.windows(behind_max + 1) {
            for (key, lease) in &two[0] {
                assert!(
                    two[behind_max][key].checkpoint > lease.checkpoint,
                    "{key} every {checkpoint_every} s"
                );
            }
        }
        one.stop().await;
    }
}

/// A table that does not answer, and more leases than are renewed at a time: each ends when its time has passed, however
/// long the renewals hang.
#[tokio::test(start_paused = true)]
async fn all_leases_end_in_time_while_renewals_hang() {
    let world = World::new(100).await;
    let weather = Arc::new(Mutex::new(Weather::default()));
    let tables = Faulty {
        inner: world.tables.clone(),
        leases: TableName::new("app-1").unwrap(),
        worker: "one".to_owned(),
        weather: weather.clone(),
        dice: Arc::new(Dice::new(5)),
        audit: Audit::new(world.clock.clone(), LEASE_TIME),
    };
    let one = world.builder_on("one", Arc::new(world.streams.clone()), Arc::new(tables), Duration::ZERO);
    let one = run(one);
    world.until("all are read", seconds(30), async || world.owners().await.get("one") == Some(&100)).await;
    pause(seconds(10)).await;
    let told = |word| world.told.lock().iter().filter(|(.., told)| *told == word).count();
    assert_eq!((told("initialized"), told("lease_lost")), (100, 0));
    weather.lock().frozen = true;
    // Nobody else may begin before this moment, and by then nobody reads any more.
    pause(LEASE_TIME).await;
    assert_eq!(told("lease_lost"), 100);
    weather.lock().frozen = false;
    one.task.abort();
}

/// A worker that was killed owns nothing after a while, but its row is still young. No lease is given to it.
#[tokio::test(start_paused = true)]
async fn a_dead_worker_is_given_no_lease() {
    let world = World::new(9).await;
    let workers = ["one", "two", "three"].map(|name| run(world.builder(name)));
    let even = async || {
        let owners = world.owners().await;
        ["one", "two", "three"].iter().all(|name| owners.get(*name) == Some(&3))
    };
    world.until("an even share", seconds(60), even).await;
    pause(seconds(20)).await;
    for dead in ["two", "three"] {
        let index = if dead == "two" { 1 } else { 2 };
        workers[index].task.abort();
        let none = async || world.leases().await.values().all(|lease| lease.owner.as_deref() != Some(dead));
        world.until("its leases are taken", LEASE_TIME + seconds(1), none).await;
        for _ in 0..700 {
            pause(Duration::from_millis(100)).await;
            for (key, lease) in world.leases().await {
                assert_ne!(lease.owner.as_deref(), Some(dead), "{key} is given to the dead");
            }
        }
    }
    workers[0].handle.shutdown();
}

/// Ten records of ten thousand bytes a second, and checkpoints so often that no renewal is needed: the lease says how much
/// that is.
#[tokio::test(start_paused = true)]
async fn the_throughput_is_measured_over_the_time_in_which_it_was_read() {
    for checkpoint_every in [1, 4, 60] {
        let world = World::new(1).await;
        let one = run(world.builder("one").checkpoint_every(seconds(checkpoint_every)));
        pause(seconds(1)).await;
        let mut least = f64::MAX;
        for number in 0..300 {
            let record = NewRecord::new("key", vec![b'x'; 10_000]);
            world.streams.append(&world.stream, vec![record]).await.unwrap();
            pause(Duration::from_millis(100)).await;
            if number > 100 {
                least = least.min(world.leases().await["shardId-000000000000"].throughput_kbps);
            }
        }
        let kbps = world.leases().await["shardId-000000000000"].throughput_kbps;
        assert!((85.0..=110.0).contains(&kbps), "{kbps} with a checkpoint every {checkpoint_every} s");
        assert!(least > 80.0, "{least} with a checkpoint every {checkpoint_every} s");
        one.stop().await;
    }
}
