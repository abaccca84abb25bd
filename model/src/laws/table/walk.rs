//! A long random walk beside the reference: whatever is asked, both say the same.

use super::trial::{Trial, by_group, sorted};
use crate::laws::dice::Dice;
use crate::laws::reference::Tables;
use crate::table::expression::{exists, if_missing, missing};
use crate::table::{
    Action, Change, ChangeView, Event, IndexOptions, IndexProjection, Item, KeyCondition, KeyKind, KeySchema,
    Query, Returning, Scan, TableOptions, Update, Write, path,
};
use crate::{TableName, Timestamp};

const STEPS: usize = 400;

fn random_key(dice: &mut Dice) -> Item {
    Item::new().with("group", ["a", "b", "c"][dice.below(3)]).with("at", dice.below(6) as u64)
}

fn random_item(dice: &mut Dice) -> Item {
    let mut item = random_key(dice).with("n", dice.below(5) as u64);
    if dice.below(3) > 0 {
        item.insert("color", ["red", "blue"][dice.below(2)]);
    }
    if dice.below(3) > 0 {
        item.insert("size", dice.below(4) as u64);
    }
    item
}

fn random_write(dice: &mut Dice) -> Write {
    let write = match dice.below(6) {
        0 | 1 => Write::put(random_item(dice)),
        2 => Write::delete(random_key(dice)),
        3 => Write::update(random_key(dice), Update::new().add("n", 1).remove("color")),
        4 => Write::update(random_key(dice), Update::new().set("size", if_missing("n", 0))),
        _ => Write::update(random_key(dice), Update::new().set("color", "blue").remove("size")),
    };
    let write = match dice.below(5) {
        0 => write.when(exists("color")),
        1 => write.when(missing("size").or(path("n").above(2))),
        _ => write,
    };
    let returning = if dice.below(3) == 0 { Returning::Old } else { Returning::Nothing };
    write.returning(returning).showing_item()
}

/// Random writes, batches and transactions have the results that they have in the reference; the table, its indexes
/// and its changes are the same in the end.
pub async fn a_random_walk_agrees_with_the_reference(trial: Trial) {
    let by_color = IndexOptions::global(
        trial.index_name("by-color"),
        KeySchema::hash("color", KeyKind::Text).and_range("size", KeyKind::Number),
    );
    let by_size = IndexOptions::local(
        trial.index_name("by-size"),
        KeySchema::hash("group", KeyKind::Text).and_range("size", KeyKind::Number),
    );
    let options = TableOptions::new(by_group())
        .with_index(by_color.showing(IndexProjection::Include(["n".to_string()].into())))
        .with_index(by_size.showing(IndexProjection::Keys))
        .with_changes(ChangeView::Both);
    let table = trial.table(options.clone()).await;
    let mut reference = Tables::default();
    trial.ok("the reference", reference.create(&table, options, Timestamp::EPOCH));
    let mut expected = Vec::new();
    let mut dice = Dice(7);
    let mut before = Vec::new();
    for step in 0..STEPS {
        walk(&trial, &mut reference, &table, &mut dice, step).await;
        let after = picture(&trial, &reference, &table);
        expected.extend(differences(&before, &after));
        before = after;
        if step % 100 == 99 {
            compare(&trial, &reference, &table).await;
        }
    }
    let stream = trial.stream(&table).await;
    let seen = trial.changes(&stream).await;
    // Items of one transaction or batch change in any order, so each item has its own story.
    for group in ["a", "b", "c"] {
        for at in 0..6u64 {
            let key = Item::new().with("group", group).with("at", at);
            let of = |changes: &[Change]| -> Vec<_> {
                let mine = changes.iter().filter(|change| change.keys == key);
                mine.map(|change| (change.event, change.old.clone(), change.new.clone())).collect()
            };
            trial.same(format!("changes of {key:?}"), of(&seen), of(&expected));
        }
    }
    trial.same("all changes", seen.len(), expected.len());
}

async fn walk(trial: &Trial, reference: &mut Tables, table: &TableName, dice: &mut Dice, step: usize) {
    let now = Timestamp::EPOCH;
    let store = trial.store();
    match dice.below(10) {
        0 => {
            let writes: Vec<_> =
                (0..1 + dice.below(4)).map(|_| (table.clone(), random_write(dice))).collect();
            let seen = store.transact_write(writes.clone(), None).await;
            let expected = reference.transact_write(&writes, None, now);
            trial.same(format!("step {step}, the transaction {writes:?}"), seen.is_ok(), expected.is_ok());
        }
        1 => {
            let action = |dice: &mut Dice| match dice.below(2) {
                0 => Action::Put(random_item(dice)),
                _ => Action::Delete(random_key(dice)),
            };
            let writes: Vec<_> = (0..1 + dice.below(4)).map(|_| (table.clone(), action(dice))).collect();
            let seen = store.batch_write(writes.clone()).await;
            let expected = reference.batch_write(&writes, now);
            trial.same(format!("step {step}, the batch {writes:?}"), seen.is_ok(), expected.is_ok());
            for (table, action) in seen.unwrap_or_default() {
                trial.write(&table, action.into()).await;
            }
        }
        _ => {
            let write = random_write(dice);
            let seen = store.write(table, write.clone()).await;
            let expected = reference.write(table, &write, now);
            trial.same(format!("step {step}, {write:?}"), seen, expected);
        }
    }
}

fn picture(trial: &Trial, reference: &Tables, table: &TableName) -> Vec<Item> {
    trial.ok("the reference", reference.scan(table, &Scan::new())).items
}

/// The changes between two pictures of a table.
fn differences(before: &[Item], after: &[Item]) -> Vec<Change> {
    let key = |item: &Item| -> Item {
        let wanted = ["group", "at"].into_iter().filter_map(|name| Some((name, item.get(name)?.clone())));
        wanted.collect()
    };
    let find = |items: &[Item], wanted: &Item| items.iter().find(|item| key(item) == *wanted).cloned();
    let mut keys: Vec<Item> = before.iter().chain(after).map(key).collect();
    keys = sorted(keys);
    keys.dedup();
    let change = |keys: Item| {
        let (old, new) = (find(before, &keys), find(after, &keys));
        Change::between(keys, old.as_ref(), new.as_ref(), ChangeView::Both, Timestamp::EPOCH, false)
    };
    let changes: Vec<Change> = keys.into_iter().filter_map(change).collect();
    debug_assert!(changes.iter().all(|change| change.event != Event::Insert || change.old.is_none()));
    changes
}

async fn compare(trial: &Trial, reference: &Tables, table: &TableName) {
    let items = sorted(picture(trial, reference, table));
    trial.same("the table", trial.contents(table).await, items);
    for group in ["a", "b", "c"] {
        let query = Query::new(KeyCondition::of("group", group)).consistent();
        let expected = trial.ok("the reference", reference.query(table, &query)).items;
        trial.same(format!("group {group}"), trial.query_all(table, query.clone().limit(2)).await, expected);
        let local = query.index(&trial.index_name("by-size")).backward();
        let expected = trial.ok("the reference", reference.query(table, &local)).items;
        trial.same(format!("sizes of {group}"), trial.query_all(table, local.limit(2)).await, expected);
    }
    let index = trial.index_name("by-color");
    let expected = trial.ok("the reference", reference.scan(table, &Scan::new().index(&index))).items;
    trial.index_shows(table, &index, expected).await;
}
