//! Bad calls about tables, reads, batches and transactions: refused with a reason, without effect.

use super::trial::{Trial, at, by_group, by_id, id};
use crate::table::expression::exists;
use crate::table::{
    Action, Alteration, ChangeView, Clustering, Column, ColumnKind, Get, IndexOptions, IndexProjection, Item,
    KeyCondition, KeyKind, KeySchema, KeyspaceShape, Projection, Query, RangeCondition, Scan, TableOptions,
    Update, Write, path,
};
use crate::{Error, NextMove, TableName};

fn invalid(error: &Error) -> bool {
    matches!(error, Error::Invalid(_)) && error.next_move() == NextMove::FixCall
}

/// Tables and indexes are made within the limits only, and a name is given once.
pub async fn bad_tables_are_refused(trial: Trial) {
    let table = trial.table(TableOptions::new(by_group()).with_changes(ChangeView::Keys)).await;
    trial.put(&table, at("g", 1)).await;
    let before = trial.summary(&table).await;
    let index = |number: usize| {
        let name = trial.index_name(&format!("index-{number}"));
        IndexOptions::global(name, KeySchema::hash("color", KeyKind::Text))
    };
    let local = |key| IndexOptions::local(trial.index_name("local"), key);
    let plain = || TableOptions::new(by_group());
    let shape = |partition: &str| KeyspaceShape {
        keyspace: "space".to_string(),
        columns: vec![Column { name: "a".to_string(), kind: ColumnKind::Text, shared: false }],
        partition: vec![partition.to_string()],
        clustering: vec![Clustering { column: "a".to_string(), descending: false }],
    };
    let same = KeySchema::hash("a", KeyKind::Text).and_range("a", KeyKind::Text);
    let two_kinds = KeySchema::hash("at", KeyKind::Text);
    let nothing = index(0).showing(IndexProjection::Include(Default::default()));
    for (what, options) in [
        ("one attribute twice in a key", TableOptions::new(same)),
        ("an attribute without a name", TableOptions::new(KeySchema::hash("", KeyKind::Text))),
        ("an index name twice", plain().with_index(index(1)).with_index(index(1))),
        ("21 global indexes", (0..21).fold(plain(), |options, n| options.with_index(index(n)))),
        ("an attribute of two kinds", plain().with_index(IndexOptions { key: two_kinds, ..index(0) })),
        ("an index that includes nothing", plain().with_index(nothing)),
        ("a local index of a plain key", TableOptions::new(by_id()).with_index(local(by_group()))),
        ("a local index without range", plain().with_index(local(KeySchema::hash("group", KeyKind::Text)))),
        ("a local index of another hash", plain().with_index(local(same_kind()))),
        ("a keyspace without the column", TableOptions { keyspace: Some(shape("b")), ..plain() }),
        ("a column twice in a key", TableOptions { keyspace: Some(shape("a")), ..plain() }),
    ] {
        let name = trial.fresh_name();
        trial.refused(what, trial.store().create_table(&name, options).await, invalid);
        let unknown = Some(Error::TableNotFound(name.clone()));
        trial.same(format!("{what} afterwards"), trial.store().table(&name).await.err(), unknown);
    }
    let exists = |error: &Error| matches!(error, Error::TableExists(_));
    trial.refused("a name that is taken", trial.store().create_table(&table, plain()).await, exists);
    for (what, alteration) in [
        (
            "a local index on a living table",
            Alteration::AddIndex(local(by_group().and_range("x", KeyKind::Text))),
        ),
        ("changes that are on already", Alteration::Changes(Some(ChangeView::Both))),
    ] {
        trial.refused(what, trial.store().alter(&table, alteration).await, invalid);
    }
    trial.same("the table afterwards", trial.summary(&table).await, before);
    for name in ["ab", "", "a b c", "größe", &"x".repeat(256)] {
        trial.refused(format!("the name {name}"), TableName::new(name), invalid);
    }
}

fn same_kind() -> KeySchema {
    KeySchema::hash("other", KeyKind::Text).and_range("size", KeyKind::Number)
}

/// Queries and scans ask for what a table has, by its key, within the limits.
pub async fn bad_reads_are_refused(trial: Trial) {
    let name = trial.index_name("by-color");
    let index = IndexOptions::global(name.clone(), KeySchema::hash("color", KeyKind::Text))
        .showing(IndexProjection::Keys);
    let table = trial.table(TableOptions::new(by_group()).with_index(index)).await;
    trial.put(&table, at("g", 1).with("color", "red")).await;
    let of = || Query::new(KeyCondition::of("group", "g"));
    let with = |range| Query::new(KeyCondition::of("group", "g").and("at", range));
    let red = || Query::new(KeyCondition::of("color", "red")).index(&name);
    for (what, query) in [
        ("another hash attribute", Query::new(KeyCondition::of("color", "red"))),
        ("a hash value of another kind", Query::new(KeyCondition::of("group", 1))),
        ("an empty hash value", Query::new(KeyCondition::of("group", ""))),
        (
            "another range attribute",
            Query::new(KeyCondition::of("group", "g").and("n", RangeCondition::equals(1))),
        ),
        ("a range value of another kind", with(RangeCondition::equals("1"))),
        ("a number that begins with something", with(RangeCondition::begins_with("1"))),
        ("bounds in the wrong order", with(RangeCondition::between(2, 1))),
        ("a filter on the key", of().filter(path("at").equals(1))),
        ("a limit of nothing", of().limit(0)),
        ("overlapping parts", of().only(Projection::of([path("a"), path("a").name("b")]))),
        ("no parts", of().only(Projection(Vec::new()))),
        ("a count of parts", of().only(Projection::of(["a"])).count_only()),
        ("a start that is no key", of().start(Some(Item::new().with("group", "g")))),
        ("a start with more than a key", of().start(Some(at("g", 1).with("n", 1)))),
        ("a start in another group", of().start(Some(at("h", 1)))),
        ("a start without the index", red().start(Some(at("g", 1)))),
        ("a consistent read of a global index", red().consistent()),
        ("whole items of an index that shows less", red().whole()),
        ("what an index does not show", red().only(Projection::of(["n"]))),
    ] {
        trial.refused(what, trial.store().query(&table, query).await, invalid);
    }
    for (what, scan) in [
        ("segment 2 of 2", Scan::new().segment(2, 2)),
        ("segment 0 of 0", Scan::new().segment(0, 0)),
        ("too many segments", Scan::new().segment(0, 1_000_001)),
        ("a limit of nothing", Scan::new().limit(0)),
        ("a bad filter", Scan::new().filter(path("n").between(2, 1))),
        ("a consistent scan of a global index", Scan::new().index(&name).consistent()),
    ] {
        trial.refused(what, trial.store().scan(&table, scan).await, invalid);
    }
    let get = Get::new(at("g", 1)).only(Projection::of([path("a"), path("a")]));
    trial.refused("a path twice", trial.store().get(&table, get).await, invalid);
}

/// A segment of a scan starts where it has items, and not among those of another.
pub async fn a_segment_starts_within_itself(trial: Trial) {
    let table = trial.table(TableOptions::new(by_group())).await;
    trial.put_all(&table, (0..20).map(|n| at(&format!("{n}"), 1))).await;
    // Where segments are cut is the business of the store.
    let segment = |number| Scan::new().segment(number, 2);
    let own = trial.ok("scanning a segment", trial.store().scan(&table, segment(0)).await).items;
    let other = trial.ok("scanning the other", trial.store().scan(&table, segment(1)).await).items;
    trial.same("items of both", own.len() + other.len(), 20);
    let (Some(first), Some(foreign)) = (own.first(), other.first()) else {
        trial.fail("all of twenty items are in one segment")
    };
    let rest = trial.store().scan(&table, segment(0).start(Some(first.clone()))).await;
    trial.same("items behind the first", trial.ok("going on in a segment", rest).items, own[1..].to_vec());
    let scan = trial.store().scan(&table, segment(0).start(Some(foreign.clone()))).await;
    trial.refused("a start in another segment", scan, invalid);
}

/// A batch keeps its limits, names each item once, and is refused as a whole.
pub async fn bad_batches_are_refused(trial: Trial) {
    let table = trial.simple().await;
    let put = |n: usize| (table.clone(), Action::Put(id(&format!("{n}"))));
    let unknown = trial.fresh_name();
    for (what, writes) in [
        ("a batch of nothing", vec![]),
        ("a batch of 26", (0..26).map(put).collect()),
        ("one item twice", vec![put(1), (table.clone(), Action::Delete(id("1")))]),
        ("an update", vec![put(1), (table.clone(), Action::Update(id("2"), Update::new()))]),
        ("a check", vec![put(1), (table.clone(), Action::Check(id("2")))]),
        ("an item without key", vec![put(1), (table.clone(), Action::Put(Item::new()))]),
        ("a key with more", vec![put(1), (table.clone(), Action::Delete(id("2").with("n", 1)))]),
    ] {
        trial.refused(what, trial.store().batch_write(writes).await, invalid);
        trial.same(format!("the table after {what}"), trial.contents(&table).await, vec![]);
    }
    let absent = |error: &Error| matches!(error, Error::TableNotFound(_));
    let writes = vec![put(1), (unknown.clone(), Action::Put(id("2")))];
    trial.refused("a batch for an unknown table", trial.store().batch_write(writes).await, absent);
    trial.same("the table", trial.contents(&table).await, vec![]);
    let get = |n: usize| (table.clone(), Get::new(id(&format!("{n}"))));
    for (what, gets) in [
        ("a batch of nothing", vec![]),
        ("a batch of 101", (0..101).map(get).collect()),
        ("one item twice", vec![get(1), get(2), get(1)]),
        ("a bad key", vec![get(1), (table.clone(), Get::new(Item::new()))]),
    ] {
        trial.refused(what, trial.store().batch_get(gets).await, invalid);
    }
    let gets = vec![get(1), (unknown, Get::new(id("2")))];
    trial.refused("a batch of an unknown table", trial.store().batch_get(gets).await, absent);
}

/// A transaction keeps its limits and names each item once.
pub async fn bad_transactions_are_refused(trial: Trial) {
    let table = trial.simple().await;
    let put = |n: usize| (table.clone(), Write::put(id(&format!("{n}"))));
    let large = |n: usize| (table.clone(), Write::put(id(&format!("{n}")).with("d", "x".repeat(390 << 10))));
    let changed = |n: usize| {
        let update = Update::new().set("d", "x".repeat(390 << 10));
        (table.clone(), Write::update(id(&format!("{n}")), update))
    };
    for (what, writes) in [
        ("a transaction of nothing", vec![]),
        ("a transaction of 101", (0..101).map(put).collect()),
        ("two operations on one item", vec![put(1), (table.clone(), Write::delete(id("1")))]),
        (
            "a check of what is written",
            vec![put(1), (table.clone(), Write::check_that(id("1"), exists("id")))],
        ),
        ("a check without condition", vec![put(1), (table.clone(), Action::Check(id("2")).into())]),
        ("more than 4 MiB", (0..11).map(large).collect()),
        ("updates of more than 4 MiB", (0..11).map(changed).collect()),
        ("an item without key", vec![put(1), (table.clone(), Write::put(Item::new()))]),
    ] {
        trial.refused(what, trial.store().transact_write(writes, None).await, invalid);
        trial.same(format!("the table after {what}"), trial.contents(&table).await, vec![]);
    }
    let get = |n: usize| (table.clone(), Get::new(id(&format!("{n}"))));
    for (what, gets) in [
        ("a transaction of nothing", vec![]),
        ("a transaction of 101", (0..101).map(get).collect()),
        ("one item twice", vec![get(1), get(1)]),
    ] {
        trial.refused(what, trial.store().transact_get(gets).await, invalid);
    }
}

/// Every call says whether it is the table or the index that it does not know.
pub async fn unknown_names_are_refused(trial: Trial) {
    let table = trial.simple().await;
    let (store, name, index) = (trial.store(), trial.fresh_name(), trial.index_name("no-such-index"));
    let unknown = |error: &Error| *error == Error::TableNotFound(name.clone());
    let what = "a call on an unknown table";
    trial.refused(what, store.table(&name).await, unknown);
    trial.refused(what, store.delete_table(&name).await, unknown);
    trial.refused(what, store.alter(&name, Alteration::TimeToLive(None)).await, unknown);
    trial.refused(what, store.get(&name, Get::new(id("a"))).await, unknown);
    trial.refused(what, store.write(&name, Write::put(id("a"))).await, unknown);
    trial.refused(what, store.query(&name, Query::new(KeyCondition::of("id", "a"))).await, unknown);
    trial.refused(what, store.scan(&name, Scan::new()).await, unknown);
    trial.refused(what, store.transact_get(vec![(name.clone(), Get::new(id("a")))]).await, unknown);
    let writes = vec![(name.clone(), Write::put(id("a")))];
    trial.refused(what, store.transact_write(writes, None).await, unknown);
    let unknown = |error: &Error| *error == Error::IndexNotFound(table.clone(), index.clone());
    let what = "a call on an unknown index";
    let query = Query::new(KeyCondition::of("id", "a")).index(&index);
    trial.refused(what, store.query(&table, query).await, unknown);
    trial.refused(what, store.scan(&table, Scan::new().index(&index)).await, unknown);
    trial.refused(what, store.alter(&table, Alteration::DropIndex(index.clone())).await, unknown);
}
