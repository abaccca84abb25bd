//! One wrong row among many is found, whatever is wrong with it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod world;

use std::collections::BTreeMap;

use anabranch_bus::archive::{Found, Verification};
use anabranch_model::blob::PutOptions;
use anabranch_model::{BlobKey, BlobStore};
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
    use anabranch_model::TableStore;
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
