//! Tables as such: making, describing, listing, altering, deleting.

use super::trial::{Trial, at, by_group, by_id, id};
use crate::table::{
    Alteration, ChangeView, IndexOptions, IndexProjection, KeyKind, KeySchema, Scan, TableOptions,
    TableState, Write,
};
use crate::{Error, TableName, limits};

/// A summary says how a table was made, and what is in it.
pub async fn tables_are_described(trial: Trial) {
    let by_owner =
        IndexOptions::global(trial.index_name("by-owner"), KeySchema::hash("owner", KeyKind::Text))
            .showing(IndexProjection::Keys);
    let by_size = IndexOptions::local(
        trial.index_name("by-size"),
        KeySchema::hash("group", KeyKind::Text).and_range("size", KeyKind::Number),
    );
    let options = TableOptions::new(by_group())
        .with_index(by_owner)
        .with_index(by_size)
        .with_time_to_live("until")
        .with_changes(ChangeView::Both);
    let table = trial.table(options.clone()).await;
    let summary = trial.summary(&table).await;
    trial.same("the name", summary.name.clone(), table.clone());
    trial.same("the options", summary.options.clone(), options);
    trial.same("the state", summary.state, TableState::Active);
    trial.same("indexes", summary.indexes.len(), 2);
    trial.holds(summary.changes.is_some(), "the stream of changes has no name");
    trial.put_all(&table, [at("g", 1).with("owner", "me"), at("g", 2).with("size", 7), at("h", 1)]).await;
    trial.put(&table, at("h", 1).with("text", "longer")).await;
    trial.write(&table, Write::delete(at("g", 2))).await;
    if !trial.store().capabilities().exact_counts {
        return;
    }
    let summary = trial.summary(&table).await;
    let contents = trial.contents(&table).await;
    let bytes = contents.iter().map(|item| item.size() as u64).sum();
    trial.same("counted items and bytes", (summary.items, summary.bytes), (2, bytes));
    let counts: Vec<_> = summary.indexes.iter().map(|index| index.items).collect();
    trial.same("items in the indexes", counts, vec![1, 0]);
}

/// Pages of names join to a listing in their order, from any name on.
pub async fn tables_are_listed_by_name(trial: Trial) {
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(trial.simple().await);
    }
    made.sort();
    let mut listed: Vec<TableName> = Vec::new();
    let mut after = None;
    loop {
        let page = trial.ok("listing", trial.store().tables(after.as_ref(), 2).await);
        trial.holds(page.entries.len() <= 2, format!("a page of 2 has {} names", page.entries.len()));
        trial.holds(!page.more || !page.entries.is_empty(), "an empty page says that there is more");
        after = page.entries.last().cloned();
        listed.extend(page.entries);
        if !page.more {
            break;
        }
    }
    trial.holds(listed.windows(2).all(|pair| pair[0] < pair[1]), format!("{listed:?} is not in order"));
    let mine: Vec<_> = listed.iter().filter(|name| made.contains(name)).cloned().collect();
    trial.same("tables listed", mine, made.clone());
    let page = trial.ok("listing", trial.store().tables(Some(&made[3]), limits::PAGE_ENTRIES_MAX).await);
    trial.holds(!page.entries.contains(&made[3]), "a listing repeats the name that it starts behind");
    trial.holds(page.entries.contains(&made[4]), "a listing from a name leaves out the next");
}

/// A deleted table is not there; its name is free, and a table that takes it starts empty.
pub async fn a_deleted_table_is_gone(trial: Trial) {
    let table = trial.simple().await;
    trial.put(&table, id("a")).await;
    trial.ok("deleting", trial.store().delete_table(&table).await);
    let unknown = |error: &Error| matches!(error, Error::TableNotFound(_));
    trial.refused("describing a deleted table", trial.store().table(&table).await, unknown);
    trial.refused("scanning a deleted table", trial.store().scan(&table, Scan::new()).await, unknown);
    let put = Write::put(id("b"));
    trial.refused("writing to a deleted table", trial.store().write(&table, put).await, unknown);
    let page = trial.ok("listing", trial.store().tables(None, limits::PAGE_ENTRIES_MAX).await);
    trial.holds(!page.entries.contains(&table), "a deleted table is listed");
    trial.ok("making it again", trial.store().create_table(&table, TableOptions::new(by_id())).await);
    trial.same("items of a table made again", trial.contents(&table).await, Vec::new());
}

/// An index that is added to a living table holds what was there and what comes; when it is dropped, it is gone.
pub async fn an_index_is_added_and_dropped(trial: Trial) {
    let table = trial.simple().await;
    let items: Vec<_> = (0..40).map(|n| id(&format!("{n}")).with("color", ["red", "blue"][n % 2])).collect();
    trial.put_all(&table, items[..30].to_vec()).await;
    trial.put(&table, id("plain")).await;
    let name = trial.index_name("by-color");
    let index = IndexOptions::global(name.clone(), KeySchema::hash("color", KeyKind::Text));
    trial.ok("adding an index", trial.store().alter(&table, Alteration::AddIndex(index.clone())).await);
    trial.put_all(&table, items[30..].to_vec()).await;
    trial.active(&table).await;
    trial.index_shows(&table, &name, items.clone()).await;
    let odd = trial.store().write(&table, Write::put(id("odder").with("color", 7))).await;
    trial.refused("an item that does not fit an index", odd, |error| matches!(error, Error::Invalid(_)));
    trial.ok("dropping it", trial.store().alter(&table, Alteration::DropIndex(name.clone())).await);
    let look = || async {
        let summary = trial.summary(&table).await;
        if summary.indexes.is_empty() { Ok(()) } else { Err(format!("{summary:?}")) }
    };
    trial.eventually("a dropped index that is gone", look).await;
    let unknown = |error: &Error| matches!(error, Error::IndexNotFound(..));
    let scan = trial.store().scan(&table, Scan::new().index(&name)).await;
    trial.refused("scanning a dropped index", scan, unknown);
    let again = trial.store().alter(&table, Alteration::DropIndex(name)).await;
    trial.refused("dropping an index twice", again, unknown);
    trial.same("items afterwards", trial.contents(&table).await.len(), 41);
}
