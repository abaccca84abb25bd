//! Queries: order, key conditions, pages, filters.

use super::trial::{Trial, at};
use crate::limits::QUERY_BYTES_MAX;
use crate::table::{
    Item, KeyCondition, KeyKind, KeySchema, Number, Projection, Query, RangeCondition, TableOptions, Value,
    path,
};

fn of(group: &str) -> Query {
    Query::new(KeyCondition::of("group", group)).consistent()
}

/// Texts and binaries are ordered by their bytes, numbers by their values; backward is the reverse.
pub async fn a_query_is_in_the_order_of_range_values(trial: Trial) {
    let number = |text: &str| Value::Number(trial.ok(text, text.parse::<Number>()));
    let numbers = ["-1E50", "-20", "-3", "-0.5", "0", "1E-100", "0.5", "3", "20", "100", "1E50"];
    let texts = ["\u{1}", "A", "B", "a", "a\0", "a\0b", "aa", "b", "ä", "\u{ffff}", "🦦"];
    let binaries: [&[u8]; 7] = [b"\0", b"\0\0", b"\0\x01", b"\x01", b"a", b"\xff", b"\xff\0"];
    for (kind, values) in [
        (KeyKind::Number, numbers.map(number).to_vec()),
        (KeyKind::Text, texts.map(Value::from).to_vec()),
        (KeyKind::Binary, binaries.map(Value::from).to_vec()),
    ] {
        let schema = KeySchema::hash("group", KeyKind::Text).and_range("r", kind);
        let table = trial.table(TableOptions::new(schema)).await;
        let item = |value: &Value| Item::new().with("group", "g").with("r", value.clone());
        let mut items: Vec<_> = values.iter().map(item).collect();
        // They are written in an order of their own.
        let (later, sooner) = items.split_at(items.len() / 2);
        let shuffled: Vec<_> = sooner.iter().rev().chain(later).cloned().collect();
        trial.put_all(&table, shuffled).await;
        trial.put(&table, Item::new().with("group", "h").with("r", values[0].clone())).await;
        trial.same("forward", trial.query_all(&table, of("g")).await, items.clone());
        items.reverse();
        trial.same("backward", trial.query_all(&table, of("g").backward()).await, items);
    }
}

/// A query covers exactly the items whose range value fulfils its condition.
pub async fn a_query_covers_its_key_condition(trial: Trial) {
    let table = trial.grouped().await;
    trial.put_all(&table, (-5..=5).map(|n| at("g", n * 2))).await;
    trial.put_all(&table, [at("f", 1), at("gg", 1)]).await;
    for (range, expected) in [
        (RangeCondition::equals(4), vec![4]),
        (RangeCondition::equals(5), vec![]),
        (RangeCondition::below(-6), vec![-10, -8]),
        (RangeCondition::at_most(-6), vec![-10, -8, -6]),
        (RangeCondition::above(6), vec![8, 10]),
        (RangeCondition::at_least(6), vec![6, 8, 10]),
        (RangeCondition::between(-2, 3), vec![-2, 0, 2]),
        (RangeCondition::between(0, 0), vec![0]),
    ] {
        let query = Query::new(KeyCondition::of("group", "g").and("at", range.clone())).consistent();
        let expected: Vec<_> = expected.into_iter().map(|n| at("g", n)).collect();
        trial.same(format!("{range:?}"), trial.query_all(&table, query).await, expected);
    }
    let schema = KeySchema::hash("group", KeyKind::Text).and_range("r", KeyKind::Text);
    let table = trial.table(TableOptions::new(schema)).await;
    let item = |r: &str| Item::new().with("group", "g").with("r", r);
    trial.put_all(&table, ["a", "ab", "ab\0", "abc", "ac", "b", "ä"].map(item)).await;
    for (start, expected) in [("ab", vec!["ab", "ab\0", "abc"]), ("b", vec!["b"]), ("x", vec![])] {
        let range = RangeCondition::begins_with(start);
        let query = Query::new(KeyCondition::of("group", "g").and("r", range)).consistent();
        let expected: Vec<_> = expected.into_iter().map(item).collect();
        trial.same(format!("what begins with {start}"), trial.query_all(&table, query).await, expected);
    }
}

/// Pages of any size join to the whole, forward and backward, each item once.
pub async fn pages_join_in_both_directions(trial: Trial) {
    let table = trial.grouped().await;
    let mut items: Vec<_> = (0..23).map(|n| at("g", n - 11).with("n", n)).collect();
    trial.put_all(&table, items.clone()).await;
    trial.put_all(&table, (0..5).map(|n| at("f", n))).await;
    for backward in [false, true] {
        for limit in [1, 2, 7, 22, 23, 24] {
            let query = Query { backward, ..of("g").limit(limit) };
            let what = format!("pages of {limit}, backward: {backward}");
            trial.same(what, trial.query_all(&table, query).await, items.clone());
        }
        items.reverse();
    }
    // A page goes on behind its last item, whether that one is still there or not.
    let query = of("g").limit(10);
    let page = trial.ok("a page", trial.store().query(&table, query.clone()).await);
    let last = page.last.clone().unwrap_or_else(|| trial.fail("the first of three pages has no last item"));
    trial.same("the last item of a page", last.clone(), at("g", -2));
    trial.write(&table, crate::table::Write::delete(last)).await;
    let rest = trial.query_all(&table, query.start(page.last)).await;
    trial.same("the rest behind a deleted item", rest, items.split_off(10));
}

/// A page looks at no more items than its limit, and at none behind the one with which it reaches 1 MiB.
pub async fn a_page_keeps_its_limits(trial: Trial) {
    let table = trial.grouped().await;
    let large = |n: i32| at("g", n).with("data", "x".repeat(100 << 10));
    trial.put_all(&table, (0..25).map(large)).await;
    let page = trial.ok("a query", trial.store().query(&table, of("g")).await);
    let bytes: usize = page.items.iter().map(Item::size).sum();
    let last = page.items.last().map_or(0, Item::size);
    trial.holds(bytes - last <= QUERY_BYTES_MAX, format!("a page has {bytes} bytes"));
    trial.holds(page.evaluated >= 5, format!("a page of {} items is next to nothing", page.evaluated));
    trial.holds(page.last.is_some(), "a page that is not the last one has no last item");
    trial.same("all pages", trial.query_all(&table, of("g")).await.len(), 25);
    // What a filter or a projection leaves out is looked at as well.
    let query = of("g").only(Projection::of(["at"])).filter(path("data").equals("y"));
    let page = trial.ok("a query", trial.store().query(&table, query).await);
    trial.same("items returned", page.returned, 0);
    trial.holds(page.evaluated < 25, "a page looks at 2.5 MiB");
    let page = trial.ok("a query", trial.store().query(&table, of("g").limit(3)).await);
    trial.same("items of a limited page", (page.returned, page.evaluated), (3, 3));
}

/// A filter takes items from a page without filling it up; both are counted, and counting alone shows no items.
pub async fn a_filter_counts_what_it_looked_at(trial: Trial) {
    let table = trial.grouped().await;
    trial.put_all(&table, (0..20).map(|n| at("g", n).with("even", n % 2 == 0).with("more", n))).await;
    let even = path("even").equals(true);
    let page = trial.ok("a query", trial.store().query(&table, of("g").filter(even.clone()).limit(9)).await);
    trial.same("returned and evaluated", (page.returned, page.evaluated), (5, 9));
    let seen: Vec<_> = page.items.iter().map(|item| item.get("at").cloned()).collect();
    let expected: Vec<_> = [0, 2, 4, 6, 8].into_iter().map(|n| Some(Value::from(n))).collect();
    trial.same("the items", seen, expected);
    let last = page.last.unwrap_or_else(|| trial.fail("a page of 9 out of 20 has no last item"));
    trial.same("the last item, filtered or not", last, at("g", 8));
    let count = of("g").filter(even.clone()).count_only();
    let page = trial.ok("a count", trial.store().query(&table, count).await);
    trial.same("a count", (page.items.len(), page.returned, page.evaluated), (0, 10, 20));
    let query = of("g").filter(even).only(Projection::of(["more"])).limit(3);
    let items = trial.query_all(&table, query).await;
    let expected: Vec<_> = (0..20).step_by(2).map(|n| Item::new().with("more", n)).collect();
    trial.same("parts of what fulfils the filter", items, expected);
}
