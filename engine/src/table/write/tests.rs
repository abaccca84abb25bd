//! What lies between preparing a write and its attempt: little memory, and a table that may be altered.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use anabranch_model::table::{Alteration, KeyKind, KeySchema, Returning, TableOptions, TableStore};
use anabranch_model::{IndexName, Timestamp};
use anabranch_sim::{SimClock, SimDisk};

use super::*;
use crate::engine::{Drive, Engine, Options};

const ITEM_BYTES: usize = 300_000;

struct World {
    engine: Engine,
    name: TableName,
}

impl World {
    /// A table whose changes show the item as it was, with a small item and a large one.
    fn new() -> World {
        let options = Options { segment_bytes: 4 << 20, drive: Drive::Caller, ..Options::default() };
        let clock = SimClock::new(Timestamp::from_millis(1_700_000_000_000));
        let engine = Engine::open(Arc::new(SimDisk::new()), Arc::new(clock), options).expect("it opens");
        let name = TableName::new("things").expect("a good name");
        let world = World { engine, name };
        let options = TableOptions::new(KeySchema::hash("id", KeyKind::Text)).with_changes(ChangeView::Both);
        world.run(world.engine.create_table(&world.name, options)).expect("made");
        for (id, bytes) in [("small", 10), ("large", ITEM_BYTES)] {
            let item = Item::new().with("id", id).with("text", "x".repeat(bytes));
            world.run(TableStore::write(&world.engine, &world.name, Write::put(item))).expect("written");
        }
        world
    }

    fn run<T>(&self, call: impl Future<Output = T>) -> T {
        let mut call = pin!(call);
        for _ in 0..100 {
            if let Poll::Ready(done) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return done;
            }
            self.engine.prepare();
            self.engine.commit();
        }
        panic!("a call does not end");
    }

    fn call(&self, write: Write) -> Call {
        let table = self.engine.core().tables.table(&self.name).expect("it is there");
        Call { parts: vec![(table, write)], transaction: false, token: None }
    }

    fn prepare(&self, call: &Call) -> (Vec<Prepared>, usize) {
        let (table, write) = &call.parts[0];
        let (prepared, bytes) = self.engine.core().prepare_part(table, write).expect("prepared");
        (vec![prepared], bytes)
    }

    fn attempt(&self, call: &Call, prepared: &mut [Prepared]) -> Answer {
        let core = self.engine.core();
        match core.attempt_write(call, prepared, Urgency::Normal, &mut None) {
            Ok((answer, _)) => answer,
            Err(Halt::Failed(error)) => Err(error),
            Err(Halt::Refused(_)) => panic!("the journal has room"),
        }
    }
}

#[test]
fn a_large_row_is_not_kept_while_its_write_waits_for_room() {
    let world = World::new();
    for (id, kept) in [("small", true), ("large", false), ("absent", true)] {
        let put = Write::put(Item::new().with("id", id).with("text", "y")).returning(Returning::Old);
        let call = world.call(put);
        let (mut prepared, bytes) = world.prepare(&call);
        assert_eq!(prepared[0].seen.is_some(), kept, "{id}");
        // What the change shows of the old item is counted all the same.
        assert_eq!(bytes > ITEM_BYTES, id == "large", "{id}: {bytes}");
        let returned = world.attempt(&call, &mut prepared).expect("written").remove(0);
        assert_eq!(returned.is_some_and(|old| old.size() > ITEM_BYTES), id == "large", "{id}");
    }
}

#[test]
fn a_write_is_checked_again_where_its_table_was_altered_after_it_was_prepared() {
    let world = World::new();
    let put = |id: &str| world.call(Write::put(Item::new().with("id", id).with("number", "seven")));
    let call = put("a");
    let (mut prepared, _) = world.prepare(&call);
    let by_number = KeySchema::hash("number", KeyKind::Number);
    let index = IndexOptions::global(IndexName::new("by-number").expect("a good name"), by_number);
    world.run(world.engine.alter(&world.name, Alteration::AddIndex(index))).expect("altered");
    let refused = world.attempt(&call, &mut prepared);
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    // As one is that is prepared now.
    let call = put("b");
    let (mut prepared, _) = world.prepare(&call);
    assert_eq!(world.attempt(&call, &mut prepared), refused);
}
