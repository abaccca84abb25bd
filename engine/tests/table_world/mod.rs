//! Everything that can be seen of tables, to be laid beside what should be seen, and how an engine is driven by hand.
#![allow(dead_code, reason = "each test file uses its own share")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use anabranch_engine::{Drive, Engine, Options};
use anabranch_model::table::{Change, Item, Scan, TableOptions, TableState, TableStore};
use anabranch_model::{IndexName, Next, Position, ReadLimit, Result, StreamName, TableName, Timestamp};
use anabranch_sim::{SimClock, SimDisk};

/// What the clock of the reference shows at first.
pub const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Opens a directory, with small segments.
pub fn open(disk: &SimDisk, clock: &SimClock) -> Engine {
    let options = Options { segment_bytes: 64 << 10, drive: Drive::Caller, ..Options::default() };
    Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), options).expect("the directory opens")
}

/// Runs a call to its end; `drive` does what threads would.
pub fn run<T>(call: impl Future<Output = T>, mut drive: impl FnMut()) -> T {
    let mut call = pin!(call);
    for _ in 0..10_000 {
        if let Poll::Ready(done) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
        drive();
    }
    panic!("a call does not end");
}

/// A name that is known to be good.
pub fn name(text: &str) -> TableName {
    TableName::new(text).expect("a good name")
}

/// Everything that can be seen of one table.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    options: TableOptions,
    created_at: Timestamp,
    items: Vec<Item>,
    counts: (u64, u64),
    /// Entries and counts of each index that can be read.
    indexes: BTreeMap<IndexName, (Vec<Item>, u64, u64)>,
    changes: Option<Story>,
    /// What the streams tell that are listed for it.
    lineage: Vec<Story>,
}

/// What happened to each item, by its key, and whether that is all.
pub type Story = (BTreeMap<String, Vec<Change>>, bool);

/// Tables by name.
pub type World = BTreeMap<TableName, Picture>;

/// Looks at all tables.
pub async fn look(store: &dyn TableStore) -> World {
    let mut world = World::new();
    for table in store.tables(None, 100).await.expect("a listing").entries {
        let summary = store.table(&table).await.expect("a summary");
        let mut indexes = BTreeMap::new();
        for index in &summary.indexes {
            if index.state == TableState::Active {
                let entries = items(store, &table, Scan::new().index(&index.name)).await;
                indexes.insert(index.name.clone(), (entries, index.items, index.bytes));
            }
        }
        let changes = match &summary.changes {
            Some(stream) => Some(story(store, stream).await.expect("the changes of a table")),
            None => None,
        };
        let picture = Picture {
            lineage: lineage(store, &table).await,
            options: summary.options,
            created_at: summary.created_at,
            items: items(store, &table, Scan::new()).await,
            counts: (summary.items, summary.bytes),
            indexes,
            changes,
        };
        world.insert(table, picture);
    }
    world
}

/// What the streams of a table tell, the oldest first, whether or not the table is there.
pub async fn lineage(store: &dyn TableStore, table: &TableName) -> Vec<Story> {
    let mut stories = Vec::new();
    for stream in store.change_streams(table).await.expect("a listing") {
        stories.push(story(store, &stream).await.expect("a stream that is listed"));
    }
    stories
}

async fn items(store: &dyn TableStore, table: &TableName, scan: Scan) -> Vec<Item> {
    let page = store.scan(table, scan).await.expect("a page");
    assert!(page.last.is_none(), "everything fits into a page");
    page.items
}

/// Reads a stream of changes to its end.
pub async fn story(store: &dyn TableStore, stream: &StreamName) -> Result<Story> {
    let (mut by_key, mut ended): (BTreeMap<String, Vec<Change>>, _) = (BTreeMap::new(), true);
    for shard in store.changes().shards(stream, None, 100).await?.entries {
        let mut from = Position::TrimHorizon;
        loop {
            let batch = store.changes().read(stream, &shard.id, from, ReadLimit::default()).await?;
            for record in &batch.records {
                let change = Change::decode(&record.data).expect("a change");
                by_key.entry(format!("{:?}", change.keys)).or_default().push(change);
            }
            match batch.next {
                Next::At(next) if !batch.records.is_empty() => from = next,
                next => {
                    ended &= matches!(next, Next::Ended(_));
                    break;
                }
            }
        }
    }
    Ok((by_key, ended))
}

/// Whether what was found may follow from a world; indexes that are being filled are left out.
pub fn follows(found: &World, expected: &World) -> bool {
    found.keys().eq(expected.keys())
        && found.iter().zip(expected.values()).all(|((_, found), expected)| {
            let same = |name: &IndexName| found.indexes.get(name) == expected.indexes.get(name);
            found.indexes.keys().all(same)
                && *found == Picture { indexes: found.indexes.clone(), ..expected.clone() }
        })
}
