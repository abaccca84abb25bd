//! The items of a bench, and what is done with them: groups of 100 items of 1 KiB, put once, then updated or queried.

use std::time::Duration;

use anabranch_engine::Engine;
use anabranch_model::table::expression::Comparison;
use anabranch_model::table::{
    Action, Condition, Item, KeyCondition, KeyKind, KeySchema, Query, TableOptions, Update, Write, path,
};
use anabranch_model::{TableName, TableStore, limits};
use bytes::Bytes;

use super::cycles::bodies;
use super::tasks::{self, Done, Task};
use crate::failure::Failure;

/// Items with one hash value: what a query reads.
pub(crate) const GROUP_ITEMS: usize = 100;
/// Tasks that update, each the items of its own group.
pub(crate) const UPDATERS: usize = 64;
/// Tasks that put items; the number divides all scales.
const FILLERS: usize = 16;

/// A table of such items.
pub(crate) fn options() -> TableOptions {
    TableOptions::new(schema())
}

/// How they are found.
pub(crate) fn schema() -> KeySchema {
    KeySchema::hash("group", KeyKind::Text).and_range("number", KeyKind::Number)
}

/// The key of an item.
pub(crate) fn key(group: usize, number: usize) -> Item {
    Item::new().with("group", group_name(group)).with("number", number as u64)
}

/// An item as it is put.
pub(crate) fn item(group: usize, number: usize, data: Bytes) -> Item {
    key(group, number).with("revision", 0).with("data", data)
}

/// The items of a group.
pub(crate) fn group(group: usize) -> Vec<Item> {
    let data = bodies(group % FILLERS);
    (0..GROUP_ITEMS).map(|number| item(group, number, data[number % data.len()].clone())).collect()
}

fn group_name(group: usize) -> String {
    format!("group-{group:06}")
}

/// Puts at least so many items, in the largest batches. Returns how many.
pub(crate) async fn fill(engine: &Engine, table: &TableName, items: usize) -> Result<usize, Failure> {
    let groups_each = items.div_ceil(GROUP_ITEMS * FILLERS);
    let filler = |task| Filler { engine: engine.clone(), table: table.clone(), data: bodies(task), task };
    tasks::finish((0..FILLERS).map(filler).collect(), groups_each).await?;
    Ok(groups_each * FILLERS * GROUP_ITEMS)
}

/// Puts a group a step.
struct Filler {
    engine: Engine,
    table: TableName,
    data: Vec<Bytes>,
    task: usize,
}

impl Task for Filler {
    async fn step(&mut self, number: usize) -> Result<(), Failure> {
        let group = number * FILLERS + self.task;
        let put = |number: usize| {
            let data = self.data[number % self.data.len()].clone();
            (self.table.clone(), Action::Put(item(group, number, data)))
        };
        for first in (0..GROUP_ITEMS).step_by(limits::BATCH_WRITE_ITEMS_MAX) {
            let mut left = (first..first + limits::BATCH_WRITE_ITEMS_MAX).map(put).collect::<Vec<_>>();
            while !left.is_empty() {
                left = self.engine.batch_write(left).await?;
            }
        }
        Ok(())
    }
}

/// A round of updates, each on the condition that nobody has made a later one. Revisions begin behind `revision`.
pub(crate) async fn update(
    engine: &Engine,
    table: &TableName,
    revision: u64,
    steps: usize,
    at_most: Duration,
) -> Result<Done, Failure> {
    let updater = |group| Updater {
        engine: engine.clone(),
        table: table.clone(),
        data: bodies(group),
        group,
        revision,
    };
    tasks::race((0..UPDATERS).map(updater).collect(), steps, at_most).await
}

struct Updater {
    engine: Engine,
    table: TableName,
    data: Vec<Bytes>,
    group: usize,
    revision: u64,
}

impl Task for Updater {
    async fn step(&mut self, number: usize) -> Result<(), Failure> {
        let revision = self.revision + number as u64 + 1;
        // One further at every pass, so that an item never gets what it has.
        let data = &self.data[(number + number / GROUP_ITEMS) % self.data.len()];
        let update = Update::new().set("data", data.clone()).set("revision", revision);
        let earlier = Condition::compare(path("revision"), Comparison::Below, revision);
        let write = Write::update(key(self.group, number % GROUP_ITEMS), update).when(earlier);
        self.engine.write(&self.table, write).await?;
        Ok(())
    }
}

/// A round of queries of whole groups from one task, one behind the other.
pub(crate) async fn query(
    engine: &Engine,
    table: &TableName,
    groups: usize,
    steps: usize,
    at_most: Duration,
) -> Result<Done, Failure> {
    let reader = Reader { engine: engine.clone(), table: table.clone(), groups };
    tasks::race(vec![reader], steps, at_most).await
}

struct Reader {
    engine: Engine,
    table: TableName,
    groups: usize,
}

impl Task for Reader {
    async fn step(&mut self, number: usize) -> Result<(), Failure> {
        let group = KeyCondition::of("group", group_name(number % self.groups));
        let page = self.engine.query(&self.table, Query::new(group)).await?;
        if std::hint::black_box(page.items).len() == GROUP_ITEMS {
            return Ok(());
        }
        Err(Failure::new("bench", "a query does not give the items that were put", "report this"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::subject::Subject;
    use anabranch_model::table::{Get, Value};

    #[test]
    fn a_page_holds_a_group_and_scales_fill_whole_groups() {
        let items = group(3);
        assert_eq!(items.len(), GROUP_ITEMS);
        assert!(items.iter().map(Item::size).sum::<usize>() < limits::QUERY_BYTES_MAX);
        assert!(items.iter().all(|item| (1_024..1_100).contains(&item.size())));
        assert_eq!(GROUP_ITEMS % limits::BATCH_WRITE_ITEMS_MAX, 0);
        assert_eq!((200_000 % (GROUP_ITEMS * FILLERS), 1_000_000 % (GROUP_ITEMS * FILLERS)), (0, 0));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn items_are_put_queried_and_updated_round_after_round() {
        let folder = tempfile::tempdir().unwrap();
        let subject = Subject::open(folder.path(), 1).await.unwrap();
        let (engine, table) = (subject.engine(), TableName::new("items").unwrap());
        engine.create_table(&table, options()).await.unwrap();
        assert_eq!(fill(engine, &table, UPDATERS * GROUP_ITEMS).await.unwrap(), 6_400);
        assert_eq!(engine.table(&table).await.unwrap().items, 6_400);

        let hour = Duration::from_secs(3600);
        assert_eq!(query(engine, &table, UPDATERS, UPDATERS, hour).await.unwrap().steps, UPDATERS as u64);
        let page = engine.query(&table, Query::new(KeyCondition::of("group", group_name(7)))).await.unwrap();
        assert_eq!(page.items, group(7));

        for round in 0..2 {
            assert!(update(engine, &table, round * 2, 2, hour).await.unwrap().steps >= 2);
        }
        let (engine, table) = (engine.clone(), table.clone());
        let mut updater = Updater { engine, table, data: bodies(0), group: 0, revision: 10 };
        updater.step(0).await.unwrap();
        let first = updater.engine.get(&updater.table, Get::new(key(0, 0)).consistent()).await.unwrap();
        assert_eq!(first.unwrap().get("revision"), Some(&Value::from(11)));
        updater.revision = 5;
        assert!(updater.step(0).await.is_err(), "somebody has made a later one");
        drop(updater);
        subject.close().await.unwrap();
    }
}
