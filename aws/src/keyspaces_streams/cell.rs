//! The values of CQL as the model's.
//!
//! Texts, whole numbers, decimals, bytes and booleans have a counterpart. What has none, for instance a date, an address
//! or a number that is not finite, is the text that Keyspaces gives. A collection becomes a list, a set or a map; where
//! the elements of a set or the keys of a map are of a kind that those cannot hold, it is a list, of pairs for a map.

use std::collections::HashMap;

use anabranch_model::Result;
use anabranch_model::table::{Item, Value};
use aws_sdk_keyspacesstreams::types::{KeyspacesCell, KeyspacesCellMapDefinition, KeyspacesCellValue};

use super::translate::strange;

/// The value of a cell; null where it has none.
pub(super) fn value_of(cell: KeyspacesCell) -> Result<Value> {
    cell.value.map_or(Ok(Value::Null), value)
}

/// A value.
pub(super) fn value(value: KeyspacesCellValue) -> Result<Value> {
    use KeyspacesCellValue as Cell;
    Ok(match value {
        Cell::AsciiT(text) | Cell::TextT(text) | Cell::VarcharT(text) => Value::Text(text),
        Cell::BigintT(text)
        | Cell::CounterT(text)
        | Cell::DecimalT(text)
        | Cell::DoubleT(text)
        | Cell::FloatT(text)
        | Cell::IntT(text)
        | Cell::SmallintT(text)
        | Cell::TinyintT(text)
        | Cell::VarintT(text) => text.parse().map_or(Value::Text(text), Value::Number),
        Cell::DateT(text)
        | Cell::DurationT(text)
        | Cell::InetT(text)
        | Cell::TimeT(text)
        | Cell::TimestampT(text)
        | Cell::TimeuuidT(text)
        | Cell::UuidT(text) => Value::Text(text),
        Cell::BlobT(blob) => Value::Binary(blob.into_inner().into()),
        Cell::BoolT(value) => Value::Bool(value),
        Cell::ListT(cells) | Cell::TupleT(cells) => Value::List(values(cells)?),
        Cell::SetT(cells) => set(values(cells)?),
        Cell::MapT(entries) => map(entries)?,
        Cell::UdtT(fields) => Value::Map(row(fields)?),
        _ => return Err(strange("a value of no known kind")),
    })
}

/// Named cells.
pub(super) fn row(cells: HashMap<String, KeyspacesCell>) -> Result<Item> {
    cells.into_iter().map(|(name, cell)| Ok((name, value_of(cell)?))).collect()
}

fn values(cells: Vec<KeyspacesCell>) -> Result<Vec<Value>> {
    cells.into_iter().map(value_of).collect()
}

fn set(elements: Vec<Value>) -> Value {
    let texts = elements.iter().map(|element| match element {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    });
    let numbers = elements.iter().map(|element| match element {
        Value::Number(number) => Some(*number),
        _ => None,
    });
    let binaries = elements.iter().map(|element| match element {
        Value::Binary(bytes) => Some(bytes.clone()),
        _ => None,
    });
    // A set of the model has an element.
    if elements.is_empty() {
        return Value::List(elements);
    }
    let texts = texts.collect::<Option<_>>().map(Value::TextSet);
    let numbers = || numbers.collect::<Option<_>>().map(Value::NumberSet);
    let binaries = || binaries.collect::<Option<_>>().map(Value::BinarySet);
    texts.or_else(numbers).or_else(binaries).unwrap_or_else(|| Value::List(elements.clone()))
}

fn map(entries: Vec<KeyspacesCellMapDefinition>) -> Result<Value> {
    let mut pairs = Vec::new();
    for entry in entries {
        let key = entry.key.map_or(Ok(Value::Null), value)?;
        pairs.push((key, entry.value.map_or(Ok(Value::Null), value)?));
    }
    let named = |(key, value): &(Value, Value)| match key {
        Value::Text(name) => Some((name.clone(), value.clone())),
        _ => None,
    };
    if let Some(item) = pairs.iter().map(named).collect::<Option<Item>>() {
        return Ok(Value::Map(item));
    }
    Ok(Value::List(pairs.into_iter().map(|(key, value)| Value::List(vec![key, value])).collect()))
}

#[cfg(test)]
mod tests {
    use KeyspacesCellValue as Cell;
    use aws_smithy_types::Blob;

    use super::*;

    fn cell(value: Cell) -> KeyspacesCell {
        KeyspacesCell::builder().value(value).build()
    }

    fn text(text: &str) -> Cell {
        Cell::TextT(text.to_string())
    }

    fn int(number: &str) -> Cell {
        Cell::IntT(number.to_string())
    }

    #[test]
    fn every_kind_of_cell_has_a_value() {
        let number = |text: &str| Value::number(text).unwrap();
        let pair = |key, value| KeyspacesCellMapDefinition::builder().key(key).value(value).build();
        let s = str::to_string;
        for (given, expected) in [
            (Cell::AsciiT(s("a")), "a".into()),
            (Cell::VarcharT(s("ä")), "ä".into()),
            (Cell::BigintT(s("-9223372036854775808")), number("-9223372036854775808")),
            (Cell::CounterT(s("3")), number("3")),
            (Cell::DecimalT(s("1.50")), number("1.5")),
            (Cell::DoubleT(s("1.0E10")), number("1E10")),
            (Cell::DoubleT(s("NaN")), "NaN".into()),
            (Cell::FloatT(s("Infinity")), "Infinity".into()),
            (Cell::DecimalT("1".repeat(39)), "1".repeat(39).into()),
            (Cell::SmallintT(s("1")), number("1")),
            (Cell::TinyintT(s("-1")), number("-1")),
            (Cell::VarintT(s("7")), number("7")),
            (Cell::DateT(s("20000")), "20000".into()),
            (Cell::DurationT(s("1mo")), "1mo".into()),
            (Cell::InetT(s("::1")), "::1".into()),
            (Cell::TimeT(s("12:00")), "12:00".into()),
            (Cell::TimestampT(s("1700000000000")), "1700000000000".into()),
            (Cell::TimeuuidT(s("u")), "u".into()),
            (Cell::UuidT(s("v")), "v".into()),
            (Cell::BlobT(Blob::new([0, 255])), Value::from(&[0u8, 255][..])),
            (Cell::BoolT(true), true.into()),
            (Cell::ListT(vec![cell(int("1")), cell(text("x"))]), vec![1.into(), "x".into()].into()),
            (
                Cell::TupleT(vec![cell(int("1")), KeyspacesCell::builder().build()]),
                vec![1.into(), Value::Null].into(),
            ),
            (Cell::SetT(vec![cell(text("b")), cell(text("a"))]), Value::text_set(["a", "b"]).unwrap()),
            (Cell::SetT(vec![cell(int("2")), cell(int("1"))]), Value::number_set([1, 2]).unwrap()),
            (Cell::SetT(vec![cell(Cell::BlobT(Blob::new([1])))]), Value::binary_set([&[1u8][..]]).unwrap()),
            (Cell::SetT(vec![cell(Cell::BoolT(true))]), vec![true.into()].into()),
            (Cell::SetT(vec![]), Value::List(vec![])),
            (Cell::MapT(vec![pair(text("k"), int("1"))]), Item::new().with("k", 1).into()),
            (
                Cell::MapT(vec![pair(int("1"), text("v"))]),
                vec![Value::List(vec![1.into(), "v".into()])].into(),
            ),
            (Cell::MapT(vec![]), Item::new().into()),
            (Cell::UdtT(HashMap::from([(s("f"), cell(int("1")))])), Item::new().with("f", 1).into()),
        ] {
            assert_eq!(value(given.clone()), Ok(expected), "{given:?}");
        }
    }
}
