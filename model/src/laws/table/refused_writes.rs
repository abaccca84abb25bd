//! Bad writes: each is refused with a reason, and nothing has changed.

use super::trial::{Trial, at, by_group, id};
use crate::limits::{ITEM_BYTES_MAX, NESTING_MAX};
use crate::table::expression::{exists, list_append};
use crate::table::{
    ChangeView, Condition, Get, IndexOptions, Item, KeyKind, KeySchema, Number, Returning, TableOptions,
    Update, Value, Write, path,
};
use crate::{Error, NextMove, TableName};

fn invalid(error: &Error) -> bool {
    matches!(error, Error::Invalid(_)) && error.next_move() == NextMove::FixCall
}

/// Asserts that a write is refused alone and in a transaction, and leaves the table as it was.
async fn refused(trial: &Trial, table: &TableName, what: &str, write: Write) {
    let before = trial.contents(table).await;
    trial.refused(what, trial.store().write(table, write.clone()).await, invalid);
    let fine = (table.clone(), Write::put(at("in a transaction", 1)));
    let result = trial.store().transact_write(vec![fine, (table.clone(), write)], None).await;
    let fits = |error: &Error| invalid(error) || matches!(error, Error::TransactionCancelled { .. });
    trial.refused(format!("{what} in a transaction"), result, fits);
    trial.same(format!("the table after {what}"), trial.contents(table).await, before);
}

/// A key has all of its attributes, of the right kind, neither empty nor too large, and nothing more.
pub async fn bad_keys_are_refused(trial: Trial) {
    let by_color = IndexOptions::global(
        trial.index_name("by-color"),
        KeySchema::hash("color", KeyKind::Text).and_range("shade", KeyKind::Binary),
    );
    let table = trial.table(TableOptions::new(by_group()).with_index(by_color)).await;
    trial.put(&table, at("g", 1).with("n", 1)).await;
    for (what, key) in [
        ("no key at all", Item::new()),
        ("a missing range attribute", Item::new().with("group", "g")),
        ("a missing hash attribute", Item::new().with("at", 1)),
        ("a hash attribute of another kind", Item::new().with("group", 1).with("at", 1)),
        ("a range attribute of another kind", Item::new().with("group", "g").with("at", "1")),
        ("null for a key", Item::new().with("group", "g").with("at", Value::Null)),
        ("an empty hash attribute", at("", 1)),
        ("a hash attribute that is too large", at(&"x".repeat(2049), 1)),
    ] {
        refused(&trial, &table, what, Write::put(key.clone().with("n", 2))).await;
        refused(&trial, &table, what, Write::update(key.clone(), Update::new().set("n", 2))).await;
        refused(&trial, &table, what, Write::delete(key.clone())).await;
        trial.refused(what, trial.store().get(&table, Get::new(key)).await, invalid);
    }
    let more = at("g", 1).with("n", 1);
    refused(&trial, &table, "a key with more", Write::delete(more.clone())).await;
    refused(&trial, &table, "a key with more", Write::update(more.clone(), Update::new())).await;
    trial.refused("a key with more", trial.store().get(&table, Get::new(more)).await, invalid);
    for (what, name, value) in [
        ("a number in an index of texts", "color", Value::from(1)),
        ("an empty text in an index", "color", Value::from("")),
        ("a text in an index of binaries", "shade", Value::from("x")),
        ("a binary in an index that is too large", "shade", Value::from(&[0u8; 1025][..])),
    ] {
        refused(&trial, &table, what, Write::put(at("g", 2).with(name, value.clone()))).await;
        refused(&trial, &table, what, Write::update(at("g", 1), Update::new().set(name, value))).await;
    }
}

/// An item keeps the limits of size and depth, and its sets have elements; a number has 38 digits.
pub async fn bad_items_are_refused(trial: Trial) {
    let table = trial.table(TableOptions::new(by_group()).with_changes(ChangeView::Keys)).await;
    trial.put(&table, at("g", 1).with("n", 1)).await;
    let spare = ITEM_BYTES_MAX - at("g", 1).size() - "data".len();
    let deep = (0..=NESTING_MAX).fold(Value::Null, |inner, _| Value::List(vec![inner]));
    for (what, value) in [
        ("an item of 400 KiB and a byte", Value::from("x".repeat(spare + 1))),
        ("an empty set of texts", Value::TextSet(Default::default())),
        ("an empty set of numbers", Value::NumberSet(Default::default())),
        ("an empty set of binaries", Value::BinarySet(Default::default())),
        ("an empty set in a list", vec![Value::TextSet(Default::default())].into()),
        ("an empty set in a map", Item::new().with("x", Value::TextSet(Default::default())).into()),
        ("an item that is too deep", deep),
    ] {
        refused(&trial, &table, what, Write::put(at("g", 1).with("data", value.clone()))).await;
        refused(&trial, &table, what, Write::update(at("g", 1), Update::new().set("data", value))).await;
    }
    refused(&trial, &table, "an attribute without a name", Write::put(at("g", 1).with("", 1))).await;
    trial.refused("39 digits", "123456789012345678901234567890123456789".parse::<Number>(), invalid);
    trial.refused("an element twice", Value::text_set(["a", "a"]), invalid);
    let wide: Number = trial.ok("38 digits", "99999999999999999999999999999999999999".parse());
    trial.put(&table, at("wide", 1).with("n", wide)).await;
    let add = Update::new().add("n", trial.ok("a number", "0.1".parse::<Number>()));
    refused(&trial, &table, "a sum of 39 digits", Write::update(at("wide", 1), add)).await;
    let append =
        Update::new().set("data", list_append(path("data"), vec![Value::from("x".repeat(300 << 10))]));
    trial.put(&table, at("grow", 1).with("data", Value::List(vec![]))).await;
    trial.write(&table, Write::update(at("grow", 1), append.clone())).await;
    refused(&trial, &table, "an item that grows too large", Write::update(at("grow", 1), append)).await;
}

/// An update has paths that lead somewhere and do not overlap, values of the right kinds, and leaves the key alone.
pub async fn bad_updates_are_refused(trial: Trial) {
    let table = trial.grouped().await;
    let texts = trial.ok("a set", Value::text_set(["a"]));
    let numbers = trial.ok("a set", Value::number_set([1]));
    let item = at("g", 1)
        .with("n", 1)
        .with("text", "t")
        .with("list", vec![Value::Null])
        .with("map", Item::new().with("x", 1))
        .with("texts", texts.clone());
    trial.put(&table, item).await;
    let nowhere = || path("nothing").name("x");
    for (what, update) in [
        ("a set through nothing", Update::new().set(nowhere(), 1)),
        ("a removal through nothing", Update::new().remove(nowhere())),
        ("an addition through nothing", Update::new().add(nowhere(), 1)),
        ("a name in a list", Update::new().set(path("list").name("x"), 1)),
        ("a number in a map", Update::new().set(path("map").index(0), 1)),
        ("a name in a text", Update::new().set(path("text").name("x"), 1)),
        ("a value that is not there", Update::new().set("a", path("nothing"))),
        ("a sum with nothing", Update::new().set("a", path("nothing").plus(1))),
        ("a sum with text", Update::new().set("a", path("text").plus(1))),
        ("an appended text", Update::new().set("a", list_append(path("list"), "x"))),
        ("a number added to text", Update::new().add("text", 1)),
        ("numbers added to texts", Update::new().add("texts", numbers.clone())),
        ("an added text", Update::new().add("n", "1")),
        ("numbers taken from texts", Update::new().delete("texts", numbers)),
        ("a number taken away", Update::new().delete("n", 1)),
        ("one path twice", Update::new().set("n", 1).remove("n")),
        ("overlapping paths", Update::new().set("map", 1).set(path("map").name("x"), 2)),
        ("conflicting paths", Update::new().set(path("map").name("x"), 1).set(path("map").index(1), 2)),
        ("an update of the hash attribute", Update::new().set("group", "h")),
        ("a removal of the range attribute", Update::new().remove("at")),
        ("too many operators", (0..301).fold(Update::new(), |u, n| u.set(path(format!("a{n}")), 1))),
    ] {
        refused(&trial, &table, what, Write::update(at("g", 1), update)).await;
    }
    let returning = Write::put(at("g", 1)).returning(Returning::New);
    trial.refused("a put that returns the new item", trial.store().write(&table, returning).await, invalid);
    let check = Write::check_that(at("g", 1), exists("n"));
    trial.refused("a check on its own", trial.store().write(&table, check).await, invalid);
}

/// A condition keeps its limits and compares what can be compared, whatever the item is.
pub async fn bad_conditions_are_refused(trial: Trial) {
    let table = trial.grouped().await;
    trial.put(&table, at("g", 1)).await;
    let many = (0..301).map(|n| path("n").equals(n)).reduce(Condition::or).unwrap_or_else(|| exists("n"));
    for (what, condition) in [
        ("an order of bools", path("n").above(true)),
        ("bounds in the wrong order", path("n").between(2, 1)),
        ("bounds of different kinds", path("n").between(1, "2")),
        ("a beginning that is a number", path("n").begins_with(1)),
        ("membership among 101", path("n").one_of(0..101)),
        ("too many operators", many),
    ] {
        refused(&trial, &table, what, Write::put(at("g", 1).with("n", 1)).when(condition.clone())).await;
        let update = Update::new().set("n", 1);
        refused(&trial, &table, what, Write::update(at("g", 1), update).when(condition.clone())).await;
        refused(&trial, &table, what, Write::delete(at("g", 1)).when(condition)).await;
    }
    let one = trial.simple().await;
    let write = Write::put(id("a")).when(path("a").index(3).name("b").equals(1));
    let failed = |error: &Error| matches!(error, Error::ConditionFailed { .. });
    trial.refused("a condition on a path to nowhere", trial.store().write(&one, write).await, failed);
}
