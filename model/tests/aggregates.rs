//! Aggregates: what goes in comes out, and whatever else comes in is refused.

use anabranch_model::aggregate::{Aggregate, MAGIC, aggregate, deaggregate, is_aggregate};
use anabranch_model::{HashKey, NewRecord};
use bytes::Bytes;
use md5::{Digest, Md5};
use proptest::prelude::*;

fn record(key: &str, hash_key: Option<u128>, data: &[u8]) -> NewRecord {
    let explicit_hash_key = hash_key.map(HashKey::new);
    NewRecord { explicit_hash_key, ..NewRecord::new(key.to_owned(), data.to_vec()) }
}

fn closed(message: &[u8]) -> Bytes {
    [&MAGIC[..], message, &Md5::digest(message)[..]].concat().into()
}

/// Written by hand from the format: two records, the second with a hash key.
#[test]
fn an_aggregate_has_the_bytes_that_other_libraries_write() {
    let message = b"\x0a\x01a\x0a\x02bc\x12\x017\x1a\x06\x08\x00\x1a\x02hi\x1a\x08\x08\x01\x10\x00\x1a\x02yo";
    let records = vec![record("a", None, b"hi"), record("bc", Some(7), b"yo")];
    assert_eq!(deaggregate(&closed(message)).unwrap(), records);
    assert_eq!(aggregate(&records).unwrap(), closed(message));
}

#[test]
fn tags_and_unknown_fields_are_passed_over() {
    let message =
        b"\x0a\x01a\x1a\x0e\x08\x00\x1a\x02hi\x22\x06\x0a\x01k\x12\x01v\x20\x05\x29abcdefgh\x35abcd";
    assert_eq!(deaggregate(&closed(message)).unwrap(), vec![record("a", None, b"hi")]);
}

#[test]
fn tables_may_come_behind_the_records() {
    let message = b"\x1a\x06\x08\x00\x1a\x02hi\x0a\x01a";
    assert_eq!(deaggregate(&closed(message)).unwrap(), vec![record("a", None, b"hi")]);
}

#[test]
fn what_is_corrupt_is_refused_and_said() {
    let cases: [(&[u8], &str); 9] = [
        (b"\x1a\x06\x08\x00\x1a\x02hi", "points to a key"),
        (b"\x0a\x01a\x1a\x02\x08\x00", "no data"),
        (b"\x0a\x01a\x1a\x04\x1a\x02hi", "no key"),
        (b"\x0a\x01\xff", "not UTF-8"),
        (b"\x12\x01x", "hash key"),
        (b"\x0a\x7fa", "longer than what is left"),
        (b"\x0b", "no kind"),
        (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "does not end"),
        (b"\x1a\x02\x18\x00", "another kind"),
    ];
    for (message, why) in cases {
        let error = deaggregate(&closed(message)).unwrap_err().to_string();
        assert!(error.contains(why), "{message:?}: {error}");
    }
    let mut damaged = aggregate(&[record("a", None, b"hi")]).unwrap().to_vec();
    damaged[8] ^= 1;
    assert!(deaggregate(&damaged.into()).unwrap_err().to_string().contains("digest"));
    assert!(aggregate(&[]).is_err());
    assert!(
        !is_aggregate(&[]) && !is_aggregate(&MAGIC) && !is_aggregate(b"plain text, long enough to be one")
    );
}

/// A table that nothing points into costs memory and says nothing.
#[test]
fn more_keys_than_records_can_have_are_refused() {
    let keys = |count: usize| [&b"\x0a\x01a".repeat(count)[..], b"\x1a\x06\x08\x00\x1a\x02hi"].concat();
    assert_eq!(deaggregate(&closed(&keys(100_000))).unwrap().len(), 1);
    let error = deaggregate(&closed(&keys(100_001))).unwrap_err().to_string();
    assert!(error.contains("too many keys"), "{error}");
}

/// The last record is corrupt, so none of the others comes out either.
#[test]
fn an_aggregate_is_opened_as_a_whole_or_not_at_all() {
    let records: Vec<_> = (0..5u8).map(|n| record("a", None, &[n])).collect();
    let mut opened = Aggregate::open(&aggregate(&records).unwrap()).unwrap();
    assert_eq!(opened.len(), 5);
    assert_eq!(opened.by_ref().take(2).collect::<Vec<_>>(), records[..2]);
    assert_eq!(opened.len(), 3);
    assert_eq!(opened.collect::<Vec<_>>(), records[2..]);
    let whole = aggregate(&records).unwrap();
    let message = &whole[MAGIC.len()..whole.len() - 16];
    assert!(Aggregate::open(&closed(&[message, b"\x1a\x02\x08\x00"].concat())).is_err());
}

fn any_record() -> impl Strategy<Value = NewRecord> {
    ("[a-zé]{1,3}", proptest::option::of(any::<u128>()), proptest::collection::vec(any::<u8>(), 0..40))
        .prop_map(|(key, hash_key, data)| record(&key, hash_key, &data))
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(records in proptest::collection::vec(any_record(), 1..40)) {
        let bytes = aggregate(&records).unwrap();
        prop_assert!(is_aggregate(&bytes));
        prop_assert_eq!(deaggregate(&bytes).unwrap(), records);
    }

    #[test]
    fn nothing_that_comes_in_breaks_it(message in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = deaggregate(&closed(&message));
        let _ = deaggregate(&message.into());
    }

    #[test]
    fn a_changed_byte_is_noticed(
        records in proptest::collection::vec(any_record(), 1..9),
        place in any::<prop::sample::Index>(),
        flip in 1..=u8::MAX,
    ) {
        let mut bytes = aggregate(&records).unwrap().to_vec();
        let place = place.index(bytes.len());
        bytes[place] ^= flip;
        prop_assert!(deaggregate(&bytes.into()).is_err());
    }
}
