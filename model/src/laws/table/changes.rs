//! Changes: every difference has one record, in order, with its images.

use super::trial::{Trial, by_id, id};
use crate::table::{Action, Alteration, Change, ChangeView, Event, Item, TableOptions, Update, Value, Write};
use crate::{Next, Position, ReadLimit};

type Gist = (Event, Item, Option<Item>, Option<Item>, bool);

fn gist(changes: &[Change]) -> Vec<Gist> {
    changes.iter().map(|c| (c.event, c.keys.clone(), c.old.clone(), c.new.clone(), c.expired)).collect()
}

/// Inserts, updates, replacements and removals come in order, with the images of the view.
pub async fn changes_show_what_the_view_asks_for(trial: Trial) {
    for view in [ChangeView::Keys, ChangeView::New, ChangeView::Old, ChangeView::Both] {
        let table = trial.table(TableOptions::new(by_id()).with_changes(view)).await;
        let stream = trial.stream(&table).await;
        let item = |n: i32| id("a").with("n", n);
        trial.put(&table, item(1)).await;
        trial.write(&table, Write::update(id("a"), Update::new().add("n", 1))).await;
        trial.put(&table, item(7)).await;
        let writes = vec![(table.clone(), Write::update(id("a"), Update::new().set("n", 8)))];
        trial.ok("a transaction", trial.store().transact_write(writes, None).await);
        let left = trial.store().batch_write(vec![(table.clone(), Action::Put(item(9)))]).await;
        trial.same("what a batch left", trial.ok("a batch", left), vec![]);
        trial.write(&table, Write::delete(id("a"))).await;
        let images =
            [None, Some(1), Some(2), Some(7), Some(8), Some(9), None].map(|n: Option<i32>| n.map(item));
        let with_old = matches!(view, ChangeView::Old | ChangeView::Both);
        let with_new = matches!(view, ChangeView::New | ChangeView::Both);
        let expected: Vec<Gist> = images
            .windows(2)
            .map(|pair| {
                let event = match (&pair[0], &pair[1]) {
                    (None, _) => Event::Insert,
                    (_, None) => Event::Remove,
                    _ => Event::Modify,
                };
                let (old, new) = (pair[0].clone().filter(|_| with_old), pair[1].clone().filter(|_| with_new));
                (event, id("a"), old, new, false)
            })
            .collect();
        let changes = trial.changes(&stream).await;
        trial.same(format!("changes in the view {view:?}"), gist(&changes), expected);
        for change in &changes {
            let images = [&change.old, &change.new].into_iter().flatten().map(Item::size).sum::<usize>();
            let size = (change.keys.size() + images) as u64;
            trial.same("the size of a change", change.size, size);
        }
    }
}

/// Writes that leave an item as it is, deletes of nothing and refused writes have no record.
pub async fn what_makes_no_difference_is_not_written_down(trial: Trial) {
    let table = trial.table(TableOptions::new(by_id()).with_changes(ChangeView::Both)).await;
    let stream = trial.stream(&table).await;
    trial.put(&table, id("a").with("n", 1)).await;
    trial.put(&table, id("a").with("n", 1)).await;
    trial.write(&table, Write::update(id("a"), Update::new().set("n", 1).remove("x"))).await;
    trial.write(&table, Write::delete(id("nothing"))).await;
    let refused = Write::delete(id("a")).when(crate::table::expression::missing("id"));
    let refused = trial.store().write(&table, refused).await;
    trial.holds(refused.is_err(), "a condition that does not hold was passed over");
    let bad = Write::put(id("b").with("set", Value::TextSet(Default::default())));
    trial.holds(trial.store().write(&table, bad).await.is_err(), "an empty set was stored");
    let check = Write::check_that(id("a"), crate::table::expression::exists("id"));
    trial.ok("a check", trial.store().transact_write(vec![(table.clone(), check)], None).await);
    let expected = vec![(Event::Insert, id("a"), None, Some(id("a").with("n", 1)), false)];
    trial.same("changes", gist(&trial.changes(&stream).await), expected);
}

/// Changes that are turned off end; turned on again they begin anew, in a stream of their own.
pub async fn changes_end_when_they_are_turned_off(trial: Trial) {
    let table = trial.simple().await;
    trial.same("changes of a plain table", trial.summary(&table).await.changes, None);
    trial.put(&table, id("before")).await;
    let store = trial.store();
    let turn = |view| store.alter(&table, Alteration::Changes(view));
    trial.ok("turning on", turn(Some(ChangeView::New)).await);
    let first = trial.stream(&table).await;
    trial.put(&table, id("first")).await;
    trial.ok("turning off", turn(None).await);
    trial.same("the stream of a table without changes", trial.summary(&table).await.changes, None);
    trial.put(&table, id("between")).await;
    trial.ok("turning on again", turn(Some(ChangeView::Keys)).await);
    let second = trial.stream(&table).await;
    trial.holds(first != second, "two streams of changes have one name");
    trial.put(&table, id("second")).await;
    let insert = |n: &str, new| vec![(Event::Insert, id(n), None, new, false)];
    trial.same("the first changes", gist(&trial.changes(&first).await), insert("first", Some(id("first"))));
    trial.same("the second changes", gist(&trial.changes(&second).await), insert("second", None));
    for (stream, ends) in [(&first, true), (&second, false)] {
        let shards = trial.ok("shards", store.changes().shards(stream, None, 100).await);
        for shard in shards.entries {
            let limit = ReadLimit::default();
            let batch = store.changes().read(stream, &shard.id, Position::TrimHorizon, limit).await;
            let ended = matches!(trial.ok("a read", batch).next, Next::Ended(_));
            trial.same(format!("whether {stream} has ended"), ended, ends);
        }
    }
}
