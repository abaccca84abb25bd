//! What readers get where a record of a stream of changes is damaged.

use anabranch_model::table::{ChangeView, Item, KeyKind, KeySchema, TableOptions, Write};
use anabranch_model::{TableName, TableStore};
use anabranch_sim::{SimClock, SimDisk};

use super::*;
use crate::core::Attempt;
use crate::journal::Urgency;
use crate::{Engine, Options};

const HORIZON: Position = Position::TrimHorizon;

fn things() -> TableName {
    TableName::new("things").expect("a name")
}

async fn put(engine: &Engine, step: u64) {
    let item = Item::new().with("id", "one").with("step", step);
    engine.write(&things(), Write::put(item)).await.expect("it is written");
}

/// The only stream of changes.
fn log(engine: &Engine) -> Arc<Log> {
    engine.core().tables.logs.all().remove(0)
}

/// Writes a record that nobody can read.
async fn put_damaged(engine: &Engine, shard: u8) {
    let (core, prefix) = (engine.core(), shard_prefix(log(engine).number, shard));
    let write = || -> Attempt<()> {
        let change = RowChange::put_placed(prefix.clone(), 0, vec![1, 2, 3]);
        let accepting = core.rows.accept(Vec::new());
        let (_, done) = core.write_rows(accepting, vec![change], Urgency::Normal, &mut None, None)?;
        Ok(((), done))
    };
    core.submit(write).await.expect("it is written");
}

/// What two reads give, the second one behind the damage that the first one met.
async fn read_over(engine: &Engine, shard: &ShardId, from: Position) -> Vec<Record> {
    let (log, limit) = (log(engine).name.clone(), ReadLimit::default());
    let before = engine.changes().read(&log, shard, from, limit).await.expect("a batch");
    let Next::At(next) = before.next else { panic!("the stream has not ended") };
    let met = engine.changes().read(&log, shard, next, limit).await;
    let Err(Error::Damaged { from, resume_at, .. }) = met else { panic!("{met:?}") };
    assert!(from < resume_at && before.records.iter().all(|record| record.sequence < from));
    let behind = engine.changes().read(&log, shard, Position::At(resume_at), limit).await.expect("a batch");
    [before.records, behind.records].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_neighbours_of_a_damaged_record_stay_readable() {
    let (disk, clock) = (SimDisk::new(), SimClock::new(Timestamp::from_millis(1_800_000_000_000)));
    let open = || {
        Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), Options::default()).expect("it opens")
    };
    let engine = open();
    let key = KeySchema::hash("id", KeyKind::Text);
    let options = TableOptions::new(key).with_changes(ChangeView::Both);
    engine.create_table(&things(), options).await.expect("a table");
    put(&engine, 1).await;
    let mut found = None;
    for shard in 0..SHARDS {
        let id = ShardId::numbered(u64::from(shard));
        let stream = log(&engine).name.clone();
        let read = engine.changes().read(&stream, &id, HORIZON, ReadLimit::default()).await;
        if !read.expect("a batch").records.is_empty() {
            found = Some((shard, id));
        }
    }
    let (shard, id) = found.expect("the change is in a shard");
    put_damaged(&engine, shard).await;
    put(&engine, 2).await;
    assert_eq!(read_over(&engine, &id, HORIZON).await.len(), 2);

    // A directory opens though the last record tells no time. Whoever looks for a time is told of it, because nobody knows
    // whether it was before, and goes on behind it.
    put_damaged(&engine, shard).await;
    drop(engine);
    let engine = open();
    clock.advance(Duration::from_secs(10));
    let now = engine.core().clock.now();
    put(&engine, 3).await;
    let (name, limit) = (log(&engine).name.clone(), ReadLimit::default());
    let met = engine.changes().read(&name, &id, Position::AtTimestamp(now), limit).await;
    let Err(Error::Damaged { resume_at, .. }) = met else { panic!("{met:?}") };
    let read = engine.changes().read(&name, &id, Position::At(resume_at), limit).await;
    assert_eq!(read.expect("a batch").records.len(), 1);

    // What has expired goes, damaged or not.
    let snapshot = engine.core().rows.snapshot().expect("a snapshot");
    let removed = expired(&snapshot, &log(&engine), now.as_millis() + 1, 100).expect("they are found");
    assert_eq!(removed.keys.len(), 5);
}
