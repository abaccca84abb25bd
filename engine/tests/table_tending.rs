//! What upkeep does to tables when it is not easy: large items, tables that go away meanwhile.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use anabranch_engine::{Drive, Engine, Options};
use anabranch_model::table::{
    Alteration, IndexOptions, Item, KeyKind, KeySchema, Scan, TableOptions, TableState, TableStore, Write,
};
use anabranch_model::{IndexName, TableName, Timestamp};
use anabranch_sim::{SimClock, SimDisk};

const SEGMENT_BYTES: u64 = 4 << 20;

fn engine() -> Engine {
    let options = Options { segment_bytes: SEGMENT_BYTES, drive: Drive::Caller, ..Options::default() };
    let clock = SimClock::new(Timestamp::from_millis(1_700_000_000_000));
    Engine::open(Arc::new(SimDisk::new()), Arc::new(clock), options).expect("the directory opens")
}

fn run<T>(engine: &Engine, call: impl Future<Output = T>) -> T {
    let mut call = pin!(call);
    for _ in 0..1_000 {
        if let Poll::Ready(done) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
        engine.prepare();
        engine.commit();
        engine.upkeep();
    }
    panic!("a call does not end");
}

fn filled(engine: &Engine, items: usize, bytes: usize) -> TableName {
    let table = TableName::new("large").expect("a good name");
    run(engine, engine.create_table(&table, TableOptions::new(KeySchema::hash("id", KeyKind::Text))))
        .expect("made");
    for number in 0..items {
        let item =
            Item::new().with("id", format!("{number}")).with("color", "red").with("text", "x".repeat(bytes));
        run(engine, engine.write(&table, Write::put(item))).expect("written");
    }
    table
}

fn by_color() -> Alteration {
    let name = IndexName::new("by-color").expect("a good name");
    Alteration::AddIndex(IndexOptions::global(name, KeySchema::hash("color", KeyKind::Text)))
}

#[test]
fn an_index_of_items_that_do_not_fit_into_one_frame_is_filled() {
    let engine = engine();
    let table = filled(&engine, 40, 300_000);
    run(&engine, engine.alter(&table, by_color())).expect("altered");
    engine.upkeep();
    let summary = run(&engine, engine.table(&table)).expect("a summary");
    assert_eq!((summary.state, summary.indexes[0].items), (TableState::Active, 40));
}

/// Items that were written before anyone knew of an index may have something else in place of its key.
#[test]
fn an_added_index_leaves_out_what_does_not_fit() {
    let engine = engine();
    let table = filled(&engine, 3, 10);
    let odd = Item::new().with("id", "odd").with("color", 7);
    run(&engine, engine.write(&table, Write::put(odd))).expect("written");
    run(&engine, engine.alter(&table, by_color())).expect("altered");
    engine.upkeep();
    let summary = run(&engine, engine.table(&table)).expect("a summary");
    assert_eq!((summary.state, summary.items, summary.indexes[0].items), (TableState::Active, 4, 3));
    let name = IndexName::new("by-color").expect("a good name");
    let shown = run(&engine, engine.scan(&table, Scan::new().index(&name))).expect("a scan");
    assert_eq!(shown.items.len(), 3);
}

#[test]
fn a_table_that_is_being_deleted_is_not_waited_for() {
    let engine = engine();
    let table = filled(&engine, 3, 10);
    // Neither call is committed: upkeep meets an index to fill in a table that is gone already.
    let (mut alter, mut delete) =
        (Box::pin(engine.alter(&table, by_color())), Box::pin(engine.delete_table(&table)));
    let mut context = Context::from_waker(Waker::noop());
    assert!(alter.as_mut().poll(&mut context).is_pending());
    engine.commit();
    assert!(alter.as_mut().poll(&mut context).is_ready());
    assert!(delete.as_mut().poll(&mut context).is_pending());
    engine.upkeep();
    assert!(run(&engine, delete).is_ok());
}
