//! Everything there is of a type travels as JSON and comes back as it was.

use std::fmt::Debug;

use anabranch_model::table::expression::{
    Comparison, Operand, SetOperand, SetValue, exists, if_missing, list_append, missing, size,
};
use anabranch_model::table::{
    Action, Alteration, ChangeView, Clustering, Column, ColumnKind, Condition, Get, Got, IndexOptions,
    IndexProjection, Item, KeyCondition, KeyKind, KeySchema, KeyspaceShape, Kind, Projection, Query,
    RangeCondition, Returning, Scan, TableOptions, Update, Value, Write, path,
};
use anabranch_model::{IndexName, limits};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;

/// Sends a value to the other side, and returns what travelled.
#[track_caller]
fn travels<M, B>(model: M) -> serde_json::Value
where
    M: Clone + Debug + PartialEq,
    B: Mirror<M> + Serialize + DeserializeOwned,
{
    let text = serde_json::to_string(&B::of(model.clone())).unwrap();
    assert_eq!(serde_json::from_str::<B>(&text).unwrap().back(), model, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn every_value() -> Vec<Value> {
    let number = |text: &str| Value::number(text).unwrap();
    let simple = vec![
        Value::Text(String::new()),
        "a \"quoted\" \u{0} ö".into(),
        number("0"),
        number("-12345678901234567890123456789012345678"),
        number("1e125"),
        number("-1.5e-130"),
        Value::Binary(Bytes::new()),
        Value::Binary(Bytes::from_static(b"\xff\x00")),
        true.into(),
        false.into(),
        Value::Null,
        Value::text_set(["a", ""]).unwrap(),
        Value::number_set([1, -1]).unwrap(),
        Value::binary_set([Bytes::from_static(b"\xfe"), Bytes::new()]).unwrap(),
        Value::TextSet(Default::default()),
    ];
    let map: Item = simple.iter().enumerate().map(|(n, value)| (n.to_string(), value.clone())).collect();
    let deep = (0..limits::NESTING_MAX).fold(Value::Null, |inner, _| Value::List(vec![inner]));
    let collections = [Value::List(simple.clone()), Value::Map(map), Value::List(vec![]), deep];
    simple.into_iter().chain(collections).collect()
}

#[test]
fn values_come_back() {
    for value in every_value() {
        travels::<_, ValueBody>(value);
    }
    let item = Item::new().with("id", "a").with("n", Value::number("1.50").unwrap()).with("z", Value::Null);
    assert_eq!(
        travels::<_, ItemBody>(item),
        json!({"id": {"S": "a"}, "n": {"N": "1.5"}, "z": {"NULL": true}})
    );
    for wrong in
        [r#"{"N":1}"#, r#"{"N":"x"}"#, r#"{"NULL":false}"#, r#"{"NS":["1","1.0"]}"#, r#"{"X":1}"#, "1"]
    {
        assert!(serde_json::from_str::<ValueBody>(wrong).is_err(), "{wrong}");
    }
}

fn every_condition() -> Vec<Condition> {
    let deep = || path("a").name("b").index(3).name("0");
    let comparisons = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Below,
        Comparison::AtMost,
        Comparison::Above,
        Comparison::AtLeast,
    ];
    let kinds = [
        Kind::Text,
        Kind::Number,
        Kind::Binary,
        Kind::Bool,
        Kind::Null,
        Kind::List,
        Kind::Map,
        Kind::TextSet,
        Kind::NumberSet,
        Kind::BinarySet,
    ];
    let mut all: Vec<Condition> =
        comparisons.into_iter().map(|how| Condition::compare(deep(), how, size("s"))).collect();
    all.extend(kinds.into_iter().map(|kind| Condition::HasKind(deep(), kind)));
    all.extend([
        path("a").between(1, 2),
        path("a").one_of([Operand::from(1), deep().into()]),
        exists(deep()),
        missing("x"),
        path("a").begins_with("b"),
        path("a").contains("c"),
    ]);
    let nested = Condition::And(all.clone()).or(exists("x")).negated();
    all.push(nested);
    all
}

#[test]
fn conditions_come_back() {
    for condition in every_condition() {
        travels::<_, ConditionBody>(condition);
    }
    assert_eq!(
        travels::<_, ConditionBody>(path("a").index(0).equals("x").negated()),
        json!({"not": {"compare": [{"path": ["a", 0]}, "equal", {"value": {"S": "x"}}]}})
    );
    for wrong in [r#"{"exists":[]}"#, r#"{"exists":[0]}"#, r#"{"nothing":["a"]}"#] {
        assert!(serde_json::from_str::<ConditionBody>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn reads_come_back() {
    let index = IndexName::new("by-colour").unwrap();
    let value = || Value::from(1);
    for range in [
        RangeCondition::equals(1),
        RangeCondition::below(1),
        RangeCondition::between(value(), value()),
        RangeCondition::begins_with("a"),
    ] {
        travels::<_, QueryBody>(Query::new(KeyCondition::of("g", "x").and("at", range)).backward());
    }
    let start = Some(Item::new().with("id", "a"));
    let scan = Scan::new().segment(1, 2).index(&index).limit(7).start(start).consistent();
    travels::<_, ScanBody>(scan.filter(exists("x")).only(Projection::of([path("a").index(0)])));
    travels::<_, ScanBody>(Scan::new().count_only());
    travels::<_, GetBody>(Get::new(Item::new().with("id", "a")).consistent().only(Projection::of(["a"])));
    for got in [Got::Item(Item::new()), Got::Missing, Got::NotRead] {
        travels::<_, GotBody>(got);
    }
}

#[test]
fn writes_come_back() {
    let key = || Item::new().with("id", "a");
    let operand = || SetOperand::Path(path("n"));
    let update = Update::new()
        .set("a", SetValue::Operand(if_missing("a", SetOperand::Value(1.into()))))
        .set("b", SetValue::Plus(operand(), SetOperand::Value(1.into())))
        .set("c", SetValue::Minus(operand(), operand()))
        .set("d", SetValue::Operand(list_append(operand(), operand())))
        .remove(path("e").index(1))
        .add("f", 1)
        .delete("g", Value::text_set(["x"]).unwrap());
    for action in
        [Action::Put(key()), Action::Update(key(), update), Action::Delete(key()), Action::Check(key())]
    {
        travels::<_, WriteBody>(Write::from(action).when(exists("id")).showing_item());
    }
    for returning in
        [Returning::Nothing, Returning::Old, Returning::New, Returning::UpdatedOld, Returning::UpdatedNew]
    {
        travels::<_, WriteBody>(Write::put(key()).returning(returning));
    }
}

#[test]
fn options_come_back() {
    let key = KeySchema::hash("g", KeyKind::Text).and_range("at", KeyKind::Number);
    let name = || IndexName::new("by-colour").unwrap();
    let include = IndexProjection::Include(["x".to_owned()].into());
    let boxed = |kind| Box::new(kind);
    let kind = ColumnKind::Frozen(boxed(ColumnKind::Map(
        boxed(ColumnKind::Set(boxed(ColumnKind::Uuid))),
        boxed(ColumnKind::Tuple(vec![
            ColumnKind::List(boxed(ColumnKind::Int)),
            ColumnKind::Defined("t".to_owned()),
        ])),
    )));
    let shape = KeyspaceShape {
        keyspace: "space".to_owned(),
        columns: vec![Column { name: "a".to_owned(), kind, shared: true }],
        partition: vec!["a".to_owned()],
        clustering: vec![Clustering { column: "b".to_owned(), descending: true }],
    };
    let index = IndexOptions::global(name(), KeySchema::hash("b", KeyKind::Binary)).showing(include);
    for view in [ChangeView::Keys, ChangeView::New, ChangeView::Old, ChangeView::Both] {
        let options = TableOptions::new(key.clone())
            .with_index(index.clone())
            .with_index(IndexOptions::local(name(), key.clone()).showing(IndexProjection::Keys))
            .with_time_to_live("until")
            .with_changes(view);
        travels::<_, TableOptionsBody>(TableOptions { keyspace: Some(shape.clone()), ..options });
        travels::<_, AlterationBody>(Alteration::Changes(Some(view)));
    }
    travels::<_, TableOptionsBody>(TableOptions::new(key));
    for alteration in [
        Alteration::AddIndex(index),
        Alteration::DropIndex(name()),
        Alteration::TimeToLive(Some("until".to_owned())),
        Alteration::TimeToLive(None),
        Alteration::Changes(None),
    ] {
        travels::<_, AlterationBody>(alteration);
    }
}
