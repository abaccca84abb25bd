//! A batch of records in JSON or CBOR, in pieces: what is made of a large batch is never in memory as a whole, and bytes
//! become base64 where they are sent.

use std::io::Write as _;

use anabranch_model::Record;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use minicbor::Encoder;

use crate::limits::PIECE_BYTES;

/// What a record takes beside its data and its key, about.
const RECORD_BYTES: usize = 192;

/// The language of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Json,
    Cbor,
}

/// The pieces of an answer: `{"Records":[…]`, and what stands behind.
pub(super) struct Pieces {
    language: Language,
    records: std::vec::IntoIter<Record>,
    encryption: Option<&'static str>,
    /// An object with members, whose first byte says no more than that. None when it is sent.
    ending: Option<Vec<u8>>,
    begun: bool,
    /// Room for a piece.
    room: usize,
}

impl Pieces {
    /// The records, and the object with what stands behind them, which has a member.
    pub(super) fn new(
        language: Language,
        records: Vec<Record>,
        encryption: Option<&'static str>,
        ending: Vec<u8>,
    ) -> Self {
        let bytes: usize = records.iter().map(|record| record.size() * 4 / 3 + RECORD_BYTES).sum();
        let room = bytes.min(PIECE_BYTES) + ending.len() + RECORD_BYTES;
        Pieces {
            language,
            records: records.into_iter(),
            encryption,
            ending: Some(ending),
            begun: false,
            room,
        }
    }

    /// Whether everything was given.
    pub(super) fn is_done(&self) -> bool {
        self.ending.is_none()
    }

    /// What stands before the first record.
    fn open(&self, piece: &mut Vec<u8>) {
        match self.language {
            Language::Json => piece.extend_from_slice(b"{\"Records\":["),
            Language::Cbor => {
                // The first byte of a short map has the number of its members in its lower bits.
                let members =
                    self.ending.as_ref().and_then(|ending| ending.first()).map_or(0, |head| head & 0x1f);
                // A vector takes whatever is written to it.
                let _ = Encoder::new(piece)
                    .map(u64::from(members) + 1)
                    .and_then(|encoder| encoder.str("Records"))
                    .and_then(|encoder| encoder.array(self.records.len() as u64));
            }
        }
    }

    fn put(&self, piece: &mut Vec<u8>, record: &Record) {
        match self.language {
            Language::Json => self.put_json(piece, record),
            Language::Cbor => self.put_cbor(piece, record),
        }
    }

    fn put_cbor(&self, piece: &mut Vec<u8>, record: &Record) {
        let mut encoder = Encoder::new(piece);
        let mut write = || {
            encoder.map(4 + u64::from(self.encryption.is_some()))?;
            encoder.str("SequenceNumber")?.str(&record.sequence.to_string())?;
            encoder.str("ApproximateArrivalTimestamp")?.u64(record.arrival.as_millis())?;
            encoder.str("Data")?.bytes(&record.data)?;
            encoder.str("PartitionKey")?.str(&String::from_utf8_lossy(&record.partition_key))?;
            if let Some(encryption) = self.encryption {
                encoder.str("EncryptionType")?.str(encryption)?;
            }
            Ok::<_, minicbor::encode::Error<std::convert::Infallible>>(())
        };
        // A vector takes whatever is written to it.
        let _ = write();
    }

    fn put_json(&self, piece: &mut Vec<u8>, record: &Record) {
        let arrival = record.arrival.as_millis();
        let (seconds, millis) = (arrival / 1_000, arrival % 1_000);
        // A vector takes whatever is written to it.
        let _ = write!(
            piece,
            "{{\"SequenceNumber\":\"{}\",\"ApproximateArrivalTimestamp\":{seconds}.{millis:03},\"Data\":\"",
            record.sequence
        );
        let start = piece.len();
        piece.resize(start + record.data.len().div_ceil(3) * 4, 0);
        let written = BASE64_STANDARD.encode_slice(&record.data, &mut piece[start..]).unwrap_or(0);
        piece.truncate(start + written);
        piece.extend_from_slice(b"\",\"PartitionKey\":");
        let _ = serde_json::to_writer(&mut *piece, &String::from_utf8_lossy(&record.partition_key));
        if let Some(encryption) = self.encryption {
            let _ = write!(piece, ",\"EncryptionType\":\"{encryption}\"");
        }
        piece.push(b'}');
    }
}

impl Iterator for Pieces {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.ending.as_ref()?;
        let mut piece = Vec::with_capacity(self.room);
        let mut comma = self.begun && self.language == Language::Json;
        if !self.begun {
            self.open(&mut piece);
            self.begun = true;
        }
        while let Some(record) = self.records.next() {
            if comma {
                piece.push(b',');
            }
            comma = self.language == Language::Json;
            self.put(&mut piece, &record);
            if piece.len() >= PIECE_BYTES && !self.records.as_slice().is_empty() {
                return Some(piece);
            }
        }
        let ending = self.ending.take()?;
        if self.language == Language::Json {
            piece.extend_from_slice(b"],");
        }
        piece.extend_from_slice(ending.get(1..).unwrap_or_default());
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::{SequenceNumber, Timestamp};
    use serde_json::{Value, json};

    use super::*;
    use crate::kinesis::records::RecordShape;

    fn record(number: u64, data: Vec<u8>, key: &str) -> Record {
        Record {
            sequence: SequenceNumber::from_u128(u128::from(number)),
            arrival: Timestamp::from_millis(1_763_000_000_000 + number),
            partition_key: key.as_bytes().to_vec().into(),
            data: data.into(),
        }
    }

    fn joined(records: &[Record], encryption: Option<&'static str>) -> (usize, Value) {
        let ending = b"{\"X\":1}".to_vec();
        let pieces: Vec<_> = Pieces::new(Language::Json, records.to_vec(), encryption, ending).collect();
        assert!(pieces.iter().all(|piece| piece.len() < PIECE_BYTES + (1 << 20)));
        (pieces.len(), serde_json::from_slice(&pieces.concat()).expect("JSON"))
    }

    #[derive(serde::Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Whole {
        records: Vec<RecordShape>,
        x: u32,
    }

    #[test]
    fn pieces_of_cbor_join_to_what_serde_says() {
        let records: Vec<_> = (0..20).map(|n| record(n, vec![n as u8; 99_999], "k\u{1F600}")).collect();
        for (count, at_least) in [(0, 1), (1, 1), (20, 5)] {
            for encryption in [None, Some("KMS")] {
                let records = records[..count].to_vec();
                let shapes = records.iter().map(|one| RecordShape::of(one.clone(), encryption)).collect();
                let whole = minicbor_serde::to_vec(Whole { records: shapes, x: 1 }).expect("CBOR");
                let ending = vec![0xa1, 0x61, b'X', 1];
                let pieces: Vec<_> = Pieces::new(Language::Cbor, records, encryption, ending).collect();
                assert!(pieces.len() >= at_least, "{} pieces of {count}", pieces.len());
                assert!(pieces.concat() == whole, "{count} records");
            }
        }
    }

    #[test]
    fn pieces_join_to_what_serde_says() {
        let key = "k\"\\\u{1}\u{1F600}";
        let large = |count: u64| -> Vec<Record> {
            (0..count).map(|n| record(n, vec![n as u8; 99_999], key)).collect()
        };
        for (records, pieces) in [
            (Vec::new(), 1),
            (vec![record(1, Vec::new(), "k")], 1),
            ((0..100).map(|n| record(n, vec![255; n as usize], key)).collect(), 1),
            (large(2), 1),
            (large(20), 10),
        ] {
            for encryption in [None, Some("KMS")] {
                let shapes: Vec<_> =
                    records.iter().map(|one| RecordShape::of(one.clone(), encryption)).collect();
                let (count, value) = joined(&records, encryption);
                assert_eq!(value, json!({"Records": shapes, "X": 1}));
                assert_eq!(count, pieces, "{} records", records.len());
            }
        }
    }
}
