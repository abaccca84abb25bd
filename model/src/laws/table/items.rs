//! Items: what is written is read, under its key, and nothing else.

use bytes::Bytes;

use super::trial::{Trial, id};
use crate::limits::ITEM_BYTES_MAX;
use crate::table::{
    Get, Item, KeyKind, KeySchema, Number, Projection, Returning, TableOptions, Update, Value, Write, path,
};

fn number(trial: &Trial, text: &str) -> Number {
    trial.ok(text, text.parse())
}

/// Every kind of value comes back as it was, to the last digit.
pub async fn items_come_back_as_they_were(trial: Trial) {
    let table = trial.simple().await;
    let set = |value| trial.ok("a set", value);
    let inner = Item::new().with("deep", vec![Value::Null, true.into()]).with("Ä", "ö").with("", -1);
    let mut inner = inner;
    inner.remove("");
    let item = id("all")
        .with("text", "tëxt 🦦")
        .with("empty text", "")
        .with("number", number(&trial, "-12345678901234567890123456789012345678E-20"))
        .with("large", number(&trial, "9.9999999999999999999999999999999999999E125"))
        .with("small", number(&trial, "1E-130"))
        .with("zero", 0)
        .with("binary", &[0u8, 255, 128][..])
        .with("empty binary", Bytes::new())
        .with("yes", true)
        .with("no", false)
        .with("null", Value::Null)
        .with("list", vec![1.into(), "two".into(), Value::List(vec![])])
        .with("map", inner)
        .with("empty map", Item::new())
        .with("texts", set(Value::text_set(["a", "", "ä"])))
        .with("numbers", set(Value::number_set([3, -1, 2])))
        .with("binaries", set(Value::binary_set([&b"a"[..], b"\0"])));
    trial.put(&table, item.clone()).await;
    trial.same("the item", trial.get(&table, id("all")).await, Some(item.clone()));
    trial.same("the item in a scan", trial.contents(&table).await, vec![item]);
}

/// A put leaves nothing of the item that was there.
pub async fn a_put_replaces_the_whole_item(trial: Trial) {
    let table = trial.simple().await;
    trial.put(&table, id("a").with("x", 1).with("y", 2)).await;
    trial.put(&table, id("a").with("y", 3)).await;
    trial.same("the item", trial.get(&table, id("a")).await, Some(id("a").with("y", 3)));
    trial.same("the table", trial.contents(&table).await, vec![id("a").with("y", 3)]);
}

/// A deleted item is not there; deleting what is not there succeeds.
pub async fn a_deleted_item_is_gone(trial: Trial) {
    let table = trial.simple().await;
    trial.put_all(&table, [id("a"), id("b")]).await;
    for _ in 0..2 {
        trial.write(&table, Write::delete(id("a"))).await;
        trial.same("the deleted item", trial.get(&table, id("a")).await, None);
    }
    trial.same("the other one", trial.contents(&table).await, vec![id("b")]);
}

/// Keys are the same if their values are, whatever kind they are of, and however a number was written.
pub async fn keys_tell_items_apart(trial: Trial) {
    for (kind, values) in [
        (KeyKind::Text, ["a", "a\0", "a\0b", "A", "ä"].map(Value::from)),
        (KeyKind::Number, ["0", "-1", "1", "0.1", "1E100"].map(|n| Value::Number(number(&trial, n)))),
        (KeyKind::Binary, [&b"\0"[..], b"\0\0", b"\xff", b"a", b"\0a"].map(Value::from)),
    ] {
        let schema = KeySchema::hash("h", kind).and_range("r", kind);
        let table = trial.table(TableOptions::new(schema)).await;
        let mut expected = Vec::new();
        for hash in &values {
            for range in &values {
                let key = Item::new().with("h", hash.clone()).with("r", range.clone());
                trial.put(&table, key.clone().with("n", expected.len() as u64)).await;
                expected.push(key);
            }
        }
        for (n, key) in expected.into_iter().enumerate() {
            let item = key.clone().with("n", n as u64);
            trial.same("an item by its key", trial.get(&table, key).await, Some(item));
        }
    }
    let table = trial.table(TableOptions::new(KeySchema::hash("h", KeyKind::Number))).await;
    for text in ["100", "1E2", "100.00"] {
        let key = Item::new().with("h", number(&trial, text));
        trial.put(&table, key.with("as", text)).await;
    }
    trial.same("one number written in three ways", trial.contents(&table).await.len(), 1);
}

/// A read with a projection shows the wanted parts only.
pub async fn reads_show_the_wanted_parts(trial: Trial) {
    let table = trial.simple().await;
    let map = Item::new().with("x", 1).with("y", 2);
    let list: Vec<Value> = vec!["a".into(), "b".into(), "c".into()];
    trial.put(&table, id("a").with("map", map).with("list", list).with("other", 1)).await;
    let paths = [path("map").name("y"), path("list").index(2), path("list").index(0), path("nothing")];
    let get = Get::new(id("a")).consistent().only(Projection::of(paths));
    let seen = trial.ok("a read of parts", trial.store().get(&table, get).await);
    let list: Vec<Value> = vec!["a".into(), "c".into()];
    let expected = Item::new().with("map", Item::new().with("y", 2)).with("list", list);
    trial.same("the parts", seen, Some(expected));
    let get = Get::new(id("a")).consistent().only(Projection::of(["nothing"]));
    let seen = trial.ok("a read of nothing", trial.store().get(&table, get).await);
    trial.same("parts that are not there", seen, Some(Item::new()));
}

/// An item may have 400 KiB, names included.
pub async fn the_largest_item_is_stored(trial: Trial) {
    let table = trial.simple().await;
    let item = id("a").with("data", "x".repeat(ITEM_BYTES_MAX - "ida".len() - "data".len()));
    trial.same("the size of the item", item.size(), ITEM_BYTES_MAX);
    trial.put(&table, item.clone()).await;
    trial.holds(trial.get(&table, id("a")).await == Some(item), "the largest item is not what it was");
}

/// A write returns the item before or after it, or the changed parts, if it is asked to.
pub async fn writes_return_what_was_asked_for(trial: Trial) {
    let table = trial.simple().await;
    let put = |n: i32, returning| Write::put(id("a").with("n", n)).returning(returning);
    let first = trial.write(&table, put(1, Returning::Old)).await;
    trial.same("the old item of a first put", first, None);
    let second = trial.write(&table, put(2, Returning::Old)).await;
    trial.same("the old item of a put", second, Some(id("a").with("n", 1)));
    trial.same("nothing", trial.write(&table, put(3, Returning::Nothing)).await, None);
    let map = Item::new().with("x", 1).with("y", 2);
    trial.put(&table, id("a").with("n", 3).with("map", map.clone()).with("gone", true)).await;
    let update = |n: i32| Update::new().set("n", n).set(path("map").name("x"), n).remove("gone");
    let parts = |n: i32| Item::new().with("n", n).with("map", Item::new().with("x", n));
    let with = |n, returning| Write::update(id("a"), update(n)).returning(returning);
    let old = trial.write(&table, with(4, Returning::UpdatedOld)).await;
    let expected = parts(3).with("map", Item::new().with("x", 1)).with("gone", true);
    trial.same("the old parts of an update", old, Some(expected));
    let new = trial.write(&table, with(5, Returning::UpdatedNew)).await;
    trial.same("the new parts of an update", new, Some(parts(5)));
    let list: Vec<Value> = vec!["p".into(), "q".into()];
    trial.put(&table, id("list").with("list", list)).await;
    let update = Update::new().remove(path("list").index(0)).set("n", 1);
    let write = Write::update(id("list"), update).returning(Returning::UpdatedNew);
    let new = trial.write(&table, write).await;
    let expected = Item::new().with("n", 1).with("list", vec![Value::from("q")]);
    trial.same("new parts with what moved up", new, Some(expected));
    let item = |n: i32| id("a").with("n", n).with("map", map.clone().with("x", n));
    trial.same("the old item", trial.write(&table, with(6, Returning::Old)).await, Some(item(5)));
    trial.same("the new item", trial.write(&table, with(7, Returning::New)).await, Some(item(7)));
    let delete = Write::delete(id("a")).returning(Returning::Old);
    trial.same("the deleted item", trial.write(&table, delete.clone()).await, Some(item(7)));
    trial.same("a deleted item that was not there", trial.write(&table, delete).await, None);
}
