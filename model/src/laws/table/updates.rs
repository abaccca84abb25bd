//! Updates: an item becomes another one in one step.

use super::trial::{Trial, id};
use crate::table::expression::{if_missing, list_append};
use crate::table::{Item, Number, Update, Value, Write, path};

fn list(values: impl IntoIterator<Item = impl Into<Value>>) -> Value {
    Value::List(values.into_iter().map(Into::into).collect())
}

/// Right-hand sides see the item before the update, whatever else the update does.
pub async fn updates_see_the_item_as_it_was(trial: Trial) {
    let table = trial.simple().await;
    trial.put(&table, id("a").with("x", 1).with("y", 2).with("list", list(["m"]))).await;
    let half: Number = trial.ok("a number", "0.5".parse());
    let update = Update::new()
        .set("x", path("y"))
        .set("y", path("x"))
        .set("sum", path("x").plus(path("y")))
        .set("less", path("x").minus(half))
        .set("kept", if_missing("x", 9))
        .set("new", if_missing("nothing", 9))
        .set("list", list_append(path("list"), list(["n"])))
        .set("from nothing", list_append(if_missing("nothing", list(Vec::<Value>::new())), list([1])));
    trial.write(&table, Write::update(id("a"), update)).await;
    let expected = id("a")
        .with("x", 2)
        .with("y", 1)
        .with("sum", 3)
        .with("less", half)
        .with("kept", 1)
        .with("new", 9)
        .with("list", list(["m", "n"]))
        .with("from nothing", list([1]));
    trial.same("the updated item", trial.get(&table, id("a")).await, Some(expected));
}

/// Parts of lists and maps are changed in place; an element behind the end is appended, a removed one closes the gap.
pub async fn updates_reach_into_lists_and_maps(trial: Trial) {
    let table = trial.simple().await;
    let map = Item::new().with("a", 1).with("b", Item::new().with("c", list([1, 2, 3])));
    trial.put(&table, id("a").with("map", map).with("list", list(["p", "q", "r"]))).await;
    let update = Update::new()
        .set(path("list").index(12), "second")
        .set(path("list").index(11), "first")
        .set(path("list").index(1), "Q")
        .remove(path("list").index(0))
        .remove(path("map").name("a"))
        .remove(path("map").name("nothing"))
        .set(path("map").name("b").name("c").index(1), "two")
        .set(path("map").name("b").name("d"), true);
    trial.write(&table, Write::update(id("a"), update)).await;
    let b = Item::new().with("c", vec![1.into(), "two".into(), 3.into()]).with("d", true);
    let expected =
        id("a").with("map", Item::new().with("b", b)).with("list", list(["Q", "r", "first", "second"]));
    trial.same("the updated item", trial.get(&table, id("a")).await, Some(expected));
}

/// Numbers are added exactly; sets get and lose elements, and an empty one is gone.
pub async fn updates_add_to_numbers_and_sets(trial: Trial) {
    let table = trial.simple().await;
    let texts = |elements: &[&str]| trial.ok("a set", Value::text_set(elements.iter().copied()));
    let number = |text: &str| trial.ok(text, text.parse::<Number>());
    let item = id("a")
        .with("n", number("0.1"))
        .with("wide", number("99999999999999999999999999999999999998"))
        .with("set", texts(&["a", "b"]))
        .with("few", texts(&["a"]));
    trial.put(&table, item).await;
    let update = Update::new()
        .add("n", number("0.2"))
        .add("wide", 1)
        .add("fresh", -5)
        .add("set", texts(&["b", "c"]))
        .add("fresh set", texts(&["z"]))
        .delete("few", texts(&["a", "b"]))
        .delete("nothing", texts(&["a"]));
    trial.write(&table, Write::update(id("a"), update)).await;
    let expected = id("a")
        .with("n", number("0.3"))
        .with("wide", number("99999999999999999999999999999999999999"))
        .with("fresh", -5)
        .with("set", texts(&["a", "b", "c"]))
        .with("fresh set", texts(&["z"]));
    trial.same("the updated item", trial.get(&table, id("a")).await, Some(expected.clone()));
    let update = Update::new().delete("set", texts(&["b"])).add("n", number("-0.3"));
    trial.write(&table, Write::update(id("a"), update)).await;
    let expected = expected.with("set", texts(&["a", "c"])).with("n", 0);
    trial.same("the item updated again", trial.get(&table, id("a")).await, Some(expected));
}

/// An update of an item that is not there makes it, also one that sets nothing.
pub async fn an_update_makes_an_item(trial: Trial) {
    let table = trial.simple().await;
    trial.write(&table, Write::update(id("set"), Update::new().set("n", 1))).await;
    trial.same("a made item", trial.get(&table, id("set")).await, Some(id("set").with("n", 1)));
    trial.write(&table, Write::update(id("bare"), Update::new())).await;
    trial.same("an item made of nothing", trial.get(&table, id("bare")).await, Some(id("bare")));
}

/// An update that only removes makes no item.
pub async fn an_update_that_only_removes_makes_no_item(trial: Trial) {
    let table = trial.simple().await;
    let some = trial.ok("a set", Value::text_set(["x"]));
    trial.write(&table, Write::update(id("not"), Update::new().remove("n"))).await;
    trial.write(&table, Write::update(id("not"), Update::new().delete("n", some))).await;
    trial.same("an item made of removals", trial.get(&table, id("not")).await, None);
}
