//! The limit of queries: a redb database with the same keys and values, and nothing around it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::SystemClock;
use anabranch_model::Clock;
use anabranch_model::table::{Item, KeySchema};
use redb::{Database, ReadableDatabase, TableDefinition};

use super::blocking;
use super::tasks::Done;
use crate::failure::Failure;

const ROWS: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("rows");
const FILE: &str = "plain.redb";

/// A row.
type Row = (Vec<u8>, Vec<u8>);

/// The database, and where each group of rows begins and ends.
#[derive(Clone)]
pub(crate) struct PlainRows {
    database: Arc<Database>,
    groups: Arc<Vec<(Vec<u8>, Vec<u8>)>>,
}

impl PlainRows {
    /// Makes a database in a folder with these groups of items.
    pub(crate) async fn make(
        folder: &Path,
        schema: KeySchema,
        groups: Vec<Vec<Item>>,
    ) -> Result<PlainRows, Failure> {
        let path = folder.join(FILE);
        let make = move || {
            let database = Database::create(path).map_err(|error| failed(error.into()))?;
            let mut ends = Vec::new();
            for group in groups {
                let rows: Vec<Row> = group.iter().map(|item| row(&schema, item)).collect::<Result<_, _>>()?;
                insert(&database, &rows).map_err(failed)?;
                if let (Some((first, _)), Some((last, _))) = (rows.iter().min(), rows.iter().max()) {
                    ends.push((first.clone(), last.clone()));
                }
            }
            Ok(PlainRows { database: Arc::new(database), groups: Arc::new(ends) })
        };
        blocking(make).await?
    }

    /// Reads groups in turn until there were `steps` or the time is over.
    pub(crate) async fn read(&self, steps: usize, at_most: Duration) -> Result<Done, Failure> {
        let rows = self.clone();
        blocking(move || {
            let clock = SystemClock::new();
            let (mut done, start) = (0, clock.elapsed());
            while done < steps && clock.elapsed() - start < at_most {
                std::hint::black_box(rows.group(done % rows.groups.len()).map_err(failed)?);
                done += 1;
            }
            Ok(Done { steps: done as u64, elapsed: clock.elapsed() - start })
        })
        .await?
    }

    /// The rows of a group. They are copied: whoever asks for them keeps them for longer than the transaction.
    fn group(&self, group: usize) -> Result<Vec<Row>, redb::Error> {
        let (first, last) = &self.groups[group];
        let table = self.database.begin_read()?.open_table(ROWS)?;
        let mut rows = Vec::new();
        for row in table.range(first.as_slice()..=last.as_slice())? {
            let (key, value) = row?;
            rows.push((key.value().to_vec(), value.value().to_vec()));
        }
        Ok(rows)
    }
}

fn row(schema: &KeySchema, item: &Item) -> Result<Row, Failure> {
    let mut value = Vec::new();
    item.encode(&mut value);
    Ok((schema.key_of(item)?.bytes(), value))
}

fn insert(database: &Database, rows: &[Row]) -> Result<(), redb::Error> {
    let writing = database.begin_write()?;
    {
        let mut table = writing.open_table(ROWS)?;
        for (key, value) in rows {
            table.insert(key.as_slice(), value.as_slice())?;
        }
    }
    writing.commit()?;
    Ok(())
}

fn failed(error: redb::Error) -> Failure {
    Failure::new("bench", format!("the plain database failed: {error}"), "check the folder of --dir")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::items;

    #[tokio::test]
    async fn a_group_is_read_with_all_of_its_items_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let groups: Vec<Vec<Item>> = (0..3).map(items::group).collect();
        let plain = PlainRows::make(folder.path(), items::schema(), groups.clone()).await.unwrap();
        for (number, items) in groups.iter().enumerate() {
            let values = plain.group(number).unwrap().into_iter().map(|(_, value)| value);
            let read: Vec<Item> = values.map(|value| Item::decode(&mut value.as_slice()).unwrap()).collect();
            assert_eq!(&read, items);
        }
        let done = plain.read(7, Duration::from_secs(60)).await.unwrap();
        assert_eq!(done.steps, 7);
    }
}
