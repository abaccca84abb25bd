//! Conditional writes.

use super::trial::{Trial, id};
use crate::Error;
use crate::table::expression::{exists, missing, size};
use crate::table::{Condition, Kind, Update, Value, Write, path};

/// A write happens if its condition holds, and changes nothing if it does not.
pub async fn a_condition_decides_about_a_write(trial: Trial) {
    let table = trial.simple().await;
    let failed = |error: &Error| *error == Error::ConditionFailed { item: None };
    let item = |n: i32| id("a").with("n", n);
    let bump = Update::new().add("n", 1);
    // Of an item that does not exist nothing can be seen, not even its key.
    for write in [Write::put(item(9)), Write::update(id("a"), bump.clone()), Write::delete(id("a"))] {
        let what = format!("{write:?} of what does not exist");
        trial.refused(what, trial.store().write(&table, write.when(exists("id"))).await, failed);
        trial.same("the table", trial.contents(&table).await, Vec::new());
    }
    trial.write(&table, Write::put(item(1)).when(missing("id"))).await;
    for write in [Write::put(item(9)), Write::update(id("a"), bump.clone()), Write::delete(id("a"))] {
        for condition in [missing("id"), path("n").equals(2), path("n").equals("1"), path("x").equals(1)] {
            let what = format!("{write:?} when {condition:?}");
            trial.refused(what, trial.store().write(&table, write.clone().when(condition)).await, failed);
            trial.same("the table", trial.contents(&table).await, vec![item(1)]);
        }
    }
    trial.write(&table, Write::update(id("a"), bump).when(path("n").equals(1))).await;
    trial.same("the updated item", trial.get(&table, id("a")).await, Some(item(2)));
    trial.write(&table, Write::delete(id("a")).when(path("n").equals(2))).await;
    trial.same("the deleted item", trial.get(&table, id("a")).await, None);
}

/// The item whose condition does not hold is shown if it was asked for, and there is one.
pub async fn a_failed_condition_shows_the_item(trial: Trial) {
    let table = trial.simple().await;
    let item = id("a").with("n", 1);
    trial.put(&table, item.clone()).await;
    let never = path("n").equals(5);
    for write in [Write::put(id("a")), Write::update(id("a"), Update::new()), Write::delete(id("a"))] {
        let write = write.when(never.clone()).showing_item();
        let shown = Error::ConditionFailed { item: Some(item.clone()) };
        trial.refused("a write", trial.store().write(&table, write).await, |error| *error == shown);
    }
    let write = Write::delete(id("b")).when(never).showing_item();
    let nothing = Error::ConditionFailed { item: None };
    trial.refused("a delete of nothing", trial.store().write(&table, write).await, |error| *error == nothing);
}

/// Comparisons and functions mean the same in every store.
pub async fn conditions_compare_as_they_should(trial: Trial) {
    let table = trial.simple().await;
    let tags = trial.ok("a set", Value::text_set(["x", "y"]));
    let numbers = trial.ok("a set", Value::number_set([1, 2]));
    let list: Vec<Value> = vec!["p".into(), 2.into()];
    let item = id("a")
        .with("n", 10)
        .with("t", "banana")
        .with("b", &b"\x01\xff"[..])
        .with("list", list.clone())
        .with("tags", tags.clone())
        .with("numbers", numbers)
        .with("yes", true)
        .with("null", Value::Null);
    trial.put(&table, item.clone()).await;
    let p = |name: &str| path(name);
    let holding: Vec<Condition> = vec![
        p("n").equals(10),
        p("n").above(9),
        p("n").between(10, 11),
        p("n").one_of([9, 10]),
        p("n").differs("10"),
        p("nothing").differs(1),
        p("nothing").differs(p("void")),
        p("t").below("bb"),
        p("b").above(&b"\x01\x02"[..]),
        p("t").begins_with("ban"),
        p("t").contains("nan"),
        p("tags").contains("y"),
        p("numbers").contains(2),
        p("list").contains(2),
        p("list").index(1).equals(2),
        p("list").equals(list),
        p("tags").equals(tags),
        size("t").equals(6),
        size("list").equals(2),
        Condition::HasKind(p("null"), Kind::Null),
        exists("null").and(missing(p("list").index(2))),
        p("yes").equals(false).or(p("yes").equals(true)),
    ];
    let failing: Vec<Condition> = vec![
        p("n").equals("10"),
        p("n").below("9"),
        p("n").above(p("t")),
        p("nothing").equals(1),
        p("nothing").equals(p("void")),
        p("nothing").at_least(0),
        p("n").begins_with("1"),
        p("tags").contains(1),
        p("t").above(p("null")),
        size("n").above(0),
        Condition::HasKind(p("nothing"), Kind::Null),
        exists("nothing").or(missing("n")),
    ];
    let cases = holding.into_iter().map(|c| (c, true)).chain(failing.into_iter().map(|c| (c, false)));
    for (condition, expected) in cases {
        for (condition, expected) in [(condition.clone(), expected), (condition.negated(), !expected)] {
            let write = Write::put(item.clone()).when(condition.clone());
            let seen = match trial.store().write(&table, write).await {
                Ok(_) => true,
                Err(Error::ConditionFailed { .. }) => false,
                Err(error) => trial.fail(format!("{condition:?} failed with {error:?}")),
            };
            trial.same(format!("{condition:?}"), seen, expected);
        }
    }
}
