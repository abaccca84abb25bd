//! The next messages of a queue in memory, so that a receive looks at no stored row.
//!
//! What must hold: every row `waiting` that was accepted and lies before the end of the window is in it, and no other.
//! What lies behind the end is found when the window is filled again; a queue that nobody uses has an empty one.
//!
//! Most messages are visible when they are sent, and then their bodies lie in the order in which they are to be
//! received. Such a message is *unlisted*: it gets a row `waiting` with its first receive and not before, and stands in
//! the window with the key that this row would have, without a value.

use std::collections::BTreeMap;

use anabranch_model::Result;
use bytes::Bytes;

use super::frame::Frame;
use super::held::Accepted;
use super::keys::{self, Place};
use super::stored::{HEAD_BYTES, Head, corrupt};
use crate::rows::Change;

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
    fn add(&mut self, key: Bytes, value: Bytes) {
        if key >= self.end {
            return;
        }
        self.rows.insert(key, value);
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

impl Accepted {
    /// A row of the queue is accepted.
    pub fn notice(&mut self, change: &Change) {
        let key = change.key.exact();
        match key.get(9..11) {
            Some(b"qw") => match &change.value {
                Some(row) => self.window.add(key.clone(), row.clone()),
                None => drop(self.window.rows.remove(key)),
            },
            Some(b"qb") => self.notice_body(key, change),
            // The first change of a message lists it.
            Some(b"qs") if change.fresh && !self.options.fifo => {
                let Some(place) = keys::place_of(key) else { return };
                self.received_to = self.received_to.max(place);
                self.window.rows.remove(&keys::unlisted(self.number, &place)[..]);
            }
            _ => {}
        }
    }

    fn notice_body(&mut self, key: &Bytes, change: &Change) {
        let Some(place) = keys::place_of(key) else { return };
        let Some(row) = &change.value else {
            self.window.rows.remove(&keys::unlisted(self.number, &place)[..]);
            return;
        };
        self.oldest = self.oldest.min(place);
        // One that the cleaner writes again is not fresh.
        if change.fresh && Head::decode(row).is_ok_and(|head| !head.listed) {
            self.unlisted_from = self.unlisted_from.min(place);
            self.window.add(Bytes::copy_from_slice(&keys::unlisted(self.number, &place)), Bytes::new());
        }
    }
}

/// Messages without a row `waiting` in the order of their places.
pub struct Unlisted {
    /// Those that nobody has received.
    pub places: Vec<Place>,
    /// Up to which place they were looked for, unless there is nothing behind.
    pub to: Option<Place>,
}

/// Looks for messages without a row `waiting` among `limit` messages from a place on. Nothing behind `received_to` was
/// received. `scan` shows rows of the queue from one key to another with at most so many bytes of each value.
pub fn unlisted(
    number: u64,
    from: Place,
    received_to: Place,
    limit: usize,
    scan: impl Fn(&Bytes, &Bytes, usize) -> Result<Vec<(Bytes, Bytes)>>,
) -> Result<Unlisted> {
    let (from, end) = keys::bodies(number, &from);
    let rows = scan(&from, &end, limit)?;
    let (mut places, mut to) = (Vec::with_capacity(rows.len()), None);
    for (key, row) in &rows {
        let place = keys::place_of(key).ok_or_else(|| corrupt("a message"))?;
        if !Head::decode(row)?.listed {
            places.push(place);
        }
        to = Some(place);
    }
    if let Some(first) = places.first().copied().filter(|first| *first <= received_to) {
        let last = places[places.len() - 1].min(received_to);
        let (from, end) = (keys::state(number, &first), keys::next(&keys::state(number, &last)));
        // A state has a body, so there are no more of them than bodies.
        let states = scan(&from, &end, limit)?;
        let received: Vec<Place> = states.iter().filter_map(|(key, _)| keys::place_of(key)).collect();
        places.retain(|place| received.binary_search(place).is_err());
    }
    Ok(Unlisted { places, to: to.filter(|_| rows.len() == limit) })
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
            let listed = self.scan(&from, &last, FILLED)?;
            let unlisted = self.unlisted(&from)?;
            let listed_to = listed.last().filter(|_| listed.len() == FILLED).map(|(key, _)| keys::next(key));
            let unlisted_to = unlisted.to.map(|place| keys::next(&keys::unlisted(self.held.number, &place)));
            let to = listed_to.into_iter().chain(unlisted_to).min().unwrap_or(last);
            let number = self.held.number;
            let unlisted = unlisted.places.iter().map(|place| keys::unlisted(number, place));
            let unlisted = unlisted.map(|key| (Bytes::copy_from_slice(&key), Bytes::new()));
            let found = listed.into_iter().chain(unlisted).filter(|(key, _)| (&from..&to).contains(&key));
            let window = &mut self.held.window;
            window.rows.extend(found);
            window.end = to;
        }
    }

    /// Messages without a row `waiting` that would stand at this key or behind it.
    fn unlisted(&self, from: &Bytes) -> Result<Unlisted> {
        let Accepted { number, unlisted_from, received_to, .. } = *self.held;
        if self.fifo() {
            return Ok(Unlisted { places: Vec::new(), to: None });
        }
        let from = keys::unlisted_place(from).max(unlisted_from);
        unlisted(number, from, received_to, FILLED, |from, end, limit| {
            self.scan_cut(from, end, limit, HEAD_BYTES)
        })
    }
}
