//! One wrong row among many is found, whatever is wrong with it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_bus::archive::{Found, Verification};
use anabranch_model::blob::PutOptions;
use anabranch_model::table::{Alteration, ChangeView};
use anabranch_model::{BlobKey, BlobStore, TableStore};
use bytes::Bytes;
use futures_util::stream;
use world::{COLUMNS, SINGLE, TENS, World, table};

/// Rows that were made, changed and removed, archived one by one.
async fn archived(flow: &str) -> World {
    let world = World::new().await;
    world.put(0..60).await;
    change(&world, 0..20).await;
    world.remove(5).await;
    world.put(5..6).await;
    world.remove(59).await;
    let bot = world.run(flow).await;
    world.until("all", async || world.documents().await.len() == 83).await;
    bot.stop().await;
    let found = world.verify().await;
    assert!(found.is_clean(), "{found:?}");
    assert_eq!((found.rows, found.documents), (59, 83));
    world
}

async fn change(world: &World, numbers: std::ops::Range<usize>) {
    use anabranch_model::table::{Item, Write};
    for number in numbers {
        let item =
            Item::new().with("id", format!("{number:04}")).with("n", "changed").with("b", &[0u8, 255][..]);
        world.tables.write(&world.table, Write::put(item)).await.unwrap();
    }
}

async fn put(world: &World, key: &str, body: &str) {
    let body = Box::pin(stream::iter([Ok(Bytes::from(body.to_owned()))]));
    let key = BlobKey::new(key).unwrap();
    world.blobs.put(&world.bucket, &key, body, PutOptions::default()).await.unwrap();
}

async fn remove(world: &World, key: &str) {
    world.blobs.delete(&world.bucket, &BlobKey::new(key).unwrap(), None).await.unwrap();
}

/// The blobs of one row, in order.
async fn of_row(world: &World, row: &str) -> Vec<(String, String)> {
    let stored = world.stored("tables/people/20").await;
    let mut blobs: Vec<_> = stored
        .into_iter()
        .filter(|(_, body)| body.contains(&format!("\"Keys\":{{\"id\":{{\"S\":\"{row}\"}}")))
        .collect();
    let number =
        |key: &str| key.rsplit('/').next().unwrap().trim_end_matches(".json").parse::<u128>().unwrap();
    blobs.sort_by_key(|(key, _)| number(key));
    blobs
}

/// The table is deleted and made again under its name.
async fn made_again(world: &World) {
    let options = world.tables.table(&world.table).await.unwrap().options;
    world.tables.delete_table(&world.table).await.unwrap();
    world.tables.create_table(&world.table, options).await.unwrap();
}

/// A bot archives what is there.
async fn caught_up(world: &World, flow: &str, documents: usize) {
    let bot = world.run(flow).await;
    world.until("all", async || world.documents().await.len() == documents).await;
    bot.stop().await;
}

#[track_caller]
fn only(found: &Verification, kind: Found, row: &str) {
    assert_eq!(found.counts, BTreeMap::from([(kind, 1)]), "{found:#?}");
    assert!(found.differences[0].key.contains(row), "{found:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_document_is_found() {
    let world = archived(SINGLE).await;
    let (key, body) = of_row(&world, "0042").await.remove(0);
    remove(&world, &key).await;
    only(&world.verify().await, Found::Missing, "0042");
    put(&world, &key, &body).await;
    assert!(world.verify().await.is_clean());
    // The first of two changes, the last of two, the removal of a row.
    let (key, body) = of_row(&world, "0003").await.remove(0);
    remove(&world, &key).await;
    only(&world.verify().await, Found::Broken, "0003");
    put(&world, &key, &body).await;
    let (key, body) = of_row(&world, "0003").await.remove(1);
    remove(&world, &key).await;
    only(&world.verify().await, Found::Altered, "0003");
    put(&world, &key, &body).await;
    let (key, body) = of_row(&world, "0059").await.remove(1);
    remove(&world, &key).await;
    only(&world.verify().await, Found::Extra, "0059");
    put(&world, &key, &body).await;
    assert!(world.verify().await.is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_duplicated_document_is_found() {
    let world = archived(SINGLE).await;
    let (_, body) = of_row(&world, "0042").await.remove(0);
    put(&world, "tables/people/2031-01-01/copy.json", &body).await;
    only(&world.verify().await, Found::Duplicated, "0042");
}

#[tokio::test(start_paused = true)]
async fn an_altered_document_is_found() {
    let world = archived(SINGLE).await;
    // The only document of a row, then one in the midst of a history: its new image, and its old one.
    let (key, body) = of_row(&world, "0042").await.remove(0);
    put(&world, &key, &body.replace("\"N\":\"42\"", "\"N\":\"43\"")).await;
    only(&world.verify().await, Found::Altered, "0042");
    put(&world, &key, &body).await;
    let (key, body) = of_row(&world, "0003").await.remove(0);
    put(&world, &key, &body.replace("\"N\":\"3\"", "\"N\":\"4\"")).await;
    only(&world.verify().await, Found::Broken, "0003");
    put(&world, &key, &body).await;
    let (key, body) = of_row(&world, "0003").await.remove(1);
    put(&world, &key, &body.replace("\"N\":\"3\"", "\"N\":\"4\"")).await;
    only(&world.verify().await, Found::Broken, "0003");
    put(&world, &key, &body).await;
    // The same facts in another layout are the same.
    let spaced =
        serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(&body).unwrap()).unwrap();
    put(&world, &key, &spaced.replace('\n', " ")).await;
    assert!(world.verify().await.is_clean());
}

#[tokio::test(start_paused = true)]
async fn a_damaged_blob_is_found() {
    for body in ["", "{", "null", "{\"eventName\":\"INSERT\"}", "\u{1f}nonsense"] {
        let world = archived(SINGLE).await;
        let (key, _) = of_row(&world, "0042").await.remove(0);
        put(&world, &key, body).await;
        let found = world.verify().await;
        let mut expected = BTreeMap::from([(Found::Missing, 1)]);
        if !body.is_empty() {
            expected.insert(Found::Unreadable, 1);
        }
        assert_eq!(found.counts, expected, "{body:?}");
    }
}

/// A whole batch that is gone, and one that is there twice.
#[tokio::test(start_paused = true)]
async fn batches_are_looked_into() {
    for flow in [TENS, COLUMNS] {
        looked_into(flow).await;
    }
}

async fn looked_into(flow: &str) {
    let world = archived(flow).await;
    let options = anabranch_model::blob::ListOptions {
        prefix: "tables/people/2023".to_owned(),
        ..anabranch_model::blob::ListOptions::default()
    };
    let keys = world.blobs.list(&world.bucket, options).await.unwrap().entries;
    let copy = BlobKey::new("tables/people/2023-11-14/999.jsonl.gz").unwrap();
    let (source, target) = ((&world.bucket, &keys[2].key), (&world.bucket, &copy));
    world.blobs.copy(source, target, anabranch_model::blob::CopyOptions::default()).await.unwrap();
    let found = world.verify().await;
    assert_eq!(found.counts, BTreeMap::from([(Found::Duplicated, 10)]), "{found:#?}");
    world.blobs.delete(&world.bucket, &copy, None).await.unwrap();
    world.blobs.delete(&world.bucket, &keys[2].key, None).await.unwrap();
    let found = world.verify().await;
    assert!(!found.is_clean() && found.documents == 73, "{found:#?}");
}

/// A file of columns that is cut off, or of which one byte is another.
#[tokio::test(start_paused = true)]
async fn a_damaged_file_of_columns_is_found() {
    let world = archived(COLUMNS).await;
    let key = world.stored("tables/people/20").await.into_keys().next().unwrap();
    let body = world.bytes(&BlobKey::new(&key).unwrap()).await;
    assert_eq!(table::rows(body.clone()).len(), 10);
    let middle = body.len() / 2;
    for damaged in [&body[..4], &body[..middle], &body[..body.len() - 1]] {
        let body = Box::pin(stream::iter([Ok(Bytes::copy_from_slice(damaged))]));
        let key = BlobKey::new(&key).unwrap();
        world.blobs.put(&world.bucket, &key, body, PutOptions::default()).await.unwrap();
        let found = world.verify().await;
        assert_eq!(found.counts.get(&Found::Unreadable), Some(&1), "{} bytes: {found:#?}", damaged.len());
        assert_eq!(found.documents, 73);
    }
}

/// A table that is deleted takes its rows along, and no change tells of that: nothing that came of them is missing or left over.
#[tokio::test(start_paused = true)]
async fn rows_of_an_older_table_are_not_compared() {
    for flow in [SINGLE, TENS, COLUMNS] {
        let world = archived(flow).await;
        world.tables.advance(Duration::from_millis(1_500));
        made_again(&world).await;
        let found = world.verify().await;
        assert!(found.is_clean(), "{found:#?}");
        assert_eq!((found.rows, found.documents, found.older), (0, 83, 83));
        // Some are called as they were before, some are new, and some stay away.
        world.put(40..80).await;
        change(&world, 45..50).await;
        caught_up(&world, flow, 83 + 45).await;
        let found = world.verify().await;
        assert!(found.is_clean(), "{found:#?}");
        assert_eq!((found.rows, found.documents, found.older), (40, 128, 83));
        // A millisecond is enough where times have milliseconds.
        world.tables.advance(Duration::from_millis(1));
        made_again(&world).await;
        world.put(0..10).await;
        caught_up(&world, flow, 128 + 10).await;
        let found = world.verify().await;
        assert!(found.is_clean(), "{found:#?}");
        assert_eq!((found.rows, found.documents, found.older), (10, 138, 128));
        // What is wrong with the younger one is found all the same.
        world.remove(3).await;
        only(&world.verify().await, Found::Extra, "0003");
    }
}

/// What happened while changes were not written down is missing in the archive, and nothing else is.
#[tokio::test(start_paused = true)]
async fn what_changes_that_were_turned_off_did_not_tell_is_found() {
    let world = archived(SINGLE).await;
    let turn = async |view| world.tables.alter(&world.table, Alteration::Changes(view)).await.unwrap();
    turn(None).await;
    turn(Some(ChangeView::Both)).await;
    change(&world, 30..31).await;
    caught_up(&world, SINGLE, 84).await;
    let found = world.verify().await;
    assert!(found.is_clean(), "{found:#?}");
    turn(None).await;
    world.put(70..71).await;
    world.remove(7).await;
    change(&world, 31..33).await;
    turn(Some(ChangeView::Both)).await;
    world.remove(32).await;
    caught_up(&world, SINGLE, 85).await;
    let found = world.verify().await;
    let counts =
        BTreeMap::from([(Found::Missing, 1), (Found::Extra, 1), (Found::Altered, 1), (Found::Broken, 1)]);
    assert_eq!((found.counts, found.older), (counts, 0));
}
