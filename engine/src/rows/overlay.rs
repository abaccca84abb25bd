//! Rows that no checkpoint has stored yet. A clone shares everything and never changes.

use bytes::Bytes;
use rpds::RedBlackTreeMapSync;

/// What a row costs beyond its key and value.
const ROW_BYTES: usize = 128;

/// Rows in order, with those that are gone.
#[derive(Clone)]
pub struct Overlay {
    rows: RedBlackTreeMapSync<Bytes, Row>,
    bytes: usize,
}

/// A changed row.
#[derive(Clone)]
pub struct Row {
    /// What it is; `None` if it is gone.
    pub value: Option<Bytes>,
    /// Where its value stands in the journal.
    pub position: u64,
    fresh: bool,
}

impl Default for Overlay {
    fn default() -> Self {
        Overlay { rows: RedBlackTreeMapSync::new_sync(), bytes: 0 }
    }
}

impl Overlay {
    /// Changes a row to a value that stands at this position of the journal. A fresh one that goes before it was stored
    /// leaves nothing behind.
    pub fn set(&mut self, key: Bytes, value: Option<Bytes>, position: u64, fresh: bool) {
        let Some(row) = self.rows.get_mut(&key) else {
            if value.is_some() || !fresh {
                self.bytes += cost(&key, &value);
                self.rows.insert_mut(key, Row { value, position, fresh });
            }
            return;
        };
        let fresh = fresh || row.fresh;
        self.bytes -= cost(&key, &row.value);
        if value.is_none() && fresh {
            self.rows.remove_mut(&key);
            return;
        }
        self.bytes += cost(&key, &value);
        *row = Row { value, position, fresh };
    }

    /// Changes rows to what a younger overlay says.
    pub fn lay_above(&mut self, younger: Overlay) {
        if self.is_empty() {
            *self = younger;
            return;
        }
        // What lies below may be stored already, so nothing counts as fresh any more.
        for (key, row) in younger.rows.iter() {
            self.bytes -= self.rows.get(key).map_or(0, |old| cost(key, &old.value));
            self.bytes += cost(key, &row.value);
            self.rows.insert_mut(key.clone(), Row { fresh: false, ..row.clone() });
        }
    }

    /// What is known of a row: nothing, that it is gone, or its value.
    pub fn get(&self, key: &[u8]) -> Option<Option<Bytes>> {
        self.rows.get(key).map(|row| row.value.clone())
    }

    /// Rows between two bounds, from both ends.
    pub fn range<'a>(
        &'a self,
        bounds: super::snapshot::Bounds<'a>,
    ) -> impl DoubleEndedIterator<Item = (&'a Bytes, &'a Option<Bytes>)> {
        self.rows.range::<[u8], _>(bounds).map(|(key, row)| (key, &row.value))
    }

    /// All rows in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Bytes, &Row)> {
        self.rows.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Memory that the rows take, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

fn cost(key: &[u8], value: &Option<Bytes>) -> usize {
    ROW_BYTES + key.len() + value.as_ref().map_or(0, Bytes::len)
}
