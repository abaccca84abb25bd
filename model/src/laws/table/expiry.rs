//! Items that expire.

use std::time::Duration;

use super::trial::{Trial, by_id, id, sorted};
use crate::laws::trial::NO_CLOCK;
use crate::table::{Change, ChangeView, Event, IndexOptions, KeyKind, KeySchema, TableOptions, Value};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The seconds of the store's clock, as a change shows them.
async fn seconds(trial: &Trial) -> u64 {
    let table = trial.table(TableOptions::new(by_id()).with_changes(ChangeView::Keys)).await;
    let stream = trial.stream(&table).await;
    trial.put(&table, id("now")).await;
    let changes: Vec<Change> = trial.changes(&stream).await;
    changes.first().unwrap_or_else(|| trial.fail("a put is not among the changes")).at.as_millis() / 1000
}

/// An item whose time has come is removed, from indexes as well, with a change that says so.
pub async fn expired_items_are_removed(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let name = trial.index_name("by-color");
    let index = IndexOptions::global(name.clone(), KeySchema::hash("color", KeyKind::Text));
    let options = TableOptions::new(by_id())
        .with_time_to_live("until")
        .with_changes(ChangeView::Both)
        .with_index(index);
    let table = trial.table(options).await;
    let stream = trial.stream(&table).await;
    let soon = seconds(&trial).await + 3600;
    let due = id("due").with("until", soon).with("color", "red");
    let later = id("later").with("until", soon + 10 * 24 * 3600).with("color", "red");
    trial.put_all(&table, [due.clone(), later.clone()]).await;
    trial.advance(DAY).await;
    let look = || async {
        let seen = trial.contents(&table).await;
        if seen == vec![later.clone()] { Ok(()) } else { Err(format!("{seen:?}")) }
    };
    trial.eventually("a table without its expired item", look).await;
    trial.index_shows(&table, &name, vec![later]).await;
    let changes = trial.changes(&stream).await;
    let last = changes.last().map(|c| (c.event, c.keys.clone(), c.old.clone(), c.new.clone(), c.expired));
    trial.same("the last change", last, Some((Event::Remove, id("due"), Some(due), None, true)));
    trial.same("changes", changes.len(), 3);
}

/// The time may be an attribute of the key. One that is no number lets nothing expire.
pub async fn a_key_may_be_the_time_of_expiry(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let key = KeySchema::hash("id", KeyKind::Text).and_range("until", KeyKind::Number);
    let table = trial.table(TableOptions::new(key).with_time_to_live("until")).await;
    let texts = trial.table(TableOptions::new(by_id()).with_time_to_live("id")).await;
    let soon = seconds(&trial).await + 3600;
    let later = id("a").with("until", soon + 10 * 24 * 3600);
    trial.put_all(&table, [id("a").with("until", soon), later.clone()]).await;
    trial.put(&texts, id(&soon.to_string())).await;
    trial.advance(DAY).await;
    let look = || async {
        let seen = trial.contents(&table).await;
        if seen == vec![later.clone()] { Ok(()) } else { Err(format!("{seen:?}")) }
    };
    trial.eventually("a table without its expired item", look).await;
    trial.same("items by a text", trial.contents(&texts).await, vec![id(&soon.to_string())]);
}

/// An item stays while its time has not come, if it has none, if its time is no number, and if its time is so long ago
/// that it must mean something else.
pub async fn items_live_until_their_time(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let table = trial.table(TableOptions::new(by_id()).with_time_to_live("until")).await;
    let plain = trial.simple().await;
    let now = seconds(&trial).await;
    let items = vec![
        id("ancient").with("until", now - 6 * 365 * 24 * 3600),
        id("forever"),
        id("future").with("until", now + 2 * 24 * 3600),
        id("text").with("until", format!("{now}")),
        id("zero").with("until", Value::from(0)),
    ];
    trial.put_all(&table, items.clone()).await;
    trial.put(&plain, id("elsewhere").with("until", now)).await;
    trial.advance(DAY).await;
    trial.advance(Duration::from_secs(3600)).await;
    trial.same("items that live", trial.contents(&table).await, sorted(items));
    trial.same("items of a table without expiry", trial.contents(&plain).await.len(), 1);
}
