//! Writing items: conditions are decided on the accepted items, and everything that follows from the writes of a call
//! goes into one frame: items, entries of indexes, counts, changes.

use std::collections::HashSet;
use std::sync::Arc;

use anabranch_model::table::{
    Action, Change, ChangeView, IndexOptions, IndexProjection, Item, Key, Token, Write, check_parts,
    check_transaction_bytes, fingerprint,
};
use anabranch_model::{Cancelled, Error, Result, TableName, Timestamp, limits};
use bytes::Bytes;
use futures_util::future::join_all;
use parking_lot::{MutexGuard, RwLockReadGuard};
use tokio::sync::OwnedSemaphorePermit;

use super::catalogue::{Accepted, Shape, Table, Tally, item, item_row};
use super::layout::{entries, items, tally_key, token_key, within};
use crate::core::{Attempt, Core, Halt};
use crate::encoding::{Put, Take};
use crate::journal::Urgency;
use crate::rows::write::Then;
use crate::rows::{Accepting, Change as RowChange, Glimpse};

#[cfg(test)]
mod tests;

/// What a write takes beside the items that it touches.
const SMALL_BYTES: usize = 1 << 10;

/// What a call writes: one item, or several as one.
struct Call {
    parts: Vec<(Arc<Table>, Write)>,
    transaction: bool,
    token: Option<(Bytes, u128)>,
}

/// What the parts of a call got in return, or why nothing was written.
type Answer = Result<Vec<Option<Item>>>;

/// The item that a part of a call is about.
struct Subject {
    key: Key,
    place: Vec<u8>,
    row: Bytes,
}

/// What is known of a part of a call before its tables are held.
struct Prepared {
    /// The item, and how the table was made that says so; none where it refuses the part.
    subject: Option<(Arc<Shape>, Subject)>,
    /// The item's row as it was, where anybody had to look and it is small.
    seen: Option<Glimpse>,
}

impl Core {
    /// Writes an item. See [`TableStore::write`](anabranch_model::table::TableStore::write).
    pub async fn write_item(&self, name: &TableName, write: Write) -> Result<Option<Item>> {
        if let Action::Check(_) = write.action {
            return Err(Error::Invalid("a check is part of a transaction only".to_string()));
        }
        let parts = vec![(self.tables.table(name)?, write)];
        let returned = self.write_call(Call { parts, transaction: false, token: None }).await?;
        Ok(returned.into_iter().next().flatten())
    }

    /// Writes items each on its own. Returns those for which there was no room.
    pub async fn batch_write(&self, writes: Vec<(TableName, Action)>) -> Result<Vec<(TableName, Action)>> {
        check_parts("a batch of writes", writes.len(), limits::BATCH_WRITE_ITEMS_MAX)?;
        if !writes.iter().all(|(_, action)| matches!(action, Action::Put(_) | Action::Delete(_))) {
            return Err(Error::Invalid("a batch of writes has puts and deletes only".to_string()));
        }
        let mut parts = Vec::with_capacity(writes.len());
        for (name, action) in &writes {
            parts.push((self.tables.table(name)?, Write::from(action.clone())));
        }
        check_distinct(&parts)?;
        let calls = parts
            .into_iter()
            .map(|part| self.write_call(Call { parts: vec![part], transaction: false, token: None }));
        let outcomes = join_all(calls).await;
        let mut left = Vec::new();
        for (write, outcome) in writes.into_iter().zip(outcomes) {
            match outcome {
                Ok(_) => {}
                Err(Error::Busy { .. } | Error::DiskFull) => left.push(write),
                Err(error) => return Err(error),
            }
        }
        Ok(left)
    }

    /// Writes all or nothing.
    pub async fn transact_write(&self, writes: Vec<(TableName, Write)>, token: Option<Token>) -> Result<()> {
        check_parts("a transaction", writes.len(), limits::TRANSACTION_ITEMS_MAX)?;
        let print = || fingerprint(writes.iter().map(|(table, write)| (table, write)));
        let token = token.map(|token| (token_key(&token), print()));
        let mut parts = Vec::with_capacity(writes.len());
        for (name, write) in writes {
            parts.push((self.tables.table(&name)?, write));
        }
        check_distinct(&parts)?;
        check_transaction_bytes(parts.iter().map(|(_, write)| write))?;
        self.write_call(Call { parts, transaction: true, token }).await.map(drop)
    }

    async fn write_call(&self, call: Call) -> Answer {
        let frees = call.parts.iter().all(|(_, write)| matches!(write.action, Action::Delete(_)));
        let (mut prepared, mut bytes) = (Vec::with_capacity(call.parts.len()), 0);
        for (table, write) in &call.parts {
            let (part, weight) = self.prepare_part(table, write)?;
            prepared.push(part);
            bytes += weight;
        }
        let mut permit = Some(match frees {
            true => self.budget.write(bytes).await,
            false => self.admit_rows(bytes).await?,
        });
        let urgency = if frees { Urgency::Upkeep } else { Urgency::Normal };
        self.submit(|| self.attempt_write(&call, &mut prepared, urgency, &mut permit)).await?
    }

    /// Finds out which item a part is about, and about how much memory the write takes until it is stored.
    fn prepare_part(&self, table: &Table, write: &Write) -> Result<(Prepared, usize)> {
        let shape = table.shape();
        let (mut prepared, mut before) = (Prepared { subject: None, seen: None }, 0);
        // What does not fit is refused later, with everything else.
        if let Ok(key) = write.check(&shape.options) {
            let subject = Subject::of(table, key);
            if rests_on_old(&shape, write) {
                let seen = self.rows.glimpse(&subject.row)?;
                before = seen.row().map_or(0, Bytes::len);
                // No budget counts it while the write waits for room, so what is large is looked for again.
                prepared.seen = (before <= SMALL_BYTES).then_some(seen);
            }
            prepared.subject = Some((shape.clone(), subject));
        }
        Ok((prepared, written_bytes(&shape, write, before)))
    }

    fn attempt_write(
        &self,
        call: &Call,
        prepared: &mut [Prepared],
        urgency: Urgency,
        permit: &mut Option<OwnedSemaphorePermit>,
    ) -> Attempt<Answer> {
        let held = Held::of(call.parts.iter().map(|(table, _)| table))?;
        let mut subjects = Vec::with_capacity(prepared.len());
        for ((table, write), part) in call.parts.iter().zip(prepared) {
            subjects.push(part.subject(table, write, held.shape(table))?);
        }
        let token = call.token.as_ref().map(|(key, _)| key.clone());
        let rows = subjects.iter().map(|(subject, _)| subject.row.clone()).chain(token).collect();
        let accepting = self.rows.accept(rows);
        let now = self.now_ms();
        let decided =
            known_token(call, &accepting, now)?.unwrap_or_else(|| decide(call, &held, &subjects, &accepting));
        let outcomes = match decided {
            Ok(outcomes) if !outcomes.is_empty() => outcomes,
            Err(error) if !accepting.any_pending() => return Err(error.into()),
            // Whoever is told about something that is not durable yet is told when it is.
            told => {
                let (_, done) = self.write_rows(accepting, Vec::new(), urgency, permit, None)?;
                return Ok((told.map(|_| Vec::new()), done));
            }
        };
        let mut staging = Staging::new(&held, now, false);
        let mut returned = Vec::with_capacity(outcomes.len());
        for (((table, write), (subject, _)), (old, new, answer)) in
            call.parts.iter().zip(&subjects).zip(outcomes)
        {
            if !matches!(write.action, Action::Check(_)) {
                staging.stage(table, subject, old.as_ref(), new.as_ref())?;
            }
            returned.push(answer);
        }
        if let Some((key, fingerprint)) = &call.token {
            let forgotten_at = now + limits::TRANSACTION_TOKEN_LIFE.as_millis() as u64;
            staging.changes.push(RowChange::put(key.clone(), token_row(*fingerprint, forgotten_at)));
        }
        let done = staging.write(self, accepting, urgency, permit)?;
        Ok((Ok(returned), done))
    }

    /// Removes items whose time has come, if it still has. Returns who tells when they are gone.
    pub(super) fn expire_items(
        &self,
        table: &Arc<Table>,
        keys: &[Key],
    ) -> std::result::Result<crate::journal::sequencer::Done, Halt> {
        let held = Held::of(std::iter::once(table))?;
        let subjects: Vec<Subject> = keys.iter().map(|key| Subject::of(table, key.clone())).collect();
        let accepting = self.rows.accept(subjects.iter().map(|subject| subject.row.clone()).collect());
        let now = self.now_ms();
        let mut staging = Staging::new(&held, now, true);
        for subject in &subjects {
            let old = accepting.get(&subject.row)?.map(|row| item(&row)).transpose()?;
            let due = |old: &Item| held.shape(table).options.has_expired(old, Timestamp::from_millis(now));
            if old.as_ref().is_some_and(due) {
                staging.stage(table, subject, old.as_ref(), None)?;
            }
        }
        staging.write(self, accepting, Urgency::Upkeep, &mut None)
    }
}

/// Tables that nobody changes or deletes meanwhile, by their numbers: everybody asks for them in this order.
struct Held<'a>(Vec<(&'a Arc<Table>, RwLockReadGuard<'a, Accepted>)>);

impl<'a> Held<'a> {
    fn of(tables: impl Iterator<Item = &'a Arc<Table>>) -> Result<Held<'a>> {
        let mut tables: Vec<&Arc<Table>> = tables.collect();
        tables.sort_unstable_by_key(|table| table.number);
        tables.dedup_by_key(|table| table.number);
        let held = tables.into_iter().map(|table| {
            let accepted = table.accepted.read();
            if accepted.deleted {
                return Err(Error::TableNotFound(table.name.clone()));
            }
            Ok((table, accepted))
        });
        held.collect::<Result<_>>().map(Held)
    }

    /// Where a table stands among those that are held.
    fn place(&self, table: &Table) -> usize {
        let found = self.0.binary_search_by_key(&table.number, |(table, _)| table.number);
        found.expect("every table of the call is held")
    }

    fn shape(&self, table: &Table) -> &Arc<Shape> {
        &self.0[self.place(table)].1.shape
    }
}

impl Prepared {
    /// The item of a part of a table that is made like this, with its row as it was. It is looked for again only where the
    /// table has changed since.
    fn subject(
        &mut self,
        table: &Table,
        write: &Write,
        shape: &Arc<Shape>,
    ) -> Result<(&Subject, Option<&Glimpse>)> {
        if !self.subject.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, shape)) {
            let subject = Subject::of(table, write.check(&shape.options)?);
            self.subject = Some((shape.clone(), subject));
        }
        let (_, subject) = self.subject.as_ref().expect("it is known by now");
        Ok((subject, self.seen.as_ref()))
    }
}

impl Subject {
    fn of(table: &Table, key: Key) -> Subject {
        let place = key.bytes();
        Subject { row: within(items(table.number), &place), place, key }
    }
}

/// The old item, the new one, and what the writer gets.
type Decided = (Option<Item>, Option<Item>, Option<Item>);

/// What becomes of the items, if every part can be done.
fn decide(
    call: &Call,
    held: &Held<'_>,
    subjects: &[(&Subject, Option<&Glimpse>)],
    accepting: &Accepting<'_>,
) -> Result<Vec<Decided>> {
    let mut decided = Vec::with_capacity(subjects.len());
    for ((table, write), (subject, seen)) in call.parts.iter().zip(subjects) {
        let old = accepting.get_since(&subject.row, *seen)?.map(|row| item(&row)).transpose()?;
        let outcome = write.apply(&held.shape(table).options, old.as_ref());
        decided.push(outcome.map(|outcome| (old, outcome.new, outcome.returned)));
    }
    if call.transaction && decided.iter().any(|part| part.is_err()) {
        let reasons = decided.into_iter().map(|part| part.err().map(cancelled)).collect();
        return Err(Error::TransactionCancelled { reasons });
    }
    decided.into_iter().collect()
}

fn cancelled(error: Error) -> Cancelled {
    match error {
        Error::ConditionFailed { item } => Cancelled::ConditionFailed { item },
        other => Cancelled::Invalid(other.to_string()),
    }
}

/// What is said to a transaction whose token is known: nothing is done again.
fn known_token(call: &Call, accepting: &Accepting<'_>, now: u64) -> Result<Option<Result<Vec<Decided>>>> {
    let Some((key, fingerprint)) = &call.token else { return Ok(None) };
    let Some(row) = accepting.get(key)? else { return Ok(None) };
    let mut take = Take(&row);
    let (Ok(known), Ok(forgotten_at)) = (take.u128(), take.u64()) else {
        return Err(super::catalogue::damaged("token"));
    };
    Ok(match (now < forgotten_at, known == *fingerprint) {
        (false, _) => None,
        (true, true) => Some(Ok(Vec::new())),
        (true, false) => Some(Err(Error::TokenReused)),
    })
}

fn token_row(fingerprint: u128, forgotten_at: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(24);
    bytes.put_u128(fingerprint);
    bytes.put_u64(forgotten_at);
    bytes
}

/// When the row of a token may go, in milliseconds.
pub(super) fn token_forgotten_at(row: &[u8]) -> Option<u64> {
    let mut take = Take(row);
    take.u128().ok()?;
    take.u64().ok()
}

/// A frame in the making. The counts of its tables are held until it has its place, so that they, and the arrivals of
/// changes, are in the order of the journal.
struct Staging<'a, 'h> {
    held: &'h Held<'a>,
    /// In the order of the tables: what they hold, and what they are going to hold.
    tallies: Vec<(MutexGuard<'a, Tally>, Tally)>,
    changes: Vec<RowChange>,
    /// Changes to items so far: the number of the next one in this frame.
    events: u16,
    now: u64,
    expired: bool,
}

impl<'a, 'h> Staging<'a, 'h> {
    fn new(held: &'h Held<'a>, now: u64, expired: bool) -> Staging<'a, 'h> {
        let tallies = held.0.iter().map(|(table, _)| {
            let tally = table.tally.lock();
            let counted = tally.clone();
            (tally, counted)
        });
        Staging { held, tallies: tallies.collect(), changes: Vec::new(), events: 0, now, expired }
    }

    /// Adds everything that follows when an item is replaced by another, or by none.
    fn stage(
        &mut self,
        table: &Table,
        subject: &Subject,
        old: Option<&Item>,
        new: Option<&Item>,
    ) -> Result<()> {
        let place = self.held.place(table);
        let shape = &self.held.0[place].1.shape;
        let (_, tally) = &mut self.tallies[place];
        tally.table.replace(old, new);
        match new {
            Some(new) => self.changes.push(RowChange::put(subject.row.clone(), item_row(new))),
            None if old.is_some() => self.changes.push(RowChange::remove(subject.row.clone())),
            None => {}
        }
        for (at, (index, row)) in shape.options.indexes.iter().zip(&shape.indexes).enumerate() {
            if row.filled_to.as_ref().is_some_and(|filled_to| subject.place[..] > filled_to[..]) {
                continue;
            }
            let shown = |item: Option<&Item>| item.and_then(|item| shape.options.shown(index, item));
            let (old, new) = (shown(old), shown(new));
            tally.indexes[at].replace(old.as_ref(), new.as_ref());
            if old == new {
                continue;
            }
            let place = |item: &Item| shape.options.place(Some(index), item);
            let (left, taken) = (old.as_ref().map(place).transpose()?, new.as_ref().map(place).transpose()?);
            if let Some(left) = left.filter(|left| Some(left) != taken.as_ref()) {
                self.changes.push(RowChange::remove(within(entries(row.number), &left)));
            }
            if let (Some(taken), Some(new)) = (taken, &new) {
                self.changes.push(RowChange::put(within(entries(row.number), &taken), item_row(new)));
            }
        }
        if let (Some(log), Some(view)) = (&shape.log, shape.options.changes) {
            let (keys, at) = (shape.options.key.item(&subject.key), Timestamp::from_millis(self.now));
            if let Some(change) = Change::between(keys, old, new, view, at, self.expired) {
                self.changes.push(log.record(&subject.key, &change, self.now, self.events));
                self.events += 1;
            }
        }
        Ok(())
    }

    /// Gives the frame its place.
    fn write(
        self,
        core: &Core,
        accepting: Accepting<'_>,
        urgency: Urgency,
        permit: &mut Option<OwnedSemaphorePermit>,
    ) -> std::result::Result<crate::journal::sequencer::Done, Halt> {
        let Staging { held, mut tallies, mut changes, events, .. } = self;
        let mut shown = Vec::with_capacity(tallies.len());
        for ((table, _), (before, counted)) in held.0.iter().zip(&tallies) {
            let grown = **before != *counted;
            if grown {
                changes.push(RowChange::put(tally_key(table.number), counted.encode()));
            }
            // Otherwise readers see it, or will when the frames before this one are durable.
            if grown || events > 0 {
                shown.push(((*table).clone(), counted.clone()));
            }
        }
        let then: Option<Then> = (!shown.is_empty()).then(|| {
            Box::new(move |_| {
                for (table, tally) in shown {
                    let mut view = table.visible.write();
                    view.tally = tally;
                    if let Some(log) = view.shape.log.as_ref().filter(|_| events > 0) {
                        log.grown();
                    }
                }
            }) as Then
        });
        let (_, done) = core.write_rows(accepting, changes, urgency, permit, then)?;
        for (before, counted) in &mut tallies {
            **before = std::mem::take(counted);
        }
        Ok(done)
    }
}

fn check_distinct(parts: &[(Arc<Table>, Write)]) -> Result<()> {
    let mut seen = HashSet::new();
    for (table, write) in parts {
        let key = write.check(&table.shape().options)?;
        if !seen.insert((table.number, key)) {
            return Err(Error::Invalid("two parts of a call are about one item".to_string()));
        }
    }
    Ok(())
}

/// About how much a write brings into memory: the item, its entries in indexes, and its images in the stream of changes.
/// `before` is about how large the item is, where that matters.
fn written_bytes(shape: &Shape, write: &Write, before: usize) -> usize {
    let after = match &write.action {
        Action::Put(item) => item.size(),
        Action::Update(..) => before + write.size(),
        Action::Delete(_) | Action::Check(_) => 0,
    };
    let shown = |index: &IndexOptions| match index.projection {
        IndexProjection::Keys => after.min(SMALL_BYTES),
        IndexProjection::All | IndexProjection::Include(_) => after,
    };
    let entries: usize = shape.options.indexes.iter().map(shown).sum();
    let images = match shape.options.changes {
        None | Some(ChangeView::Keys) => 0,
        Some(ChangeView::New) => after,
        Some(ChangeView::Old) => before,
        Some(ChangeView::Both) => before + after,
    };
    SMALL_BYTES + after + entries + images
}

/// Whether it matters how large an item was: an update writes it again, and a change may show it.
fn rests_on_old(shape: &Shape, write: &Write) -> bool {
    match write.action {
        Action::Check(_) => false,
        Action::Update(..) => true,
        Action::Put(_) | Action::Delete(_) => {
            matches!(shape.options.changes, Some(ChangeView::Old | ChangeView::Both))
        }
    }
}
