//! Values that stay in the journal: the body of a message is written once, and the table `rows` says where it stands.
//!
//! A checkpoint that stored such a value would write all of it a second time, and most messages are read once and go.
//! What it takes of its segment counts as live until a checkpoint covers its removal; if little else in the segment
//! does, the cleaner writes it again elsewhere.
//!
//! ```text
//!  the first bytes of the value u8×8 │ position u64 │ length u32 │ CRC-32 of key and value u32
//! ```
//!
//! No value that is stored itself is as short as this, so nothing else has to tell them apart.

use anabranch_model::{Error, Result};
use bytes::Bytes;

use super::{checksum, io_error};
use crate::encoding::{Malformed, Put, Take};
use crate::journal::Segments;
use crate::queue::keys::is_body;

/// A shorter value is stored itself: the reference and the read would cost as much.
pub const STAYING_BYTES_MIN: usize = 256;
const HEAD_BYTES: usize = 8;
const REFERENCE_BYTES: usize = HEAD_BYTES + 8 + 4 + 4;

/// Where a value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its first bytes, for those who walk over rows and look at no more.
    pub head: [u8; HEAD_BYTES],
    /// Where it begins.
    pub position: u64,
    /// How long it is.
    pub bytes: u32,
    checksum: u32,
}

impl Reference {
    /// Whether a value of this row and length stays in the journal.
    pub fn suits(key: &[u8], bytes: usize) -> bool {
        bytes >= STAYING_BYTES_MIN && is_body(key)
    }

    /// What is stored of a value that stands at this position, if it stays there.
    pub fn to(key: &[u8], value: &[u8], position: u64) -> Option<Reference> {
        let head = *value.first_chunk()?;
        let bytes = u32::try_from(value.len()).ok()?;
        let reference = || Reference { head, position, bytes, checksum: checksum(key, value) };
        Reference::suits(key, value.len()).then(reference)
    }

    /// What a stored row refers to, unless it is the value itself.
    pub fn in_row(key: &[u8], row: &[u8]) -> Option<Reference> {
        (row.len() == REFERENCE_BYTES && is_body(key)).then(|| Reference::decode(row).ok()).flatten()
    }

    /// As it is stored.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(REFERENCE_BYTES);
        bytes.put(&self.head);
        bytes.put_u64(self.position);
        bytes.put_u32(self.bytes);
        bytes.put_u32(self.checksum);
        bytes
    }

    fn decode(row: &[u8]) -> std::result::Result<Reference, Malformed> {
        let mut take = Take(row);
        let head = take.bytes(HEAD_BYTES)?.try_into().map_err(|_| Malformed)?;
        Ok(Reference { head, position: take.u64()?, bytes: take.u32()?, checksum: take.u32()? })
    }

    /// Reads the value. It is an error if something else stands there.
    pub fn follow(&self, key: &[u8], segments: &Segments) -> Result<Bytes> {
        let lost = || {
            let position = self.position;
            Error::Corrupt(format!("the message at {position} of the journal is damaged or gone"))
        };
        // As long as it is held it is not recycled.
        let segment = segments.holding(self.position).ok_or_else(lost)?;
        let offset = segments.offset(self.position);
        if offset + u64::from(self.bytes) > segments.bytes {
            return Err(lost());
        }
        let mut value = vec![0; self.bytes as usize];
        segment.file.read_exact_at(offset, &mut value).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => lost(),
            _ => io_error(error),
        })?;
        if checksum(key, &value) == self.checksum { Ok(value.into()) } else { Err(lost()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::keys::{Place, body, state};

    #[test]
    fn only_long_bodies_stay() {
        let place = Place { sent_at: 1, position: 2, index: 3 };
        let (body, state) = (body(7, &place), state(7, &place));
        let long = vec![1; STAYING_BYTES_MIN];
        assert_eq!(Reference::to(&state, &long, 9), None);
        assert_eq!(Reference::to(&body, &long[1..], 9), None);
        let reference = Reference::to(&body, &long, 9).expect("it stays");
        assert_eq!((reference.position, reference.bytes, reference.head), (9, 256, [1; 8]));
        assert_eq!(Reference::in_row(&body, &reference.encode()), Some(reference));
        assert_eq!(Reference::in_row(&state, &reference.encode()), None);
        assert_eq!(Reference::in_row(&body, &long), None);
    }
}
