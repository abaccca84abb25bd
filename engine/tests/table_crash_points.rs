//! Power is lost after every disk operation of a script with tables, and the directory opened again: every
//! acknowledged step is there, the one that was under way is there as a whole or not at all, and items, indexes,
//! counts and changes agree.

mod table_world;

use std::time::Duration;

use anabranch_model::laws::reference::ReferenceTables;
use anabranch_model::table::{
    Alteration, ChangeView, IndexOptions, Item, KeyKind, KeySchema, TableOptions, TableStore, Token, Update,
    Value, Write, path,
};
use anabranch_model::{Clock, IndexName, Result};
use anabranch_sim::{SimClock, SimDisk};
use table_world::{START, Story, World, follows, lineage, look, name, open, run};

const SEEDS: u64 = 10;

enum Step {
    Create(&'static str, TableOptions),
    Delete(&'static str),
    Alter(&'static str, Alteration),
    Write(&'static str, Write),
    Transact(Vec<(&'static str, Write)>, &'static str),
    /// Time passes, and everything is done that upkeep does.
    Upkeep(Duration),
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
        Step::Alter("two", Alteration::Changes(None)),
        Step::Alter("two", Alteration::Changes(Some(ChangeView::Keys))),
        Step::Write("two", Write::delete(key("d"))),
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

/// What can be seen, also of the changes of a table that is deleted and made again.
type Sight = (World, Vec<Story>);

fn see(store: &dyn TableStore) -> Sight {
    (run(look(store), || ()), run(lineage(store, &name("one")), || ()))
}

fn is_like(found: &Sight, expected: &Sight) -> bool {
    follows(&found.0, &expected.0) && found.1 == expected.1
}

/// The worlds that the reference goes through, the empty one first.
fn expected(script: &[Step]) -> Vec<Sight> {
    let reference = ReferenceTables::new();
    let mut worlds = vec![see(&reference)];
    for step in script {
        if let Step::Upkeep(passed) = step {
            reference.advance(*passed);
            reference.tidy();
        }
        run(call(&reference, step), || ()).expect("the reference does it");
        worlds.push(see(&reference));
    }
    worlds
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
        let found = see(&engine);
        assert!(is_like(&found, &worlds[number + 1]), "step {number}: {found:#?}\n{:#?}", worlds[number + 1]);
    }
    let end = clock.now();
    let mut images = 0;
    for operation in acknowledged[0]..=disk.operations() {
        let done = acknowledged.iter().filter(|at| **at <= operation).count() - 1;
        for seed in 0..SEEDS {
            let left = disk.crash_at(operation, seed);
            let clock = SimClock::new(end);
            let engine = open(&left, &clock);
            let found = see(&engine);
            let next = worlds.get(done + 1);
            assert!(
                is_like(&found, &worlds[done]) || next.is_some_and(|next| is_like(&found, next)),
                "power lost after operation {operation} ({}), seed {seed}, {done} steps acknowledged: {found:#?}\nnot\n{:#?}",
                disk.describe(operation.saturating_sub(1)),
                worlds[done],
            );
            images += 1;
        }
    }
    assert!(images > 1_000, "only {images} crashes");
}
