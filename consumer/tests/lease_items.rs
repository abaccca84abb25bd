//! Items of the tables as the Kinesis Client Library writes them, and tables that are something else.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{Checkpoint, Layout, Lease, LeaseTable, TableNames};
use anabranch_model::laws::reference::ReferenceTables;
use anabranch_model::table::{
    Get, Item, KeyKind, KeySchema, TableOptions, TableStore, Update, Value, Write, path,
};
use anabranch_model::{Error, HashKey, HashRange, SequenceNumber, ShardId, TableName};
use world::{World, pause, run, seconds};

mod world;

fn number(text: &str) -> Value {
    Value::number(text).unwrap()
}

/// As captured from the Java library 3.1.3.
fn golden() -> Item {
    Item::new()
        .with("leaseKey", "shardId-000000000001")
        .with("leaseOwner", "w1")
        .with("leaseCounter", 14)
        .with("checkpoint", "49680000000000000000000000000000000000000000000000004258")
        .with("checkpointSubSequenceNumber", 0)
        .with("ownerSwitchesSinceCheckpoint", 0)
        .with("parentShardId", Value::text_set(["shardId-000000000000"]).unwrap())
        .with("startingHashKey", "0")
        .with("endingHashKey", "170141183460469231731687303715884105727")
        .with("throughputKBps", number("4.23E-4"))
}

fn ended() -> Item {
    Item::new()
        .with("leaseKey", "shardId-000000000000")
        .with("leaseCounter", 3)
        .with("checkpoint", "SHARD_END")
        .with("checkpointSubSequenceNumber", 0)
        .with("ownerSwitchesSinceCheckpoint", 0)
        .with("childShardIds", Value::text_set(["shardId-000000000002", "shardId-000000000001"]).unwrap())
}

#[test]
fn golden_items_are_understood() {
    let lease = Lease::read(&golden()).unwrap().unwrap();
    assert_eq!(lease.owner.as_deref(), Some("w1"));
    assert_eq!(lease.counter, 14);
    let sequence: SequenceNumber =
        "49680000000000000000000000000000000000000000000000004258".parse().unwrap();
    assert_eq!(lease.checkpoint, Checkpoint::At { sequence, sub_sequence: 0 });
    assert_eq!(lease.parents, vec![ShardId::numbered(0)]);
    let half = HashKey::new(u128::MAX / 2);
    assert_eq!(lease.range, Some(HashRange::new(HashKey::MIN, half).unwrap()));
    assert!((lease.throughput_kbps - 0.000423).abs() < 1e-9);
    let lease = Lease::read(&ended()).unwrap().unwrap();
    assert_eq!((lease.checkpoint, lease.owner), (Checkpoint::ShardEnd, None));
    assert_eq!(lease.children, vec![ShardId::numbered(1), ShardId::numbered(2)]);
}

#[test]
fn what_is_made_here_is_what_the_other_library_makes() {
    let lease = Lease {
        parents: vec![ShardId::numbered(0)],
        range: Some(HashRange::new(HashKey::MIN, HashKey::new(7)).unwrap()),
        ..Lease::new("shardId-000000000001", Checkpoint::TrimHorizon)
    };
    let expected = Item::new()
        .with("leaseKey", "shardId-000000000001")
        .with("leaseCounter", 0)
        .with("checkpoint", "TRIM_HORIZON")
        .with("checkpointSubSequenceNumber", 0)
        .with("ownerSwitchesSinceCheckpoint", 0)
        .with("parentShardId", Value::text_set(["shardId-000000000000"]).unwrap())
        .with("startingHashKey", "0")
        .with("endingHashKey", "7");
    assert_eq!(lease.item(Layout::Three), expected);
    assert_eq!(lease.item(Layout::One), expected.with("entityType", "LEASE"));
    let many =
        Lease { stream: Some("1:orders:2".into()), ..Lease::new("1:orders:2:shard-9", Checkpoint::Latest) };
    let item = many.item(Layout::Three);
    assert_eq!(item.get("streamName"), Some(&"1:orders:2".into()));
    assert_eq!(item.get("shardId"), Some(&"shard-9".into()));
    assert_eq!(Lease::read(&item).unwrap().unwrap(), many);
}

#[test]
fn items_of_other_kinds_are_no_leases_and_broken_ones_are_said() {
    assert_eq!(Lease::read(&golden().with("entityType", "LEADER")).unwrap(), None);
    assert!(Lease::read(&golden().with("entityType", "LEASE")).unwrap().is_some());
    assert_eq!(Lease::read(&Item::new().with("leaseKey", "Leader").with("ownerName", "w")).unwrap(), None);
    for (name, value) in [
        ("leaseCounter", Value::from("14")),
        ("leaseCounter", number("1.5")),
        ("checkpoint", Value::from("SOON")),
        ("checkpoint", Value::from(5)),
        ("parentShardId", Value::from("shardId-000000000000")),
        ("startingHashKey", Value::from("x")),
        ("leaseOwner", Value::from(true)),
    ] {
        let error = Lease::read(&golden().with(name, value.clone()));
        assert!(error.is_err(), "{name} {value:?}: {error:?}");
    }
    // The other library writes a number where it reads bytes; nobody needs it.
    assert!(Lease::read(&golden().with("pendingCheckpointState", 0)).unwrap().is_some());
}

async fn open(tables: &ReferenceTables) -> anabranch_model::Result<LeaseTable> {
    let names = TableNames::new("{app}", "app-1")?;
    LeaseTable::open(Arc::new(tables.clone()), names, Duration::from_secs(3), 5, "w1").await
}

#[tokio::test]
async fn new_applications_get_three_tables_that_the_other_library_accepts() {
    let tables = ReferenceTables::new();
    let table = open(&tables).await.unwrap();
    assert_eq!(table.layout(), Layout::Three);
    let summary = |name: &str| tables.state().summary(&TableName::new(name).unwrap()).unwrap();
    let leases = summary("app-1").options;
    assert_eq!(leases.key, KeySchema::hash("leaseKey", KeyKind::Text));
    let index = &leases.indexes[0];
    assert_eq!(index.name.as_str(), "LeaseOwnerToLeaseKeyIndex");
    assert_eq!(index.key, KeySchema::hash("leaseOwner", KeyKind::Text).and_range("leaseKey", KeyKind::Text));
    assert_eq!(summary("app-1-CoordinatorState").options.key, KeySchema::hash("key", KeyKind::Text));
    assert_eq!(summary("app-1-WorkerMetricStats").options.key, KeySchema::hash("wid", KeyKind::Text));
    let get = Get::new(Item::new().with("key", "Migration3.0"));
    let migration =
        tables.get(&TableName::new("app-1-CoordinatorState").unwrap(), get).await.unwrap().unwrap();
    assert_eq!(migration.get("cv"), Some(&"CLIENT_VERSION_3X".into()));
    // A second worker finds everything.
    assert_eq!(open(&tables).await.unwrap().layout(), Layout::Three);
}

#[tokio::test]
async fn a_table_of_another_shape_is_refused_and_not_touched() {
    let tables = ReferenceTables::new();
    let name = TableName::new("app-1").unwrap();
    let options = TableOptions::new(KeySchema::hash("id", KeyKind::Number));
    tables.create_table(&name, options.clone()).await.unwrap();
    let error = open(&tables).await.map(drop).unwrap_err();
    assert!(matches!(error, Error::Misconfigured(_)), "{error:?}");
    assert!(error.to_string().contains("`app-1`") && error.to_string().contains("`leaseKey`"), "{error}");
    assert_eq!(tables.table(&name).await.unwrap().options, options);
    assert_eq!(tables.tables(None, 10).await.unwrap().entries.len(), 1);
}

/// An application that has moved to one table is joined there, and nothing is made beside it.
#[tokio::test(start_paused = true)]
async fn one_table_is_joined_where_it_is_found() {
    let world = World::new(2).await;
    let name = TableName::new("app-1").unwrap();
    let options = TableOptions::new(KeySchema::hash("leaseKey", KeyKind::Text));
    world.tables.create_table(&name, options).await.unwrap();
    let migration = Item::new()
        .with("leaseKey", "TableMigration3.5")
        .with("entityType", "TABLE_MIGRATION")
        .with("tm", "TABLE_MIGRATION_STATUS_COMPLETE");
    world.tables.write(&name, Write::put(migration.clone())).await.unwrap();
    world.put(0..10).await;
    let one = run(world.builder("one"));
    world.until("it reads", seconds(3), async || world.seen.count() == 10).await;
    let get = |key: &str| world.tables.get(&name, Get::new(Item::new().with("leaseKey", key)));
    let leader = get("Leader").await.unwrap().unwrap();
    assert_eq!(leader.get("entityType"), Some(&"LEADER".into()));
    assert_eq!(leader.get("ownerName"), Some(&"one".into()));
    assert_eq!(leader.get("leaseDuration"), Some(&"30000".into()));
    let row = get("one").await.unwrap().unwrap();
    assert_eq!(row.get("entityType"), Some(&"WORKER_METRIC_STATS".into()));
    assert_eq!(row.get("sup"), Some(&1.into()));
    let lease = get("shardId-000000000000").await.unwrap().unwrap();
    assert_eq!(lease.get("entityType"), Some(&"LEASE".into()));
    one.stop().await;
    assert_eq!(world.tables.tables(None, 10).await.unwrap().entries, vec![name.clone()]);
    assert_eq!(get("Leader").await.unwrap(), None, "the lock is given back");
    assert_eq!(get("TableMigration3.5").await.unwrap(), Some(migration));
}

/// Attributes that only a later version knows are there afterwards as they were before.
#[tokio::test(start_paused = true)]
async fn unknown_attributes_are_kept() {
    let world = World::new(1).await;
    world.put(0..10).await;
    let one = run(world.builder("one").checkpoint_every(seconds(1)));
    world.until("it reads", seconds(3), async || world.seen.count() == 10).await;
    let name = TableName::new("app-1").unwrap();
    let key = Item::new().with("leaseKey", "shardId-000000000000");
    let update = Update::new().set("fromTheFuture", "kept").set("pendingCheckpoint", "LATEST");
    world.tables.write(&name, Write::update(key.clone(), update)).await.unwrap();
    world.put(10..20).await;
    pause(seconds(10)).await;
    one.stop().await;
    let item = world.tables.get(&name, Get::new(key)).await.unwrap().unwrap();
    assert_eq!(item.get("fromTheFuture"), Some(&"kept".into()));
    assert_eq!(item.get("pendingCheckpoint"), None, "a checkpoint ends a pending one");
    assert_eq!(item.get("leaseOwner"), None);
}

/// What the leader of the other library does to a lease of ours: it names the next owner and keeps the counter.
#[tokio::test(start_paused = true)]
async fn a_handoff_that_another_leader_asks_for_is_answered() {
    let world = World::new(1).await;
    world.put(0..10).await;
    let one = run(world.builder("one"));
    world.until("it reads", seconds(3), async || world.seen.count() == 10).await;
    let name = TableName::new("app-1").unwrap();
    let key = Item::new().with("leaseKey", "shardId-000000000000");
    let ask = Update::new().set("leaseOwner", "java").set("checkpointOwner", "one");
    let ask = Write::update(key.clone(), ask).when(path("leaseOwner").equals("one"));
    world.tables.write(&name, ask).await.unwrap();
    let handed = async || {
        let leases = world.leases().await;
        let lease = &leases["shardId-000000000000"];
        lease.checkpoint_owner.is_none() && lease.owner.as_deref() == Some("java")
    };
    world.until("it hands over", seconds(4), handed).await;
    let lease = world.leases().await.remove("shardId-000000000000").unwrap();
    assert!(matches!(lease.checkpoint, Checkpoint::At { .. }), "checkpointed before: {lease:?}");
    assert_eq!(lease.owner_switches, 1);
    assert!(world.told.lock().contains(&("one".into(), "shardId-000000000000".into(), "shutdown")));
    // The other worker never renews it, so it comes back when it has expired.
    world.put(10..20).await;
    let took = world.until("it comes back", seconds(15), async || world.seen.count() == 20).await;
    assert!(took >= seconds(9), "not before the other one's time was over: {took:?}");
    one.stop().await;
}

/// A worker that is asked and goes on renewing without letting go, as some do, loses the lease in the end.
#[tokio::test(start_paused = true)]
async fn a_handoff_that_is_never_answered_is_ended_by_the_leader() {
    let world = World::new(2).await;
    world.put(0..10).await;
    let one = run(world.builder("one").drain_max(seconds(5)).leases_max(1));
    world.until("it reads one shard", seconds(5), async || world.owners().await.get("one") == Some(&1)).await;
    let leases = world.leases().await;
    let foreign = leases.values().find(|lease| lease.owner.is_none()).unwrap().key.to_string();
    let (name, key) = (TableName::new("app-1").unwrap(), Item::new().with("leaseKey", foreign.as_str()));
    let ask = Update::new().set("leaseOwner", "one").set("checkpointOwner", "java");
    world.tables.write(&name, Write::update(key.clone(), ask)).await.unwrap();
    let mut waited = 0;
    while world.leases().await[&foreign].checkpoint_owner.is_some() {
        assert!(waited < 40, "it stays where it is");
        waited += 1;
        let renew = Update::new().add("leaseCounter", 1);
        let renewed = Write::update(key.clone(), renew).when(path("checkpointOwner").equals("java"));
        let _ = world.tables.write(&name, renewed).await;
        pause(seconds(1)).await;
    }
    assert!(waited >= 20, "not before two drains and a lease: {waited} s");
    assert_eq!(world.leases().await[&foreign].owner.as_deref(), Some("one"));
    one.stop().await;
}
