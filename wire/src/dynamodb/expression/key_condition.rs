//! Conditions on keys.

use std::collections::BTreeMap;

use anabranch_model::table::expression::{Comparison, Condition, Operand};
use anabranch_model::table::{Path, RangeCondition, Value};

use super::Expressions;
use crate::fault::Fault;

const PARAMETER: &str = "KeyConditionExpression";

/// What is asked of the attributes of a key, by their names.
pub(in crate::dynamodb) type KeyPart = BTreeMap<String, RangeCondition>;

impl Expressions {
    /// The condition of a query on its key, as one of any kind.
    pub(in crate::dynamodb) fn key_condition(&mut self, text: &str) -> Result<Condition, Fault> {
        self.read_condition(PARAMETER, "a key condition", text)
    }
}

/// What a condition asks of the attributes of a key. That it can be asked is looked at behind all the expressions.
pub(in crate::dynamodb) fn key_parts(condition: Condition) -> Result<KeyPart, Fault> {
    let mut parts = KeyPart::new();
    collect(condition, &mut parts)?;
    Ok(parts)
}

fn collect(condition: Condition, parts: &mut KeyPart) -> Result<(), Fault> {
    let (path, asked) = match condition {
        Condition::And(all) => return all.into_iter().try_for_each(|condition| collect(condition, parts)),
        Condition::Compare(one, Comparison::NotEqual, _) if path_of(&one).is_some() => return unknown("<>"),
        Condition::Compare(one, how, other) => compared(one, how, other)?,
        Condition::Between(Operand::Value(_), ..) => return Err(not_first("BETWEEN")),
        Condition::BeginsWith(Operand::Value(_), _) => return Err(not_first("begins_with")),
        Condition::Between(one, lower, upper) => {
            let (lower, upper) = (value(lower)?, value(upper)?);
            (path(one)?, RangeCondition::Between(lower, upper))
        }
        Condition::BeginsWith(one, start) => (path(one)?, RangeCondition::BeginsWith(value(start)?)),
        Condition::In(..) => return unknown("IN"),
        Condition::Exists(_) => return unknown("attribute_exists"),
        Condition::Missing(_) => return unknown("attribute_not_exists"),
        Condition::HasKind(..) => return unknown("attribute_type"),
        Condition::Contains(..) => return unknown("contains"),
        Condition::Or(_) => return unknown("OR"),
        Condition::Not(_) => return unknown("NOT"),
    };
    if !path.steps.is_empty() {
        return Err(of_nested());
    }
    match parts.insert(path.attribute, asked) {
        Some(_) => Err(Fault::validation(format!("{PARAMETER}s must only contain one condition per key"))),
        None => Ok(()),
    }
}

fn of_nested() -> Fault {
    Fault::validation(format!("{PARAMETER}s cannot have conditions on nested attributes"))
}

fn not_first(operator: &str) -> Fault {
    Fault::validation(format!(
        "Invalid condition in {PARAMETER}: {operator} operator must have the key attribute as its first operand"
    ))
}

fn unknown(operator: &str) -> Result<(), Fault> {
    Err(Fault::validation(format!("Invalid operator used in {PARAMETER}: {operator}")))
}

/// A comparison, which may have its sides exchanged.
fn compared(one: Operand, how: Comparison, other: Operand) -> Result<(Path, RangeCondition), Fault> {
    match (one, other) {
        (Operand::Path(path), _) if !path.steps.is_empty() => Err(of_nested()),
        (Operand::Path(_), Operand::Path(_)) => Err(Fault::validation(format!(
            "Invalid condition in {PARAMETER}: Multiple attribute names used in one condition"
        ))),
        (Operand::Value(value), Operand::Path(path)) => {
            let turned = match how {
                Comparison::Below => Comparison::Above,
                Comparison::AtMost => Comparison::AtLeast,
                Comparison::Above => Comparison::Below,
                Comparison::AtLeast => Comparison::AtMost,
                how => how,
            };
            Ok((path, RangeCondition::Compare(turned, value)))
        }
        (one, other) => Ok((path(one)?, RangeCondition::Compare(how, value(other)?))),
    }
}

fn path_of(operand: &Operand) -> Option<&Path> {
    match operand {
        Operand::Path(path) => Some(path),
        _ => None,
    }
}

fn path(operand: Operand) -> Result<Path, Fault> {
    match operand {
        Operand::Path(path) => Ok(path),
        Operand::Size(_) => Err(nested()),
        Operand::Value(_) => {
            Err(Fault::validation(format!("Invalid condition in {PARAMETER}: No key attribute specified")))
        }
    }
}

fn value(operand: Operand) -> Result<Value, Fault> {
    match operand {
        Operand::Value(value) => Ok(value),
        Operand::Size(_) => Err(nested()),
        Operand::Path(_) => Err(Fault::validation(format!(
            "Invalid condition in {PARAMETER}: Multiple attribute names used in one condition"
        ))),
    }
}

fn nested() -> Fault {
    Fault::validation(format!("{PARAMETER}s cannot contain nested operations"))
}
