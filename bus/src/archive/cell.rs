//! Rows of keyspaces in the shape in which Keyspaces Streams tells of them: cells, each under the name of its type.

use anabranch_model::table::{ColumnKind, Item, KeyspaceShape, Value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json, json};

/// The cells of a row beside those of its key: those of the row, and those that the rows of its partition share.
pub(super) fn row(item: &Item, keys: &Item, shape: Option<&KeyspaceShape>) -> Json {
    let (mut own, mut shared) = (Map::new(), Map::new());
    for (name, value) in item.iter().filter(|(name, _)| !in_key(name, keys, shape)) {
        let column = shape.and_then(|shape| shape.columns.iter().find(|column| column.name == name));
        let cells = if column.is_some_and(|column| column.shared) { &mut shared } else { &mut own };
        cells.insert(name.to_owned(), cell(value, column.map(|column| &column.kind)));
    }
    let mut row = json!({ "valueCells": own });
    if !shared.is_empty() {
        row["staticCells"] = Json::Object(shared);
    }
    row
}

fn in_key(name: &str, keys: &Item, shape: Option<&KeyspaceShape>) -> bool {
    match shape {
        None => keys.get(name).is_some(),
        Some(shape) => key_columns(shape).any(|column| column == name),
    }
}

fn key_columns(shape: &KeyspaceShape) -> impl Iterator<Item = &str> {
    let clustering = shape.clustering.iter().map(|clustering| clustering.column.as_str());
    shape.partition.iter().map(String::as_str).chain(clustering)
}

/// The values of the columns that choose the partition, and of those that order its rows. Where the shape is not known, all
/// of the key chooses the partition.
pub(super) fn keys(keys: &Item, image: Option<&Item>, shape: Option<&KeyspaceShape>) -> [Json; 2] {
    let Some(shape) = shape else {
        let all: Map<_, _> = keys.iter().map(|(name, value)| (name.to_owned(), typed(value, None))).collect();
        return [Json::Object(all), json!({})];
    };
    let values = |names: &mut dyn Iterator<Item = &str>| {
        let found = names.filter_map(|name| {
            let value = keys.get(name).or_else(|| image?.get(name))?;
            let column = shape.columns.iter().find(|column| column.name == name);
            Some((name.to_owned(), typed(value, column.map(|column| &column.kind))))
        });
        Json::Object(found.collect())
    };
    let partition = values(&mut shape.partition.iter().map(String::as_str));
    [partition, values(&mut shape.clustering.iter().map(|clustering| clustering.column.as_str()))]
}

/// A cell; without a value where there is none.
fn cell(value: &Value, kind: Option<&ColumnKind>) -> Json {
    match value {
        Value::Null => json!({}),
        value => json!({ "value": typed(value, kind) }),
    }
}

fn cells<'a>(values: impl IntoIterator<Item = &'a Value>, kind: Option<&ColumnKind>) -> Vec<Json> {
    values.into_iter().map(|value| cell(value, kind)).collect()
}

/// A value under the name of its type: that of its column, or the nearest to what it is.
fn typed(value: &Value, kind: Option<&ColumnKind>) -> Json {
    let inner = match kind {
        Some(ColumnKind::List(inner) | ColumnKind::Set(inner)) => Some(&**inner),
        _ => None,
    };
    match (value, kind) {
        (value, Some(ColumnKind::Frozen(kind))) => typed(value, Some(kind)),
        (Value::Bool(value), _) => json!({ "boolT": value }),
        (Value::Binary(bytes), _) => json!({ "blobT": STANDARD.encode(bytes) }),
        (Value::Null, _) => json!({}),
        (Value::Text(text), kind) => json!({ kind.and_then(scalar).unwrap_or("textT"): text }),
        (Value::Number(number), kind) => {
            json!({ kind.and_then(scalar).unwrap_or("decimalT"): number.to_string() })
        }
        (Value::List(list), Some(ColumnKind::Tuple(kinds))) => {
            let fields = list.iter().enumerate().map(|(place, value)| cell(value, kinds.get(place)));
            json!({ "tupleT": fields.collect::<Vec<_>>() })
        }
        (Value::List(list), Some(ColumnKind::Set(_))) => json!({ "setT": cells(list, inner) }),
        (Value::List(pairs), Some(ColumnKind::Map(key, kind))) => {
            let pairs = pairs.iter().filter_map(|pair| match pair {
                Value::List(pair) => <&[Value; 2]>::try_from(pair.as_slice()).ok(),
                _ => None,
            });
            let entries = pairs.map(|[one, other]| entry(one, Some(key), other, Some(kind)));
            json!({ "mapT": entries.collect::<Vec<_>>() })
        }
        (Value::List(list), _) => json!({ "listT": cells(list, inner) }),
        (Value::Map(map), Some(ColumnKind::Defined(_))) => {
            let fields: Map<_, _> =
                map.iter().map(|(name, value)| (name.to_owned(), cell(value, None))).collect();
            json!({ "udtT": fields })
        }
        (Value::Map(map), kind) => {
            let (key, kind) = match kind {
                Some(ColumnKind::Map(key, kind)) => (Some(&**key), Some(&**kind)),
                _ => (None, None),
            };
            let entries = map.iter().map(|(name, value)| entry(&Value::from(name), key, value, kind));
            json!({ "mapT": entries.collect::<Vec<_>>() })
        }
        (Value::TextSet(set), _) => {
            json!({ "setT": cells(&set.iter().cloned().map(Value::Text).collect::<Vec<_>>(), inner) })
        }
        (Value::NumberSet(set), _) => {
            json!({ "setT": cells(&set.iter().copied().map(Value::Number).collect::<Vec<_>>(), inner) })
        }
        (Value::BinarySet(set), _) => {
            json!({ "setT": cells(&set.iter().cloned().map(Value::Binary).collect::<Vec<_>>(), inner) })
        }
    }
}

fn entry(key: &Value, key_kind: Option<&ColumnKind>, value: &Value, kind: Option<&ColumnKind>) -> Json {
    json!({ "key": typed(key, key_kind), "value": typed(value, kind) })
}

/// The name under which values of a plain type stand.
fn scalar(kind: &ColumnKind) -> Option<&'static str> {
    Some(match kind {
        ColumnKind::Ascii => "asciiT",
        ColumnKind::Bigint => "bigintT",
        ColumnKind::Counter => "counterT",
        ColumnKind::Date => "dateT",
        ColumnKind::Decimal => "decimalT",
        ColumnKind::Double => "doubleT",
        ColumnKind::Float => "floatT",
        ColumnKind::Inet => "inetT",
        ColumnKind::Int => "intT",
        ColumnKind::Smallint => "smallintT",
        ColumnKind::Text => "textT",
        ColumnKind::Time => "timeT",
        ColumnKind::Timestamp => "timestampT",
        ColumnKind::Timeuuid => "timeuuidT",
        ColumnKind::Tinyint => "tinyintT",
        ColumnKind::Uuid => "uuidT",
        ColumnKind::Varchar => "varcharT",
        ColumnKind::Varint => "varintT",
        ColumnKind::Blob
        | ColumnKind::Boolean
        | ColumnKind::List(_)
        | ColumnKind::Set(_)
        | ColumnKind::Map(..)
        | ColumnKind::Tuple(_)
        | ColumnKind::Frozen(_)
        | ColumnKind::Defined(_) => return None,
    })
}
