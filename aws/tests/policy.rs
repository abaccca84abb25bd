//! The policies that are printed, beside the calls that are seen: who may do what a policy allows needs all of it, and
//! nothing else.
//!
//! Each journey uses a thing in one way on a connection of its own. What it called must be what the policy for this use
//! allows. The journeys need no server that is right about everything: a call counts, whatever its answer.

mod peer;

use std::collections::BTreeSet;
use std::time::Duration;

use anabranch_aws::action::{Action, Use};
use anabranch_aws::policy::{self, Thing};
use anabranch_aws::{Aws, Blobs, Queues, Streams, Tables};
use anabranch_model::blob::{
    Body, BodyOptions, CompleteOptions, CopyOptions, GetOptions, ListOptions, PartChoice, PartNumber,
    PutOptions, UploadListOptions, UploadOptions,
};
use anabranch_model::queue::{MoveId, ReceiveOptions};
use anabranch_model::table::{
    Alteration, ChangeView, Get, Item, KeyCondition, KeyKind, KeySchema, Query, Scan, TableOptions, Update,
    Write,
};
use anabranch_model::{
    BlobKey, BlobStore, BucketName, HashKey, NewMessage, NewRecord, Position, QueueName, QueueOptions,
    QueueStore, ReadLimit, ShardSource, StreamName, StreamOptions, StreamStore, TableName, TableStore,
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use peer::Peer;

/// Compares what a connection called with what a policy allows.
fn compare(aws: &Aws, thing: Thing, uses: &[Use]) {
    let uses: BTreeSet<Use> = uses.iter().copied().collect();
    let of = |rows: &mut dyn Iterator<Item = &'static Action>| -> BTreeSet<String> {
        rows.flat_map(|row| row.permissions().collect::<Vec<_>>()).collect()
    };
    let allowed = of(&mut policy::needed(thing, &uses));
    let used = of(&mut aws.actions_made().into_iter());
    let missing: Vec<_> = used.difference(&allowed).collect();
    let idle: Vec<_> = allowed.difference(&used).collect();
    assert!(missing.is_empty(), "{thing:?} {uses:?}: the policy lacks {missing:?}");
    assert!(idle.is_empty(), "{thing:?} {uses:?}: the policy allows {idle:?}, which nobody used");
}

fn day(days: u64) -> Duration {
    Duration::from_secs(days * 24 * 3600)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_used_as_their_policies_allow() {
    let peer = Peer::kinesis_mock().await;
    let clicks = StreamName::new("clicks").expect("a name");
    let look = async |streams: &Streams| {
        streams.streams(None, 10).await.expect("a list");
        streams.stream(&clicks).await.expect("a stream");
        streams.shards(&clicks, None, 10).await.expect("shards").entries
    };

    let (aws, options) = (peer.connect().await, StreamOptions { shards: 1, retention: day(1) });
    let streams = Streams::new(&aws);
    streams.create_stream(&clicks, options).await.expect("a stream");
    let shards = look(&streams).await;
    streams.set_retention(&clicks, day(2)).await.expect("longer");
    streams.set_retention(&clicks, day(1)).await.expect("shorter");
    let middle = HashKey::new(1_u128 << 127);
    let [lower, upper] = streams.split(&clicks, &shards[0].id, middle).await.expect("a split");
    let merged = streams.merge(&clicks, &lower, &upper).await.expect("a merge");
    let manager = (aws, streams);

    let aws = peer.connect().await;
    let streams = Streams::new(&aws);
    look(&streams).await;
    streams.append(&clicks, vec![NewRecord::new("a", "b")]).await.expect("an append");
    compare(&aws, Thing::Stream, &[Use::Write]);

    let aws = peer.connect().await;
    let streams = Streams::new(&aws).with_fan_out("reader").expect("a consumer");
    look(&streams).await;
    streams.read(&clicks, &merged, Position::TrimHorizon, ReadLimit::default()).await.expect("a read");
    let mut follow = streams.follow(&clicks, &merged, Position::TrimHorizon).await.expect("a follow");
    follow.next().await.expect("a batch").expect("records");
    drop(follow);
    compare(&aws, Thing::Stream, &[Use::Read]);

    let (aws, streams) = manager;
    streams.delete_stream(&clicks).await.expect("no stream");
    compare(&aws, Thing::Stream, &[Use::Manage]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_are_used_as_their_policies_allow() {
    let peer = Peer::ministack().await;
    let (orders, dead) = (QueueName::new("orders").expect("a name"), QueueName::new("dead").expect("a name"));
    let look = async |queues: &Queues| {
        // In this order: what a list has shown need not be looked up.
        queues.queue(&orders).await.expect("a queue");
        queues.queues(None, 10, "").await.expect("a list");
    };

    let aws = peer.connect().await;
    let queues = Queues::new(&aws).purging_at_once();
    for queue in [&orders, &dead] {
        queues.create_queue(queue, QueueOptions::default()).await.expect("a queue");
    }
    look(&queues).await;
    let longer = QueueOptions { visibility: Duration::from_secs(60), ..QueueOptions::default() };
    queues.set_options(&orders, longer).await.expect("options");
    // Not every server can move messages. The calls count.
    let _ = queues.start_move(&dead, Some(&orders), None).await;
    let _ = queues.moves(&dead).await;
    let _ = queues.cancel_move(&MoveId::new("no-such-move").expect("an identifier")).await;
    let manager = (aws, queues);

    let aws = peer.connect().await;
    let queues = Queues::new(&aws);
    look(&queues).await;
    queues.send(&orders, vec![NewMessage::new("two shirts")]).await.expect("a send");
    compare(&aws, Thing::Queue, &[Use::Write]);

    let aws = peer.connect().await;
    let queues = Queues::new(&aws);
    look(&queues).await;
    let got = queues.receive(&orders, ReceiveOptions::default()).await.expect("a receive");
    let receipt = got[0].receipt.clone();
    queues
        .change_visibility(&orders, vec![(receipt.clone(), Duration::from_secs(9))])
        .await
        .expect("a change");
    queues.delete(&orders, vec![receipt]).await.expect("a delete");
    compare(&aws, Thing::Queue, &[Use::Read]);

    let (aws, queues) = manager;
    queues.purge(&orders).await.expect("a purge");
    queues.delete_queue(&orders).await.expect("no queue");
    compare(&aws, Thing::Queue, &[Use::Manage]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_used_as_their_policies_allow() {
    let peer = Peer::moto().await;
    let riders = TableName::new("riders").expect("a name");
    let key = || Item::new().with("id", "a");
    let look = async |tables: &Tables| {
        tables.tables(None, 10).await.expect("a list");
        tables.table(&riders).await.expect("a table")
    };

    let aws = peer.connect().await;
    let tables = Tables::new(&aws);
    let options = TableOptions::new(KeySchema::hash("id", KeyKind::Text));
    tables.create_table(&riders, options).await.expect("a table");
    tables.alter(&riders, Alteration::Changes(Some(ChangeView::Both))).await.expect("changes");
    tables.alter(&riders, Alteration::TimeToLive(Some("until".to_string()))).await.expect("a time");
    look(&tables).await;
    let manager = (aws, tables);

    let aws = peer.connect().await;
    let tables = Tables::new(&aws);
    look(&tables).await;
    tables.write(&riders, Write::put(key())).await.expect("a put");
    tables.write(&riders, Write::update(key(), Update::new().add("n", 1))).await.expect("an update");
    tables.batch_write(vec![(riders.clone(), Write::put(key()).action)]).await.expect("a batch");
    tables.transact_write(vec![(riders.clone(), Write::put(key()))], None).await.expect("a transaction");
    tables.write(&riders, Write::delete(key())).await.expect("a delete");
    compare(&aws, Thing::Table, &[Use::Write]);

    let aws = peer.connect().await;
    let tables = Tables::new(&aws);
    let changes = look(&tables).await.changes.expect("changes");
    tables.get(&riders, Get::new(key())).await.expect("a get");
    tables.batch_get(vec![(riders.clone(), Get::new(key()))]).await.expect("a batch");
    tables.transact_get(vec![(riders.clone(), Get::new(key()))]).await.expect("a transaction");
    tables.query(&riders, Query::new(KeyCondition::of("id", "a"))).await.expect("a query");
    tables.scan(&riders, Scan::new()).await.expect("a scan");
    let source = tables.changes();
    let shard = source.shards(&changes, None, 1).await.expect("shards").entries.remove(0);
    source.read(&changes, &shard.id, Position::TrimHorizon, ReadLimit::default()).await.expect("changes");
    compare(&aws, Thing::Table, &[Use::Read]);

    let (aws, tables) = manager;
    tables.delete_table(&riders).await.expect("no table");
    compare(&aws, Thing::Table, &[Use::Manage]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buckets_are_used_as_their_policies_allow() {
    let peer = Peer::moto().await;
    let photos = BucketName::new("photos").expect("a name");
    let (one, other) = (BlobKey::new("one").expect("a key"), BlobKey::new("other").expect("a key"));
    let body = || -> Body { stream::once(async { Ok(Bytes::from_static(b"a picture")) }).boxed() };
    let look = async |blobs: &Blobs| {
        blobs.buckets(None, 10).await.expect("a list");
        blobs.list(&photos, ListOptions::default()).await.expect("keys");
    };

    let aws = peer.connect().await;
    let blobs = Blobs::new(&aws).expect("blobs");
    blobs.create_bucket(&photos).await.expect("a bucket");
    look(&blobs).await;
    // A bucket is removed with what nobody completed.
    let forgotten = Blobs::new(&peer.connect().await).expect("blobs");
    forgotten.begin_upload(&photos, &other, UploadOptions::default()).await.expect("an upload");
    blobs.delete_bucket(&photos).await.expect("no bucket");
    compare(&aws, Thing::Bucket, &[Use::Manage]);
    blobs.create_bucket(&photos).await.expect("a bucket");

    let aws = peer.connect().await;
    let blobs = Blobs::new(&aws).expect("blobs");
    look(&blobs).await;
    blobs.put(&photos, &one, body(), PutOptions::default()).await.expect("a put");
    blobs.copy((&photos, &one), (&photos, &other), CopyOptions::default()).await.expect("a copy");
    blobs.delete(&photos, &other, None).await.expect("a delete");
    blobs.delete_many(&photos, std::slice::from_ref(&other)).await.expect("deletes");
    let upload = blobs.begin_upload(&photos, &other, UploadOptions::default()).await.expect("an upload");
    let number = PartNumber::new(1).expect("a number");
    let part = blobs.put_part(&upload, number, body(), BodyOptions::default()).await.expect("a part");
    blobs.parts(&upload, None, 10).await.expect("parts");
    blobs.uploads(&photos, UploadListOptions::default()).await.expect("uploads");
    let choice = PartChoice::from(&part);
    blobs.complete_upload(&upload, &[choice], CompleteOptions::default()).await.expect("a blob");
    let upload = blobs.begin_upload(&photos, &other, UploadOptions::default()).await.expect("an upload");
    blobs.abort_upload(&upload).await.expect("no upload");
    compare(&aws, Thing::Bucket, &[Use::Write]);

    let aws = peer.connect().await;
    let blobs = Blobs::new(&aws).expect("blobs");
    look(&blobs).await;
    blobs.head(&photos, &one).await.expect("a blob");
    blobs.get(&photos, &one, GetOptions::default()).await.expect("a blob");
    compare(&aws, Thing::Bucket, &[Use::Read]);
}
