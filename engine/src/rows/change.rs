//! What one frame does to rows, and how the journal stores it.
//!
//! ```text
//!  changes u32, then for each:
//!  tag u8 │ key length u32 │ key │ [ index u16, where the key is completed ] │ [ value length u32 │ value ]
//! ```
//!
//! A change says what the row is afterwards, never what to compute: replaying it needs no clock and no condition.

use bytes::Bytes;

use crate::encoding::{Malformed, Put, Take};
use crate::journal::{Draft, Kind, Label};

/// A changed row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which row.
    pub key: Key,
    /// What it is afterwards; `None` if it is gone.
    pub value: Option<Bytes>,
    /// No row was ever stored under this key. If the row is removed before a checkpoint, nothing is left to store.
    pub fresh: bool,
}

/// The key of a changed row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// As it is.
    Exact(Bytes),
    /// Completed by the position of the frame and an index, both big-endian: unique, and in the order of the journal.
    Placed(Bytes, u16),
}

impl Key {
    /// The key in a frame at this position.
    pub fn at(self, position: u64) -> Bytes {
        match self {
            Key::Exact(key) => key,
            Key::Placed(prefix, index) => place(&prefix, position, index).into(),
        }
    }

    /// Completes the key in a frame at this position.
    pub fn complete(&mut self, position: u64) {
        if let Key::Placed(prefix, index) = self {
            *self = Key::Exact(place(prefix, position, *index).into());
        }
    }

    /// A key that is complete; otherwise what it begins with.
    pub fn exact(&self) -> &Bytes {
        match self {
            Key::Exact(key) | Key::Placed(key, _) => key,
        }
    }
}

/// A key that a frame at `position` completes.
pub fn place(prefix: &[u8], position: u64, index: u16) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + 10);
    key.extend_from_slice(prefix);
    key.extend_from_slice(&position.to_be_bytes());
    key.extend_from_slice(&index.to_be_bytes());
    key
}

const PUT: u8 = 1;
const PUT_FRESH: u8 = 2;
const REMOVE: u8 = 3;
const PUT_PLACED: u8 = 4;

impl Change {
    /// A row gets this value.
    pub fn put(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Change {
        Change { key: Key::Exact(key.into()), value: Some(value.into()), fresh: false }
    }

    /// A row gets this value, under a key that was never used.
    pub fn put_fresh(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Change {
        Change { fresh: true, ..Change::put(key, value) }
    }

    /// A row gets this value, under a key that the frame's position completes.
    pub fn put_placed(prefix: impl Into<Bytes>, index: u16, value: impl Into<Bytes>) -> Change {
        Change { key: Key::Placed(prefix.into(), index), value: Some(value.into()), fresh: true }
    }

    /// A row is removed.
    pub fn remove(key: impl Into<Bytes>) -> Change {
        Change { key: Key::Exact(key.into()), value: None, fresh: false }
    }

    /// Bytes of this change in a frame.
    fn bytes(&self) -> usize {
        let key = match &self.key {
            Key::Exact(key) => key.len(),
            Key::Placed(prefix, _) => prefix.len() + 2,
        };
        1 + 4 + key + self.value.as_ref().map_or(0, |value| 4 + value.len())
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        let (tag, key) = match (&self.key, &self.value) {
            (Key::Exact(key), Some(_)) => (if self.fresh { PUT_FRESH } else { PUT }, key),
            (Key::Placed(prefix, _), _) => (PUT_PLACED, prefix),
            (Key::Exact(key), None) => (REMOVE, key),
        };
        bytes.put_u8(tag);
        bytes.put_u32(key.len() as u32);
        bytes.put(key);
        if let Key::Placed(_, index) = &self.key {
            bytes.put(&index.to_le_bytes());
        }
        if let Some(value) = &self.value {
            bytes.put_u32(value.len() as u32);
            bytes.put(value);
        }
    }

    fn decode(take: &mut Take<'_>) -> Result<Change, Malformed> {
        let tag = take.u8()?;
        let key = take_bytes(take)?;
        Ok(match tag {
            PUT => Change::put(key, take_bytes(take)?),
            PUT_FRESH => Change::put_fresh(key, take_bytes(take)?),
            REMOVE => Change::remove(key),
            PUT_PLACED => {
                let index = u16::from_le_bytes(take.bytes(2)?.try_into().map_err(|_| Malformed)?);
                Change::put_placed(key, index, take_bytes(take)?)
            }
            _ => return Err(Malformed),
        })
    }
}

fn take_bytes(take: &mut Take<'_>) -> Result<Bytes, Malformed> {
    let length = take.u32()? as usize;
    Ok(Bytes::copy_from_slice(take.bytes(length)?))
}

/// Bytes of the payload of a frame with these changes.
pub fn payload_bytes(changes: &[Change]) -> usize {
    4 + changes.iter().map(Change::bytes).sum::<usize>()
}

/// A frame with these changes.
pub fn draft(changes: &[Change]) -> Draft {
    Draft::new(Label::bare(Kind::Rows), payload_bytes(changes), |bytes| {
        bytes.put_u32(changes.len() as u32);
        changes.iter().for_each(|change| change.encode(bytes));
    })
}

/// The changes in the payload of a frame.
pub fn decode(payload: &[u8]) -> Result<Vec<Change>, Malformed> {
    let mut take = Take(payload);
    let changes = (0..take.u32()?).map(|_| Change::decode(&mut take)).collect::<Result<_, _>>()?;
    take.end().map(|()| changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::frame::{Header, payload_range};
    use proptest::prelude::*;

    fn change() -> impl Strategy<Value = Change> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            (bytes(), bytes()).prop_map(|(key, value)| Change::put(key, value)),
            (bytes(), bytes()).prop_map(|(key, value)| Change::put_fresh(key, value)),
            (bytes(), any::<u16>(), bytes())
                .prop_map(|(key, index, value)| Change::put_placed(key, index, value)),
            bytes().prop_map(Change::remove),
        ]
    }

    proptest! {
        #[test]
        fn changes_round_trip_and_nothing_may_follow(changes in proptest::collection::vec(change(), 0..20)) {
            let bytes = draft(&changes).seal(1, 4096, 0, 0);
            let header = Header::decode(&bytes, 4096).expect("a frame");
            let payload = &bytes[payload_range(header.payload_bytes)];
            prop_assert_eq!(payload.len(), payload_bytes(&changes));
            prop_assert_eq!(decode(payload), Ok(changes));
            prop_assert_eq!(decode(&[payload, &[0]].concat()), Err(Malformed));
        }
    }

    #[test]
    fn placed_keys_sort_as_the_journal() {
        let keys = [(1, 0), (1, 1), (1, 256), (2, 0), (256, 0), (1 << 40, 7)];
        let keys = keys.map(|(position, index)| Key::Placed(Bytes::from_static(b"p"), index).at(position));
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
