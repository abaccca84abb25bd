//! A merged shard waits for everything that comes before it, however far back.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use anabranch_consumer::{Checkpoint, Consumer, Delivery, StreamChoice, process_fn};
use anabranch_model::{HashKey, ShardId, StreamStore};
use world::{World, pause, run, seconds};

mod world;

/// One parent of a merge is read at once; the other has no lease, for its own parent takes minutes. Neither the merged shard
/// begins before it, nor does the lease of the first parent block the one that is needed.
#[tokio::test(start_paused = true)]
async fn a_merged_shard_waits_for_a_parent_whose_own_parent_is_being_read() {
    for leases_max in [100, 2] {
        let world = World::new(2).await;
        world.put(0..50).await;
        let [slow, quick] = [0, 1].map(ShardId::numbered);
        let [_, upper] =
            world.streams.split(&world.stream, &slow, HashKey::new(u128::MAX / 4)).await.unwrap();
        world.put(50..100).await;
        let merged = world.streams.merge(&world.stream, &upper, &quick).await.unwrap();
        world.put(100..150).await;
        let (seen, first) = (world.seen.clone(), slow.clone());
        let process = process_fn(move |delivery: Delivery| {
            let (seen, first) = (seen.clone(), first.clone());
            async move {
                if delivery.shard.shard == first {
                    pause(seconds(12)).await;
                }
                seen.note("one", &delivery);
                delivery.done()
            }
        });
        let choice = [StreamChoice::only(world.stream.clone())];
        let (source, tables) = (Arc::new(world.streams.clone()), Arc::new(world.tables.clone()));
        let one = Consumer::builder("app-1", choice, source, tables, world.clock.clone(), process)
            .worker("one")
            .seed(3)
            .leases_max(leases_max)
            .batch_records(1);
        let one = run(one);
        pause(seconds(200)).await;
        let leases = world.leases().await;
        assert_ne!(leases[slow.as_str()].checkpoint, Checkpoint::ShardEnd, "it is slow enough");
        assert!(!leases.contains_key(merged.as_str()), "{leases:?}");
        world.until("all of it", seconds(900), async || world.seen.count() >= 150).await;
        world.expect_all(150);
        assert_eq!(world.seen.count(), 150, "and nothing twice");
        one.stop().await;
    }
}
