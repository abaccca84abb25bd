//! Indexes: what they hold, what they show, and in which order.

use super::trial::{Trial, at, by_group, by_id, id};
use crate::table::{
    IndexOptions, IndexProjection, Item, KeyCondition, KeyKind, KeySchema, Projection, Query, RangeCondition,
    TableOptions, Update, Write, path,
};

/// An index holds the items that have all attributes of its key, and follows them as they change.
pub async fn an_index_holds_what_has_its_key(trial: Trial) {
    let name = trial.index_name("by-owner");
    let key = KeySchema::hash("owner", KeyKind::Text).and_range("since", KeyKind::Number);
    let table =
        trial.table(TableOptions::new(by_id()).with_index(IndexOptions::global(name.clone(), key))).await;
    let owned = |n: &str, owner: &str, since: i32| id(n).with("owner", owner).with("since", since);
    trial.put_all(&table, [id("none"), id("half").with("owner", "ann"), id("other").with("since", 1)]).await;
    trial.index_shows(&table, &name, vec![]).await;
    trial.put_all(&table, [owned("a", "ann", 1), owned("b", "bob", 2), owned("c", "ann", 3)]).await;
    trial
        .index_shows(&table, &name, vec![owned("a", "ann", 1), owned("b", "bob", 2), owned("c", "ann", 3)])
        .await;
    // It moves, it leaves, it comes, it goes.
    trial.write(&table, Write::update(id("a"), Update::new().set("owner", "bob"))).await;
    trial.write(&table, Write::update(id("b"), Update::new().remove("since"))).await;
    trial.write(&table, Write::update(id("half"), Update::new().set("since", 7))).await;
    trial.write(&table, Write::delete(id("c"))).await;
    let expected = vec![owned("a", "bob", 1), owned("half", "ann", 7)];
    trial.index_shows(&table, &name, expected).await;
    trial.put(&table, id("a")).await;
    trial.index_shows(&table, &name, vec![owned("half", "ann", 7)]).await;
}

/// An index shows its keys, the keys of the table, and what its projection says.
pub async fn an_index_shows_its_projection(trial: Trial) {
    let key = || KeySchema::hash("color", KeyKind::Text);
    let names = ["show-all", "show-keys", "show-some"].map(|name| trial.index_name(name));
    let some = IndexProjection::Include(["x".to_string(), "nothing".to_string()].into());
    let options = TableOptions::new(by_group())
        .with_index(IndexOptions::global(names[0].clone(), key()))
        .with_index(IndexOptions::global(names[1].clone(), key()).showing(IndexProjection::Keys))
        .with_index(IndexOptions::global(names[2].clone(), key()).showing(some));
    let table = trial.table(options).await;
    let keys = at("g", 1).with("color", "red");
    let item = keys.clone().with("x", 1).with("y", 2);
    trial.put(&table, item.clone()).await;
    trial.index_shows(&table, &names[0], vec![item]).await;
    trial.index_shows(&table, &names[1], vec![keys.clone()]).await;
    trial.index_shows(&table, &names[2], vec![keys.clone().with("x", 1)]).await;
    // What an index does not show is changed without a trace in it.
    trial.write(&table, Write::update(at("g", 1), Update::new().set("x", 5).remove("y"))).await;
    trial.index_shows(&table, &names[0], vec![keys.clone().with("x", 5)]).await;
    trial.index_shows(&table, &names[1], vec![keys.clone()]).await;
    trial.index_shows(&table, &names[2], vec![keys.with("x", 5)]).await;
}

/// A local index orders the items of one hash value by another attribute; it is read consistently, and finds in the
/// table what it does not show itself.
pub async fn a_local_index_orders_within_a_hash_value(trial: Trial) {
    let name = trial.index_name("by-size");
    let key = KeySchema::hash("group", KeyKind::Text).and_range("size", KeyKind::Number);
    let index = IndexOptions::local(name.clone(), key).showing(IndexProjection::Keys);
    let table = trial.table(TableOptions::new(by_group()).with_index(index)).await;
    for (n, size) in [(1, 30), (2, 10), (3, 20), (4, 20)] {
        trial.put(&table, at("g", n).with("size", size).with("more", n)).await;
    }
    trial.put_all(&table, [at("g", 5), at("h", 1).with("size", 15)]).await;
    let of = |range: Option<RangeCondition>| {
        let key =
            KeyCondition { range: range.map(|r| ("size".to_string(), r)), ..KeyCondition::of("group", "g") };
        Query::new(key).index(&name).consistent()
    };
    let shown = |n: i32, size: i32| at("g", n).with("size", size);
    let expected = vec![shown(2, 10), shown(3, 20), shown(4, 20), shown(1, 30)];
    trial.same("a local index", trial.query_all(&table, of(None)).await, expected.clone());
    let mut backward = expected;
    backward.reverse();
    trial.same("backward", trial.query_all(&table, of(None).backward().limit(1)).await, backward);
    let seen = trial.query_all(&table, of(Some(RangeCondition::above(15)))).await;
    trial.same("a part of it", seen, vec![shown(3, 20), shown(4, 20), shown(1, 30)]);
    let seen = trial.query_all(&table, of(None).only(Projection::of(["more"])).limit(2)).await;
    let expected = [2, 3, 4, 1].map(|n| Item::new().with("more", n)).to_vec();
    trial.same("what the index does not show", seen, expected);
}

/// What a local index does not show is found in the table, and counts for the page.
pub async fn a_local_index_finds_whole_items(trial: Trial) {
    let name = trial.index_name("by-size");
    let key = KeySchema::hash("group", KeyKind::Text).and_range("size", KeyKind::Number);
    let index = IndexOptions::local(name.clone(), key).showing(IndexProjection::Keys);
    let table = trial.table(TableOptions::new(by_group()).with_index(index)).await;
    let item = |n: i32| at("g", n).with("size", 100 - n).with("data", "x".repeat(100 << 10));
    let items: Vec<_> = (0..25).map(item).collect();
    trial.put_all(&table, items.clone()).await;
    let of = || Query::new(KeyCondition::of("group", "g")).index(&name);
    let mut expected = items;
    expected.reverse();
    trial.same("whole items", trial.query_all(&table, of().whole()).await, expected);
    let page = trial.ok("a page", trial.store().query(&table, of().whole()).await);
    trial.holds(page.evaluated < 25 && page.last.is_some(), "a page of whole items looks at 2.5 MiB");
}

/// Pages of an index join though many items have the same key there.
pub async fn pages_of_an_index_join(trial: Trial) {
    let name = trial.index_name("by-color");
    let key = KeySchema::hash("color", KeyKind::Text).and_range("shade", KeyKind::Number);
    let table =
        trial.table(TableOptions::new(by_id()).with_index(IndexOptions::global(name.clone(), key))).await;
    let items: Vec<_> = (0..30)
        .map(|n| id(&format!("{n}")).with("color", "red").with("shade", n / 10).with("odd", n % 2 == 1))
        .collect();
    trial.put_all(&table, items.clone()).await;
    trial.put(&table, id("x").with("color", "blue").with("shade", 1)).await;
    let mut all = items.clone();
    all.push(id("x").with("color", "blue").with("shade", 1));
    trial.index_shows(&table, &name, all).await;
    let of = || Query::new(KeyCondition::of("color", "red")).index(&name);
    let whole = trial.query_all(&table, of()).await;
    let shades: Vec<_> = whole.iter().map(|item| item.get("shade").cloned()).collect();
    let expected: Vec<_> = items.iter().map(|item| item.get("shade").cloned()).collect();
    trial.same("the order of an index", shades, expected);
    trial.same("items of an index", super::trial::sorted(whole.clone()), super::trial::sorted(items));
    for limit in [1, 4, 10] {
        trial.same(format!("by {limit}"), trial.query_all(&table, of().limit(limit)).await, whole.clone());
        let mut backward = trial.query_all(&table, of().backward().limit(limit)).await;
        backward.reverse();
        trial.same(format!("backward by {limit}"), backward, whole.clone());
    }
    let odd = of().filter(path("odd").equals(true)).limit(7);
    trial.same("filtered pages of an index", trial.query_all(&table, odd).await.len(), 15);
}
