//! Somebody deletes the table of the leases while workers run.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use anabranch_consumer::InitialPosition;
use anabranch_model::{TableName, TableStore};
use world::{World, pause, run, seconds};

mod world;

/// Whoever holds a lease puts it back with its checkpoint, before anybody makes one that begins anew.
#[tokio::test(start_paused = true)]
async fn a_deleted_table_is_made_again_with_what_the_workers_know() {
    for initial in [InitialPosition::TrimHorizon, InitialPosition::Latest] {
        let world = World::new(6).await;
        let workers = ["one", "two", "three"].map(|name| {
            run(world
                .builder(name)
                .initial_position(initial)
                .checkpoint_every(seconds(1))
                .sync_every(seconds(1)))
        });
        let shared = async || {
            let owners = world.owners().await;
            ["one", "two", "three"].iter().all(|name| owners.get(*name) == Some(&2))
        };
        world.until("an even share", seconds(60), shared).await;
        world.put(0..50).await;
        pause(seconds(15)).await;
        assert_eq!(world.seen.count(), 50);
        world.tables.delete_table(&TableName::new("app-1").unwrap()).await.unwrap();
        world.put(50..100).await;
        pause(seconds(30)).await;
        world.put(100..150).await;
        pause(seconds(10)).await;
        world.expect_all(150);
        assert_eq!(world.seen.count(), 150, "{initial:?}: nothing is read again");
        let lost = world.told.lock().iter().filter(|(.., word)| *word == "lease_lost").count();
        assert_eq!(lost, 0, "{initial:?}");
        for worker in workers {
            worker.stop().await;
        }
    }
}
