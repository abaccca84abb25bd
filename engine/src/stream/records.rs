//! Records inside a frame, and the sequence numbers that they get from its origin.
//!
//! Payload: for each record `data length u32 │ key length u16 │ key │ data`.

use anabranch_model::{NewRecord, Record, SequenceNumber, Timestamp};
use bytes::Bytes;

use crate::encoding::{Malformed, Put, Take};
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

/// Appends the records of a payload to `records`, those from number `from` on, until `enough` says so. Returns false
/// if it stopped early.
pub fn decode(
    payload: &Bytes,
    origin: u64,
    arrival: u64,
    from: u128,
    records: &mut Vec<Record>,
    mut enough: impl FnMut(&Record) -> bool,
) -> Result<bool, Malformed> {
    let (mut take, mut index) = (Take(payload), 0);
    while !take.0.is_empty() {
        let data_bytes = take.u32()? as usize;
        let key_bytes = usize::from(u16::from_le_bytes([take.u8()?, take.u8()?]));
        let (key, data) = (take.bytes(key_bytes)?, take.bytes(data_bytes)?);
        let sequence = sequence(origin, index);
        index += 1;
        if sequence < from {
            continue;
        }
        let record = Record {
            sequence: number(sequence),
            arrival: Timestamp::from_millis(arrival),
            partition_key: payload.slice_ref(key),
            data: payload.slice_ref(data),
        };
        if enough(&record) {
            return Ok(false);
        }
        records.push(record);
    }
    Ok(true)
}
