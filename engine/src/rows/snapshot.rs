//! Reading rows: a snapshot shows one moment, however long it is held.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::ops::{Bound, ControlFlow};

use anabranch_model::Result;
use bytes::Bytes;

use super::overlay::Overlay;
use crate::state::Stored;

/// Between which keys.
pub type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// Is shown a row, and says whether to go on.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>> + 'a;

/// In which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// What is visible.
#[derive(Clone)]
pub struct Visible {
    /// Since the last checkpoint began.
    pub active: Overlay,
    /// What a checkpoint is storing.
    pub frozen: Overlay,
    /// What was stored before it.
    pub stored: Stored,
}

impl Visible {
    /// What is stored, and nothing above it.
    pub fn new(stored: Stored) -> Visible {
        Visible { active: Overlay::default(), frozen: Overlay::default(), stored }
    }

    /// What the rows in memory know of a row.
    pub fn in_memory(&self, key: &[u8]) -> Option<Option<Bytes>> {
        self.active.get(key).or_else(|| self.frozen.get(key))
    }
}

/// The rows of one moment.
#[derive(Clone)]
pub struct Snapshot(Visible);

impl Snapshot {
    pub(super) fn of(visible: &Visible) -> Snapshot {
        Snapshot(visible.clone())
    }

    /// One row.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self.0.in_memory(key) {
            Some(row) => Ok(row),
            None => self.0.stored.get(key),
        }
    }

    /// What is stored of it.
    pub(super) fn into_stored(self) -> Stored {
        self.0.stored
    }

    /// Shows rows in order until `visit` breaks. Of a value that stays in the journal it may be shown the first eight
    /// bytes only.
    pub fn range(
        &self,
        bounds: Bounds<'_>,
        order: Order,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        if is_empty(&bounds) {
            return Ok(());
        }
        let (active, frozen) = (self.0.active.range(bounds), self.0.frozen.range(bounds));
        match order {
            Order::Forward => {
                let mut memory = Merged { upper: active.peekable(), lower: frozen.peekable(), order };
                self.0.stored.range(bounds, order, &mut memory, &mut visit)
            }
            Order::Backward => {
                let mut memory =
                    Merged { upper: active.rev().peekable(), lower: frozen.rev().peekable(), order };
                self.0.stored.range(bounds, order, &mut memory, &mut visit)
            }
        }
    }
}

/// Ranges that hold nothing by their bounds alone; maps refuse some of them with a panic.
fn is_empty(bounds: &Bounds<'_>) -> bool {
    match *bounds {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
            from >= to
        }
    }
}

impl Order {
    /// Which of two keys comes first.
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Order::Forward => a.cmp(b),
            Order::Backward => b.cmp(a),
        }
    }
}

/// Two ordered sources; where both have a key, the upper one wins.
struct Merged<'a, U, L>
where
    U: Iterator<Item = (&'a Bytes, &'a Option<Bytes>)>,
    L: Iterator<Item = (&'a Bytes, &'a Option<Bytes>)>,
{
    upper: Peekable<U>,
    lower: Peekable<L>,
    order: Order,
}

impl<'a, U, L> Iterator for Merged<'a, U, L>
where
    U: Iterator<Item = (&'a Bytes, &'a Option<Bytes>)>,
    L: Iterator<Item = (&'a Bytes, &'a Option<Bytes>)>,
{
    type Item = (&'a Bytes, &'a Option<Bytes>);

    fn next(&mut self) -> Option<Self::Item> {
        let (Some((upper, _)), Some((lower, _))) = (self.upper.peek(), self.lower.peek()) else {
            return self.upper.next().or_else(|| self.lower.next());
        };
        match self.order.compare(upper, lower) {
            Ordering::Less => self.upper.next(),
            Ordering::Greater => self.lower.next(),
            Ordering::Equal => {
                self.lower.next();
                self.upper.next()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_hold_nothing_are_known() {
        let key = |byte: u8| [byte];
        let (one, two) = (key(1), key(2));
        for (from, to, empty) in [
            (Bound::Included(&one[..]), Bound::Included(&one[..]), false),
            (Bound::Included(&one[..]), Bound::Excluded(&one[..]), true),
            (Bound::Excluded(&one[..]), Bound::Excluded(&one[..]), true),
            (Bound::Excluded(&one[..]), Bound::Included(&one[..]), true),
            (Bound::Included(&two[..]), Bound::Included(&one[..]), true),
            (Bound::Included(&one[..]), Bound::Excluded(&two[..]), false),
            (Bound::Unbounded, Bound::Excluded(&one[..]), false),
        ] {
            assert_eq!(is_empty(&(from, to)), empty, "{from:?} {to:?}");
        }
    }
}
