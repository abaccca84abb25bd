//! Accepting a write: rows are held, looked at as they were accepted last, and changed in one frame.

use anabranch_model::Result;
use bytes::Bytes;
use parking_lot::MutexGuard;

use super::stripes::{Pending, Stripe};
use super::{Change, Glimpse, Key, NEXT_NUMBER, Rows};

/// Rows that nobody else can change until the write has its place in the journal.
pub struct Accepting<'a> {
    rows: &'a Rows,
    keys: Vec<Bytes>,
    held: Vec<(usize, MutexGuard<'a, Stripe>)>,
}

impl Rows {
    /// Holds rows. Only changes of these rows are seen by conditions before they are visible.
    pub fn accept(&self, keys: Vec<Bytes>) -> Accepting<'_> {
        let mut stripes: Vec<usize> = keys.iter().map(|key| self.pending.of(key)).collect();
        stripes.sort_unstable();
        stripes.dedup();
        let held = stripes.into_iter().map(|stripe| (stripe, self.pending.hold(stripe))).collect();
        Accepting { rows: self, keys, held }
    }

    /// Forgets accepted rows that a frame has made visible.
    pub fn settle(&self, position: u64, keys: &[Bytes]) {
        self.pending.settle(position, keys);
    }
}

/// The key of the row that counts owners.
pub fn next_number_key() -> Bytes {
    Bytes::from_static(NEXT_NUMBER)
}

impl Accepting<'_> {
    /// A held row as it was accepted last, durable or not.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.get_since(key, None)
    }

    /// The same of a row that was looked at before it was held.
    pub fn get_since(&self, key: &[u8], seen: Option<&Glimpse>) -> Result<Option<Bytes>> {
        debug_assert!(self.keys.iter().any(|held| held == key), "a row is held before it is looked at");
        let stripe = self.rows.pending.of(key);
        let held = self.held.iter().find(|(number, _)| *number == stripe);
        match held.and_then(|(_, rows)| rows.get(key)) {
            Some(pending) => Ok(pending.value.clone()),
            None => seen.map_or_else(|| self.rows.get(key), |seen| self.rows.get_since(key, seen)),
        }
    }

    /// Whether one of the held rows was accepted and is not durable yet.
    pub fn any_pending(&self) -> bool {
        self.keys.iter().any(|key| {
            let stripe = self.rows.pending.of(key);
            self.held.iter().any(|(number, rows)| *number == stripe && rows.contains_key(key))
        })
    }

    /// The first of so many numbers for new owners of rows, and the change that keeps them from being given again. The
    /// row of [`next_number_key`] is held.
    pub fn next_numbers(&self, count: u64) -> Result<(u64, Change)> {
        let row = self.get(NEXT_NUMBER)?;
        let number = row.and_then(|row| Some(u64::from_le_bytes(row.as_ref().try_into().ok()?))).unwrap_or(1);
        Ok((number, Change::put(NEXT_NUMBER, (number + count).to_le_bytes().to_vec())))
    }

    /// The same for one owner.
    pub fn next_number(&self) -> Result<(u64, Change)> {
        self.next_numbers(1)
    }

    /// Remembers what a frame does to the held rows, and returns which of them it changes.
    pub fn accepted(mut self, position: u64, changes: &[Change]) -> Vec<Bytes> {
        let mut changed = Vec::new();
        for change in changes {
            let Key::Exact(key) = &change.key else { continue };
            if !self.keys.contains(key) {
                continue;
            }
            let stripe = self.rows.pending.of(key);
            if let Some((_, rows)) = self.held.iter_mut().find(|(number, _)| *number == stripe) {
                rows.insert(key.clone(), Pending { position, value: change.value.clone() });
                changed.push(key.clone());
            }
        }
        changed
    }
}
