//! Which bytes of a body a reader wants.

use super::name::PartNumber;
use crate::error::{Error, Result};

/// A piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Range {
    /// From the first to the last byte of these, both included, or to the end of the body if that comes before.
    FromTo(u64, u64),
    /// From this byte to the end.
    From(u64),
    /// This many bytes at the end, or all if there are fewer.
    Last(u64),
    /// The first part that the body was put in, the second, and so on, whatever their numbers were. A body that was put
    /// at once is its own first part.
    Part(PartNumber),
}

impl Range {
    /// The bytes that this is of a body of `size` that was put in `parts`, of which the sizes are given; at once if there
    /// are none. A piece that begins behind the end, ends before its beginning or has no bytes is refused, and so is
    /// every piece of an empty body. A part may have no bytes.
    pub fn resolve(self, size: u64, parts: &[u64]) -> Result<std::ops::Range<u64>> {
        let bytes = match self {
            Range::FromTo(first, last) => first..last.saturating_add(1).min(size),
            Range::From(first) => first..size,
            Range::Last(count) => size.saturating_sub(count)..size,
            Range::Part(number) => return part(number, size, parts),
        };
        if bytes.is_empty() { Err(Error::RangeInvalid { size }) } else { Ok(bytes) }
    }
}

fn part(number: PartNumber, size: u64, parts: &[u64]) -> Result<std::ops::Range<u64>> {
    let parts = if parts.is_empty() { &[size] } else { parts };
    let (before, rest) = parts.split_at_checked(usize::from(number.get()) - 1).unwrap_or((parts, &[]));
    let bytes = rest.first().ok_or(Error::PartNotFound(number))?;
    let start: u64 = before.iter().sum();
    Ok(start..start + bytes)
}
