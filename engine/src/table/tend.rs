//! What happens to tables behind the writers' backs: new indexes are filled, items expire, old changes and tokens go.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use anabranch_model::table::{Item, Key};
use anabranch_model::{Error, Result, Timestamp, limits};
use bytes::Bytes;

use super::catalogue::{Shape, Table, item, item_row};
use super::changes::{expired, removal};
use super::layout::{entries, items, table_key, tally_key, within};
use super::write::token_forgotten_at;
use crate::core::{Core, Halt};
use crate::journal::Urgency;
use crate::journal::sequencer::Done;
use crate::rows::{Change, Order, Space};

/// Items that are put into a new index at once; writers of the table wait meanwhile.
const FILLED_AT_ONCE: usize = 200;
/// Bytes of them after which no other is added, so that the step fits into a frame.
const FILLED_BYTES_AT_ONCE: usize = 1 << 20;
/// Expired items that are removed with one frame, which may hold what they were in every index and as a change.
const EXPIRED_AT_ONCE: usize = 16;
/// Items of one table that one look for expired ones takes in.
const LOOKED_AT_MAX: usize = 100_000;
/// Changes or tokens that are removed with one frame.
const REMOVED_AT_ONCE: usize = 100;

/// Waits until frames are durable.
type Settle<'a> = &'a mut dyn FnMut(Done);

impl Core {
    /// Fills new indexes, a step each; returns whether there is more to fill.
    pub fn fill_indexes(&self, settle: Settle<'_>) -> Result<bool> {
        let mut more = false;
        for table in self.tables.all() {
            while table.shape().indexes.iter().any(|index| index.filled_to.is_some()) {
                if !self.fill_index(&table, settle)? {
                    more = true;
                    break;
                }
            }
        }
        Ok(more)
    }

    /// Puts the next items into an index. Returns false if that cannot go on now: the journal has no room, or readers do
    /// not see yet what became of the table.
    ///
    /// Writers of the table wait until the step is durable. Before it, everything that they have accepted becomes
    /// visible, so that the items that are read here are the last ones.
    fn fill_index(&self, table: &Arc<Table>, settle: Settle<'_>) -> Result<bool> {
        let mut accepted = table.accepted.write();
        let filling = accepted.shape.indexes.iter().position(|index| index.filled_to.is_some());
        let Some(place) = filling.filter(|_| !accepted.deleted) else { return Ok(false) };
        let barrier =
            self.write_rows(self.rows.accept(Vec::new()), Vec::new(), Urgency::Upkeep, &mut None, None);
        match refused(barrier.map(|(_, done)| done))? {
            Some(done) => settle(done),
            None => return Ok(false),
        }
        let mut tally = table.tally.lock();
        let (old, mut counted) = (accepted.shape.clone(), tally.clone());
        let step = self.next_step(table, &old, place)?;
        let mut shape =
            Shape { options: old.options.clone(), indexes: old.indexes.clone(), log: old.log.clone() };
        shape.indexes[place].filled_to = step.filled_to;
        let mut changes = Vec::new();
        for shown in step.shown {
            counted.indexes[place].replace(None, Some(&shown));
            let at = shape.options.place(Some(&shape.options.indexes[place]), &shown)?;
            changes.push(Change::put(within(entries(shape.indexes[place].number), &at), item_row(&shown)));
        }
        changes.push(Change::put(table_key(&table.name), table.row(&shape).encode()));
        changes.push(Change::put(tally_key(table.number), counted.encode()));
        let shape = Arc::new(shape);
        let (filled, shown, shown_tally) = (table.clone(), shape.clone(), counted.clone());
        let then = Box::new(move |_| {
            let mut view = filled.visible.write();
            view.shape = shown;
            view.tally = shown_tally;
        });
        let accepting = self.rows.accept(vec![table_key(&table.name)]);
        let written = self.write_rows(accepting, changes, Urgency::Upkeep, &mut None, Some(then));
        let Some(done) = refused(written.map(|(_, done)| done))? else { return Ok(false) };
        *tally = counted;
        accepted.shape = shape;
        drop((tally, accepted));
        settle(done);
        Ok(true)
    }

    fn next_step(&self, table: &Table, shape: &Shape, place: usize) -> Result<Step> {
        let prefix = items(table.number);
        let filled_to = shape.indexes[place].filled_to.clone().unwrap_or_default();
        let from = within(prefix.clone(), &filled_to);
        let mut step = Step { shown: Vec::new(), filled_to: None };
        let (mut looked_at, mut bytes, mut last) = (0, 0, Bytes::new());
        let index = &shape.options.indexes[place];
        self.rows.snapshot()?.range(
            (Bound::Excluded(&from), Bound::Unbounded),
            Order::Forward,
            |key, row| {
                let Some(at) = key.strip_prefix(&prefix[..]) else { return Ok(ControlFlow::Break(())) };
                if looked_at == FILLED_AT_ONCE || bytes >= FILLED_BYTES_AT_ONCE {
                    step.filled_to = Some(last.clone());
                    return Ok(ControlFlow::Break(()));
                }
                (looked_at, bytes) = (looked_at + 1, bytes + row.len());
                last = Bytes::copy_from_slice(at);
                step.shown.extend(shape.options.shown(index, &item(row)?));
                Ok(ControlFlow::Continue(()))
            },
        )?;
        Ok(step)
    }

    /// Removes items whose time has come.
    pub fn expire_tables(&self, settle: Settle<'_>) -> Result<()> {
        for table in self.tables.all() {
            let shape = table.shape();
            if shape.options.time_to_live.is_none() {
                continue;
            }
            let due = self.due(&table, &shape, LOOKED_AT_MAX)?;
            for keys in due.chunks(EXPIRED_AT_ONCE) {
                match refused(self.expire_items(&table, keys)) {
                    Ok(Some(done)) => settle(done),
                    Ok(None) | Err(Error::TableNotFound(_)) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Items of a table whose time has come, as readers see it. The look takes in so many items, and the next one goes on
    /// behind them.
    fn due(&self, table: &Table, shape: &Shape, looked_at_max: usize) -> Result<Vec<Key>> {
        let (prefix, now) = (items(table.number), Timestamp::from_millis(self.now_ms()));
        let (mut due, mut looked_at) = (Vec::new(), 0);
        let from = within(prefix.clone(), &table.looked_at.lock().take().unwrap_or_default());
        let bounds = (Bound::Included(&from[..]), Bound::Unbounded);
        self.rows.snapshot()?.range(bounds, Order::Forward, |key, row| {
            let Some(place) = key.strip_prefix(&prefix[..]) else { return Ok(ControlFlow::Break(())) };
            if looked_at == looked_at_max {
                *table.looked_at.lock() = Some(Bytes::copy_from_slice(place));
                return Ok(ControlFlow::Break(()));
            }
            looked_at += 1;
            let item = item(row)?;
            if shape.options.has_expired(&item, now) {
                due.push(shape.options.key.key_of(&item)?);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(due)
    }

    /// Removes changes that were kept for a day, streams that ended a day ago, and tokens that are forgotten.
    pub fn trim_tables(&self, settle: Settle<'_>) -> Result<()> {
        let now = self.now_ms();
        let horizon = now.saturating_sub(limits::CHANGES_RETENTION.as_millis() as u64);
        for log in self.tables.logs.all() {
            if log.ended_at().is_some_and(|ended| ended < horizon) {
                if !self.remove_rows(removal(&log).to_vec(), settle)? {
                    return Ok(());
                }
                self.tables.logs.hide(&log);
                continue;
            }
            loop {
                let removed = expired(&self.rows.snapshot()?, &log, horizon, REMOVED_AT_ONCE)?;
                if removed.is_empty() || !self.remove_rows(removed.changes(&log), settle)? {
                    break;
                }
                log.show_trimmed(&removed);
            }
        }
        let mut forgotten = Vec::new();
        let bounds = [[Space::Tokens as u8], [Space::Tokens as u8 + 1]];
        let bounds = (Bound::Included(&bounds[0][..]), Bound::Excluded(&bounds[1][..]));
        self.rows.snapshot()?.range(bounds, Order::Forward, |key, row| {
            if token_forgotten_at(row).is_none_or(|at| at <= now) {
                forgotten.push(Bytes::copy_from_slice(key));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for keys in forgotten.chunks(REMOVED_AT_ONCE) {
            // A token may have been used again meanwhile.
            let accepting = self.rows.accept(keys.to_vec());
            let mut changes = Vec::new();
            for key in keys {
                if accepting.get(key)?.is_some_and(|row| token_forgotten_at(&row).is_none_or(|at| at <= now))
                {
                    changes.push(Change::remove(key.clone()));
                }
            }
            let written = self.write_rows(accepting, changes, Urgency::Upkeep, &mut None, None);
            match refused(written.map(|(_, done)| done))? {
                Some(done) => settle(done),
                None => break,
            }
        }
        Ok(())
    }

    fn remove_rows(&self, changes: Vec<Change>, settle: Settle<'_>) -> Result<bool> {
        let accepting = self.rows.accept(Vec::new());
        let written = self.write_rows(accepting, changes, Urgency::Upkeep, &mut None, None);
        match refused(written.map(|(_, done)| done))? {
            Some(done) => {
                settle(done);
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

/// What goes into an index with one step, and how far that fills it; none when it is full.
struct Step {
    shown: Vec<Item>,
    filled_to: Option<Bytes>,
}

/// None if the journal has no room now: upkeep comes again.
fn refused(written: std::result::Result<Done, Halt>) -> Result<Option<Done>> {
    match written {
        Ok(done) => Ok(Some(done)),
        Err(Halt::Refused(_)) => Ok(None),
        Err(Halt::Failed(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use anabranch_model::table::{KeyKind, KeySchema, TableOptions, TableStore, Write};
    use anabranch_model::{Clock, TableName};
    use anabranch_sim::{SimClock, SimDisk};

    use super::*;
    use crate::{Engine, Options};

    const ITEMS: usize = 10;

    #[tokio::test]
    async fn looks_for_expired_items_take_in_every_item() {
        let clock = SimClock::new(Timestamp::from_millis(1_700_000_000_000));
        let engine = Engine::open(Arc::new(SimDisk::new()), Arc::new(clock.clone()), Options::default());
        let (engine, name) = (engine.expect("opens"), TableName::new("timed").expect("a good name"));
        let options = TableOptions::new(KeySchema::hash("id", KeyKind::Number)).with_time_to_live("until");
        engine.create_table(&name, options).await.expect("made");
        for number in 0..ITEMS {
            let item =
                Item::new().with("id", number as u64).with("until", clock.now().as_millis() / 1000 - 1);
            engine.write(&name, Write::put(item)).await.expect("written");
        }
        let table = engine.core().tables.table(&name).expect("it was made");
        for at_once in 1..=ITEMS + 1 {
            let (mut found, mut looks) = (BTreeSet::new(), 0);
            loop {
                let due = engine.core().due(&table, &table.shape(), at_once).expect("a look");
                assert!(due.len() <= at_once);
                found.extend(due);
                looks += 1;
                if table.looked_at.lock().is_none() {
                    break;
                }
            }
            assert_eq!((found.len(), looks), (ITEMS, ITEMS.div_ceil(at_once)));
        }
    }
}
