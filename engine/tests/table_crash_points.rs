//! Power is lost after every disk operation of a script with tables, and the directory opened again: every
//! acknowledged step is there, the one that was under way is there as a whole or not at all, and items, indexes,
//! counts and changes agree.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use anabranch_engine::{Drive, Engine, Options};
use anabranch_model::laws::reference::ReferenceTables;
use anabranch_model::table::{
    Alteration, Change, ChangeView, IndexOptions, Item, KeyKind, KeySchema, Scan, TableOptions, TableState,
    TableStore, Token, Update, Value, Write, path,
};
use anabranch_model::{Clock, IndexName, Next, Position, ReadLimit, Result, TableName, Timestamp};
use anabranch_sim::{SimClock, SimDisk};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const SEEDS: u64 = 10;

fn open(disk: &SimDisk, clock: &SimClock) -> Engine {
    let options = Options { segment_bytes: 64 << 10, drive: Drive::Caller, ..Options::default() };
    Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), options).expect("the directory opens")
}

/// Runs a call to its end; `drive` does what threads would.
fn run<T>(call: impl Future<Output = T>, mut drive: impl FnMut()) -> T {
    let mut call = pin!(call);
    for _ in 0..10_000 {
        if let Poll::Ready(done) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
        drive();
    }
    panic!("a call does not end");
}

enum Step {
    Create(&'static str, TableOptions),
    Delete(&'static str),
    Alter(&'static str, Alteration),
    Write(&'static str, Write),
    Transact(Vec<(&'static str, Write)>, &'static str),
    /// Time passes, and everything is done that upkeep does.
    Upkeep(Duration),
}

fn name(text: &str) -> TableName {
    TableName::new(text).expect("a good name")
}

fn key(id: &str) -> Item {
    Item::new().with("id", id)
}

fn script() -> Vec<Step> {
    let schema = KeySchema::hash("id", KeyKind::Text);
    let by = |attribute: &str| {
        let index = IndexName::new(&format!("by-{attribute}")).expect("a good name");
        IndexOptions::global(index, KeySchema::hash(attribute, KeyKind::Text))
    };
    let put = |id: &str, color: &str| Write::put(key(id).with("color", color).with("text", "x".repeat(300)));
    let expires = Value::Number((START.as_millis() as i64 / 1000 + 100).into());
    vec![
        Step::Create(
            "one",
            TableOptions::new(schema.clone())
                .with_index(by("color"))
                .with_changes(ChangeView::Both)
                .with_time_to_live("gone"),
        ),
        Step::Create("two", TableOptions::new(schema)),
        Step::Write("one", put("a", "red")),
        Step::Write("one", put("b", "blue")),
        Step::Write("one", put("a", "green").when(path("color").equals("red"))),
        Step::Write("one", Write::update(key("n"), Update::new().add("count", 1))),
        Step::Upkeep(Duration::from_secs(1)),
        Step::Write("one", Write::update(key("n"), Update::new().add("count", 1))),
        Step::Transact(
            vec![("one", Write::delete(key("b"))), ("two", put("b", "blue")), ("two", put("c", "red"))],
            "t1",
        ),
        Step::Transact(
            vec![("one", Write::delete(key("b"))), ("two", put("b", "blue")), ("two", put("c", "red"))],
            "t1",
        ),
        Step::Alter("two", Alteration::AddIndex(by("color"))),
        Step::Upkeep(Duration::from_secs(1)),
        Step::Write("two", put("d", "red")),
        Step::Write("one", Write::put(key("t").with("gone", expires))),
        Step::Upkeep(Duration::from_secs(200)),
        Step::Alter("two", Alteration::DropIndex(IndexName::new("by-color").expect("a good name"))),
        Step::Alter("two", Alteration::Changes(Some(ChangeView::New))),
        Step::Write("two", Write::delete(key("c"))),
        Step::Delete("one"),
        Step::Upkeep(Duration::from_secs(1)),
        Step::Create("one", TableOptions::new(KeySchema::hash("id", KeyKind::Text))),
        Step::Write("one", put("a", "white")),
    ]
}

async fn call(store: &dyn TableStore, step: &Step) -> Result<()> {
    match step {
        Step::Create(table, options) => store.create_table(&name(table), options.clone()).await,
        Step::Delete(table) => store.delete_table(&name(table)).await,
        Step::Alter(table, alteration) => store.alter(&name(table), alteration.clone()).await,
        Step::Write(table, write) => store.write(&name(table), write.clone()).await.map(drop),
        Step::Transact(writes, token) => {
            let writes = writes.iter().map(|(table, write)| (name(table), write.clone())).collect();
            store.transact_write(writes, Some(Token::new(*token)?)).await
        }
        Step::Upkeep(_) => Ok(()),
    }
}

/// Everything that can be seen of one table.
#[derive(Clone, Debug, PartialEq)]
struct Picture {
    items: BTreeMap<String, Item>,
    counts: (u64, u64),
    /// Entries and counts of each index that can be read.
    indexes: BTreeMap<String, (BTreeMap<String, Item>, u64, u64)>,
    changes: BTreeMap<String, Vec<Change>>,
}

type World = BTreeMap<String, Picture>;

async fn look(store: &dyn TableStore) -> World {
    let mut world = World::new();
    for table in store.tables(None, 100).await.expect("a listing").entries {
        let summary = store.table(&table).await.expect("a summary");
        let mut indexes = BTreeMap::new();
        for index in &summary.indexes {
            if index.state == TableState::Active {
                let entries = items(store, &table, Scan::new().index(&index.name)).await;
                indexes.insert(index.name.to_string(), (entries, index.items, index.bytes));
            }
        }
        let picture = Picture {
            items: items(store, &table, Scan::new()).await,
            counts: (summary.items, summary.bytes),
            indexes,
            changes: changes(store, &summary).await,
        };
        world.insert(table.to_string(), picture);
    }
    world
}

async fn items(store: &dyn TableStore, table: &TableName, scan: Scan) -> BTreeMap<String, Item> {
    let page = store.scan(table, scan).await.expect("a page");
    assert!(page.last.is_none(), "everything fits into a page");
    let id = |item: &Item| format!("{:?}", item.get("id"));
    page.items.into_iter().map(|item| (id(&item), item)).collect()
}

async fn changes(
    store: &dyn TableStore,
    summary: &anabranch_model::table::TableSummary,
) -> BTreeMap<String, Vec<Change>> {
    let mut by_key: BTreeMap<String, Vec<Change>> = BTreeMap::new();
    let Some(stream) = &summary.changes else { return by_key };
    for shard in store.changes().shards(stream, None, 100).await.expect("shards").entries {
        let mut from = Position::TrimHorizon;
        loop {
            let batch =
                store.changes().read(stream, &shard.id, from, ReadLimit::default()).await.expect("a batch");
            for record in &batch.records {
                let change = Change::decode(&record.data).expect("a change");
                by_key.entry(format!("{:?}", change.keys)).or_default().push(change);
            }
            match batch.next {
                Next::At(next) if !batch.records.is_empty() => from = next,
                _ => break,
            }
        }
    }
    by_key
}

/// The worlds that the reference goes through, the empty one first.
fn expected(script: &[Step]) -> Vec<World> {
    let reference = ReferenceTables::new();
    let mut worlds = vec![run(look(&reference), || ())];
    for step in script {
        if let Step::Upkeep(passed) = step {
            reference.advance(*passed);
            reference.expire();
        }
        run(call(&reference, step), || ()).expect("the reference does it");
        worlds.push(run(look(&reference), || ()));
    }
    worlds
}

/// Whether what was found may follow from a world; indexes that are being filled are left out.
fn follows(found: &World, expected: &World) -> bool {
    found.keys().eq(expected.keys())
        && found.iter().zip(expected.values()).all(|((_, found), expected)| {
            let same = |name: &String| {
                found.indexes.get(name).is_none_or(|one| Some(one) == expected.indexes.get(name))
            };
            found.items == expected.items
                && found.counts == expected.counts
                && found.changes == expected.changes
                && found.indexes.keys().all(same)
        })
}

#[test]
fn tables_survive_power_loss_after_every_operation() {
    let script = script();
    let worlds = expected(&script);
    let (disk, clock) = (SimDisk::new(), SimClock::new(START));
    let engine = open(&disk, &clock);
    let mut acknowledged = vec![disk.operations()];
    for (number, step) in script.iter().enumerate() {
        if let Step::Upkeep(passed) = step {
            clock.advance(*passed);
            engine.upkeep();
        }
        run(call(&engine, step), || {
            engine.prepare();
            engine.commit();
        })
        .expect("the engine does it");
        acknowledged.push(disk.operations());
        let found = run(look(&engine), || ());
        assert!(follows(&found, &worlds[number + 1]), "step {number}: {found:#?}\n{:#?}", worlds[number + 1]);
    }
    let end = clock.now();
    let mut images = 0;
    for operation in acknowledged[0]..=disk.operations() {
        let done = acknowledged.iter().filter(|at| **at <= operation).count() - 1;
        for seed in 0..SEEDS {
            let left = disk.crash_at(operation, seed);
            let clock = SimClock::new(end);
            let engine = open(&left, &clock);
            let found = run(look(&engine), || ());
            let next = worlds.get(done + 1);
            assert!(
                follows(&found, &worlds[done]) || next.is_some_and(|next| follows(&found, next)),
                "power lost after operation {operation} ({}), seed {seed}, {done} steps acknowledged: {found:#?}\nnot\n{:#?}",
                disk.describe(operation.saturating_sub(1)),
                worlds[done],
            );
            images += 1;
        }
    }
    assert!(images > 1_000, "only {images} crashes");
}
