//! Streams that end, as the changes of a table do when they are turned off: whoever reads to the end is told when all of it is
//! processed.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{
    Checkpoint, Consumer, ConsumerBuilder, Delivery, Ending, Handle, StreamChoice, process_fn,
};
use anabranch_model::table::{
    Alteration, ChangeView, Item, KeyKind, KeySchema, TableOptions, TableStore, Write,
};
use anabranch_model::{Result, StreamName, TableName, limits};
use tokio::task::JoinHandle;
use world::{World, pause, seconds};

mod world;

/// A table whose changes are read.
struct Changed {
    world: World,
    table: TableName,
    stream: StreamName,
}

impl Changed {
    async fn new() -> Self {
        let (world, table) = (World::new(1).await, TableName::new("people").unwrap());
        let options = TableOptions::new(KeySchema::hash("id", KeyKind::Text)).with_changes(ChangeView::Keys);
        world.tables.create_table(&table, options).await.unwrap();
        let stream = world.tables.table(&table).await.unwrap().changes.unwrap();
        Changed { world, table, stream }
    }

    async fn put(&self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            let item = Item::new().with("id", format!("{number:04}"));
            self.world.tables.write(&self.table, Write::put(item)).await.unwrap();
        }
    }

    async fn turn_off(&self) {
        self.world.tables.alter(&self.table, Alteration::Changes(None)).await.unwrap();
    }

    fn worker(&self, name: &'static str, takes: Duration) -> ConsumerBuilder {
        let seen = self.world.seen.clone();
        let process = process_fn(move |delivery: Delivery| {
            let seen = seen.clone();
            async move {
                pause(takes).await;
                seen.note(name, &delivery);
                delivery.done()
            }
        });
        let choice = [StreamChoice::only(self.stream.clone())];
        let (source, tables) = (Arc::new(self.world.tables.clone()), Arc::new(self.world.tables.clone()));
        Consumer::builder("app-1", choice, source, tables, self.world.clock.clone(), process)
            .worker(name)
            .seed(11)
            .batch_records(1)
    }
}

fn to_end(builder: ConsumerBuilder) -> (Handle, JoinHandle<Result<Ending>>) {
    let consumer = builder.build().unwrap();
    (consumer.handle(), tokio::spawn(consumer.run_to_end()))
}

#[tokio::test(start_paused = true)]
async fn all_workers_end_with_the_stream_and_not_before_everything_is_processed() {
    let changed = Changed::new().await;
    let world = &changed.world;
    let workers = ["one", "two"].map(|name| to_end(changed.worker(name, seconds(3))));
    changed.put(0..10).await;
    pause(seconds(10)).await;
    changed.turn_off().await;
    pause(seconds(10)).await;
    assert!(world.seen.count() < 10, "it is slow enough");
    for (_, worker) in &workers {
        assert!(!worker.is_finished());
    }
    for (_, worker) in workers {
        assert_eq!(worker.await.unwrap().unwrap(), Ending::Finished);
        assert_eq!(world.seen.count(), 10, "nothing is left, and nothing comes twice");
    }
    let leases = world.leases().await;
    assert!(leases.values().all(|lease| lease.checkpoint == Checkpoint::ShardEnd), "{leases:?}");
    // Whoever comes later has nothing to do.
    let (_, late) = to_end(changed.worker("three", seconds(0)));
    assert_eq!(late.await.unwrap().unwrap(), Ending::Finished);
    assert_eq!(world.seen.count(), 10);
}

/// No shard of it is open when the first worker comes: it is read all the same.
#[tokio::test(start_paused = true)]
async fn a_stream_that_ended_before_anybody_came_is_read() {
    let changed = Changed::new().await;
    changed.put(0..10).await;
    changed.turn_off().await;
    let (_, one) = to_end(changed.worker("one", seconds(0)));
    assert_eq!(one.await.unwrap().unwrap(), Ending::Finished);
    assert_eq!(changed.world.seen.count(), 10);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_stopped_or_finds_the_stream_gone_says_so() {
    let changed = Changed::new().await;
    let world = &changed.world;
    changed.put(0..5).await;
    let (handle, one) = to_end(changed.worker("one", seconds(0)));
    world.until("all of it", seconds(5), async || world.seen.count() == 5).await;
    handle.shutdown();
    assert_eq!(one.await.unwrap().unwrap(), Ending::Stopped);
    // It goes while somebody reads.
    let (_, one) = to_end(changed.worker("one", seconds(20)));
    changed.put(5..10).await;
    pause(seconds(5)).await;
    changed.turn_off().await;
    world.tables.advance(limits::CHANGES_RETENTION + seconds(1));
    world.tables.tidy();
    assert_eq!(one.await.unwrap().unwrap(), Ending::Gone);
    // Or before.
    let (_, one) = to_end(changed.worker("one", seconds(0)));
    assert_eq!(one.await.unwrap().unwrap(), Ending::Gone);
    // Without that wish it is an error, and nobody begins.
    let error = changed.worker("one", seconds(0)).build().unwrap().run().await.unwrap_err();
    assert!(error.to_string().contains(changed.stream.as_str()), "{error}");
}
