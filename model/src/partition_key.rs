//! The key of a record.
//!
//! Most keys are short, and every reader and writer of a record holds one. A short key lies in its owner, because to share it
//! would cost more than to copy it: counting references takes two atomic operations for each record that passes.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};

use bytes::Bytes;

/// The longest key that is copied: a UUID as text fits, and the whole is one word longer than shared bytes are.
const SHORT_BYTES_MAX: usize = 38;

/// UTF-8; records with one key stay in order. To clone it allocates nothing.
#[derive(Clone)]
pub struct PartitionKey(Form);

#[derive(Clone)]
enum Form {
    Short { length: u8, bytes: [u8; SHORT_BYTES_MAX] },
    Long(Bytes),
}

impl PartitionKey {
    /// A key that lies in `whole`, which is kept alive only if the key is long.
    ///
    /// # Panics
    /// If the range is not within `whole`.
    #[inline]
    pub fn part_of(whole: &Bytes, range: Range<usize>) -> Self {
        let key = &whole[range.clone()];
        // As many bytes as there is room for are copied faster than as many as there are; what is behind them is not looked at.
        let form = match whole[range.start..].first_chunk() {
            Some(bytes) if key.len() <= SHORT_BYTES_MAX => {
                Form::Short { length: key.len() as u8, bytes: *bytes }
            }
            _ => Form::short(key).unwrap_or_else(|| Form::Long(whole.slice(range))),
        };
        PartitionKey(form)
    }
}

impl Form {
    fn short(key: &[u8]) -> Option<Form> {
        let mut bytes = [0; SHORT_BYTES_MAX];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        Some(Form::Short { length: key.len() as u8, bytes })
    }
}

impl Default for PartitionKey {
    fn default() -> Self {
        PartitionKey(Form::Short { length: 0, bytes: [0; SHORT_BYTES_MAX] })
    }
}

impl Deref for PartitionKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Form::Short { length, bytes } => &bytes[..usize::from(*length)],
            Form::Long(bytes) => bytes,
        }
    }
}

impl From<Bytes> for PartitionKey {
    fn from(key: Bytes) -> Self {
        PartitionKey(Form::short(&key).unwrap_or(Form::Long(key)))
    }
}

impl From<&[u8]> for PartitionKey {
    fn from(key: &[u8]) -> Self {
        PartitionKey(Form::short(key).unwrap_or_else(|| Form::Long(Bytes::copy_from_slice(key))))
    }
}

impl<const N: usize> From<&[u8; N]> for PartitionKey {
    fn from(key: &[u8; N]) -> Self {
        key[..].into()
    }
}

impl From<&str> for PartitionKey {
    fn from(key: &str) -> Self {
        key.as_bytes().into()
    }
}

impl From<Vec<u8>> for PartitionKey {
    fn from(key: Vec<u8>) -> Self {
        PartitionKey(Form::short(&key).unwrap_or_else(|| Form::Long(key.into())))
    }
}

impl From<String> for PartitionKey {
    fn from(key: String) -> Self {
        key.into_bytes().into()
    }
}

impl From<PartitionKey> for Bytes {
    fn from(key: PartitionKey) -> Self {
        match key.0 {
            Form::Short { .. } => Bytes::copy_from_slice(&key),
            Form::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for PartitionKey {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for PartitionKey {}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for PartitionKey {
    fn eq(&self, other: &T) -> bool {
        self[..] == *other.as_ref()
    }
}

impl PartialOrd for PartitionKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PartitionKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self[..].cmp(&other[..])
    }
}

impl Hash for PartitionKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self[..].hash(state);
    }
}

impl Borrow<[u8]> for PartitionKey {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_key_is_its_bytes_however_it_came(key in proptest::collection::vec(any::<u8>(), 0..100), other: Vec<u8>) {
            let bytes = Bytes::from([&key[..], &other[..]].concat());
            let part = PartitionKey::part_of(&bytes, 0..key.len());
            for made in [part.clone(), key[..].into(), key.clone().into(), Bytes::from(key.clone()).into()] {
                prop_assert_eq!(&made[..], &key[..]);
                prop_assert_eq!(&made, &part);
                prop_assert_eq!(Bytes::from(made), &key[..]);
            }
            let other_key = PartitionKey::from(&other[..]);
            prop_assert_eq!(part == other_key, key == other);
            prop_assert_eq!(part.cmp(&other_key), key.cmp(&other));
        }
    }

    #[test]
    fn a_short_key_keeps_nothing_alive_and_a_long_one_shares() {
        let whole = Bytes::from(vec![b'k'; 100]);
        let short = PartitionKey::part_of(&whole, 10..10 + SHORT_BYTES_MAX);
        assert!(whole.is_unique());
        let long = PartitionKey::part_of(&whole, 10..11 + SHORT_BYTES_MAX);
        assert_eq!((short.len(), long.len()), (SHORT_BYTES_MAX, SHORT_BYTES_MAX + 1));
        assert_eq!(long.as_ptr(), whole[10..].as_ptr());
        assert_eq!(size_of::<PartitionKey>(), size_of::<Bytes>() + size_of::<usize>());
    }
}
