//! The number of a record in its shard: 256 bits, written as a decimal.
//!
//! Kinesis gives numbers of 56 digits, which do not fit into 128 bits; our own engine needs fewer. What must hold:
//! the order of the numbers is the order of their values, and each value has exactly one text.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A number that only grows within a shard. Nothing but its order means anything.
// The order of the fields makes the derived order the numeric one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber {
    high: u128,
    low: u128,
}

/// Digits of the largest number, 2^256 - 1.
const DIGITS_MAX: usize = 78;
/// The largest power of ten in 64 bits: a remainder by it is printed in one go.
const CHUNK: u64 = 10_000_000_000_000_000_000;
/// Digits of a remainder by [`CHUNK`].
const CHUNK_DIGITS: usize = 19;

impl SequenceNumber {
    /// The smallest number, zero.
    pub const MIN: SequenceNumber = SequenceNumber { high: 0, low: 0 };
    /// The largest number.
    pub const MAX: SequenceNumber = SequenceNumber { high: u128::MAX, low: u128::MAX };

    /// The number with this value.
    pub const fn from_u128(value: u128) -> Self {
        SequenceNumber { high: 0, low: value }
    }

    /// The value, if it fits.
    pub fn as_u128(self) -> Option<u128> {
        (self.high == 0).then_some(self.low)
    }

    /// The value as 256 bits, the most significant byte first.
    pub fn to_be_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.high.to_be_bytes());
        bytes[16..].copy_from_slice(&self.low.to_be_bytes());
        bytes
    }

    /// The number with these 256 bits, the most significant byte first.
    pub fn from_be_bytes(bytes: [u8; 32]) -> Self {
        let limb = |at: usize| u64::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        SequenceNumber::from_limbs([limb(0), limb(8), limb(16), limb(24)])
    }

    /// The following number; the largest one is followed by itself.
    pub fn next(self) -> SequenceNumber {
        match self.low.checked_add(1) {
            Some(low) => SequenceNumber { low, ..self },
            None => {
                self.high.checked_add(1).map_or(SequenceNumber::MAX, |high| SequenceNumber { high, low: 0 })
            }
        }
    }

    /// The number before this one; none before zero.
    pub fn previous(self) -> Option<SequenceNumber> {
        match (self.high, self.low.checked_sub(1)) {
            (_, Some(low)) => Some(SequenceNumber { low, ..self }),
            (high, None) => Some(SequenceNumber { high: high.checked_sub(1)?, low: u128::MAX }),
        }
    }

    /// This number times ten plus `digit`, if it fits.
    fn push_digit(self, digit: u8) -> Option<SequenceNumber> {
        let mut carry = u128::from(digit);
        let mut limbs = self.limbs();
        for limb in limbs.iter_mut().rev() {
            let product = u128::from(*limb) * 10 + carry;
            *limb = product as u64;
            carry = product >> 64;
        }
        (carry == 0).then(|| SequenceNumber::from_limbs(limbs))
    }

    /// The quotient and the remainder by [`CHUNK`].
    fn divide_by_chunk(self) -> (SequenceNumber, u64) {
        let mut remainder = 0u128;
        let mut limbs = self.limbs();
        for limb in &mut limbs {
            let dividend = remainder << 64 | u128::from(*limb);
            *limb = (dividend / u128::from(CHUNK)) as u64;
            remainder = dividend % u128::from(CHUNK);
        }
        (SequenceNumber::from_limbs(limbs), remainder as u64)
    }

    /// Four parts of 64 bits, the most significant first.
    fn limbs(self) -> [u64; 4] {
        [(self.high >> 64) as u64, self.high as u64, (self.low >> 64) as u64, self.low as u64]
    }

    fn from_limbs([a, b, c, d]: [u64; 4]) -> Self {
        let join = |upper: u64, lower: u64| u128::from(upper) << 64 | u128::from(lower);
        SequenceNumber { high: join(a, b), low: join(c, d) }
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(value) = self.as_u128() {
            return fmt::Display::fmt(&value, f);
        }
        let mut chunks = Vec::with_capacity(DIGITS_MAX.div_ceil(CHUNK_DIGITS));
        let mut rest = *self;
        while rest != SequenceNumber::MIN {
            let (quotient, remainder) = rest.divide_by_chunk();
            chunks.push(remainder);
            rest = quotient;
        }
        let mut text = String::with_capacity(DIGITS_MAX);
        for (index, chunk) in chunks.iter().rev().enumerate() {
            let width = if index == 0 { 0 } else { CHUNK_DIGITS };
            text.push_str(&format!("{chunk:0width$}"));
        }
        f.pad_integral(true, "", &text)
    }
}

impl fmt::Debug for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SequenceNumber {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |why: &str| {
            let shown = crate::name::excerpt(text);
            Error::Invalid(format!("sequence number {shown} is not allowed: {why}"))
        };
        if text.is_empty() {
            return Err(refuse("it must have at least one digit"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(refuse("it must consist of the digits 0 to 9"));
        }
        if text.len() > 1 && text.starts_with('0') {
            return Err(refuse("it must not begin with a zero"));
        }
        if let Ok(low) = text.parse() {
            return Ok(SequenceNumber::from_u128(low));
        }
        text.bytes()
            .try_fold(SequenceNumber::MIN, |number, byte| number.push_digit(byte - b'0'))
            .ok_or_else(|| refuse("it must be smaller than 2^256"))
    }
}
