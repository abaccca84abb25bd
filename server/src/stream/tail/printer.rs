//! Records on standard output: payloads as lines of text, or one JSON object a record.

use std::io::{self, IsTerminal};

use anabranch_model::{Record, ShardId};
use serde::Serialize;

use crate::api::text::{Base64, Key};
use crate::failure::Failure;
use crate::output::{shown, write_out};
use crate::quantity::rfc3339;

/// Prints records, up to a limit.
pub(super) struct Printer {
    json: bool,
    /// Whether a terminal would obey control characters.
    terminal: bool,
    left: Option<u64>,
}

impl Printer {
    pub(super) fn new(json: bool, limit: Option<u64>) -> Self {
        Printer { json, terminal: io::stdout().is_terminal(), left: limit }
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
        if count == 0 {
            return Ok(());
        }
        let mut lines = Vec::new();
        for record in &records[..count] {
            if self.json {
                let line = RecordReport::new(shard, record);
                serde_json::to_writer(&mut lines, &line).map_err(io::Error::from)?;
            } else {
                lines.extend_from_slice(shown(&record.data, self.terminal).as_bytes());
            }
            lines.push(b'\n');
        }
        // Whoever reads the output may be slow; other shards go on meanwhile.
        tokio::task::block_in_place(|| write_out(&lines))
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
        let data = std::str::from_utf8(&record.data).ok();
        RecordReport {
            shard: shard.as_str(),
            sequence: record.sequence.to_string(),
            arrival: rfc3339(record.arrival),
            key: Key(record.partition_key.clone()),
            data,
            data_base64: data.is_none().then(|| Base64(record.data.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::{SequenceNumber, Timestamp};
    use bytes::Bytes;

    use super::*;

    #[test]
    fn json_keeps_every_byte() {
        let record = |data: &'static [u8]| Record {
            sequence: SequenceNumber::from_u128(9),
            arrival: Timestamp::EPOCH,
            partition_key: Bytes::from_static(b"k"),
            data: Bytes::from_static(data),
        };
        let shard = ShardId::numbered(0);
        let json = |data| serde_json::to_value(RecordReport::new(&shard, &record(data))).unwrap();
        assert_eq!(json(b"text")["data"], "text");
        assert_eq!(json(b"\xff")["data_base64"], "/w==");
        assert!(json(b"\xff").get("data").is_none());
    }
}
