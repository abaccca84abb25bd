//! The name of an object: prefix, delivery stream, time, and what tells it from all others.

use anabranch_model::{BlobKey, Error, Record};

use super::definition::Definition;
use super::prefix::Prefix;

/// The key of the object that begins with this record. It depends on nothing else, so an object that is stored again after
/// a crash takes the place of the first, and objects of one second are in the order of their records.
pub(super) fn key(definition: &Definition, first: &Record) -> Result<BlobKey, Error> {
    let millis = i64::try_from(first.arrival.as_millis()).unwrap_or(i64::MAX);
    let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let prefix = Prefix::of_objects(&definition.prefix).map_err(|fault| Error::Corrupt(fault.message))?;
    let number = number(first);
    let time = moment.strftime("%Y-%m-%d-%H-%M-%S");
    let ending = definition.extension.as_deref().unwrap_or(if definition.gzip { ".gz" } else { "" });
    let prefix = prefix.expand(moment, number);
    BlobKey::new(&format!("{prefix}{}-1-{time}-{}{ending}", definition.name, grouped(number)))
}

/// The sequence number as 128 bits, of which every store that is served here has enough.
fn number(record: &Record) -> u128 {
    let bytes = record.sequence.to_be_bytes();
    bytes[16..].iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// A number in the form of a UUID.
fn grouped(number: u128) -> String {
    let text = format!("{number:032x}");
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use anabranch_model::{SequenceNumber, Timestamp};

    use super::super::definition::tests::definition;
    use super::*;

    fn record(sequence: u128) -> Record {
        Record {
            sequence: SequenceNumber::from_u128(sequence),
            arrival: Timestamp::from_millis(1_763_000_000_000),
            partition_key: Default::default(),
            data: Default::default(),
        }
    }

    #[test]
    fn keys_tell_the_hour_and_the_first_record() {
        let mut definition = Definition { prefix: "raw/".into(), gzip: true, ..definition("clicks") };
        let first = key(&definition, &record(0x0102_0000_0000_0000_0000_0000_0000_0304)).unwrap();
        let expected =
            "raw/2025/11/13/02/clicks-1-2025-11-13-02-13-20-01020000-0000-0000-0000-000000000304.gz";
        assert_eq!(first.as_str(), expected);
        definition.extension = Some(".json.gz".into());
        assert!(key(&definition, &record(1)).unwrap().as_str().ends_with("1.json.gz"));
    }

    #[test]
    fn keys_of_one_second_are_in_the_order_of_the_records() {
        let keys = [9, 10, 0xfff, 0x1000, u128::from(u64::MAX) + 1];
        let keys = keys.map(|sequence| key(&definition("d"), &record(sequence)).unwrap());
        assert!(keys.is_sorted(), "{keys:?}");
    }
}
