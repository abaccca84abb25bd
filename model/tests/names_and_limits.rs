//! What the edge of the model lets in, and what its refusals say.

use std::time::Duration;

use anabranch_model::{
    Error, NewRecord, ReadLimit, ShardId, StreamName, StreamOptions, check_append, check_retention, limits,
};
use proptest::prelude::*;

fn refusal<T: std::fmt::Debug>(result: anabranch_model::Result<T>) -> String {
    match result {
        Err(Error::Invalid(text)) => text,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn names_of_allowed_characters_are_taken() {
    for name in ["a", "telemetry-2.raw_EU", &"x".repeat(128)] {
        assert_eq!(StreamName::new(name).expect("allowed").as_str(), name);
        assert_eq!(ShardId::new(name).expect("allowed").as_str(), name);
    }
}

#[test]
fn refused_names_say_what_is_wrong() {
    assert_eq!(refusal(StreamName::new("")), "stream name is empty: it must have 1 to 128 characters");
    let text = refusal(StreamName::new("a\u{1b}[31mb"));
    assert!(text.contains(r"contains `\u{1b}`"), "{text}");
    let text = refusal(ShardId::new("a/b"));
    assert!(text.starts_with("shard id `a/b` contains `/`"), "{text}");
    let text = refusal(StreamName::new(&"x".repeat(1_000_000)));
    assert!(text.contains("has 1000000 characters: at most 128") && text.len() < 300, "{text}");
}

#[test]
fn numbered_shards_have_one_spelling() {
    assert_eq!(ShardId::numbered(12).as_str(), "shardId-000000000012");
    for not_canonical in ["shardId-12", "shardId-0000000000012", "shardId-00000000001x", "shard-000000000012"]
    {
        assert_eq!(ShardId::new(not_canonical).expect("allowed").number(), None, "{not_canonical}");
    }
    let too_large = ShardId::new("shardId-99999999999999999999").expect("allowed");
    assert_eq!(too_large.number(), None);
}

#[test]
fn records_are_measured_in_characters_and_bytes() {
    let record = |key: &str, bytes: usize| NewRecord::new(key.to_string(), vec![0; bytes]);
    record(&"🦦".repeat(256), 0).check().expect("256 characters, whatever their bytes");
    record("k", limits::RECORD_BYTES_MAX).check().expect("at the limit");
    let text = refusal(record("", 0).check());
    assert_eq!(text, "partition key has 0 characters: 1 to 256 are allowed");
    let text = refusal(record(&"k".repeat(257), 0).check());
    assert!(text.contains("257") && text.contains("256"), "{text}");
    let text = refusal(record("k", limits::RECORD_BYTES_MAX + 1).check());
    assert!(text.contains("10485761") && text.contains("10485760"), "{text}");
    let text = refusal(NewRecord::new(vec![b'a', 0xff], "").check());
    assert_eq!(text, "partition key is not UTF-8: byte 1 is wrong");
}

#[test]
fn appends_are_measured_as_a_whole() {
    let records = |count: usize, bytes: usize| vec![NewRecord::new("k", vec![0; bytes]); count];
    refusal(check_append(&[]));
    check_append(&records(500, 1)).expect("at the limit");
    let text = refusal(check_append(&records(501, 1)));
    assert!(text.contains("501") && text.contains("500"), "{text}");
    let text = refusal(check_append(&records(2, limits::APPEND_BYTES_MAX / 2)));
    assert!(text.contains("10485762") && text.contains("10485760"), "{text}");
    // The key of the largest record must not push it over the limit of the append.
    check_append(&records(1, limits::RECORD_BYTES_MAX)).expect("the largest record alone");
}

#[test]
fn streams_are_measured() {
    let options = |shards, retention| StreamOptions { shards, retention };
    options(1, limits::RETENTION_MIN).check().expect("the least");
    options(limits::OPEN_SHARDS_MAX, limits::RETENTION_MAX).check().expect("the most");
    refusal(options(0, limits::RETENTION_MIN).check());
    refusal(options(limits::OPEN_SHARDS_MAX + 1, limits::RETENTION_MIN).check());
    let milli = Duration::from_millis(1);
    let text = refusal(check_retention(limits::RETENTION_MIN - milli));
    assert_eq!(text, "retention of 86399.999 seconds is not allowed: it must be 24 to 8760 hours");
    refusal(check_retention(limits::RETENTION_MAX + milli));
}

#[test]
fn read_limits_are_brought_into_range() {
    let limit = |records, bytes| ReadLimit { records, bytes };
    assert_eq!(limit(0, 0).clamped(), limit(1, 1));
    assert_eq!(limit(usize::MAX, usize::MAX).clamped(), ReadLimit::default());
    assert_eq!(limit(3, 4).clamped(), limit(3, 4));
}

proptest! {
    #[test]
    fn a_refusal_never_prints_control_characters(name in any::<String>()) {
        if let Err(error) = StreamName::new(&name) {
            let text = error.to_string();
            prop_assert!(text.chars().all(|c| c == '…' || c == ' ' || c.is_ascii_graphic()), "{text:?}");
            prop_assert!(text.len() < 1_500);
        }
    }

    #[test]
    fn numbers_of_shards_survive(number in any::<u64>()) {
        let id = ShardId::numbered(number);
        prop_assert_eq!(id.number(), Some(number));
        prop_assert_eq!(ShardId::new(id.as_str()), Ok(id));
    }
}
