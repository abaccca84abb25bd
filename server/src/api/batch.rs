//! Batches as JSON, piece by piece: neither an answer of ten megabytes nor a record of that size ever exists as a
//! whole, so a client that stops reading holds one piece.
//!
//! The pieces together are a [`BatchBody`](super::wire::BatchBody) with a line feed behind it.

use anabranch_model::{Batch, Error, Record, SequenceNumber};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;
use serde_json::json;

use super::text::{Key, Text};
use super::wire::{FollowLine, NextBody};
use crate::limits::PIECE_BYTES;

/// Bytes of a payload that are encoded in one go: a multiple of three, so that the parts of base64 join.
const PAYLOAD_BYTES: usize = PIECE_BYTES / 4 * 3;

/// The pieces of one batch.
pub(super) struct BatchPieces {
    records: std::vec::IntoIter<Record>,
    /// What stands before the next record.
    before: &'static str,
    /// The rest of the payload of the record that is being written.
    payload: Option<Bytes>,
    /// What stands behind the last record; taken when it is written.
    end: Option<String>,
}

/// What stands before the payload of a record; with it, the fields of a [`RecordBody`](super::wire::RecordBody).
#[derive(Serialize)]
struct RecordHead {
    sequence: Text<SequenceNumber>,
    arrival_ms: u64,
    key: Key,
}

impl BatchPieces {
    pub(super) fn new(batch: Batch) -> Self {
        let next = json!(NextBody::from(batch.next));
        let behind = json!(batch.behind);
        // A batch without records has no record that could write what stands before the first one.
        let start = if batch.records.is_empty() { "{\"records\":[" } else { "" };
        let end = format!("{start}],\"next\":{next},\"behind\":{behind}}}\n");
        let records = batch.records.into_iter();
        BatchPieces { records, before: "{\"records\":[", payload: None, end: Some(end) }
    }

    /// Writes a part of the batch; false if there was nothing left.
    fn write_part(&mut self, piece: &mut Vec<u8>) -> bool {
        if let Some(mut payload) = self.payload.take() {
            let part = payload.split_to(payload.len().min(PAYLOAD_BYTES));
            write_base64(piece, &part);
            if payload.is_empty() {
                piece.extend_from_slice(b"\"}");
            } else {
                self.payload = Some(payload);
            }
        } else if let Some(record) = self.records.next() {
            piece.extend_from_slice(self.before.as_bytes());
            self.before = ",";
            write_head(piece, &record);
            self.payload = Some(record.data);
        } else if let Some(end) = self.end.take() {
            piece.extend_from_slice(end.as_bytes());
        } else {
            return false;
        }
        true
    }
}

impl Iterator for BatchPieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut piece = Vec::new();
        while piece.len() < PIECE_BYTES && self.write_part(&mut piece) {}
        (!piece.is_empty()).then(|| Bytes::from(piece))
    }
}

/// Writes a record up to the quotation mark before its payload.
fn write_head(piece: &mut Vec<u8>, record: &Record) {
    let head = RecordHead {
        sequence: Text(record.sequence),
        arrival_ms: record.arrival.as_millis(),
        key: Key(record.partition_key.clone()),
    };
    write_json(piece, &head);
    // The object goes on.
    piece.pop();
    piece.extend_from_slice(b",\"data\":\"");
}

fn write_base64(piece: &mut Vec<u8>, bytes: &[u8]) {
    let start = piece.len();
    piece.resize(start + bytes.len().div_ceil(3) * 4, 0);
    STANDARD
        .encode_slice(bytes, &mut piece[start..])
        .expect("there is room for four characters for each three bytes");
}

/// The line that ends a follow before its shard does.
pub(super) fn failed_line(error: Error) -> Bytes {
    let mut line = Vec::new();
    write_json(&mut line, &FollowLine::failed(error));
    line.push(b'\n');
    Bytes::from(line)
}

fn write_json(target: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(target, value).expect("wire types have string keys, and memory takes every byte");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anabranch_model::{Next, PartitionKey, Position, SequenceNumber, ShardId, Timestamp};

    use super::super::wire::BatchBody;
    use super::*;

    fn batch(records: usize, bytes: usize, next: Next) -> Batch {
        let record = |number: usize| Record {
            sequence: SequenceNumber::from_u128(number as u128),
            arrival: Timestamp::from_millis(1_000 + number as u64),
            partition_key: PartitionKey::from(format!("key \"{number}\"\n")),
            data: Bytes::from_iter((0..bytes).map(|place| (number + place) as u8)),
        };
        Batch { records: (0..records).map(record).collect(), next, behind: Duration::new(3, 7) }
    }

    #[test]
    fn pieces_together_are_the_batch() {
        let ended = Next::Ended(vec![ShardId::numbered(1), ShardId::numbered(2)]);
        let goes_on = Next::At(Position::After(SequenceNumber::MAX));
        for (records, bytes, next) in
            [(0, 0, ended), (1, 0, goes_on.clone()), (500, 1_000, goes_on.clone()), (3, 300_001, goes_on)]
        {
            let original = batch(records, bytes, next);
            let pieces: Vec<Bytes> = BatchPieces::new(original.clone()).collect();
            assert!(pieces.iter().all(|piece| piece.len() < 2 * PIECE_BYTES + 1_000));
            let whole = pieces.concat();
            assert_eq!(whole.iter().filter(|byte| **byte == b'\n').count(), 1);
            let parsed: BatchBody = serde_json::from_slice(&whole).unwrap();
            assert_eq!(Batch::from(parsed), original);
        }
    }

    #[test]
    fn a_line_is_a_batch_or_an_error() {
        let line = failed_line(Error::DiskFull);
        assert!(line.ends_with(b"\n"));
        let parsed: FollowLine = serde_json::from_slice(&line).unwrap();
        assert_eq!(parsed.into_batch(), Err(Error::DiskFull));

        let original = batch(2, 10, Next::At(Position::TrimHorizon));
        let line = BatchPieces::new(original.clone()).collect::<Vec<_>>().concat();
        let parsed: FollowLine = serde_json::from_slice(&line).unwrap();
        assert_eq!(parsed.into_batch(), Ok(original));

        let parsed: FollowLine = serde_json::from_str("{}").unwrap();
        assert!(matches!(parsed.into_batch(), Err(Error::Unavailable(_))));
    }
}
