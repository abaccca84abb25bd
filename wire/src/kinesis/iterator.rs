//! Iterators: a place in a shard, sealed, good for five minutes.
//!
//! ```text
//!  position u8 │ its time or its digits │ length of the shard's id u8 │ shard's id │ name of the stream
//! ```

use std::time::Duration;

use anabranch_model::{Position, SequenceNumber, ShardId, StreamName, Timestamp};

use super::errors::{fault, invalid};
use crate::context::Context;
use crate::fault::Fault;

/// How long an iterator is good.
const LIFE: Duration = Duration::from_secs(300);
const PURPOSE: &str = "kinesis-iterator";

/// Where a reader stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) stream: StreamName,
    pub(super) shard: ShardId,
    pub(super) position: Position,
}

impl Place {
    /// The iterator of this place.
    pub(super) async fn seal(&self, context: &Context) -> Result<String, Fault> {
        let (tokens, admin) = (&context.tokens, &*context.ports.admin);
        tokens.seal(admin, &*context.clock, PURPOSE, &self.encode()).await.map_err(fault)
    }

    /// The place of an iterator.
    pub(super) async fn open(context: &Context, iterator: &str) -> Result<Place, Fault> {
        // Some clients send the quotes along between which they found it.
        let bare = iterator.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(iterator);
        let opened = context.tokens.open(&*context.ports.admin, PURPOSE, bare).await.map_err(fault)?;
        let place = opened.as_ref().and_then(|opened| Place::decode(&opened.content));
        let (Some(opened), Some(place)) = (opened, place) else {
            return Err(invalid("Invalid ShardIterator."));
        };
        let now = context.clock.now();
        if now.since(opened.made_at) > LIFE {
            return Err(Fault::client(
                "ExpiredIteratorException",
                format!(
                    "Iterator expired. The iterator was created at time {} while right now it is {} which is further in \
                     the future than the tolerated delay of {} milliseconds.",
                    spelled(opened.made_at),
                    spelled(now),
                    LIFE.as_millis()
                ),
            ));
        }
        Ok(place)
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        match self.position {
            Position::TrimHorizon => bytes.push(0),
            Position::Latest => bytes.push(1),
            Position::At(sequence) => put_sequence(&mut bytes, 2, sequence),
            Position::After(sequence) => put_sequence(&mut bytes, 3, sequence),
            Position::AtTimestamp(time) => {
                bytes.push(4);
                bytes.extend_from_slice(&time.as_millis().to_be_bytes());
            }
        }
        let shard = self.shard.as_str().as_bytes();
        bytes.push(shard.len() as u8);
        bytes.extend_from_slice(shard);
        bytes.extend_from_slice(self.stream.as_str().as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Place> {
        let (tag, bytes) = bytes.split_first()?;
        let (position, bytes) = match tag {
            0 => (Position::TrimHorizon, bytes),
            1 => (Position::Latest, bytes),
            2 | 3 => {
                let (length, bytes) = bytes.split_first()?;
                let (text, bytes) = bytes.split_at_checked(usize::from(*length))?;
                let sequence = std::str::from_utf8(text).ok()?.parse().ok()?;
                let at = if *tag == 2 { Position::At(sequence) } else { Position::After(sequence) };
                (at, bytes)
            }
            4 => {
                let (millis, bytes) = bytes.split_first_chunk::<8>()?;
                let time = Timestamp::from_millis(u64::from_be_bytes(*millis));
                (Position::AtTimestamp(time), bytes)
            }
            _ => return None,
        };
        let (length, bytes) = bytes.split_first()?;
        let (shard, stream) = bytes.split_at_checked(usize::from(*length))?;
        Some(Place {
            stream: StreamName::new(std::str::from_utf8(stream).ok()?).ok()?,
            shard: ShardId::new(std::str::from_utf8(shard).ok()?).ok()?,
            position,
        })
    }
}

/// A number as its digits, with their count before them.
/// `Sun Nov 15 18:15:00 UTC 2026`
fn spelled(time: Timestamp) -> String {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    moment.strftime("%a %b %d %H:%M:%S UTC %Y").to_string()
}

fn put_sequence(bytes: &mut Vec<u8>, tag: u8, sequence: SequenceNumber) {
    let digits = sequence.to_string();
    bytes.push(tag);
    bytes.push(digits.len() as u8);
    bytes.extend_from_slice(digits.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_round_trip() {
        let sequences = [SequenceNumber::MIN, SequenceNumber::from_u128(77), SequenceNumber::MAX];
        let mut positions = vec![Position::TrimHorizon, Position::Latest];
        positions.extend(sequences.map(Position::At));
        positions.extend(sequences.map(Position::After));
        positions.push(Position::AtTimestamp(Timestamp::from_millis(u64::MAX)));
        for position in positions {
            for name in ["s", &"x".repeat(128)] {
                let (stream, shard) = (StreamName::new(name).unwrap(), ShardId::new(name).unwrap());
                let place = Place { stream, shard, position };
                assert_eq!(Place::decode(&place.encode()), Some(place.clone()));
                // 512 characters of base64, less the time and the seal.
                assert!(place.encode().len() <= 512 / 4 * 3 - 24);
            }
        }
    }

    #[test]
    fn other_bytes_are_no_places() {
        let place = Place {
            stream: StreamName::new("s").unwrap(),
            shard: ShardId::numbered(0),
            position: Position::At(SequenceNumber::from_u128(5)),
        };
        let bytes = place.encode();
        for length in 0..bytes.len() {
            assert_eq!(Place::decode(&bytes[..length]), None, "{length}");
        }
        assert_eq!(Place::decode(&[9, 0, 0]), None);
    }
}
