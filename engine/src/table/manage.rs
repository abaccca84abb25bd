//! Making, altering and deleting tables.

use std::sync::Arc;

use anabranch_model::table::{Alteration, TableOptions};
use anabranch_model::{Error, Result, TableName, limits};
use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::catalogue::{Shape, Table, Tally};
use super::changes::Log;
use super::layout::{IndexRow, TableRow, owner_prefix, table_key, tally_key};
use crate::admin as documents;
use crate::core::{Attempt, Core};
use crate::journal::Urgency;
use crate::rows::accept::next_number_key;
use crate::rows::{Change, bury};

/// About what a change of the catalogue brings into memory.
const CATALOGUE_BYTES: usize = 16 << 10;

impl Core {
    /// Makes a table.
    pub async fn create_table(self: &Arc<Self>, name: &TableName, options: TableOptions) -> Result<()> {
        options.check()?;
        let mut permit = Some(self.admit_rows(CATALOGUE_BYTES).await?);
        self.submit(|| self.attempt_create(name, &options, &mut permit)).await
    }

    fn attempt_create(
        self: &Arc<Self>,
        name: &TableName,
        options: &TableOptions,
        permit: &mut Option<OwnedSemaphorePermit>,
    ) -> Attempt<()> {
        let accepting = self.rows.accept(vec![table_key(name), next_number_key()]);
        if accepting.get(&table_key(name))?.is_some() {
            return Err(Error::TableExists(name.clone()).into());
        }
        if self.tables.count() >= limits::TABLES_MAX {
            let text = format!("there are {} tables already: delete one first", limits::TABLES_MAX);
            return Err(Error::LimitExceeded(text).into());
        }
        let now = self.now_ms();
        let (number, taken) = accepting.next_numbers(2 + options.indexes.len() as u64)?;
        let log = options.changes.map(|_| Log::new(number + 1, name)).transpose()?.map(Arc::new);
        let indexes = (number + 2..).take(options.indexes.len());
        let row = TableRow {
            number,
            created_at: now,
            options: options.clone(),
            indexes: indexes.map(|number| IndexRow { number, filled_to: None }).collect(),
            changes: log.as_ref().map(|log| log.name.clone()),
        };
        let tally = Tally::empty(options.indexes.len());
        let mut changes = vec![
            taken,
            Change::put(table_key(name), row.encode()),
            Change::put(tally_key(number), tally.encode()),
        ];
        changes.extend(log.iter().flat_map(|log| log.begin(now)));
        let table = Arc::new(Table::new(name.clone(), row, log.clone(), tally));
        let core = self.clone();
        let then = Box::new(move |position| {
            core.show_log(log, position);
            core.tables.show(table);
        });
        let (_, done) = self.write_rows(accepting, changes, Urgency::Normal, permit, Some(then))?;
        Ok(((), done))
    }

    fn show_log(&self, log: Option<Arc<Log>>, position: u64) {
        if let Some(log) = log {
            log.begun(position);
            self.tables.logs.show(log);
        }
    }

    /// Deletes a table.
    pub async fn delete_table(self: &Arc<Self>, name: &TableName) -> Result<()> {
        let table = self.tables.table(name)?;
        let mut permit = Some(self.budget.write(CATALOGUE_BYTES).await);
        self.submit(|| self.attempt_delete(&table, &mut permit)).await
    }

    fn attempt_delete(
        self: &Arc<Self>,
        table: &Arc<Table>,
        permit: &mut Option<OwnedSemaphorePermit>,
    ) -> Attempt<()> {
        let mut accepted = table.accepted.write();
        if accepted.deleted {
            return Err(Error::TableNotFound(table.name.clone()).into());
        }
        let now = self.now_ms();
        let shape = accepted.shape.clone();
        let mut changes = vec![
            Change::remove(table_key(&table.name)),
            bury(&owner_prefix(table.number)),
            bury(&documents::of_table(table.number)),
        ];
        changes.extend(shape.indexes.iter().map(|index| bury(&owner_prefix(index.number))));
        changes.extend(shape.log.iter().flat_map(|log| log.end(now)));
        let accepting = self.rows.accept(vec![table_key(&table.name)]);
        let (core, hidden) = (self.clone(), table.clone());
        let then = Box::new(move |position| {
            if let Some(log) = &shape.log {
                log.ended(position, now);
            }
            core.tables.hide(&hidden);
        });
        let (_, done) = self.write_rows(accepting, changes, Urgency::Upkeep, permit, Some(then))?;
        accepted.deleted = true;
        Ok(((), done))
    }

    /// Alters a table.
    pub async fn alter_table(self: &Arc<Self>, name: &TableName, alteration: Alteration) -> Result<()> {
        let table = self.tables.table(name)?;
        let mut permit = Some(self.admit_rows(CATALOGUE_BYTES).await?);
        self.submit(|| self.attempt_alter(&table, &alteration, &mut permit)).await?;
        // An index may have to be filled.
        self.sequencer.wake_upkeep();
        Ok(())
    }

    fn attempt_alter(
        self: &Arc<Self>,
        table: &Arc<Table>,
        alteration: &Alteration,
        permit: &mut Option<OwnedSemaphorePermit>,
    ) -> Attempt<()> {
        let mut accepted = table.accepted.write();
        if accepted.deleted {
            return Err(Error::TableNotFound(table.name.clone()).into());
        }
        let accepting = self.rows.accept(vec![table_key(&table.name), next_number_key()]);
        let old = accepted.shape.clone();
        let options = old.options.altered(&table.name, alteration)?;
        let mut shape = Shape { options, indexes: old.indexes.clone(), log: old.log.clone() };
        let mut tally_held = table.tally.lock();
        let (mut tally, mut changes, now) = (tally_held.clone(), Vec::new(), self.now_ms());
        let (number, taken) = accepting.next_numbers(1)?;
        match alteration {
            Alteration::AddIndex(_) => {
                let filled_to = (tally.table.items > 0).then(Bytes::new);
                shape.indexes.push(IndexRow { number, filled_to });
                tally.indexes.push(Default::default());
                changes.push(taken);
            }
            Alteration::DropIndex(name) => {
                let place = old.options.indexes.iter().position(|index| index.name == *name);
                let place = place.expect("the options were altered");
                changes.push(bury(&owner_prefix(shape.indexes.remove(place).number)));
                tally.indexes.remove(place);
            }
            Alteration::TimeToLive(_) => {}
            Alteration::Changes(view) => {
                changes.extend(old.log.iter().flat_map(|log| log.end(now)));
                shape.log = view.map(|_| Log::new(number, &table.name)).transpose()?.map(Arc::new);
                changes.extend(shape.log.iter().flat_map(|log| log.begin(now)));
                changes.push(taken);
            }
        }
        changes.push(Change::put(table_key(&table.name), table.row(&shape).encode()));
        changes.push(Change::put(tally_key(table.number), tally.encode()));
        let shape = Arc::new(shape);
        let (core, altered, shown, counted) = (self.clone(), table.clone(), shape.clone(), tally.clone());
        let switched = matches!(alteration, Alteration::Changes(_));
        let then = Box::new(move |position| {
            if switched {
                if let Some(log) = &old.log {
                    log.ended(position, now);
                }
                core.show_log(shown.log.clone(), position);
            }
            let mut view = altered.visible.write();
            view.shape = shown;
            view.tally = counted;
        });
        let (_, done) = self.write_rows(accepting, changes, Urgency::Normal, permit, Some(then))?;
        *tally_held = tally;
        accepted.shape = shape;
        Ok(((), done))
    }
}
