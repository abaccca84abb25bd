//! Hash keys are those of Kinesis, and cutting and joining ranges neither loses nor doubles a key.

use anabranch_model::{Error, HashKey, HashRange};
use proptest::prelude::*;

fn range() -> impl Strategy<Value = HashRange> {
    (any::<u128>(), any::<u128>()).prop_map(|(a, b)| {
        HashRange::new(HashKey::new(a.min(b)), HashKey::new(a.max(b)))
            .expect("the first key is the smaller one")
    })
}

/// Asserts that the ranges cover the whole space, one behind the other.
fn assert_partition(ranges: &[HashRange]) {
    assert_eq!(ranges[0].first(), HashKey::MIN);
    assert_eq!(ranges[ranges.len() - 1].last(), HashKey::MAX);
    for pair in ranges.windows(2) {
        assert_eq!(pair[0].last().get() + 1, pair[1].first().get());
    }
}

#[test]
fn md5_vectors_of_rfc_1321() {
    for (text, digest) in [
        ("", 0xd41d8cd98f00b204e9800998ecf8427e),
        ("a", 0x0cc175b9c0f1b6a831c399e269772661),
        ("abc", 0x900150983cd24fb0d6963f7d28e17f72),
        ("message digest", 0xf96b697d7cb7938d525a2f31aaf161d0),
        ("12345678901234567890123456789012345678901234567890123456789012345678901234567890", {
            0x57edf4a22be3c955ac49da2e2107b67a
        }),
    ] {
        assert_eq!(HashKey::of(text.as_bytes()), HashKey::new(digest), "{text:?}");
        assert_eq!(HashKey::of_each([text.as_bytes()].into_iter()), [HashKey::new(digest)], "{text:?}");
    }
}

proptest! {
    /// Keys of up to 55 bytes take one block of MD5, longer ones more.
    #[test]
    fn the_keys_of_many_are_those_of_each(keys in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..70), 0..20)) {
        let each: Vec<HashKey> = keys.iter().map(|key| HashKey::of(key)).collect();
        prop_assert_eq!(HashKey::of_each(keys.iter().map(|key| &key[..])), each);
    }
}

#[test]
fn two_shards_of_kinesis_meet_in_the_middle() {
    let halves = HashRange::even(2);
    assert_eq!(halves[0].to_string(), "0 to 170141183460469231731687303715884105727");
    assert_eq!(
        halves[1].to_string(),
        "170141183460469231731687303715884105728 to 340282366920938463463374607431768211455"
    );
    // Kinesis cuts into three like this, the remainder in the last one.
    assert_eq!(HashRange::even(3)[0].last().to_string(), "113427455640312821154458202477256070484");
}

#[test]
fn every_allowed_count_of_shards_partitions_the_space() {
    for count in (1..=1_024).chain([9_999, 10_000]) {
        let ranges = HashRange::even(count);
        assert_eq!(ranges.len(), count);
        assert_partition(&ranges);
    }
    assert_eq!(HashRange::even(0), [HashRange::ALL]);
}

#[test]
fn a_range_of_one_key_cannot_be_split() {
    let key = HashKey::new(7);
    let single = HashRange::new(key, key).expect("one key is a range");
    assert_eq!(single.midpoint(), None);
    let Err(Error::Invalid(text)) = single.split_at(key) else { panic!("it was split") };
    assert!(text.contains("cannot be split"), "{text}");
}

#[test]
fn refused_keys_are_named_and_harmless() {
    for bad in
        ["", "+1", "-1", "0x1", " 1", "1 ", "340282366920938463463374607431768211456", "\u{1b}[31m", "１"]
    {
        let Err(Error::Invalid(text)) = bad.parse::<HashKey>() else { panic!("{bad:?} was taken") };
        assert!(text.contains("from 0 to 340282366920938463463374607431768211455"), "{text}");
        assert!(text.chars().all(|c| c == '…' || c.is_ascii_graphic() || c == ' '), "{text:?}");
    }
    assert_eq!("340282366920938463463374607431768211455".parse(), Ok(HashKey::MAX));
}

proptest! {
    #[test]
    fn even_ranges_differ_by_less_than_their_count(count in 1usize..10_000) {
        let ranges = HashRange::even(count);
        assert_partition(&ranges);
        let size = |range: &HashRange| range.last().get() - range.first().get();
        let sizes: Vec<_> = ranges.iter().map(size).collect();
        let spread = sizes.iter().max().expect("not empty") - sizes.iter().min().expect("not empty");
        prop_assert!(spread < count as u128);
    }

    #[test]
    fn a_split_is_undone_by_a_merge(range in range(), at in any::<u128>()) {
        let at = HashKey::new(at);
        match range.split_at(at) {
            Ok([lower, upper]) => {
                prop_assert_eq!(upper.first(), at);
                prop_assert!(!lower.contains(at) && upper.contains(at));
                prop_assert_eq!(lower.merge(upper), Some(range));
                prop_assert_eq!(upper.merge(lower), Some(range));
            }
            Err(Error::Invalid(_)) => prop_assert!(at == range.first() || !range.contains(at)),
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn the_midpoint_halves(range in range()) {
        if let Some(middle) = range.midpoint() {
            let [lower, upper] = range.split_at(middle).expect("the middle lies inside");
            let size = |range: HashRange| range.last().get() - range.first().get();
            prop_assert!(size(lower).abs_diff(size(upper)) <= 1);
        }
    }

    #[test]
    fn only_neighbours_merge(one in range(), other in range()) {
        let touching = one.last().get().checked_add(1) == Some(other.first().get())
            || other.last().get().checked_add(1) == Some(one.first().get());
        prop_assert_eq!(one.merge(other).is_some(), touching);
    }

    #[test]
    fn keys_survive_their_text(key in any::<u128>()) {
        prop_assert_eq!(HashKey::new(key).to_string().parse(), Ok(HashKey::new(key)));
    }
}
