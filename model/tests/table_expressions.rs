//! Expressions: what holds, what an update makes of an item, what a projection leaves, and what is refused.

use anabranch_model::table::expression::{
    Comparison, Operand, RangeCondition, SetValue, exists, if_missing, list_append, missing, size,
};
use anabranch_model::table::{
    Condition, Item, Key, KeyAttribute, KeyCondition, KeyKind, KeySchema, KeyValue, Kind, Number, Path,
    Projection, Update, Value, path,
};
use proptest::prelude::*;

fn list(values: impl IntoIterator<Item = impl Into<Value>>) -> Value {
    Value::List(values.into_iter().map(Into::into).collect())
}

fn texts(elements: &[&str]) -> Value {
    Value::text_set(elements.iter().copied()).expect("a set")
}

fn numbers(elements: &[i32]) -> Value {
    Value::number_set(elements.iter().copied()).expect("a set")
}

fn sample() -> Item {
    Item::new()
        .with("text", "banana")
        .with("number", 5)
        .with("binary", &b"\x01\x02\x03"[..])
        .with("yes", true)
        .with("null", Value::Null)
        .with("list", list(["a", "b", "c"]))
        .with("map", Item::new().with("x", 1).with("y", Item::new().with("z", list([1, 2]))))
        .with("texts", texts(&["a", "b"]))
        .with("numbers", numbers(&[1, 2]))
}

fn p(text: &str) -> Path {
    path(text)
}

#[test]
fn conditions_hold_as_they_should() {
    let item = sample();
    let nowhere = || path("map").name("y").index(3);
    let holding: Vec<Condition> = vec![
        p("number").equals(5),
        p("number").equals(Value::number("5.00").expect("number")),
        p("number").differs("5"),
        p("number").below(6),
        p("number").above(4).and(p("number").at_least(5)).and(p("number").at_most(5)),
        p("text").below("c"),
        p("binary").above(&b"\x01\x02"[..]),
        p("number").between(5, 7),
        p("text").between("banana", "banana"),
        p("number").one_of([1, 5]),
        p("map").equals(Item::new().with("y", Item::new().with("z", list([1, 2]))).with("x", 1)),
        p("texts").equals(texts(&["b", "a"])),
        path("map").name("y").name("z").index(1).equals(path("numbers").equals(0).holds(&item) as i32 + 2),
        exists("null"),
        missing("nothing"),
        missing(nowhere()),
        Condition::HasKind(p("null"), Kind::Null),
        Condition::HasKind(p("texts"), Kind::TextSet),
        p("text").begins_with("ban"),
        p("binary").begins_with(&b"\x01"[..]),
        p("text").contains("nan"),
        p("binary").contains(&b"\x02\x03"[..]),
        p("list").contains("b"),
        p("texts").contains("b"),
        p("numbers").contains(2),
        size("text").equals(6),
        size("binary").equals(3),
        size("list").equals(3),
        size("map").equals(2),
        size("numbers").equals(2),
        size(path("map").name("y").name("z")).at_least(2),
        p("nothing").equals(1).negated(),
        // What is missing is not equal to anything, not even to something else that is missing.
        p("nothing").differs(1),
        p("nothing").differs(p("void")),
        p("yes").equals(false).or(p("yes").equals(true)),
    ];
    for condition in holding {
        assert!(condition.holds(&item), "{condition:?}");
        assert_eq!(condition.check(), Ok(()), "{condition:?}");
    }
    let failing: Vec<Condition> = vec![
        p("number").equals("5"),
        p("number").below("6"),
        p("text").above(1),
        p("nothing").equals(p("void")),
        p("nothing").below(1),
        p("nothing").between(0, 1),
        p("nothing").one_of([1]),
        p("nothing").begins_with(""),
        p("number").begins_with("5"),
        p("number").contains(5),
        p("texts").contains(1),
        p("list").contains(1),
        size("number").at_least(0),
        exists(nowhere()),
        Condition::HasKind(p("nothing"), Kind::Null),
        p("yes").above(p("null")),
        p("number").above(5).or(p("number").below(5)),
        exists("text").and(missing("text")),
    ];
    for condition in failing {
        assert!(!condition.holds(&item), "{condition:?}");
        assert_eq!(condition.check(), Ok(()), "{condition:?}");
    }
}

#[test]
fn bad_conditions_are_refused() {
    let many =
        |count: usize| (0..count).map(|n| p("a").equals(n as i32)).reduce(Condition::and).expect("some");
    let deep = |count: usize| (0..count).fold(exists("a"), |inner, _| inner.negated());
    for condition in [
        p("a").below(true),
        p("a").at_least(list([1])),
        p("a").between(2, 1),
        p("a").between(1, "b"),
        p("a").begins_with(1),
        p("a").one_of(0..101),
        p("a").one_of(Vec::<Operand>::new()),
        many(151),
        deep(301),
        deep(100_000),
        Condition::And(Vec::new()),
    ] {
        assert!(condition.check().is_err());
        // Taking it apart by hand keeps a deep one from overflowing the stack.
        let mut rest = condition;
        while let Condition::Not(inner) = rest {
            rest = *inner;
        }
    }
    assert_eq!(many(150).check(), Ok(()));
    assert_eq!(p("a").one_of(0..100).check(), Ok(()));
    assert_eq!(deep(299).check(), Ok(()));
}

fn updated(update: Update) -> anabranch_model::Result<Item> {
    let key = Item::new().with("k", 1);
    let old = sample().with("k", 1);
    update.apply(Some(&old), &key).map(|item| item.expect("an item"))
}

#[test]
fn updates_see_the_item_as_it_was() {
    let update = Update::new()
        .set("number", p("number").plus(1))
        .set("copy", p("number"))
        .set("less", p("number").minus(Value::number("0.5").expect("number")))
        .set("sum", if_missing("nothing", 10).plus(p("number")))
        .set("kept", if_missing("text", "other"))
        .set("list", list_append(list(["z"]), p("list")))
        .set("made", list_append(if_missing("nothing", list(Vec::<Value>::new())), list([1])))
        .remove("text");
    let item = updated(update).expect("an item");
    let expected = sample()
        .with("k", 1)
        .with("number", 6)
        .with("copy", 5)
        .with("less", Value::number("4.5").expect("number"))
        .with("sum", 15)
        .with("kept", "banana")
        .with("list", list(["z", "a", "b", "c"]))
        .with("made", list([1]));
    let mut expected = expected;
    expected.remove("text");
    assert_eq!(item, expected);
}

#[test]
fn updates_reach_into_lists_and_maps() {
    let update = Update::new()
        .set(path("list").index(9), "second")
        .set(path("list").index(7), "first")
        .set(path("list").index(1), "B")
        .remove(path("list").index(0))
        .remove(path("list").index(3))
        .set(path("map").name("y").name("w"), true)
        .remove(path("map").name("x"))
        .add(path("map").name("n"), 3);
    let item = updated(update).expect("an item");
    assert_eq!(item.get("list"), Some(&list(["B", "c", "first", "second"])));
    let y = Item::new().with("z", list([1, 2])).with("w", true);
    assert_eq!(item.get("map"), Some(&Value::Map(Item::new().with("y", y).with("n", 3))));
}

#[test]
fn sets_and_numbers_are_added_to_and_taken_from() {
    let update = Update::new()
        .add("number", -7)
        .add("fresh", 2)
        .add("texts", texts(&["b", "c"]))
        .add("bag", numbers(&[9]))
        .delete("numbers", numbers(&[1, 2, 3]))
        .delete("none", texts(&["a"]));
    let item = updated(update).expect("an item");
    assert_eq!(item.get("number"), Some(&(-2).into()));
    assert_eq!(item.get("fresh"), Some(&2.into()));
    assert_eq!(item.get("texts"), Some(&texts(&["a", "b", "c"])));
    assert_eq!(item.get("bag"), Some(&numbers(&[9])));
    assert_eq!(item.get("numbers"), None);
    assert_eq!(item.get("none"), None);
}

#[test]
fn an_update_makes_an_item_unless_it_only_removes() {
    let key = Item::new().with("k", 1);
    assert_eq!(Update::new().apply(None, &key), Ok(Some(key.clone())));
    assert_eq!(Update::new().set("a", 1).apply(None, &key), Ok(Some(key.clone().with("a", 1))));
    assert_eq!(Update::new().remove("a").apply(None, &key), Ok(None));
    assert_eq!(Update::new().delete("a", texts(&["x"])).apply(None, &key), Ok(None));
    assert_eq!(Update::new().remove(path("a").name("b")).apply(None, &key), Ok(None));
    assert_eq!(Update::new().remove(path("a").index(0)).apply(None, &key), Ok(None));
    assert!(Update::new().set(path("a").name("b"), 1).apply(None, &key).is_err());
    assert_eq!(Update::new().add("a", 1).remove("b").apply(None, &key), Ok(Some(key.with("a", 1))));
}

#[test]
fn bad_updates_are_refused() {
    let invalid = path("nothing").name("x");
    for update in [
        Update::new().set(invalid.clone(), 1),
        Update::new().remove(invalid.clone()),
        Update::new().add(invalid, 1),
        Update::new().set(path("text").name("x"), 1),
        Update::new().set(path("list").name("x"), 1),
        Update::new().set(path("map").index(0), 1),
        Update::new().set("a", p("nothing")),
        Update::new().set("a", p("text").plus(1)),
        Update::new().set("a", p("nothing").plus(1)),
        Update::new().set("a", list_append(p("text"), list([1]))),
        Update::new().add("text", 1),
        Update::new().add("texts", numbers(&[1])),
        Update::new().delete("numbers", texts(&["1"])),
        Update::new().delete("text", texts(&["1"])),
        Update::new().set("number", Value::Number(1.into())).remove("number"),
        Update::new().set("map", 1).set(path("map").name("x"), 2),
        Update::new().remove(path("map").name("x")).set("map", 1),
        Update::new().set(path("list").index(0), 1).set(path("list").name("x"), 2),
    ] {
        assert!(updated(update.clone()).is_err(), "{update:?}");
    }
    let schema = KeySchema::hash("k", KeyKind::Number).and_range("r", KeyKind::Text);
    for update in [
        Update::new().set("k", 1),
        Update::new().remove("r"),
        Update::new().add("a", "text"),
        Update::new().delete("a", 1),
        (0..301).fold(Update::new(), |update, n| update.remove(path(format!("a{n}")))),
        (0..150)
            .fold(Update::new(), |update, n| update.set(path(format!("a{n}")), p("x").plus(1)))
            .remove("b"),
    ] {
        assert!(update.check(&schema).is_err(), "{update:?}");
    }
    assert_eq!(Update::new().set("a", SetValue::Operand(1.into())).check(&schema), Ok(()));
}

#[test]
fn projections_merge_what_belongs_together() {
    let item = sample();
    let projection = Projection::of([
        path("number"),
        path("list").index(2),
        path("list").index(0),
        path("list").index(7),
        path("map").name("x"),
        path("map").name("y").name("z").index(1),
        path("nothing"),
        path("text").name("x"),
    ]);
    let y = Item::new().with("z", list([2]));
    let expected = Item::new()
        .with("number", 5)
        .with("list", list(["a", "c"]))
        .with("map", Item::new().with("x", 1).with("y", y));
    assert_eq!(projection.apply(&item), Ok(expected));
    assert_eq!(projection.check(), Ok(()));
    for bad in [
        Projection::of(Vec::<Path>::new()),
        Projection::of([path("a"), path("a")]),
        Projection::of([path("a"), path("a").name("b")]),
        Projection::of([path("a").index(1).name("b"), path("a").index(1)]),
        Projection::of([path("a").index(1), path("a").name("b")]),
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
}

#[test]
fn bad_key_conditions_are_refused() {
    let schema = KeySchema::hash("h", KeyKind::Text).and_range("r", KeyKind::Number);
    let of = || KeyCondition::of("h", "a");
    assert!(of().bounds(&schema).is_ok());
    for bad in [
        KeyCondition::of("x", "a"),
        KeyCondition::of("h", 1),
        KeyCondition::of("h", ""),
        of().and("x", RangeCondition::equals(1)),
        of().and("r", RangeCondition::equals("1")),
        of().and("r", RangeCondition::between(2, 1)),
        of().and("r", RangeCondition::begins_with("1")),
        of().and("r", RangeCondition::Compare(Comparison::NotEqual, 1.into())),
    ] {
        assert!(bad.bounds(&schema).is_err(), "{bad:?}");
    }
    assert!(of().and("r", RangeCondition::equals(1)).bounds(&KeySchema::hash("h", KeyKind::Text)).is_err());
}

fn any_range(kind: KeyKind) -> BoxedStrategy<KeyValue> {
    match kind {
        KeyKind::Text => "[\0ab\u{ff}]{1,3}".prop_map(KeyValue::Text).boxed(),
        KeyKind::Number => (-30..30i64, -2..2i32)
            .prop_map(|(n, e)| KeyValue::Number(format!("{n}E{e}").parse::<Number>().expect("number")))
            .boxed(),
        KeyKind::Binary => proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0xff)], 1..3)
            .prop_map(|bytes| KeyValue::Binary(bytes.into()))
            .boxed(),
    }
}

proptest! {
    /// The bytes of a key lie within the bounds of a condition exactly if the condition holds for the item.
    #[test]
    fn bounds_cover_what_conditions_hold_for(
        (kind, one, bounds, which) in prop_oneof![Just(KeyKind::Text), Just(KeyKind::Number), Just(KeyKind::Binary)]
            .prop_flat_map(|kind| (Just(kind), any_range(kind), [any_range(kind), any_range(kind)], 0..8usize)),
        same_group in any::<bool>(),
    ) {
        let schema = KeySchema::hash("h", KeyKind::Text).and_range("r", kind);
        let mut values = bounds.clone();
        values.sort();
        let [low, high] = values.map(|value| value.value());
        let range = match which {
            0 => RangeCondition::equals(low),
            1 => RangeCondition::below(low),
            2 => RangeCondition::at_most(low),
            3 => RangeCondition::above(low),
            4 => RangeCondition::at_least(low),
            5 if kind != KeyKind::Number => RangeCondition::begins_with(low),
            6 => RangeCondition::equals(one.value()),
            _ => RangeCondition::between(low, high),
        };
        let condition = KeyCondition::of("h", "a").and("r", range);
        let hash = if same_group { "a" } else { "b" };
        let key = Key::new(KeyValue::Text(hash.into()), Some(one));
        let bounds = condition.bounds(&schema).expect("a good condition");
        let bytes = key.bytes();
        let within = bytes >= bounds.from && bounds.before.is_none_or(|before| bytes < before);
        prop_assert_eq!(within, condition.holds(&schema.item(&key)));
    }
}

#[test]
fn keys_of_several_attributes_have_values_from_the_first_on() {
    let attribute = |name: &str, kind| KeyAttribute { name: name.to_string(), kind };
    let hash = vec![attribute("a", KeyKind::Text), attribute("b", KeyKind::Number)];
    let range = vec![attribute("r", KeyKind::Text), attribute("s", KeyKind::Number)];
    let schema = KeySchema::several(hash, range).unwrap();
    assert!(schema.check().is_ok() && schema.has_several());
    let item = |b: i32, r: &str, s: i32| Item::new().with("a", "x").with("b", b).with("r", r).with("s", s);
    let items = [item(1, "p", 2), item(1, "p", 10), item(1, "pq", 1), item(1, "q", 1), item(2, "p", 2)];
    let bytes = |item: &Item| schema.key_of(item).unwrap().bytes();
    for pair in items[..4].windows(2) {
        assert!(bytes(&pair[0]) < bytes(&pair[1]), "{pair:?}");
    }
    for item in &items {
        let mut encoded = &bytes(item)[..];
        assert_eq!(schema.item(&schema.decode(&mut encoded).unwrap()), *item);
        assert!(encoded.is_empty());
    }
    let of = || KeyCondition::of("a", "x").also("b", 1);
    for (condition, found) in [
        (of(), vec![0, 1, 2, 3]),
        (of().and("r", RangeCondition::equals("p")), vec![0, 1]),
        (of().and("r", RangeCondition::begins_with("p")), vec![0, 1, 2]),
        (of().also("r", "p"), vec![0, 1]),
        (of().also("r", "p").and("s", RangeCondition::above(2)), vec![1]),
        (of().also("s", 2).also("r", "p"), vec![0]),
    ] {
        let bounds = condition.bounds(&schema).unwrap();
        for (at, item) in items.iter().enumerate() {
            let place = bytes(item);
            let within = place >= bounds.from && bounds.before.as_ref().is_none_or(|before| place < *before);
            assert_eq!((within, condition.holds(item)), (found.contains(&at), found.contains(&at)), "{at}");
        }
    }
    for wrong in [
        KeyCondition::of("a", "x"),
        KeyCondition::of("b", 1).also("a", "x"),
        of().also("a", "y"),
        of().also("s", 2),
        of().and("s", RangeCondition::equals(2)),
        of().also("c", 1),
    ] {
        assert!(wrong.bounds(&schema).is_err(), "{wrong:?}");
    }
    let twice =
        KeySchema::several(vec![attribute("a", KeyKind::Text), attribute("a", KeyKind::Text)], vec![]);
    assert!(twice.unwrap().check().is_err());
    let five = (0..5).map(|n| attribute(&n.to_string(), KeyKind::Text)).collect();
    assert!(KeySchema::several(five, vec![]).unwrap().check().is_err());
}
