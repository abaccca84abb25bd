//! Operands of conditions, and how two values compare.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::condition::Condition;
use crate::table::path::Path;
use crate::table::value::{Kind, Value};
use crate::table::{Item, Number};

/// What a condition looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The value at a path; a condition on a path that leads nowhere does not hold.
    Path(Path),
    /// This value.
    Value(Value),
    /// The size of what is at a path: characters are counted as bytes, collections by their elements.
    Size(Path),
}

/// The size of the value at a path.
pub fn size(path: impl Into<Path>) -> Operand {
    Operand::Size(path.into())
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The same kind and the same value.
    Equal,
    /// Another kind or another value.
    NotEqual,
    /// Smaller.
    Below,
    /// Smaller or the same.
    AtMost,
    /// Larger.
    Above,
    /// Larger or the same.
    AtLeast,
}

impl Comparison {
    /// Whether two values compare so. Values of different kinds have no order and are not equal; only texts, numbers
    /// and binaries have an order.
    pub fn holds(self, one: &Value, other: &Value) -> bool {
        match self {
            Comparison::Equal => one == other,
            Comparison::NotEqual => one != other,
            Comparison::Below => order(one, other).is_some_and(Ordering::is_lt),
            Comparison::AtMost => order(one, other).is_some_and(Ordering::is_le),
            Comparison::Above => order(one, other).is_some_and(Ordering::is_gt),
            Comparison::AtLeast => order(one, other).is_some_and(Ordering::is_ge),
        }
    }

    /// Whether the comparison asks for an order.
    pub fn is_of_order(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NotEqual)
    }
}

/// The order of two values that have one.
pub(super) fn order(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Text(one), Value::Text(other)) => Some(one.cmp(other)),
        (Value::Number(one), Value::Number(other)) => Some(one.cmp(other)),
        (Value::Binary(one), Value::Binary(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

/// Whether values of this kind have an order.
pub(super) fn has_order(kind: Kind) -> bool {
    matches!(kind, Kind::Text | Kind::Number | Kind::Binary)
}

impl Operand {
    /// The value that this stands for in an item, if there is any.
    pub fn find<'a>(&'a self, item: &'a Item) -> Option<Cow<'a, Value>> {
        match self {
            Operand::Path(path) => path.find(item).map(Cow::Borrowed),
            Operand::Value(value) => Some(Cow::Borrowed(value)),
            Operand::Size(path) => {
                path.find(item).and_then(size_of).map(|size| Cow::Owned(Value::Number(size)))
            }
        }
    }

    /// The value, where it does not depend on an item.
    pub(super) fn literal(&self) -> Option<&Value> {
        match self {
            Operand::Value(value) => Some(value),
            _ => None,
        }
    }

    /// The path that is looked at, if there is any.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Operand::Path(path) | Operand::Size(path) => Some(path),
            Operand::Value(_) => None,
        }
    }
}

/// The size that a condition sees; numbers, bools and null have none. Texts are counted in units of UTF-16, as DynamoDB
/// counts them.
fn size_of(value: &Value) -> Option<Number> {
    let size = match value {
        Value::Text(text) => text.encode_utf16().count(),
        Value::Binary(bytes) => bytes.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::TextSet(set) => set.len(),
        Value::NumberSet(set) => set.len(),
        Value::BinarySet(set) => set.len(),
        Value::Number(_) | Value::Bool(_) | Value::Null => return None,
    };
    Some(Number::from(size as u64))
}

impl From<Path> for Operand {
    fn from(path: Path) -> Self {
        Operand::Path(path)
    }
}

impl<V: Into<Value>> From<V> for Operand {
    fn from(value: V) -> Self {
        Operand::Value(value.into())
    }
}

/// Words that turn an operand, or a path that serves as one, into a condition.
macro_rules! comparing_words {
    ($($receiver:ty),+) => {
        $(impl $receiver {
            /// The two are equal.
            pub fn equals(self, other: impl Into<Operand>) -> Condition {
                Condition::compare(self, Comparison::Equal, other)
            }

            /// The two are not equal; also if they are of different kinds.
            pub fn differs(self, other: impl Into<Operand>) -> Condition {
                Condition::compare(self, Comparison::NotEqual, other)
            }

            /// This is smaller.
            pub fn below(self, other: impl Into<Operand>) -> Condition {
                Condition::compare(self, Comparison::Below, other)
            }

            /// This is smaller or the same.
            pub fn at_most(self, other: impl Into<Operand>) -> Condition {
                Condition::compare(self, Comparison::AtMost, other)
            }

            /// This is larger.
            pub fn above(self, other: impl Into<Operand>) -> Condition {
                Condition::compare(self, Comparison::Above, other)
            }

            /// This is larger or the same.
            pub fn at_least(self, other: impl Into<Operand>) -> Condition {
                Condition::compare(self, Comparison::AtLeast, other)
            }

            /// This lies between the two, or is one of them.
            pub fn between(self, lower: impl Into<Operand>, upper: impl Into<Operand>) -> Condition {
                Condition::Between(self.into(), lower.into(), upper.into())
            }

            /// This is equal to one of the others.
            pub fn one_of<O: Into<Operand>>(self, others: impl IntoIterator<Item = O>) -> Condition {
                Condition::In(self.into(), others.into_iter().map(Into::into).collect())
            }

            /// This is a text or binary with this beginning.
            pub fn begins_with(self, start: impl Into<Operand>) -> Condition {
                Condition::BeginsWith(self.into(), start.into())
            }

            /// This is a text or binary with this part, or a set or list with this element.
            pub fn contains(self, part: impl Into<Operand>) -> Condition {
                Condition::Contains(self.into(), part.into())
            }
        })+
    };
}

comparing_words!(Operand, Path);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_in_units_of_utf_16() {
        for (text, size) in [("", 0_u64), ("abc", 3), ("abÿ", 3), ("ab€", 3), ("ab😀", 4)] {
            assert_eq!(size_of(&Value::Text(text.to_owned())), Some(Number::from(size)), "{text}");
        }
    }
}
