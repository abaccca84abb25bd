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
use crate::journal::frame::HEADER_BYTES;
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
    /// One that its frame has completed. The frame itself stores no position.
    Completed(Bytes),
}

/// Bytes that a frame adds to a key when it completes it, of which it stores the index.
const PLACE_BYTES: usize = 8 + INDEX_BYTES;
const INDEX_BYTES: usize = 2;

impl Key {
    /// The key in a frame at this position.
    pub fn at(self, position: u64) -> Bytes {
        match self {
            Key::Exact(key) | Key::Completed(key) => key,
            Key::Placed(prefix, index) => place(&prefix, position, index).into(),
        }
    }

    /// Completes the key in a frame at this position.
    pub fn complete(&mut self, position: u64) {
        if let Key::Placed(prefix, index) = self {
            *self = Key::Completed(place(prefix, position, *index).into());
        }
    }

    /// A key that is complete; otherwise what it begins with.
    pub fn exact(&self) -> &Bytes {
        match self {
            Key::Exact(key) | Key::Placed(key, _) | Key::Completed(key) => key,
        }
    }

    /// What a frame stores of it, the index last where the frame completes it.
    fn parts(&self) -> (&[u8], Option<[u8; INDEX_BYTES]>) {
        match self {
            Key::Exact(key) => (key, None),
            Key::Placed(prefix, index) => (prefix, Some(index.to_le_bytes())),
            Key::Completed(key) => {
                let (rest, index) = key.split_last_chunk().expect("a completed key has an index");
                (&rest[..key.len() - PLACE_BYTES], Some(u16::from_be_bytes(*index).to_le_bytes()))
            }
        }
    }
}

/// A key that a frame at `position` completes.
pub fn place(prefix: &[u8], position: u64, index: u16) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + PLACE_BYTES);
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
        let (key, index) = self.key.parts();
        let key = key.len() + index.map_or(0, |index| index.len());
        1 + 4 + key + self.value.as_ref().map_or(0, |value| 4 + value.len())
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        let (key, index) = self.key.parts();
        let tag = match (&index, &self.value) {
            (Some(_), _) => PUT_PLACED,
            (None, Some(_)) if self.fresh => PUT_FRESH,
            (None, Some(_)) => PUT,
            (None, None) => REMOVE,
        };
        bytes.put_u8(tag);
        bytes.put_u32(key.len() as u32);
        bytes.put(key);
        if let Some(index) = index {
            bytes.put(&index);
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

/// The changes of a frame at this position, each with the position of its value.
pub fn with_places(position: u64, changes: Vec<Change>) -> impl Iterator<Item = (Change, u64)> {
    let mut end = position + (HEADER_BYTES + 4) as u64;
    changes.into_iter().map(move |change| {
        end += change.bytes() as u64;
        let value = change.value.as_ref().map_or(0, Bytes::len);
        (change, end - value as u64)
    })
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
            prop_assert_eq!(decode(payload), Ok(changes.clone()));
            // Whether the frame has completed the keys or not, the values stand where they are said to.
            let mut completed = changes.clone();
            completed.iter_mut().for_each(|change| change.key.complete(4096));
            prop_assert_eq!(&draft(&completed).seal(1, 4096, 0, 0), &bytes);
            for changes in [changes, completed] {
                for (change, place) in with_places(4096, changes) {
                    let Some(value) = change.value else { continue };
                    let start = (place - 4096) as usize;
                    prop_assert_eq!(&bytes[start..start + value.len()], &value[..]);
                }
            }
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
