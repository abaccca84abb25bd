//! Records on standard output: payloads as lines of text, or one JSON object a record.

use anabranch_model::{PartitionKey, Record, SequenceNumber, ShardId, Timestamp};
use bytes::Bytes;
use serde::Serialize;

use crate::api::text::{Base64, Key};
use crate::failure::Failure;
use crate::output::Lines;
use crate::quantity::rfc3339;

/// Prints records, up to a limit.
pub(super) struct Printer {
    lines: Lines,
    left: Option<u64>,
}

impl Printer {
    pub(super) fn new(json: bool, limit: Option<u64>) -> Self {
        Printer { lines: Lines::new(json), left: limit }
    }

    /// Whether nothing more is to be printed.
    pub(super) fn is_full(&self) -> bool {
        self.left == Some(0)
    }

    pub(super) fn print(&mut self, shard: &ShardId, records: &[Record]) -> Result<(), Failure> {
        let count = match &mut self.left {
            Some(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(records.len());
                *left -= count as u64;
                count
            }
            None => records.len(),
        };
        // Whoever reads the output may be slow; other shards go on meanwhile.
        tokio::task::block_in_place(|| {
            for record in &records[..count] {
                self.lines.push(&record.data, || RecordReport::new(shard, record))?;
            }
            self.lines.flush()
        })
    }
}

/// A record as `--json` shows it.
#[derive(Serialize)]
pub(crate) struct RecordReport<'a> {
    shard: &'a str,
    sequence: String,
    arrival: String,
    key: Key,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a str>,
    /// In place of `data` if the payload is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_base64: Option<Base64>,
}

impl<'a> RecordReport<'a> {
    pub(crate) fn new(shard: &'a ShardId, record: &'a Record) -> Self {
        Self::of(shard, record.sequence, record.arrival, &record.partition_key, &record.data)
    }

    pub(crate) fn of(
        shard: &'a ShardId,
        sequence: SequenceNumber,
        arrival: Timestamp,
        key: &PartitionKey,
        payload: &'a Bytes,
    ) -> Self {
        let data = std::str::from_utf8(payload).ok();
        RecordReport {
            shard: shard.as_str(),
            sequence: sequence.to_string(),
            arrival: rfc3339(arrival),
            key: Key(key.clone()),
            data,
            data_base64: data.is_none().then(|| Base64(payload.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_every_byte() {
        let record = |data: &'static [u8]| Record {
            sequence: SequenceNumber::from_u128(9),
            arrival: Timestamp::EPOCH,
            partition_key: "k".into(),
            data: Bytes::from_static(data),
        };
        let shard = ShardId::numbered(0);
        let json = |data| serde_json::to_value(RecordReport::new(&shard, &record(data))).unwrap();
        assert_eq!(json(b"text")["data"], "text");
        assert_eq!(json(b"\xff")["data_base64"], "/w==");
        assert!(json(b"\xff").get("data").is_none());
    }
}
