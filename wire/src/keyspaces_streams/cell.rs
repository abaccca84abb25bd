//! Values as cells of CQL: the type of the column says under which name a value stands.

use anabranch_model::table::{ColumnKind, Item, KeyspaceShape, Value};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value as Json, json};

/// A row: the cells of all columns that are not part of the key. Without a shape, all attributes beside the key.
pub(super) fn row(item: &Item, keys: &Item, shape: Option<&KeyspaceShape>) -> Json {
    let (mut values, mut shared) = (Map::new(), Map::new());
    for (name, value) in item.iter() {
        let column = shape.and_then(|shape| shape.columns.iter().find(|column| column.name == name));
        let in_key = match shape {
            Some(shape) => is_key(shape, name),
            None => keys.get(name).is_some(),
        };
        if in_key {
            continue;
        }
        let cells = if column.is_some_and(|column| column.shared) { &mut shared } else { &mut values };
        cells.insert(name.to_owned(), cell(value, column.map(|column| &column.kind)));
    }
    let mut row = Map::from_iter([("valueCells".to_owned(), Json::Object(values))]);
    if !shared.is_empty() {
        row.insert("staticCells".to_owned(), Json::Object(shared));
    }
    Json::Object(row)
}

fn is_key(shape: &KeyspaceShape, name: &str) -> bool {
    shape.partition.iter().any(|column| column == name)
        || shape.clustering.iter().any(|clustering| clustering.column == name)
}

/// The columns of the key that choose the partition, and those that order its rows. An image may know more of them than
/// the key of the table; without a shape all of them choose the partition.
pub(super) fn keys(keys: &Item, image: Option<&Item>, shape: Option<&KeyspaceShape>) -> (Json, Json) {
    let Some(shape) = shape else {
        let all = keys.iter().map(|(name, value)| (name.to_owned(), spelled(value, None)));
        return (Json::Object(all.collect()), json!({}));
    };
    let pick = |names: Vec<&String>| {
        let found = names.into_iter().filter_map(|name| {
            let value = keys.get(name).or_else(|| image?.get(name))?;
            let column = shape.columns.iter().find(|column| column.name == *name);
            Some((name.clone(), spelled(value, column.map(|column| &column.kind))))
        });
        Json::Object(found.collect())
    };
    let clustering = shape.clustering.iter().map(|clustering| &clustering.column).collect();
    (pick(shape.partition.iter().collect()), pick(clustering))
}

fn cell(value: &Value, kind: Option<&ColumnKind>) -> Json {
    match value {
        Value::Null => json!({}),
        value => json!({"value": spelled(value, kind)}),
    }
}

/// A value under the name of its type.
fn spelled(value: &Value, kind: Option<&ColumnKind>) -> Json {
    let element = |kinds: Option<&ColumnKind>, value: &Value| cell(value, kinds);
    match (kind, value) {
        (Some(ColumnKind::Frozen(inner)), value) => spelled(value, Some(inner)),
        (_, Value::Bool(value)) => json!({"boolT": value}),
        (_, Value::Binary(bytes)) => json!({"blobT": BASE64_STANDARD.encode(bytes)}),
        (Some(ColumnKind::Tuple(kinds)), Value::List(list)) => {
            let cells = list.iter().enumerate().map(|(at, value)| element(kinds.get(at), value));
            json!({"tupleT": cells.collect::<Vec<_>>()})
        }
        (Some(ColumnKind::Set(inner)), Value::List(list)) => {
            json!({"setT": list.iter().map(|value| element(Some(inner), value)).collect::<Vec<_>>()})
        }
        // What is not made of pairs is shown as the list that it is.
        (Some(ColumnKind::Map(key, inner)), Value::List(list))
            if list.iter().all(|value| pair(value).is_some()) =>
        {
            let entries = list.iter().filter_map(pair);
            let entries = entries.map(|(one, other)| entry(one, Some(key), other, Some(inner)));
            json!({"mapT": entries.collect::<Vec<_>>()})
        }
        (kind, Value::List(list)) => {
            let inner = if let Some(ColumnKind::List(inner)) = kind { Some(&**inner) } else { None };
            json!({"listT": list.iter().map(|value| element(inner, value)).collect::<Vec<_>>()})
        }
        (Some(ColumnKind::Defined(_)), Value::Map(map)) => {
            let fields = map.iter().map(|(name, value)| (name.to_owned(), cell(value, None)));
            json!({"udtT": Json::Object(fields.collect())})
        }
        (kind, Value::Map(map)) => {
            let (key, inner) = match kind {
                Some(ColumnKind::Map(key, inner)) => (Some(&**key), Some(&**inner)),
                _ => (None, None),
            };
            let entries = map.iter().map(|(name, value)| entry(&Value::from(name), key, value, inner));
            json!({"mapT": entries.collect::<Vec<_>>()})
        }
        (kind, Value::TextSet(_) | Value::NumberSet(_) | Value::BinarySet(_)) => {
            let inner = if let Some(ColumnKind::Set(inner)) = kind { Some(&**inner) } else { None };
            json!({"setT": elements(value).iter().map(|value| element(inner, value)).collect::<Vec<_>>()})
        }
        (kind, Value::Text(text)) => scalar(kind, "textT", text.clone()),
        (kind, Value::Number(number)) => scalar(kind, "decimalT", number.to_string()),
        (_, Value::Null) => json!({}),
    }
}

fn pair(value: &Value) -> Option<(&Value, &Value)> {
    match value {
        Value::List(list) => match list.as_slice() {
            [one, other] => Some((one, other)),
            _ => None,
        },
        _ => None,
    }
}

/// An entry of a map. What is null is left out: a client refuses a value that has no type.
fn entry(key: &Value, key_kind: Option<&ColumnKind>, value: &Value, kind: Option<&ColumnKind>) -> Json {
    let parts = [("key", key, key_kind), ("value", value, kind)].into_iter();
    let parts = parts.filter(|(_, value, _)| **value != Value::Null);
    Json::Object(parts.map(|(name, value, kind)| (name.to_owned(), spelled(value, kind))).collect())
}

fn elements(set: &Value) -> Vec<Value> {
    match set {
        Value::TextSet(set) => set.iter().cloned().map(Value::Text).collect(),
        Value::NumberSet(set) => set.iter().copied().map(Value::Number).collect(),
        Value::BinarySet(set) => set.iter().cloned().map(Value::Binary).collect(),
        _ => Vec::new(),
    }
}

/// A value that is a text in every answer.
fn scalar(kind: Option<&ColumnKind>, otherwise: &str, text: String) -> Json {
    let name = match kind {
        Some(ColumnKind::Ascii) => "asciiT",
        Some(ColumnKind::Bigint) => "bigintT",
        Some(ColumnKind::Counter) => "counterT",
        Some(ColumnKind::Date) => "dateT",
        Some(ColumnKind::Decimal) => "decimalT",
        Some(ColumnKind::Double) => "doubleT",
        Some(ColumnKind::Float) => "floatT",
        Some(ColumnKind::Inet) => "inetT",
        Some(ColumnKind::Int) => "intT",
        Some(ColumnKind::Smallint) => "smallintT",
        Some(ColumnKind::Text) => "textT",
        Some(ColumnKind::Time) => "timeT",
        Some(ColumnKind::Timestamp) => "timestampT",
        Some(ColumnKind::Timeuuid) => "timeuuidT",
        Some(ColumnKind::Tinyint) => "tinyintT",
        Some(ColumnKind::Uuid) => "uuidT",
        Some(ColumnKind::Varchar) => "varcharT",
        Some(ColumnKind::Varint) => "varintT",
        // A value of another kind than its column is told as what it is.
        _ => otherwise,
    };
    json!({name: text})
}

#[cfg(test)]
mod tests {
    use anabranch_model::table::{Clustering, Column};

    use super::*;

    fn column(name: &str, kind: ColumnKind, shared: bool) -> Column {
        Column { name: name.to_owned(), kind, shared }
    }

    fn shape() -> KeyspaceShape {
        let list = |kind| ColumnKind::List(Box::new(kind));
        KeyspaceShape {
            keyspace: "shop".to_owned(),
            columns: vec![
                column("customer", ColumnKind::Text, false),
                column("at", ColumnKind::Timestamp, false),
                column("total", ColumnKind::Decimal, false),
                column("owner", ColumnKind::Varchar, true),
                column("tags", ColumnKind::Set(Box::new(ColumnKind::Ascii)), false),
                column("lines", ColumnKind::Frozen(Box::new(list(ColumnKind::Int))), false),
                column(
                    "counts",
                    ColumnKind::Map(Box::new(ColumnKind::Text), Box::new(ColumnKind::Bigint)),
                    false,
                ),
                column("by", ColumnKind::Map(Box::new(ColumnKind::Int), Box::new(ColumnKind::Text)), false),
                column("pair", ColumnKind::Tuple(vec![ColumnKind::Int, ColumnKind::Uuid]), false),
                column("place", ColumnKind::Defined("place".to_owned()), false),
            ],
            partition: vec!["customer".to_owned()],
            clustering: vec![Clustering { column: "at".to_owned(), descending: true }],
        }
    }

    #[test]
    fn a_row_has_a_cell_for_each_column_beside_the_key() {
        let pair = |key: i32, value: &str| Value::List(vec![key.into(), value.into()]);
        let item = Item::new()
            .with("customer", "ada")
            .with("at", "1700000000000")
            .with("total", Value::number("1.50").unwrap())
            .with("owner", "o")
            .with("tags", Value::text_set(["x", "y"]).unwrap())
            .with("lines", vec![Value::from(1), Value::Null])
            .with("counts", Item::new().with("k", 7))
            .with("by", vec![pair(1, "one")])
            .with("pair", vec![Value::from(3), Value::from("u")])
            .with("place", Item::new().with("city", "Rome"));
        let shape = shape();
        let key = Item::new().with("customer", "ada").with("at", "1700000000000");
        assert_eq!(
            row(&item, &key, Some(&shape)),
            json!({
                "staticCells": {"owner": {"value": {"varcharT": "o"}}},
                "valueCells": {
                    "total": {"value": {"decimalT": "1.5"}},
                    "tags": {"value": {"setT": [{"value": {"asciiT": "x"}}, {"value": {"asciiT": "y"}}]}},
                    "lines": {"value": {"listT": [{"value": {"intT": "1"}}, {}]}},
                    "counts": {"value": {"mapT": [{"key": {"textT": "k"}, "value": {"bigintT": "7"}}]}},
                    "by": {"value": {"mapT": [{"key": {"intT": "1"}, "value": {"textT": "one"}}]}},
                    "pair": {"value": {"tupleT": [{"value": {"intT": "3"}}, {"value": {"uuidT": "u"}}]}},
                    "place": {"value": {"udtT": {"city": {"value": {"textT": "Rome"}}}}},
                }
            })
        );
        let (partition, clustering) = keys(&key, None, Some(&shape));
        assert_eq!(partition, json!({"customer": {"textT": "ada"}}));
        assert_eq!(clustering, json!({"at": {"timestampT": "1700000000000"}}));
    }

    #[test]
    fn what_has_no_type_is_left_out_and_what_is_no_pair_stays() {
        let map = ColumnKind::Map(Box::new(ColumnKind::Int), Box::new(ColumnKind::Text));
        let nothing = Value::List(vec![Value::List(vec![1.into(), Value::Null])]);
        assert_eq!(spelled(&nothing, Some(&map)), json!({"mapT": [{"key": {"intT": "1"}}]}));
        let inside = Value::Map(Item::new().with("k", Value::Null));
        assert_eq!(spelled(&inside, None), json!({"mapT": [{"key": {"textT": "k"}}]}));
        let odd = Value::List(vec![Value::List(vec![1.into(), 2.into()]), 3.into()]);
        assert_eq!(
            spelled(&odd, Some(&map)),
            json!({"listT": [{"value": {"listT": [{"value": {"decimalT": "1"}}, {"value": {"decimalT": "2"}}]}},
                {"value": {"decimalT": "3"}}]})
        );
    }

    #[test]
    fn without_a_shape_values_are_told_as_what_they_are() {
        let key = Item::new().with("id", "a");
        let item =
            key.clone().with("n", 1).with("b", &[0u8, 1][..]).with("yes", true).with("no", Value::Null);
        assert_eq!(
            row(&item, &key, None),
            json!({"valueCells": {"n": {"value": {"decimalT": "1"}}, "b": {"value": {"blobT": "AAE="}},
                "yes": {"value": {"boolT": true}}, "no": {}}})
        );
        assert_eq!(keys(&key, None, None).0, json!({"id": {"textT": "a"}}));
    }
}
