//! Which bytes of a body a reader wants.

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
}

impl Range {
    /// The bytes of a body of `size` that this is, never none: a piece that begins behind the end, ends before its
    /// beginning or has no bytes is refused, and so is every piece of an empty body.
    pub fn resolve(self, size: u64) -> Result<std::ops::Range<u64>> {
        let bytes = match self {
            Range::FromTo(first, last) => first..last.saturating_add(1).min(size),
            Range::From(first) => first..size,
            Range::Last(count) => size.saturating_sub(count)..size,
        };
        if bytes.is_empty() { Err(Error::RangeInvalid { size }) } else { Ok(bytes) }
    }
}
