//! Where a record goes: a key in the space of 2^128 hash keys, and the ranges of that space that shards own.
//!
//! What must hold: ranges are never empty (`first <= last`), and [`HashRange::split_at`] and [`HashRange::merge`]
//! neither lose nor double a key.

use std::fmt;
use std::str::FromStr;

use md5::{Digest, Md5};

use crate::digests::md5_of_each;
use crate::error::{Error, Result};

/// A place in the hash-key space `0..2^128`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HashKey(u128);

impl HashKey {
    /// The first key.
    pub const MIN: HashKey = HashKey(0);
    /// The last key.
    pub const MAX: HashKey = HashKey(u128::MAX);

    /// The key with this number.
    pub const fn new(number: u128) -> Self {
        HashKey(number)
    }

    /// The number of this key.
    pub const fn get(self) -> u128 {
        self.0
    }

    /// The key of a partition key: its MD5 digest read as a big-endian number, as Kinesis does it.
    pub fn of(partition_key: &[u8]) -> HashKey {
        HashKey(u128::from_be_bytes(Md5::digest(partition_key).into()))
    }

    /// The keys of many partition keys, in their order; for each much faster than one alone.
    pub fn of_each<'a>(partition_keys: impl Iterator<Item = &'a [u8]>) -> Vec<HashKey> {
        md5_of_each(partition_keys).into_iter().map(HashKey).collect()
    }
}

impl fmt::Display for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for HashKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // `u128::from_str` takes a leading plus, which is not a decimal digit.
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten().map(HashKey).ok_or_else(|| {
            let shown = crate::name::excerpt(text);
            Error::Invalid(format!(
                "hash key {shown} is not allowed: it must be a decimal number from 0 to {}",
                HashKey::MAX
            ))
        })
    }
}

/// The keys from `first` to `last`, both included; never empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct HashRange {
    first: HashKey,
    last: HashKey,
}

impl HashRange {
    /// The whole space.
    pub const ALL: HashRange = HashRange { first: HashKey::MIN, last: HashKey::MAX };

    /// The keys from `first` to `last`, both included.
    pub fn new(first: HashKey, last: HashKey) -> Result<Self> {
        if first > last {
            return Err(Error::Invalid(format!(
                "hash range {first} to {last} is empty: the first key must not lie behind the last"
            )));
        }
        Ok(HashRange { first, last })
    }

    /// The smallest key of the range.
    pub const fn first(self) -> HashKey {
        self.first
    }

    /// The largest key of the range.
    pub const fn last(self) -> HashKey {
        self.last
    }

    /// Whether `key` belongs to the range.
    pub fn contains(self, key: HashKey) -> bool {
        self.first <= key && key <= self.last
    }

    /// The keys before `at` and the keys from `at` on; neither part may be empty.
    pub fn split_at(self, at: HashKey) -> Result<[HashRange; 2]> {
        if self.first == self.last {
            return Err(Error::Invalid(format!("hash range {self} holds a single key: it cannot be split")));
        }
        if at <= self.first || at > self.last {
            return Err(Error::Invalid(format!(
                "hash range {self} cannot be split at {at}: the upper part must begin behind {} and not behind {}",
                self.first, self.last
            )));
        }
        let below = HashKey(at.0 - 1);
        Ok([HashRange { first: self.first, last: below }, HashRange { first: at, last: self.last }])
    }

    /// Both ranges as one, if one begins where the other ends. The order does not matter.
    pub fn merge(self, other: HashRange) -> Option<HashRange> {
        let (lower, upper) = if self.first <= other.first { (self, other) } else { (other, self) };
        let touching = lower.last.0.checked_add(1) == Some(upper.first.0);
        touching.then_some(HashRange { first: lower.first, last: upper.last })
    }

    /// The whole space cut into `count` ranges of equal size; the last one also takes the remainder, as Kinesis
    /// does it. Zero counts as one.
    pub fn even(count: usize) -> Vec<HashRange> {
        let count = count.max(1) as u128;
        if count == 1 {
            return vec![HashRange::ALL];
        }
        // 2^128 does not fit, so the quotient is that of 2^128 - 1, one more where the division is exact.
        let size = u128::MAX / count + u128::from(u128::MAX % count == count - 1);
        (0..count)
            .map(|index| {
                let first = HashKey(index * size);
                let last = if index == count - 1 { HashKey::MAX } else { HashKey((index + 1) * size - 1) };
                HashRange { first, last }
            })
            .collect()
    }

    /// The key at which the upper half begins; none if the range holds a single key.
    pub fn midpoint(self) -> Option<HashKey> {
        let distance = self.last.0 - self.first.0;
        // Half of the distance, rounded up: half of the number of keys, without computing that number.
        (distance > 0).then(|| HashKey(self.first.0 + distance / 2 + distance % 2))
    }
}

impl fmt::Display for HashRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.first, self.last)
    }
}

impl fmt::Debug for HashRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
