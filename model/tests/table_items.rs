//! Items and keys: sizes, checks, and encodings that sort and come back.

use anabranch_model::limits::{ITEM_BYTES_MAX, NESTING_MAX};
use anabranch_model::table::{Item, Key, KeyKind, KeySchema, KeyValue, Names, Number, Value};
use bytes::Bytes;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

fn any_number() -> impl Strategy<Value = Number> {
    (any::<i64>(), -60..60i32)
        .prop_map(|(digits, scale)| format!("{digits}E{scale}").parse().expect("in range"))
}

fn any_bytes() -> impl Strategy<Value = Bytes> {
    vec(prop_oneof![Just(0), Just(0xff), any::<u8>()], 0..6).prop_map(Bytes::from)
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        ".{0,6}".prop_map(Value::Text),
        any_number().prop_map(Value::Number),
        any_bytes().prop_map(Value::Binary),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
        btree_set(".{0,3}", 1..4).prop_map(Value::TextSet),
        btree_set(any_number(), 1..4).prop_map(Value::NumberSet),
        btree_set(any_bytes(), 1..4).prop_map(Value::BinarySet),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::List),
            vec((".{1,4}", inner), 0..5).prop_map(|map| Value::Map(map.into_iter().collect())),
        ]
    })
}

fn any_item() -> impl Strategy<Value = Item> {
    vec((".{1,8}", any_value()), 0..6).prop_map(|attributes| attributes.into_iter().collect())
}

fn any_key(hash: KeyKind, range: KeyKind) -> impl Strategy<Value = Key> {
    (any_key_value(hash), any_key_value(range)).prop_map(|(hash, range)| Key::new(hash, Some(range)))
}

fn any_key_value(kind: KeyKind) -> BoxedStrategy<KeyValue> {
    match kind {
        KeyKind::Text => "[\0ab]{1,4}".prop_map(KeyValue::Text).boxed(),
        KeyKind::Number => any_number().prop_map(KeyValue::Number).boxed(),
        KeyKind::Binary => vec(prop_oneof![Just(0u8), Just(1), Just(0xff)], 1..4)
            .prop_map(|bytes| KeyValue::Binary(bytes.into()))
            .boxed(),
    }
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::Null, |inner, _| Value::List(vec![inner]))
}

#[test]
fn sizes_follow_the_rule() {
    for (value, size) in [
        (Value::from("abc"), 3),
        (Value::from("🦦"), 4),
        (Value::from(&b"abc"[..]), 3),
        (Value::from(true), 1),
        (Value::Null, 1),
        (Value::from(0), 1),
        (Value::from(1), 2),
        (Value::from(-123), 4),
        (Value::number("1.5").expect("number"), 2),
        (Value::List(vec![]), 3),
        (Value::List(vec![Value::Null, "ab".into()]), 3 + 2 + 3),
        (Value::Map(Item::new()), 3),
        (Value::Map(Item::new().with("name", "ab")), 3 + 1 + 4 + 2),
        (Value::text_set(["a", "bc"]).expect("set"), 3),
        (Value::number_set([1, 22]).expect("set"), 4),
        (Value::binary_set([&b"a"[..], b"bc"]).expect("set"), 3),
    ] {
        assert_eq!(value.size(), size, "{value:?}");
    }
    assert_eq!(Item::new().with("ab", "c").with("d", true).size(), 5);
}

#[test]
fn items_are_checked() {
    let full = |bytes| Item::new().with("k", "v").with("a", "x".repeat(bytes));
    assert_eq!(full(ITEM_BYTES_MAX - 3).check(), Ok(()));
    assert!(full(ITEM_BYTES_MAX - 2).check().is_err());
    assert_eq!(Item::new().with("a", nested(NESTING_MAX)).check(), Ok(()));
    assert!(Item::new().with("a", nested(NESTING_MAX + 1)).check().is_err());
    assert!(Item::new().with("a", Value::TextSet(Default::default())).check().is_err());
    assert!(Item::new().with("a", vec![Value::NumberSet(Default::default())]).check().is_err());
    assert!(Item::new().with("", 1).check().is_err());
    assert_eq!(Item::new().with("a", "").with("b", Bytes::new()).check(), Ok(()));
    assert!(Value::text_set(["a", "a"]).is_err());
    assert!(Value::number_set(["1", "1.0"].map(|text| text.parse::<Number>().expect("number"))).is_err());
    assert!(Value::binary_set(Vec::<Bytes>::new()).is_err());
}

#[test]
fn keys_are_extracted_or_say_what_is_wrong() {
    let schema = KeySchema::hash("h", KeyKind::Text).and_range("r", KeyKind::Number);
    let item = Item::new().with("h", "a").with("r", 1).with("x", true);
    let key = schema.key_of(&item).expect("a key");
    assert_eq!(schema.item(&key), Item::new().with("h", "a").with("r", 1));
    for (item, why) in [
        (Item::new().with("r", 1), "`h` is missing"),
        (Item::new().with("h", "a"), "`r` is missing"),
        (Item::new().with("h", 1).with("r", 1), "`h` must be text, not number"),
        (Item::new().with("h", "").with("r", 1), "`h` is empty"),
        (Item::new().with("h", "a".repeat(2049)).with("r", 1), "2049 bytes"),
        (Item::new().with("h", "a").with("r", 1).with("x", 1), "`x` is not part of the key"),
    ] {
        let error = schema.exact_key(&item).expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(schema.exact_key(&Item::new().with("h", "a".repeat(2048)).with("r", 1)).is_ok());
    let by_text = KeySchema::hash("h", KeyKind::Text).and_range("r", KeyKind::Text);
    assert!(by_text.key_of(&Item::new().with("h", "a").with("r", "r".repeat(1024))).is_ok());
    assert!(by_text.key_of(&Item::new().with("h", "a").with("r", "r".repeat(1025))).is_err());
    assert_eq!(by_text.index_key_of(&Item::new().with("h", "a")), Ok(None));
    assert!(by_text.index_key_of(&Item::new().with("h", "a").with("r", 5)).is_err());
    assert!(by_text.index_key_of(&Item::new().with("r", "")).is_err());
}

/// The bytes of stored items and keys are the same in every version.
#[test]
fn encodings_are_stable() {
    let item = Item::new()
        .with("b", true)
        .with("l", vec![Value::Null, Value::from(-15)])
        .with("s", Value::text_set(["x", "y"]).expect("set"))
        .with("t", "hi");
    let mut bytes = Vec::new();
    item.encode(&mut bytes);
    let expected = [
        4, 1, b'b', 5, 1, b'l', 7, 2, 6, 2, 1, 124, 239, 255, 1, b's', 9, 2, 1, b'x', 1, b'y', 1, b't', 1, 2,
        b'h', b'i',
    ];
    assert_eq!(bytes, expected);
    let key = Key::new(KeyValue::Text("a\0b".into()), Some(KeyValue::Number(7.into())));
    let bytes = key.bytes();
    assert_eq!(bytes[8..], [b'a', 0, 0xff, b'b', 0, 0, 3, 130, 71, 0]);
    assert_eq!(bytes[..8], key.place().to_be_bytes());
}

#[test]
fn damaged_items_are_refused() {
    let deep = [vec![1, 1, b'a'], [7, 1].repeat(100_000)].concat();
    assert!(Item::decode(&mut &deep[..]).is_err());
    let huge = [1, 1, b'a', 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    assert!(Item::decode(&mut &huge[..]).is_err());
    for out_of_order in [
        &[2, 1, b'b', 6, 1, b'a', 6][..],
        &[2, 1, b'a', 6, 1, b'a', 6],
        &[1, 1, b's', 9, 2, 1, b'y', 1, b'x'],
        &[1, 1, b's', 9, 2, 1, b'x', 1, b'x'],
        &[0x81, 0, 1, b'a', 6],
    ] {
        assert!(Item::decode(&mut &out_of_order[..]).is_err(), "{out_of_order:?}");
    }
}

proptest! {
    #[test]
    fn items_come_back(item in any_item()) {
        let mut bytes = Vec::new();
        item.encode(&mut bytes);
        let length = bytes.len();
        bytes.push(7);
        let mut from = &bytes[..];
        prop_assert_eq!(Item::decode(&mut from), Ok(item));
        prop_assert_eq!(from, &[7]);
        prop_assert!(Item::decode(&mut &bytes[..length - 1]).is_err());
    }

    #[test]
    fn items_decode_alike_whatever_came_before(items in vec(any_item(), 1..6), odd in vec(prop_oneof![0u8..12, any::<u8>()], 0..24)) {
        let mut names = Names::default();
        for item in &items {
            let mut less = item.clone();
            let first = item.iter().next().map(|(name, _)| name.to_owned());
            first.map(|name| less.remove(&name));
            for item in [item, item, &less, &item.clone().with("between", true), item] {
                let mut bytes = Vec::new();
                item.encode(&mut bytes);
                prop_assert_eq!(names.decode(&mut &bytes[..]), Ok(item.clone()));
                let before = names.decode(&mut &odd[..]);
                prop_assert_eq!(before, Item::decode(&mut &odd[..]));
            }
        }
    }

    #[test]
    fn any_bytes_decode_to_themselves_or_fail(bytes in vec(prop_oneof![0u8..12, any::<u8>()], 0..24)) {
        let mut from = &bytes[..];
        if let Ok(item) = Item::decode(&mut from) {
            let mut encoded = Vec::new();
            item.encode(&mut encoded);
            prop_assert_eq!(&encoded[..], &bytes[..bytes.len() - from.len()]);
        }
        let schema = KeySchema::hash("h", KeyKind::Text).and_range("r", KeyKind::Binary);
        let _ = schema.decode(&mut &bytes[..]);
    }

    #[test]
    fn keys_come_back_and_end(key in any_key(KeyKind::Text, KeyKind::Binary), other in any_key(KeyKind::Number, KeyKind::Text)) {
        let mut bytes = key.bytes();
        other.encode(&mut bytes);
        let mut from = &bytes[..];
        let schema = KeySchema::hash("h", KeyKind::Text).and_range("r", KeyKind::Binary);
        prop_assert_eq!(schema.decode(&mut from), Ok(key));
        let schema = KeySchema::hash("h", KeyKind::Number).and_range("r", KeyKind::Text);
        prop_assert_eq!(schema.decode(&mut from), Ok(other));
        prop_assert!(from.is_empty());
    }

    #[test]
    fn groups_lie_together_in_the_order_of_their_range(
        kinds in (0..3usize, 0..3usize),
        seed in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 12),
        texts in vec("[\0ab]{1,3}", 3),
    ) {
        let value = |kind: usize, index: usize| match kind {
            0 => KeyValue::Text(texts[index].clone()),
            1 => KeyValue::Number(Number::from([-3, 0, 20][index])),
            _ => KeyValue::Binary(texts[index].clone().into()),
        };
        let mut keys: Vec<_> = seed.iter().map(|(h, r)| {
            Key::new(value(kinds.0, h.index(3)), Some(value(kinds.1, r.index(3))))
        }).collect();
        keys.sort_by_key(Key::bytes);
        for pair in keys.windows(2) {
            let order = pair[0].place().cmp(&pair[1].place()).then_with(|| pair[0].cmp(&pair[1]));
            prop_assert!(order.is_le(), "{:?} before {:?}", pair[0], pair[1]);
        }
    }

    #[test]
    fn a_start_begins_what_it_should(one in any_key_value(KeyKind::Text), other in any_key_value(KeyKind::Text)) {
        let (mut start, mut whole) = (Vec::new(), Vec::new());
        one.encode_start(&mut start);
        other.encode(&mut whole);
        prop_assert_eq!(whole.starts_with(&start), other.text().starts_with(&one.text()));
    }
}
