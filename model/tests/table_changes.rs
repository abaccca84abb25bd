//! Changes, segments and options: what follows from them without a store.

use anabranch_model::Timestamp;
use anabranch_model::table::{
    Change, ChangeView, Event, Item, Key, KeyKind, KeySchema, KeyValue, Segment, TableOptions, Value,
};
use proptest::prelude::*;

fn item(n: i32) -> Item {
    Item::new().with("id", "a").with("n", n).with("list", vec![Value::Null])
}

fn change(old: Option<&Item>, new: Option<&Item>, view: ChangeView) -> Option<Change> {
    Change::between(
        Item::new().with("id", "a"),
        old,
        new,
        view,
        Timestamp::from_millis(1_700_000_000_000),
        false,
    )
}

#[test]
fn changes_come_back() {
    let (one, two) = (item(1), item(2));
    for view in [ChangeView::Keys, ChangeView::New, ChangeView::Old, ChangeView::Both] {
        for (old, new) in [(None, Some(&two)), (Some(&one), Some(&two)), (Some(&one), None)] {
            let mut change = change(old, new, view).expect("a difference");
            change.expired = change.event == Event::Remove;
            let bytes = change.encode();
            assert_eq!(Change::decode(&bytes), Ok(change));
            assert!(Change::decode(&bytes[..bytes.len() - 1]).is_err());
            assert!(Change::decode(&[&bytes[..], &[0]].concat()).is_err());
        }
    }
    assert_eq!(change(Some(&one), Some(&one.clone()), ChangeView::Both), None);
    assert_eq!(change(None, None, ChangeView::Both), None);
}

/// The bytes of changes are the same in every version.
#[test]
fn changes_have_stable_bytes() {
    let change = Change {
        event: Event::Remove,
        keys: Item::new().with("k", true),
        new: None,
        old: Some(Item::new()),
        at: Timestamp::from_millis(300),
        size: 2,
        expired: true,
    };
    assert_eq!(change.encode(), [1, 3, 6, 0xac, 2, 2, 1, 1, b'k', 5, 0]);
}

#[test]
fn items_expire_by_whole_seconds_of_the_last_years() {
    let options = TableOptions::new(KeySchema::hash("id", KeyKind::Text)).with_time_to_live("until");
    let now = Timestamp::from_millis(1_700_000_000_500);
    for (value, expired) in [
        (Value::from(1_700_000_000), true),
        (Value::from(1_700_000_001), false),
        (Value::number("1700000000.9").expect("a number"), true),
        (Value::number("1700000001.1").expect("a number"), false),
        (Value::number("1E-100").expect("a number"), false),
        (Value::from(1_700_000_000 - 5 * 365 * 24 * 3600 + 1), true),
        (Value::from(1_700_000_000 - 5 * 365 * 24 * 3600 - 1), false),
        (Value::from(-5), false),
        (Value::from("1600000000"), false),
        (Value::number("1E100").expect("a number"), false),
    ] {
        let item = Item::new().with("id", "a").with("until", value.clone());
        assert_eq!(options.has_expired(&item, now), expired, "{value:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_change_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(change) = Change::decode(&bytes) {
            prop_assert_eq!(Change::decode(&change.encode()), Ok(change));
        }
    }

    #[test]
    fn segments_are_a_partition(of in 1..2_000u32, text in "[a-z]{1,8}") {
        let key = Key::new(KeyValue::Text(text), None);
        let holding = (0..of).filter(|number| Segment { number: *number, of }.contains(&key)).count();
        prop_assert_eq!(holding, 1);
        prop_assert_eq!(Segment { number: 0, of }.first(), 0);
        prop_assert_eq!(Segment { number: of - 1, of }.last(), u64::MAX);
        for number in 1..of {
            prop_assert_eq!(Segment { number: number - 1, of }.last() + 1, Segment { number, of }.first());
        }
    }
}
