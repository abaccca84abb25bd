//! What the edge of the blob model lets in, and what its refusals say.

use std::collections::BTreeMap;

use anabranch_model::blob::{
    BlobKey, BlobMeta, BucketName, Checksums, ETag, ETagMatch, Header, Part, PartChoice, PartNumber,
    Properties, Range, ReadConditions, UploadId, WriteCondition, check_parts,
};
use anabranch_model::{Error, Timestamp, limits};
use proptest::prelude::*;

fn refusal<T: std::fmt::Debug>(result: anabranch_model::Result<T>) -> String {
    match result {
        Err(Error::Invalid(text)) => text,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn bucket_names_are_host_names() {
    for name in ["abc", "a-b.c-1", "1.2.3", "999.1.1.1", &"x".repeat(63)] {
        assert_eq!(BucketName::new(name).expect("allowed").as_str(), name);
    }
    for (name, fault) in [
        ("ab", "has 2 characters"),
        (&"x".repeat(64), "has 64 characters"),
        ("", "has 0 characters"),
        ("Abc", "contains `A`"),
        ("a_b", "contains `_`"),
        ("a/b", "contains `/`"),
        ("-abc", "must begin and end"),
        ("abc.", "must begin and end"),
        ("a..b", "two dots"),
        ("foo.-bar", "side by side"),
        ("foo-.bar", "side by side"),
        ("xn--abc", "begins with `xn--`"),
        ("192.168.5.4", "form of an address"),
        ("b\u{fc}cher", r"contains `\u{fc}`"),
    ] {
        let text = refusal(BucketName::new(name));
        assert!(text.contains(fault), "{text}");
    }
}

#[test]
fn keys_are_any_text_of_1_to_1024_bytes() {
    for key in ["/", "..", "../../etc/passwd", "//a//", "a\0b", "\u{1b}[31m", "e\u{301}", "\u{e9}", " ", "🦦"]
    {
        assert_eq!(BlobKey::new(key).expect("allowed").as_str(), key);
    }
    BlobKey::new(&"k".repeat(1_024)).expect("at the limit");
    // The limit counts bytes, not characters.
    BlobKey::new(&"🦦".repeat(256)).expect("at the limit");
    let text = refusal(BlobKey::new(&"🦦".repeat(257)));
    assert!(text.contains("has 1028 bytes: 1 to 1024") && text.len() < 1_000, "{text}");
    refusal(BlobKey::new(&"k".repeat(1_025)));
    refusal(BlobKey::new(""));
    assert_eq!(BlobKey::new("a\0\u{202e}b").expect("allowed").to_string(), r"a\u{0}\u{202e}b");
}

#[test]
fn part_numbers_end_at_ten_thousand() {
    assert_eq!(PartNumber::new(1).map(PartNumber::get), Ok(1));
    assert_eq!(PartNumber::new(10_000).map(PartNumber::get), Ok(10_000));
    for number in [0, 10_001, 65_537, u64::MAX] {
        assert!(refusal(PartNumber::new(number)).contains("1 to 10000"));
    }
}

#[test]
fn tags_and_upload_ids_are_visible() {
    for bad in ["", "a b", "a\"b", "\u{e9}", &"x".repeat(257)] {
        refusal(ETag::new(bad));
    }
    for bad in ["", "a b", "\n", &"x".repeat(1_025)] {
        refusal(UploadId::new(bad));
    }
    assert_eq!(ETag::of_md5([0xab; 16]).md5(), Some([0xab; 16]));
    assert_eq!(ETag::of_parts(&[[0xab; 16]]).md5(), None);
    assert_eq!(ETag::of_hash([0xab; 16]).as_str(), format!("{}-1", "ab".repeat(16)));
    assert_eq!(ETag::of_hash([0xab; 16]).md5(), None);
    for tag in [ETag::of_hash([0xab; 16]), ETag::of_md5([0xab; 16])] {
        assert_eq!(tag.digest(), Some([0xab; 16]));
    }
    assert_eq!(ETag::new("ab-1").expect("visible").digest(), None);
    assert_eq!(ETag::new(&"AB".repeat(16)).expect("visible").md5(), None);
}

#[test]
fn metadata_is_measured_with_its_names() {
    let properties = |metadata: &[(&str, &str)]| Properties {
        metadata: metadata.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        ..Properties::default()
    };
    let value = "v".repeat(limits::BLOB_METADATA_BYTES_MAX - 4);
    properties(&[("name", &value)]).check().expect("at the limit");
    let text = refusal(properties(&[("name", &value), ("n", "")]).check());
    assert!(text.contains("2049") && text.contains("2048"), "{text}");
    properties(&[("a-b_c.1", "Zürich 🦦")]).check().expect("UTF-8");
    for (name, value) in [("", "v"), ("Name", "v"), ("a:b", "v"), ("a b", "v"), ("a", "v\r\nx: y")] {
        refusal(properties(&[(name, value)]).check());
    }
    let headed = |value: &str| {
        let headers = BTreeMap::from([(Header::ContentDisposition, value.to_string())]);
        Properties { headers, ..Properties::default() }.check()
    };
    headed("attachment; filename=Zürich").expect("UTF-8");
    for value in ["a\nb", "a\u{7f}", "\u{85}"] {
        refusal(headed(value));
    }
}

#[test]
fn ranges_resolve_as_readers_expect() {
    assert_eq!(Range::FromTo(0, 0).resolve(10, &[]), Ok(0..1));
    assert_eq!(Range::FromTo(3, u64::MAX).resolve(10, &[]), Ok(3..10));
    assert_eq!(Range::From(9).resolve(10, &[]), Ok(9..10));
    assert_eq!(Range::Last(3).resolve(10, &[]), Ok(7..10));
    assert_eq!(Range::Last(11).resolve(10, &[]), Ok(0..10));
    for range in [Range::From(10), Range::FromTo(10, 12), Range::FromTo(3, 2), Range::Last(0)] {
        assert_eq!(range.resolve(10, &[]), Err(Error::RangeInvalid { size: 10 }), "{range:?}");
    }
    let part = |number| Range::Part(PartNumber::new(number).expect("a part number"));
    assert_eq!(part(1).resolve(10, &[]), Ok(0..10));
    assert_eq!(part(1).resolve(0, &[]), Ok(0..0));
    assert_eq!(part(1).resolve(10, &[4, 4, 2]), Ok(0..4));
    assert_eq!(part(3).resolve(10, &[4, 4, 2]), Ok(8..10));
    for (number, parts) in [(2, &[][..]), (4, &[4, 4, 2]), (10_000, &[4, 4, 2])] {
        let missing = Error::PartNotFound(PartNumber::new(number).expect("a part number"));
        assert_eq!(part(number).resolve(10, parts), Err(missing));
    }
    for range in [Range::From(0), Range::FromTo(0, 0), Range::Last(1)] {
        assert_eq!(range.resolve(0, &[]), Err(Error::RangeInvalid { size: 0 }), "{range:?}");
    }
}

#[test]
fn write_conditions_mean_what_they_say() {
    let (bucket, key) = (BucketName::new("bucket").expect("allowed"), BlobKey::new("key").expect("allowed"));
    let (one, other) = (ETag::of_md5([1; 16]), ETag::of_md5([2; 16]));
    let check = |condition: &WriteCondition, current| condition.check(&bucket, &key, current);
    let failed = || Err(Error::PreconditionFailed(key.clone()));
    let absent = || Err(Error::BlobNotFound(bucket.clone(), key.clone()));
    for (condition, on_none, on_one) in [
        (WriteCondition::None, Ok(()), Ok(())),
        (WriteCondition::IfAbsent, Ok(()), failed()),
        (WriteCondition::IfPresent, absent(), Ok(())),
        (WriteCondition::IfMatch(one.clone()), absent(), Ok(())),
        (WriteCondition::IfMatch(other.clone()), absent(), failed()),
        (WriteCondition::IfNoneMatch(one.clone()), Ok(()), failed()),
        (WriteCondition::IfNoneMatch(other), Ok(()), Ok(())),
    ] {
        assert_eq!(check(&condition, None), on_none, "{condition:?}");
        assert_eq!(check(&condition, Some(&one)), on_one, "{condition:?}");
    }
}

#[test]
fn tags_go_before_times() {
    let key = BlobKey::new("key").expect("allowed");
    let meta = BlobMeta {
        size: 0,
        etag: ETag::of_md5([1; 16]),
        properties: Properties::default(),
        checksums: Checksums::default(),
        modified_at: Timestamp::from_millis(5_900),
        parts: None,
    };
    let (mine, other) = (ETagMatch::OneOf(vec![meta.etag.clone()]), ETagMatch::OneOf(Vec::new()));
    let seconds = |seconds: u64| Some(Timestamp::from_millis(seconds * 1_000));
    let check = |conditions: ReadConditions| conditions.check(&key, &meta);
    let none = ReadConditions::default;
    let failed = Err(Error::PreconditionFailed(key.clone()));
    let known = Err(Error::NotModified(key.clone()));
    assert_eq!(check(ReadConditions { if_match: Some(other.clone()), ..none() }), failed);
    assert_eq!(check(ReadConditions { if_none_match: Some(ETagMatch::Any), ..none() }), known);
    assert_eq!(check(ReadConditions { if_unmodified_since: seconds(4), ..none() }), failed);
    assert_eq!(check(ReadConditions { if_unmodified_since: seconds(5), ..none() }), Ok(()));
    assert_eq!(check(ReadConditions { if_modified_since: seconds(5), ..none() }), known);
    assert_eq!(check(ReadConditions { if_modified_since: seconds(4), ..none() }), Ok(()));
    let both = ReadConditions { if_match: Some(mine), if_unmodified_since: seconds(4), ..none() };
    assert_eq!(check(both), Ok(()));
    let both = ReadConditions { if_none_match: Some(other), if_modified_since: seconds(9), ..none() };
    assert_eq!(check(both), Ok(()));
}

#[test]
fn chosen_parts_ascend_exist_and_are_large_enough() {
    let part = |number: u64, size: u64| Part {
        number: PartNumber::new(number).expect("allowed"),
        size,
        etag: ETag::of_md5([number as u8; 16]),
        checksums: Checksums::default(),
        modified_at: Timestamp::EPOCH,
    };
    let parts = [part(1, limits::PART_BYTES_MIN), part(3, limits::PART_BYTES_MIN - 1), part(9, 0)];
    let check = |numbers: &[usize]| {
        let choices: Vec<_> = numbers.iter().map(|at| PartChoice::from(&parts[*at])).collect();
        check_parts(&choices, |number| parts.iter().find(|part| part.number == number).cloned())
    };
    assert_eq!(check(&[0, 1]).expect("the last may be small"), parts[..2].to_vec());
    check(&[2]).expect("the only one may be empty");
    assert_eq!(check(&[1, 0]), Err(Error::PartsOutOfOrder(parts[1].number, parts[0].number)));
    assert_eq!(check(&[0, 0]), Err(Error::PartsOutOfOrder(parts[0].number, parts[0].number)));
    let small = Error::PartTooSmall { part: parts[1].number, bytes: limits::PART_BYTES_MIN - 1 };
    assert_eq!(check(&[0, 1, 2]), Err(small));
    refusal(check(&[]));
    let wrong = PartChoice { number: parts[0].number, etag: ETag::of_md5([7; 16]) };
    let find = |_| Some(parts[0].clone());
    assert_eq!(check_parts(&[wrong], find), Err(Error::PartNotFound(parts[0].number)));
    assert_eq!(check_parts(&[(&parts[0]).into()], |_| None), Err(Error::PartNotFound(parts[0].number)));
}

proptest! {
    #[test]
    fn keys_keep_the_order_of_their_bytes(one in ".{1,20}", other in ".{1,20}") {
        let keys = [BlobKey::new(&one).expect("short"), BlobKey::new(&other).expect("short")];
        prop_assert_eq!(keys[0].cmp(&keys[1]), one.as_bytes().cmp(other.as_bytes()));
    }

    #[test]
    fn a_range_is_never_empty_and_never_outside(a in 0..20_u64, b in 0..20_u64, size in 0..20_u64) {
        for range in [Range::FromTo(a, b), Range::From(a), Range::Last(b)] {
            if let Ok(bytes) = range.resolve(size, &[]) {
                prop_assert!(bytes.start < bytes.end && bytes.end <= size);
            }
        }
    }
}
