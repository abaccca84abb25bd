//! Change capture into blobs: nothing lost, a replay writes over what is there, and failures end where they should.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod world;

use std::sync::Arc;
use std::time::Duration;

use anabranch_bus::archive::Found;
use anabranch_bus::flow::Flow;
use anabranch_bus::{Event, Refusal, Step};
use anabranch_consumer::{LeaseTable, TableNames};
use anabranch_model::aggregate::aggregate;
use anabranch_model::table::{Alteration, ChangeView, Get, Item, Write};
use anabranch_model::{
    BlobStore, Error, NewRecord, StreamName, StreamOptions, StreamStore, TableName, TableStore,
};
use async_trait::async_trait;
use world::{COLUMNS, SINGLE, TENS, World, pause, seconds, start};

#[tokio::test(start_paused = true)]
async fn each_change_is_a_blob_named_by_it() {
    let world = World::new().await;
    world.put(0..3).await;
    world.put(1..2).await;
    let bot = world.run(SINGLE).await;
    world.until("three inserts", async || world.documents().await.len() == 3).await;
    world.remove(2).await;
    world.until("a removal", async || world.documents().await.len() == 4).await;
    bot.stop().await;
    let documents = world.documents().await;
    let names: Vec<_> = documents.iter().map(|document| document["eventName"].as_str().unwrap()).collect();
    assert_eq!(names, ["INSERT", "INSERT", "INSERT", "REMOVE"], "a put that changes nothing is no change");
    let last = &documents[3];
    assert_eq!(last["eventSource"], "aws:dynamodb");
    assert_eq!(last["awsRegion"], "eu-north-1");
    assert_eq!(last["eventID"], last["dynamodb"]["SequenceNumber"]);
    assert_eq!(last["dynamodb"]["Keys"], serde_json::json!({"id": {"S": "0002"}}));
    assert_eq!(last["dynamodb"]["OldImage"], serde_json::json!({"id": {"S": "0002"}, "n": {"N": "2"}}));
    assert_eq!(last["dynamodb"].get("NewImage"), None);
    assert_eq!(last["dynamodb"]["StreamViewType"], "NEW_AND_OLD_IMAGES");
    let key = format!("tables/people/2023-11-14/{}.json", last["eventID"].as_str().unwrap());
    assert!(world.stored("").await.contains_key(&key), "{key}");
    assert!(world.verify().await.is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_replay_writes_over_what_is_there() {
    let world = World::new().await;
    world.put(0..50).await;
    let bot = world.run(SINGLE).await;
    world.until("all", async || world.documents().await.len() == 50).await;
    // No checkpoint is written before ten seconds have passed.
    bot.kill().await;
    let before = world.stored("").await;
    let again = world.run(SINGLE).await;
    world.until("all once more", async || world.blobs.puts().len() == 100).await;
    again.stop().await;
    assert_eq!(world.stored("").await, before, "the same blobs with the same bytes");
    // Now there is a checkpoint, and nothing comes again.
    let third = world.run(SINGLE).await;
    world.put(50..51).await;
    world.until("one more", async || world.documents().await.len() == 51).await;
    third.stop().await;
    assert_eq!(world.blobs.puts().len(), 101);
    assert!(world.verify().await.is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_down_for_an_hour_makes_no_dead_letters() {
    for flow in [SINGLE, TENS, COLUMNS] {
        let world = World::new().await;
        world.put(0..25).await;
        world.blobs.on_put(|_| Some(Error::Unavailable("nobody answers".to_owned())));
        let bot = world.run(flow).await;
        pause(seconds(3_600)).await;
        assert!(world.documents().await.is_empty());
        world.blobs.mend();
        world.until("all", async || world.documents().await.len() == 25).await;
        bot.stop().await;
        assert!(world.letters().await.is_empty());
        assert!(world.verify().await.is_clean());
    }
}

/// A bucket that is gone for a while is a sink that is down.
#[tokio::test(start_paused = true)]
async fn a_bucket_that_is_made_again_gets_everything() {
    let world = World::new().await;
    let bot = world.run(SINGLE).await;
    world.blobs.delete_bucket(&world.bucket).await.unwrap();
    world.put(0..5).await;
    pause(seconds(300)).await;
    world.blobs.create_bucket(&world.bucket).await.unwrap();
    world.until("all", async || world.documents().await.len() == 5).await;
    bot.stop().await;
    assert!(world.letters().await.is_empty());
}

/// Refuses one row, in one of three ways.
struct Poison(&'static str);

#[async_trait]
impl Step for Poison {
    fn name(&self) -> &str {
        "poison"
    }

    async fn apply(&self, event: Event) -> Result<Vec<Event>, Refusal> {
        if event.key != "0007" {
            return Ok(vec![event]);
        }
        match self.0 {
            "never" => Err(Refusal::Never("it is the seventh".to_owned())),
            "failed" => Err(Refusal::Failed("it is the seventh".to_owned())),
            _ => panic!("it is the seventh"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_poisonous_record_becomes_a_dead_letter_and_the_rest_goes_on() {
    for flow in [SINGLE, TENS, COLUMNS] {
        for way in ["never", "failed", "panics"] {
            let world = World::new().await;
            world.put(0..30).await;
            let mut ports = world.ports();
            ports.steps.insert("poison".to_owned(), Arc::new(Poison(way)));
            let text = flow.replace("sink =", "steps = [\"poison\"]\nsink =");
            let flow = Flow::parse("test.toml", &text).unwrap();
            let bot = start(flow.assemble(flow.bot(None).unwrap(), &ports).await.unwrap());
            world.until("all others", async || world.documents().await.len() == 29).await;
            bot.stop().await;
            let letters = world.letters().await;
            assert_eq!(letters.len(), 1, "{way}: {letters:?}");
            let letter = &letters[0];
            assert_eq!(letter["application"], "people-archive");
            assert_eq!(letter["partitionKey"], "0007");
            assert!(letter["error"].as_str().unwrap().contains("it is the seventh"), "{letter}");
            assert!(letter["attempts"].as_u64().unwrap() >= 3, "{letter}");
            let rows: Vec<_> = world
                .documents()
                .await
                .iter()
                .map(|document| document["dynamodb"]["Keys"]["id"]["S"].as_str().unwrap().to_owned())
                .collect();
            assert!(rows.is_sorted() && !rows.contains(&"0007".to_owned()), "{rows:?}");
            let found = world.verify().await;
            assert_eq!(found.counts.get(&Found::Missing), Some(&1), "{found:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn batches_are_lines_in_compressed_blobs_with_a_manifest() {
    let entries = batches_have_a_manifest(TENS, ".jsonl.gz").await;
    for (entry, body) in entries {
        assert_eq!(entry["bytes"], body.len());
    }
}

#[tokio::test(start_paused = true)]
async fn batches_are_columns_with_a_manifest() {
    batches_have_a_manifest(COLUMNS, ".parquet").await;
}

/// What the manifest says, and what lies in the blobs.
async fn batches_have_a_manifest(flow: &str, end: &str) -> Vec<(serde_json::Value, String)> {
    let world = World::new().await;
    world.put(0..25).await;
    let bot = world.run(flow).await;
    world.until("two full batches", async || world.documents().await.len() == 20).await;
    world.until("the rest when its time is over", async || world.documents().await.len() == 25).await;
    bot.stop().await;
    let mut blobs: Vec<_> = world.stored("tables/people/2023").await.into_iter().collect();
    blobs.sort_by_key(|(key, _)| key.len());
    let sizes: Vec<_> = blobs.iter().map(|(_, body)| body).map(|body| body.lines().count()).collect();
    assert_eq!(sizes, [10, 10, 5]);
    assert!(blobs.iter().all(|(key, _)| key.ends_with(end)), "{blobs:?}");
    let manifest = world.stored("tables/people/_manifest/").await;
    let entries: Vec<serde_json::Value> =
        manifest.values().map(|body| serde_json::from_str(body).unwrap()).collect();
    assert_eq!(entries.len(), 3);
    for (entry, (key, body)) in entries.iter().zip(&blobs) {
        assert_eq!(entry["blob"], key.as_str());
        assert_eq!(entry["records"], body.lines().count());
    }
    assert!(world.verify().await.is_clean());
    entries.into_iter().zip(blobs.into_iter().map(|(_, body)| body)).collect()
}

/// Killed before a checkpoint, and begun anew: the same names, and the same bytes.
#[tokio::test(start_paused = true)]
async fn a_replay_of_batches_writes_over_what_is_there() {
    for flow in [TENS, COLUMNS] {
        let world = World::new().await;
        world.put(0..20).await;
        let bot = world.run(flow).await;
        world.until("all", async || world.documents().await.len() == 20).await;
        // No checkpoint is written before ten seconds have passed.
        bot.kill().await;
        let (before, puts) = (world.raw().await, world.blobs.puts().len());
        let again = world.run(flow).await;
        world.until("all once more", async || world.blobs.puts().len() == 2 * puts).await;
        again.stop().await;
        assert!(world.raw().await == before, "the same blobs with the same bytes");
        assert!(world.verify().await.is_clean());
    }
}

/// Lines become columns, in the midst of what comes again: what is durable as the one is not written as the other beside it.
#[tokio::test(start_paused = true)]
async fn another_format_makes_no_duplicates() {
    for (one, other) in [(TENS, COLUMNS), (COLUMNS, TENS)] {
        let world = World::new().await;
        world.put(0..20).await;
        let bot = world.run(one).await;
        world.until("all", async || world.documents().await.len() == 20).await;
        bot.kill().await;
        let before = world.raw().await;
        world.put(20..40).await;
        let again = world.run(other).await;
        world.until("twenty more", async || world.documents().await.len() >= 40).await;
        again.stop().await;
        let after = world.raw().await;
        assert!(before.iter().all(|(key, body)| after.get(key) == Some(body)), "left as it was");
        assert_eq!(world.documents().await.len(), 40, "none twice");
        assert!(world.verify().await.is_clean());
    }
}

/// What waited for a slow write is old. It is no batch by itself for that.
#[tokio::test(start_paused = true)]
async fn events_that_waited_for_a_slow_sink_lie_in_full_batches() {
    let world = World::new().await;
    world.put(0..10).await;
    world.blobs.on_put(|_| Some(Error::Unavailable("nobody answers".to_owned())));
    let bot = world.run(TENS).await;
    world.put(10..55).await;
    pause(seconds(300)).await;
    world.blobs.mend();
    world.until("all", async || world.documents().await.len() == 55).await;
    bot.stop().await;
    let blobs = world.stored("tables/people/2023").await;
    let mut sizes: Vec<_> = blobs.values().map(|body| body.lines().count()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [5, 10, 10, 10, 10, 10]);
    assert!(world.verify().await.is_clean());
}

/// Killed after the end of a batch is saved and before its blob is there, and begun anew with other limits.
#[tokio::test(start_paused = true)]
async fn a_batch_ends_where_it_ended_before() {
    for flow in [TENS, COLUMNS] {
        ends_where_it_ended(flow).await;
    }
}

async fn ends_where_it_ended(flow: &str) {
    let world = World::new().await;
    world.put(0..25).await;
    let mut blobs = 0;
    world.blobs.on_put(move |key| {
        let batch = key.ends_with(".gz") || key.ends_with(".parquet");
        blobs += usize::from(batch);
        (batch && blobs >= 2).then(|| Error::Unavailable("nobody answers".to_owned()))
    });
    let bot = world.run(flow).await;
    world
        .until("the end of the second batch", async || {
            world.stored("tables/people/_manifest/").await.len() == 2
        })
        .await;
    bot.kill().await;
    assert_eq!(world.documents().await.len(), 10, "the second blob is not there");
    world.blobs.mend();
    let other = flow.replace("records = 10", "records = 7");
    let again = world.run(&other).await;
    world.until("all", async || world.documents().await.len() == 25).await;
    again.stop().await;
    let mut blobs: Vec<_> = world.stored("tables/people/2023").await.into_iter().collect();
    blobs.sort_by_key(|(key, _)| key.len());
    let sizes: Vec<_> = blobs.iter().map(|(_, body)| body.lines().count()).collect();
    assert_eq!(sizes, [10, 10, 5], "the first two as before, then as the limits say");
    assert!(world.verify().await.is_clean());
}

/// Somebody sets the checkpoint back into the midst of a batch: what is durable is not written beside itself.
#[tokio::test(start_paused = true)]
async fn a_checkpoint_in_the_midst_of_a_batch_makes_no_duplicates() {
    let world = World::new().await;
    world.put(0..30).await;
    let bot = world.run(TENS).await;
    world.until("all", async || world.documents().await.len() == 30).await;
    bot.stop().await;
    let names = TableNames::new("keyspaces-streamer-tables-people", "").unwrap();
    let leases = LeaseTable::find(Arc::new(world.tables.clone()), names, seconds(3)).await.unwrap();
    let lease = leases.leases().await.unwrap().remove(0);
    let middle = world.documents().await[13]["eventID"].as_str().unwrap().to_owned();
    let table = TableName::new("keyspaces-streamer-tables-people").unwrap();
    let key = Item::new().with("leaseKey", lease.key.as_str());
    let mut item = world.tables.get(&table, Get::new(key)).await.unwrap().unwrap();
    item.insert("checkpoint", middle);
    world.tables.write(&table, Write::put(item)).await.unwrap();
    let before = world.stored("").await;
    world.put(30..40).await;
    let again = world.run(TENS).await;
    world.until("ten more", async || world.documents().await.len() >= 40).await;
    again.stop().await;
    let after = world.stored("").await;
    assert!(before.iter().all(|(key, body)| after.get(key) == Some(body)));
    assert_eq!(world.documents().await.len(), 40, "none twice");
    assert!(world.verify().await.is_clean());
}

/// Makes three of each.
struct Thrice;

#[async_trait]
impl Step for Thrice {
    fn name(&self) -> &str {
        "thrice"
    }

    async fn apply(&self, event: Event) -> Result<Vec<Event>, Refusal> {
        Ok(vec![event.clone(), event.clone(), event])
    }
}

/// It is the record that is acknowledged, so all that comes of it lies in one batch.
#[tokio::test(start_paused = true)]
async fn a_batch_never_ends_in_the_midst_of_a_record() {
    let world = World::new().await;
    world.put(0..20).await;
    let mut ports = world.ports();
    ports.steps.insert("thrice".to_owned(), Arc::new(Thrice));
    let flow = Flow::parse("test.toml", &TENS.replace("sink =", "steps = [\"thrice\"]\nsink =")).unwrap();
    let bot = start(flow.assemble(flow.bot(None).unwrap(), &ports).await.unwrap());
    world.until("all", async || world.documents().await.len() == 60).await;
    bot.kill().await;
    let before = world.stored("").await;
    let sizes: Vec<_> =
        world.stored("tables/people/2023").await.values().map(|body| body.lines().count()).collect();
    assert!(sizes.iter().all(|size| size % 3 == 0), "{sizes:?}");
    let again = start(flow.assemble(flow.bot(None).unwrap(), &ports).await.unwrap());
    pause(seconds(60)).await;
    again.stop().await;
    assert_eq!(world.stored("").await, before, "written over");
}

/// The parts of an aggregate are records of their own, with one number.
#[tokio::test(start_paused = true)]
async fn the_parts_of_an_aggregate_may_lie_in_several_batches() {
    let world = World::new().await;
    let stream = StreamName::new("clicks").unwrap();
    world.streams.create_stream(&stream, StreamOptions::default()).await.unwrap();
    for number in 0..3 {
        let part = |part: usize| NewRecord::new("k", format!("{number}-{part:02}"));
        let parts: Vec<_> = (0..17).map(part).collect();
        let record = NewRecord::new("k", aggregate(&parts).unwrap());
        world.streams.append(&stream, vec![record]).await.unwrap();
    }
    let text = TENS.replace("table = \"people\"", "stream = \"clicks\"");
    let expected: Vec<_> =
        (0..3).flat_map(|number| (0..17).map(move |part| format!("{number}-{part:02}"))).collect();
    let lines = async || {
        let stored = world.stored("clicks/").await;
        let bodies = stored.iter().filter(|(key, _)| !key.contains("_manifest")).map(|(_, body)| body);
        let mut lines: Vec<String> = bodies.flat_map(|body| body.lines().map(str::to_owned)).collect();
        lines.sort();
        lines
    };
    let bot = world.run(&text).await;
    world.until("all", async || lines().await == expected).await;
    bot.kill().await;
    let before = world.stored("").await;
    let again = world.run(&text).await;
    pause(seconds(60)).await;
    again.stop().await;
    assert_eq!(world.stored("").await, before, "written over");
}

#[tokio::test(start_paused = true)]
async fn stopping_writes_the_batch_that_is_not_full_and_lets_the_leases_go() {
    let world = World::new().await;
    world.put(0..3).await;
    let patient = TENS.replace("seconds = 5", "seconds = 86400");
    let bot = world.run(&patient).await;
    pause(seconds(30)).await;
    assert!(world.documents().await.is_empty(), "it waits for more");
    bot.stop().await;
    assert_eq!(world.documents().await.len(), 3);
    let names = TableNames::new("keyspaces-streamer-tables-people", "").unwrap();
    let leases = LeaseTable::find(Arc::new(world.tables.clone()), names, seconds(3)).await.unwrap();
    for lease in leases.leases().await.unwrap() {
        assert_eq!(lease.owner, None, "{lease:?}");
    }
    let puts = world.blobs.puts().len();
    let again = world.run(&patient).await;
    pause(seconds(30)).await;
    again.stop().await;
    assert_eq!(world.blobs.puts().len(), puts, "nothing comes again");
}

/// Changes that are turned off and on are another stream, whose shards are numbered from the beginning.
#[tokio::test(start_paused = true)]
async fn changes_that_are_turned_on_anew_are_read() {
    let world = World::new().await;
    world.put(0..3).await;
    let bot = world.run(SINGLE).await;
    world.until("three", async || world.documents().await.len() == 3).await;
    world.tables.alter(&world.table, Alteration::Changes(None)).await.unwrap();
    pause(seconds(30)).await;
    bot.stop().await;
    world.tables.alter(&world.table, Alteration::Changes(Some(ChangeView::Both))).await.unwrap();
    world.put(3..5).await;
    let again = world.run(SINGLE).await;
    world.until("five", async || world.documents().await.len() == 5).await;
    again.stop().await;
}

/// Two workers of one bot share the shards, and the second takes over when the first is killed.
#[tokio::test(start_paused = true)]
async fn another_worker_goes_on_after_a_crash() {
    let world = World::new().await;
    world.put(0..20).await;
    let one = world.run(&SINGLE.replace("seconds = 2 }", "seconds = 2, worker = \"one\" }")).await;
    world.until("twenty", async || world.documents().await.len() == 20).await;
    let two = world.run(&SINGLE.replace("seconds = 2 }", "seconds = 2, worker = \"two\" }")).await;
    pause(Duration::from_millis(500)).await;
    one.kill().await;
    world.put(20..40).await;
    world.until("forty", async || world.documents().await.len() == 40).await;
    two.stop().await;
    assert!(world.verify().await.is_clean());
}
