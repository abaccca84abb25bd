//! Conditions on an item.

use super::operand::{Comparison, Operand, has_order, order};
use crate::error::{Error, Result};
use crate::limits::{EXPRESSION_DEPTH_MAX, EXPRESSION_OPERATORS_MAX, IN_OPERANDS_MAX};
use crate::table::path::Path;
use crate::table::value::{Item, Kind, Value};

/// Something that an item fulfils or not. Of an item that does not exist it is asked as of one without attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The two operands compare so.
    Compare(Operand, Comparison, Operand),
    /// The first lies between the other two, or is one of them.
    Between(Operand, Operand, Operand),
    /// The first is equal to one of the others.
    In(Operand, Vec<Operand>),
    /// The path leads to a value.
    Exists(Path),
    /// The path leads nowhere.
    Missing(Path),
    /// The path leads to a value of this kind.
    HasKind(Path, Kind),
    /// A text or binary with this beginning.
    BeginsWith(Operand, Operand),
    /// A text or binary with this part, or a set or list with this element.
    Contains(Operand, Operand),
    /// All of them hold.
    And(Vec<Condition>),
    /// One of them holds.
    Or(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
}

/// The path leads to a value.
pub fn exists(path: impl Into<Path>) -> Condition {
    Condition::Exists(path.into())
}

/// The path leads nowhere.
pub fn missing(path: impl Into<Path>) -> Condition {
    Condition::Missing(path.into())
}

impl Condition {
    /// The two operands compare so.
    pub fn compare(one: impl Into<Operand>, how: Comparison, other: impl Into<Operand>) -> Condition {
        Condition::Compare(one.into(), how, other.into())
    }

    /// Both hold.
    pub fn and(self, other: Condition) -> Condition {
        match self {
            Condition::And(mut all) => {
                all.push(other);
                Condition::And(all)
            }
            one => Condition::And(vec![one, other]),
        }
    }

    /// One of the two holds.
    pub fn or(self, other: Condition) -> Condition {
        match self {
            Condition::Or(mut all) => {
                all.push(other);
                Condition::Or(all)
            }
            one => Condition::Or(vec![one, other]),
        }
    }

    /// It does not hold.
    pub fn negated(self) -> Condition {
        Condition::Not(Box::new(self))
    }

    /// Whether an item fulfils this.
    pub fn holds(&self, item: &Item) -> bool {
        let with = |one: &Operand, other: &Operand, test: fn(&Value, &Value) -> bool| {
            let values = one.find(item).zip(other.find(item));
            values.is_some_and(|(one, other)| test(&one, &other))
        };
        match self {
            Condition::Compare(one, how, other) => match (one.find(item), other.find(item)) {
                (Some(one), Some(other)) => how.holds(&one, &other),
                // What is missing differs from everything, and beyond that compares with nothing.
                _ => *how == Comparison::NotEqual,
            },
            Condition::Between(one, lower, upper) => {
                with(one, lower, |one, lower| Comparison::AtLeast.holds(one, lower))
                    && with(one, upper, |one, upper| Comparison::AtMost.holds(one, upper))
            }
            Condition::In(one, others) => others.iter().any(|other| with(one, other, |a, b| a == b)),
            Condition::Exists(path) => path.find(item).is_some(),
            Condition::Missing(path) => path.find(item).is_none(),
            Condition::HasKind(path, kind) => path.find(item).is_some_and(|value| value.kind() == *kind),
            Condition::BeginsWith(one, start) => with(one, start, begins_with),
            Condition::Contains(one, part) => with(one, part, contains),
            Condition::And(all) => all.iter().all(|condition| condition.holds(item)),
            Condition::Or(any) => any.iter().any(|condition| condition.holds(item)),
            Condition::Not(condition) => !condition.holds(item),
        }
    }

    /// Whether a store may be asked this, whatever the item.
    pub fn check(&self) -> Result<()> {
        let operators = self.check_at(0)?;
        if operators > EXPRESSION_OPERATORS_MAX {
            return Err(Error::Invalid(format!(
                "the condition has {operators} operators: at most {EXPRESSION_OPERATORS_MAX} are allowed"
            )));
        }
        Ok(())
    }

    /// Calls `visit` with every path that is looked at.
    pub fn each_path<'a>(&'a self, visit: &mut impl FnMut(&'a Path)) {
        match self {
            Condition::Compare(one, _, other)
            | Condition::BeginsWith(one, other)
            | Condition::Contains(one, other) => [one, other].iter().filter_map(|o| o.path()).for_each(visit),
            Condition::Between(one, lower, upper) => {
                [one, lower, upper].iter().filter_map(|o| o.path()).for_each(visit);
            }
            Condition::In(one, others) => {
                std::iter::once(one).chain(others).filter_map(Operand::path).for_each(visit);
            }
            Condition::Exists(path) | Condition::Missing(path) | Condition::HasKind(path, _) => visit(path),
            Condition::And(all) | Condition::Or(all) => {
                for condition in all {
                    condition.each_path(visit);
                }
            }
            Condition::Not(condition) => condition.each_path(visit),
        }
    }

    /// Checks this condition, which lies `depth` levels deep, and counts its operators.
    fn check_at(&self, depth: usize) -> Result<usize> {
        if depth > EXPRESSION_DEPTH_MAX {
            let limit = EXPRESSION_DEPTH_MAX;
            return Err(Error::Invalid(format!("the condition nests more than {limit} levels deep")));
        }
        match self {
            Condition::Compare(one, how, other) if how.is_of_order() => {
                ordered("a comparison", one)?;
                ordered("a comparison", other)?;
            }
            Condition::Between(one, lower, upper) => {
                [one, lower, upper]
                    .iter()
                    .try_for_each(|operand| ordered("a test between bounds", operand))?;
                check_bounds(lower, upper)?;
            }
            Condition::In(_, others) if others.is_empty() || others.len() > IN_OPERANDS_MAX => {
                return Err(Error::Invalid(format!(
                    "a test for membership has {} values: 1 to {IN_OPERANDS_MAX} are allowed",
                    others.len()
                )));
            }
            Condition::BeginsWith(one, start) => {
                [one, start].iter().try_for_each(|operand| startable(operand))?;
            }
            Condition::And(all) | Condition::Or(all) => {
                if all.is_empty() {
                    return Err(Error::Invalid("a junction of conditions is empty".to_string()));
                }
                let inner = all.iter().try_fold(0, |sum, c| Ok::<_, Error>(sum + c.check_at(depth + 1)?))?;
                return Ok(inner + all.len() - 1);
            }
            Condition::Not(condition) => return Ok(1 + condition.check_at(depth + 1)?),
            _ => {}
        }
        Ok(1)
    }
}

fn ordered(what: &str, operand: &Operand) -> Result<()> {
    match operand.literal().map(Value::kind) {
        Some(kind) if !has_order(kind) => {
            Err(Error::Invalid(format!("{what} needs text, number or binary, not {kind}")))
        }
        _ => Ok(()),
    }
}

fn startable(operand: &Operand) -> Result<()> {
    match operand.literal().map(Value::kind) {
        None | Some(Kind::Text | Kind::Binary) => Ok(()),
        Some(kind) => Err(Error::Invalid(format!("a beginning must be text or binary, not {kind}"))),
    }
}

/// Two bounds that are both given must be of one kind, the lower first.
fn check_bounds(lower: &Operand, upper: &Operand) -> Result<()> {
    let (Some(lower), Some(upper)) = (lower.literal(), upper.literal()) else { return Ok(()) };
    match order(lower, upper) {
        None => {
            let (lower, upper) = (lower.kind(), upper.kind());
            Err(Error::Invalid(format!("the bounds must be of one kind, not {lower} and {upper}")))
        }
        Some(order) if order.is_gt() => {
            Err(Error::Invalid(format!("the lower bound {lower:?} lies above the upper bound {upper:?}")))
        }
        Some(_) => Ok(()),
    }
}

fn begins_with(value: &Value, start: &Value) -> bool {
    match (value, start) {
        (Value::Text(text), Value::Text(start)) => text.starts_with(start.as_str()),
        (Value::Binary(bytes), Value::Binary(start)) => bytes.starts_with(start),
        _ => false,
    }
}

fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Text(text), Value::Text(part)) => text.contains(part.as_str()),
        (Value::Binary(bytes), Value::Binary(part)) => {
            part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
        }
        (Value::List(list), part) => list.contains(part),
        (Value::TextSet(set), Value::Text(element)) => set.contains(element),
        (Value::NumberSet(set), Value::Number(element)) => set.contains(element),
        (Value::BinarySet(set), Value::Binary(element)) => set.contains(element),
        _ => false,
    }
}
