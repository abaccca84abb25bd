//! The next messages of a queue in memory, so that a receive looks at no stored row.
//!
//! What must hold: every row `waiting` that was accepted and lies before the end of the window is in it, and no other.
//! What lies behind the end is found when the window is filled again; a queue that nobody uses has an empty one.

use std::collections::BTreeMap;

use anabranch_model::Result;
use bytes::Bytes;

use super::frame::Frame;
use super::keys;

/// Rows that a window is filled with.
const FILLED: usize = 128;
/// Rows of a window at most.
const ROWS_MAX: usize = 2 * FILLED;

/// The rows `waiting` of a queue up to a key.
pub struct Window {
    rows: BTreeMap<Bytes, Bytes>,
    end: Bytes,
    used: bool,
}

impl Window {
    /// A window that knows nothing of a queue whose messages lie under this number.
    pub fn new(number: u64) -> Window {
        Window { rows: BTreeMap::new(), end: keys::waiting_prefix(number, 0).into(), used: false }
    }

    /// A row `waiting` is accepted.
    pub fn accept(&mut self, key: &Bytes, value: Option<&Bytes>) {
        if *key >= self.end {
            return;
        }
        match value {
            Some(value) => drop(self.rows.insert(key.clone(), value.clone())),
            None => drop(self.rows.remove(key)),
        }
        if self.rows.len() > ROWS_MAX
            && let Some((last, _)) = self.rows.pop_last()
        {
            self.end = last;
        }
    }

    /// Gives its memory back if nobody has looked into it since the last call.
    pub fn rest(&mut self) {
        if !std::mem::take(&mut self.used)
            && let Some((first, _)) = std::mem::take(&mut self.rows).pop_first()
        {
            self.end = first;
        }
    }
}

impl Frame<'_> {
    /// The first rows `waiting` before a key, at most `limit`. They are asked for before the frame changes any.
    pub fn next_waiting(&mut self, end: &Bytes, limit: usize) -> Result<Vec<(Bytes, Bytes)>> {
        debug_assert!(self.is_empty(), "the window does not know what this frame has changed");
        let limit = limit.min(FILLED);
        loop {
            let window = &mut self.held.window;
            window.used = true;
            let rows = window.rows.range::<Bytes, _>(..end).take(limit);
            let rows: Vec<_> = rows.map(|(key, row)| (key.clone(), row.clone())).collect();
            if rows.len() == limit || window.end >= *end {
                return Ok(rows);
            }
            let (from, last) = (window.end.clone(), keys::waiting_end(self.held.number));
            let found = self.scan(&from, &last, FILLED)?;
            let window = &mut self.held.window;
            window.end = match found.last() {
                Some((key, _)) if found.len() == FILLED => keys::next(key),
                _ => last,
            };
            window.rows.extend(found);
        }
    }
}
