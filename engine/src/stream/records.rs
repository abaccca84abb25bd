//! Records inside a frame, and the sequence numbers that they get from its origin.
//!
//! Payload: for each record `data length u32 │ key length u16 │ key │ data`.

use anabranch_model::{NewRecord, PartitionKey, Record, SequenceNumber, Timestamp};
use bytes::Bytes;

use crate::encoding::{Malformed, Put};
use crate::journal::{Draft, Kind, Label};
use crate::state::ShardKey;

const RECORD_HEADER_BYTES: usize = 6;

/// The number of the record at `index` in the frame that was written at `origin`.
pub fn sequence(origin: u64, index: u32) -> u128 {
    u128::from(origin) << 32 | u128::from(index)
}

/// The origin of the frame that a record with this number came in.
pub fn origin_of(sequence: u128) -> u64 {
    (sequence >> 32) as u64
}

/// The same as the model has it.
pub fn number(sequence: u128) -> SequenceNumber {
    SequenceNumber::from_u128(sequence)
}

/// Bytes that a record takes in a frame.
pub fn stored_bytes(record: &NewRecord) -> usize {
    RECORD_HEADER_BYTES + record.size()
}

/// Begins a frame for so many records of one shard with so many bytes, see [`stored_bytes`]; the arrival is set when their order
/// is.
pub fn open(shard: ShardKey, count: u32, bytes: usize) -> Draft {
    let (stream, shard) = (shard.stream, shard.number);
    let label = Label { kind: Kind::Records, origin: None, stream, shard, count, arrival: 0 };
    Draft::open(label, bytes)
}

/// Adds a record to the payload of such a frame.
pub fn add(payload: &mut Vec<u8>, record: &NewRecord) {
    payload.put_u32(record.data.len() as u32);
    payload.put(&(record.partition_key.len() as u16).to_le_bytes());
    payload.put(&record.partition_key);
    payload.put(&record.data);
}

/// Appends the records of a payload to `records`, those from number `from` on, until `enough` says so when it is given the
/// number and the size of the next. Returns false if it stopped early.
pub fn decode(
    payload: &Bytes,
    origin: u64,
    arrival: u64,
    from: u128,
    records: &mut Vec<Record>,
    mut enough: impl FnMut(u128, usize) -> bool,
) -> Result<bool, Malformed> {
    let (mut at, mut index) = (0, 0);
    while at < payload.len() {
        let header = payload[at..].first_chunk().ok_or(Malformed)?;
        let (data_bytes, key_bytes) = lengths(header);
        let key = at + RECORD_HEADER_BYTES..at + RECORD_HEADER_BYTES + key_bytes;
        let data = key.end..key.end + data_bytes;
        if data.end > payload.len() {
            return Err(Malformed);
        }
        at = data.end;
        let sequence = sequence(origin, index);
        index += 1;
        if sequence < from {
            continue;
        }
        if enough(sequence, key_bytes + data_bytes) {
            return Ok(false);
        }
        records.push(Record {
            sequence: number(sequence),
            arrival: Timestamp::from_millis(arrival),
            partition_key: PartitionKey::part_of(payload, key),
            data: payload.slice(data),
        });
    }
    Ok(true)
}

/// The lengths of data and key.
fn lengths(&[d0, d1, d2, d3, k0, k1]: &[u8; RECORD_HEADER_BYTES]) -> (usize, usize) {
    (u32::from_le_bytes([d0, d1, d2, d3]) as usize, usize::from(u16::from_le_bytes([k0, k1])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_gives_its_records_and_a_part_of_one_is_malformed() {
        let long = "k".repeat(200);
        let written = [("a", "first"), ("", ""), (long.as_str(), "third"), ("d", "last")];
        let mut payload = Vec::new();
        let mut ends = vec![0];
        for (key, data) in written {
            add(&mut payload, &NewRecord::new(key, data));
            ends.push(payload.len());
        }
        for length in 0..=payload.len() {
            let part = Bytes::copy_from_slice(&payload[..length]);
            let mut records = Vec::new();
            let whole = decode(&part, 7, 8, 0, &mut records, |_, _| false);
            let count = ends.iter().filter(|end| **end <= length).count() - 1;
            assert_eq!(whole, if ends[count] == length { Ok(true) } else { Err(Malformed) }, "{length}");
            let read: Vec<_> =
                records.iter().map(|record| (&record.partition_key[..], &record.data[..])).collect();
            let expected: Vec<_> =
                written.iter().map(|(key, data)| (key.as_bytes(), data.as_bytes())).collect();
            assert_eq!(read, expected[..count]);
        }
    }

    #[test]
    fn records_are_taken_from_a_number_on_until_there_are_enough() {
        let mut payload = Vec::new();
        (0..5).for_each(|number: u8| add(&mut payload, &NewRecord::new("key", vec![number; 10])));
        let mut records = Vec::new();
        let stop = sequence(7, 3);
        let whole = decode(&payload.into(), 7, 8, sequence(7, 1), &mut records, |number, size| {
            assert_eq!(size, 13);
            number == stop
        });
        assert_eq!(whole, Ok(false));
        let taken: Vec<_> = records.iter().map(|record| (record.sequence, record.data[0])).collect();
        assert_eq!(taken, [(number(sequence(7, 1)), 1), (number(sequence(7, 2)), 2)]);
    }
}
