//! The stored rows: reading them at one moment, and bringing them up to date in a checkpoint.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

use anabranch_model::{Error, Result};
use bytes::Bytes;
use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableError};

use super::reference::Reference;
use super::{Fault, Outcome, ROWS, State, guarded, seal, store_error, unseal};
use crate::journal::Segments;
use crate::rows::snapshot::{Bounds, Visit};
use crate::rows::{DOCUMENT_SPACES, Order, Overlay, Space};

/// Dead rows that one checkpoint removes at most; the rest goes with the following ones.
const SWEPT_ROWS_MAX: usize = 20_000;

/// Rows that a checkpoint stores before it lets other threads go first. Callers wait for those; nobody waits for a
/// checkpoint.
const ROWS_BETWEEN_YIELDS: usize = 32;

/// The table `rows` as one checkpoint left it.
#[derive(Clone)]
pub struct Stored {
    table: Arc<ReadOnlyTable<&'static [u8], &'static [u8]>>,
    /// Which opening of the file it belongs to. Another one knows nothing of this reader and may use its pages again.
    opening: u64,
    openings: Arc<AtomicU64>,
    segments: Arc<Segments>,
}

impl State {
    /// The stored rows as they are now.
    pub fn view(&self) -> Result<Stored> {
        self.with(|database| {
            let opening = self.openings.load(Memory::Acquire);
            let table = Arc::new(database.begin_read()?.open_table(ROWS)?);
            let segments = self.segments.clone();
            Ok(Stored { table, opening, openings: self.openings.clone(), segments })
        })
    }
}

/// Makes the table in a file of a version that had none.
pub(super) fn ensure(database: &Database) -> std::result::Result<(), Fault> {
    if !matches!(database.begin_read()?.open_table(ROWS), Err(TableError::TableDoesNotExist(_))) {
        return Ok(());
    }
    let write = database.begin_write()?;
    write.open_table(ROWS)?;
    Ok(write.commit()?)
}

impl Stored {
    /// Whether the file is still open as it was.
    pub fn is_current(&self) -> bool {
        self.opening == self.openings.load(Memory::Acquire)
    }

    /// Whether there is any row.
    pub fn any(&self) -> Result<bool> {
        self.read(|| Ok(!self.table.is_empty()?))
    }

    /// Whether there is any row that is no document.
    pub fn any_beyond_documents(&self) -> Result<bool> {
        let [dead, documents] = DOCUMENT_SPACES.map(|space| space as u8);
        self.read(|| {
            let between = self.table.range(&[dead + 1][..]..&[documents][..])?.next().is_some();
            Ok(between || self.table.range(&[documents + 1][..]..)?.next().is_some())
        })
    }

    /// Whether another one shows the same checkpoint.
    pub fn is_same(&self, other: &Stored) -> bool {
        Arc::ptr_eq(&self.table, &other.table)
    }

    /// One row. What it refers to in the journal may be gone once a younger checkpoint is stored; that is an error.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self.find(key)? {
            Some(Found::Itself(value)) => Ok(Some(value)),
            Some(Found::Elsewhere(reference)) => reference.follow(key, &self.segments).map(Some),
            None => Ok(None),
        }
    }

    /// Where the value of a row stands, if that is in the journal.
    pub fn reference(&self, key: &[u8]) -> Result<Option<Reference>> {
        match self.find(key)? {
            Some(Found::Elsewhere(reference)) => Ok(Some(reference)),
            _ => Ok(None),
        }
    }

    fn find(&self, key: &[u8]) -> Result<Option<Found>> {
        self.read(|| {
            let Some(sealed) = self.table.get(key)? else { return Ok(None) };
            let row = unseal(ROWS, key, sealed.value())?;
            Ok(Some(match Reference::in_row(key, row) {
                Some(reference) => Found::Elsewhere(reference),
                None => Found::Itself(Bytes::copy_from_slice(row)),
            }))
        })
    }

    /// Shows rows in order until `visit` breaks, with those in `memory` above them. Of a value that stays in the journal
    /// it is shown the first bytes.
    pub fn range<'m>(
        &self,
        bounds: Bounds<'_>,
        order: Order,
        memory: &mut dyn Iterator<Item = (&'m Bytes, &'m Option<Bytes>)>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let mut refused = None;
        let mut show = |key: &[u8], value: &[u8]| match visit(key, value) {
            Ok(flow) => flow,
            Err(error) => {
                refused = Some(error);
                ControlFlow::Break(())
            }
        };
        self.read(|| {
            let mut stored = self.table.range::<&[u8]>(bounds)?;
            let mut below = || match order {
                Order::Forward => stored.next().transpose(),
                Order::Backward => stored.next_back().transpose(),
            };
            let (mut lower, mut upper) = (below()?, memory.next());
            loop {
                let first = match (&upper, &lower) {
                    (None, None) => return Ok(()),
                    (Some(_), None) => Ordering::Less,
                    (None, Some(_)) => Ordering::Greater,
                    (Some((upper, _)), Some((lower, _))) => order.compare(upper, lower.value()),
                };
                let flow = match (first, upper, &lower) {
                    (Ordering::Less | Ordering::Equal, Some((key, Some(value))), _) => show(key, value),
                    (Ordering::Greater, _, Some((key, sealed))) => {
                        let row = unseal(ROWS, key.value(), sealed.value())?;
                        match Reference::in_row(key.value(), row) {
                            Some(reference) => show(key.value(), &reference.head),
                            None => show(key.value(), row),
                        }
                    }
                    // A row that is gone.
                    _ => ControlFlow::Continue(()),
                };
                if flow.is_break() {
                    return Ok(());
                }
                if first != Ordering::Greater {
                    upper = memory.next();
                }
                if first != Ordering::Less {
                    lower = below()?;
                }
            }
        })?;
        refused.map_or(Ok(()), Err)
    }

    fn read<T>(&self, action: impl FnOnce() -> std::result::Result<T, Fault>) -> Result<T> {
        let outcome = guarded(action).map_err(store_error);
        // Whatever was read may belong to somebody else by now.
        if self.is_current() {
            return outcome;
        }
        Err(Error::Unavailable("the state was opened again meanwhile: try again".into()))
    }
}

/// What is stored of a row.
enum Found {
    /// Its value.
    Itself(Bytes),
    /// Where its value stands.
    Elsewhere(Reference),
}

/// Bytes of values that stay in the journal, by segment.
pub(super) struct Tally<'a> {
    /// Size of a segment.
    pub(super) segment_bytes: u64,
    /// Whose counts change.
    pub(super) outcome: &'a mut Outcome,
}

impl Tally<'_> {
    fn keep(&mut self, reference: &Reference) {
        let segment = reference.position / self.segment_bytes;
        *self.outcome.kept.entry(segment).or_default() += u64::from(reference.bytes);
    }

    fn free(&mut self, key: &[u8], sealed: &[u8]) -> std::result::Result<(), Fault> {
        if let Some(reference) = Reference::in_row(key, unseal(ROWS, key, sealed)?) {
            let segment = reference.position / self.segment_bytes;
            for counts in [&mut self.outcome.freed, &mut self.outcome.released] {
                *counts.entry(segment).or_default() += u64::from(reference.bytes);
            }
        }
        Ok(())
    }
}

/// A copy with room for its seal.
fn to_be_sealed(value: &[u8]) -> Vec<u8> {
    let mut copy = Vec::with_capacity(value.len() + size_of::<u32>());
    copy.extend_from_slice(value);
    copy
}

/// Stores rows, and removes dead ones. Returns whether some of these are left.
pub(super) fn apply(
    table: &mut redb::Table<'_, &'static [u8], &'static [u8]>,
    rows: &Overlay,
    tally: &mut Tally<'_>,
) -> std::result::Result<bool, Fault> {
    for (count, (key, row)) in rows.iter().enumerate() {
        if count % ROWS_BETWEEN_YIELDS == 0 {
            std::thread::yield_now();
        }
        let before = match &row.value {
            Some(value) => {
                let reference = Reference::to(key, value, row.position);
                reference.iter().for_each(|reference| tally.keep(reference));
                let value = reference.map_or_else(|| to_be_sealed(value), |reference| reference.encode());
                table.insert(&key[..], &seal(key, value)[..])?
            }
            None => table.remove(&key[..])?,
        };
        if let Some(before) = before {
            tally.free(key, before.value())?;
        }
    }
    sweep(table, tally)
}

fn sweep(
    table: &mut redb::Table<'_, &'static [u8], &'static [u8]>,
    tally: &mut Tally<'_>,
) -> std::result::Result<bool, Fault> {
    let mut left = SWEPT_ROWS_MAX;
    loop {
        let dead = table.range(&[Space::Dead as u8][..]..&[Space::Dead as u8 + 1][..])?.next();
        let Some(dead) = dead.transpose()?.map(|(key, _)| key.value().to_vec()) else { return Ok(false) };
        let prefix = &dead[1..];
        let mut doomed = Vec::new();
        for row in table.range(prefix..)?.take(left) {
            let (key, sealed) = row?;
            if !key.value().starts_with(prefix) {
                break;
            }
            tally.free(key.value(), sealed.value())?;
            doomed.push(key.value().to_vec());
        }
        for key in &doomed {
            table.remove(&key[..])?;
        }
        left -= doomed.len();
        if left == 0 {
            return Ok(true);
        }
        table.remove(&dead[..])?;
    }
}
