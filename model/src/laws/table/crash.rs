//! What was acknowledged is there after the store ended without warning, and nothing is there by halves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::select_all;

use super::trial::{Trial, by_id, id, sorted};
use crate::Error;
use crate::TableName;
use crate::laws::trial::{NO_CRASH, give_way};
use crate::table::{
    Alteration, Change, ChangeView, IndexOptions, Item, KeyKind, KeySchema, Scan, TableOptions, Update,
    Value, Write,
};

const WRITERS: usize = 8;

/// The last acknowledged number of each item, by its name.
type Acknowledged = Arc<Mutex<BTreeMap<String, i64>>>;

fn indexed(trial: &Trial) -> TableOptions {
    let index = IndexOptions::global(trial.index_name("by-owner"), KeySchema::hash("owner", KeyKind::Number));
    TableOptions::new(by_id()).with_index(index).with_changes(ChangeView::Both)
}

/// Writes count their items up: alone, and in transactions together with an item of all writers.
async fn write_until_crash(trial: &Trial, table: &TableName, writer: usize, acknowledged: Acknowledged) {
    for round in 0..20 {
        let name = format!("{writer}-{}", round % 3);
        let update = Update::new().add("n", 1).set("owner", (round % 4) as i64);
        let mine = Write::update(id(&name), update.clone());
        if round % 2 == 0 {
            trial.write(table, mine).await;
        } else {
            let other = Write::update(id(&format!("{name}-twin")), update);
            let writes = vec![(table.clone(), mine), (table.clone(), other)];
            trial.ok("a transaction", trial.store().transact_write(writes, None).await);
        }
        note(&acknowledged, name.clone());
        if round % 2 == 1 {
            note(&acknowledged, format!("{name}-twin"));
        }
        give_way().await;
    }
}

fn note(acknowledged: &Acknowledged, name: String) {
    *acknowledged.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
}

/// Runs writers until the first one is through, and crashes the store in the middle of the others' calls.
async fn crash_writers(trial: &Trial, table: &TableName, acknowledged: &Acknowledged) {
    let writers =
        (0..WRITERS).map(|writer| Box::pin(write_until_crash(trial, table, writer, acknowledged.clone())));
    let (.., under_way) = select_all(writers).await;
    drop(under_way);
    trial.crash().await;
}

fn number(trial: &Trial, item: &Item, name: &str) -> i64 {
    match item.get(name) {
        Some(Value::Number(number)) => number.as_i128().unwrap_or(-1) as i64,
        other => trial.fail(format!("attribute {name} of {item:?} is {other:?}")),
    }
}

/// What was acknowledged is there; what was under way may be there, once and as a whole.
pub async fn acknowledged_writes_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let table = trial.table(indexed(&trial)).await;
    let acknowledged = Acknowledged::default();
    for _ in 0..3 {
        crash_writers(&trial, &table, &acknowledged).await;
        let mut counts = acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut seen = BTreeMap::new();
        for item in trial.contents(&table).await {
            let Some(Value::Text(name)) = item.get("id").cloned() else { trial.fail("an item has no key") };
            seen.insert(name, number(&trial, &item, "n"));
        }
        for (name, count) in &counts {
            let survived = seen.get(name).copied().unwrap_or(0);
            let fits = (*count..=count + 1).contains(&survived);
            trial.holds(fits, format!("{name} counted to {count}, and after a crash is {survived}"));
        }
        // A transaction that was under way counted both of its items or none.
        for (name, survived) in &seen {
            if let Some(twin) = seen.get(&format!("{name}-twin")) {
                let alone = survived - twin;
                let before = counts.get(name).copied().unwrap_or(0)
                    - counts.get(&format!("{name}-twin")).copied().unwrap_or(0);
                let fits = (before..=before + 1).contains(&alone);
                trial.holds(fits, format!("{name} and its twin are {alone} apart, and were {before}"));
            }
        }
        counts.extend(seen);
        *acknowledged.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }
}

/// After a crash an index shows what is in its table, and the changes lead from the empty table to this one.
pub async fn indexes_and_changes_survive_with_their_table(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let table = trial.table(indexed(&trial)).await;
    let stream = trial.stream(&table).await;
    let index = trial.index_name("by-owner");
    for _ in 0..3 {
        crash_writers(&trial, &table, &Acknowledged::default()).await;
        let contents = trial.contents(&table).await;
        trial.holds(!contents.is_empty(), "nothing survived a crash");
        let shown = sorted(trial.scan_all(&table, Scan::new().index(&index)).await);
        trial.same("what the index shows after a crash", shown, contents.clone());
        let mut replayed: BTreeMap<String, Item> = BTreeMap::new();
        for change in trial.changes(&stream).await {
            replay(&trial, &mut replayed, change);
        }
        trial.same("the table that the changes lead to", sorted(replayed.into_values().collect()), contents);
    }
}

fn replay(trial: &Trial, items: &mut BTreeMap<String, Item>, change: Change) {
    let Some(Value::Text(name)) = change.keys.get("id").cloned() else { trial.fail("a change has no key") };
    trial.same(format!("the image of {name} before a change"), items.get(&name), change.old.as_ref());
    match change.new {
        Some(item) => drop(items.insert(name, item)),
        None => drop(items.remove(&name)),
    }
}

/// Tables that were made, altered and deleted stay so after a crash.
pub async fn tables_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let (made, altered, deleted) =
        (trial.table(indexed(&trial)).await, trial.simple().await, trial.simple().await);
    for table in [&made, &altered, &deleted] {
        trial.put(table, id("a").with("owner", 1)).await;
    }
    let index = IndexOptions::global(trial.index_name("by-owner"), KeySchema::hash("owner", KeyKind::Number));
    let store = trial.store();
    trial.ok("adding an index", store.alter(&altered, Alteration::AddIndex(index)).await);
    trial.ok("expiry", store.alter(&altered, Alteration::TimeToLive(Some("until".to_string()))).await);
    trial.ok("changes", store.alter(&altered, Alteration::Changes(Some(ChangeView::New))).await);
    trial.active(&altered).await;
    trial.ok("deleting", store.delete_table(&deleted).await);
    drop(store);
    let before = [trial.summary(&made).await, trial.summary(&altered).await];
    trial.crash().await;
    for summary in before {
        trial.active(&summary.name).await;
        trial.same("a table after a crash", trial.summary(&summary.name).await, summary.clone());
        let contents = trial.contents(&summary.name).await;
        trial.same("its items", contents.clone(), vec![id("a").with("owner", 1)]);
        trial.index_shows(&summary.name, &trial.index_name("by-owner"), contents).await;
    }
    let gone = trial.store().table(&deleted).await.err();
    trial.same("a deleted table after a crash", gone, Some(Error::TableNotFound(deleted)));
}

/// A transaction that was acknowledged before a crash does not happen again when it is sent again.
pub async fn tokens_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let table = trial.with_tokens().await;
    let add = |by: i32| vec![(table.clone(), Write::update(id("a"), Update::new().add("n", by)))];
    let token = trial.token(&table, "token").await;
    trial.ok("a transaction", trial.store().transact_write(add(1), Some(token.clone())).await);
    trial.crash().await;
    trial.ok("the same again", trial.store().transact_write(add(1), Some(token.clone())).await);
    trial.same("the counter", trial.get(&table, id("a")).await, Some(id("a").with("n", 1)));
    let other = trial.store().transact_write(add(2), Some(token.clone())).await;
    trial.refused("another one with the token", other, |error| *error == Error::TokenReused);
}
