//! Conditions, projections and updates as DynamoDB's expressions.
//!
//! What must hold: every name and every value stands behind a placeholder, so that no name can be a reserved word and no
//! value can be mistaken for syntax. One request has one [`Expressions`], since its expressions share their placeholders.
//! Parentheses stand only where the meaning needs them: DynamoDB refuses doubled ones.

use std::collections::HashMap;
use std::fmt::Write;

use anabranch_model::table::expression::{Comparison, Operand, SetOperand, SetValue};
use anabranch_model::table::{Condition, KeyCondition, Kind, Path, RangeCondition, Step, Update, Value};
use aws_sdk_dynamodb::types::AttributeValue;

use crate::attribute::tables::attribute;

/// The placeholders of one request.
#[derive(Debug, Default)]
pub(super) struct Expressions {
    /// In the order of their placeholders.
    names: Vec<String>,
    values: Vec<AttributeValue>,
}

/// The placeholders of one request as it sends them; none where there are none, for empty maps are refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Placeholders {
    pub(super) names: Option<HashMap<String, String>>,
    pub(super) values: Option<HashMap<String, AttributeValue>>,
}

impl Expressions {
    pub(super) fn placeholders(self) -> Placeholders {
        let names = self.names.into_iter().enumerate().map(|(n, name)| (format!("#n{n}"), name));
        let values = self.values.into_iter().enumerate().map(|(n, value)| (format!(":v{n}"), value));
        let (names, values) = (names.collect::<HashMap<_, _>>(), values.collect::<HashMap<_, _>>());
        Placeholders {
            names: (!names.is_empty()).then_some(names),
            values: (!values.is_empty()).then_some(values),
        }
    }

    fn name(&mut self, name: &str) -> String {
        let known = self.names.iter().position(|known| known == name);
        let number = known.unwrap_or_else(|| {
            self.names.push(name.to_string());
            self.names.len() - 1
        });
        format!("#n{number}")
    }

    fn value(&mut self, value: &Value) -> String {
        self.values.push(attribute(value));
        format!(":v{}", self.values.len() - 1)
    }

    fn path(&mut self, path: &Path) -> String {
        let mut text = self.name(&path.attribute);
        for step in &path.steps {
            match step {
                Step::Name(name) => {
                    text.push('.');
                    text.push_str(&self.name(name));
                }
                // Writing to a text cannot fail.
                Step::Index(index) => drop(write!(text, "[{index}]")),
            }
        }
        text
    }
}

/// Conditions.
impl Expressions {
    pub(super) fn condition(&mut self, condition: &Condition) -> String {
        match condition {
            Condition::Compare(one, how, other) => {
                let one = self.operand(one);
                format!("{one} {} {}", sign(*how), self.operand(other))
            }
            Condition::Between(one, lower, upper) => {
                let [one, lower, upper] = [one, lower, upper].map(|operand| self.operand(operand));
                format!("{one} BETWEEN {lower} AND {upper}")
            }
            Condition::In(one, others) => {
                let one = self.operand(one);
                let others: Vec<_> = others.iter().map(|other| self.operand(other)).collect();
                format!("{one} IN ({})", others.join(", "))
            }
            Condition::Exists(path) => format!("attribute_exists({})", self.path(path)),
            Condition::Missing(path) => format!("attribute_not_exists({})", self.path(path)),
            Condition::HasKind(path, kind) => {
                let path = self.path(path);
                format!("attribute_type({path}, {})", self.value(&Value::from(letters(*kind))))
            }
            Condition::BeginsWith(one, start) => {
                let one = self.operand(one);
                format!("begins_with({one}, {})", self.operand(start))
            }
            Condition::Contains(one, part) => {
                let one = self.operand(one);
                format!("contains({one}, {})", self.operand(part))
            }
            Condition::And(all) => self.junction(all, " AND "),
            Condition::Or(any) => self.junction(any, " OR "),
            Condition::Not(condition) => format!("NOT {}", self.part(condition)),
        }
    }

    fn junction(&mut self, conditions: &[Condition], word: &str) -> String {
        match conditions {
            [only] => self.condition(only),
            _ => conditions.iter().map(|part| self.part(part)).collect::<Vec<_>>().join(word),
        }
    }

    /// A condition that is part of another: in parentheses if it has parts itself.
    fn part(&mut self, condition: &Condition) -> String {
        let text = self.condition(condition);
        if has_parts(condition) { format!("({text})") } else { text }
    }

    fn operand(&mut self, operand: &Operand) -> String {
        match operand {
            Operand::Path(path) => self.path(path),
            Operand::Value(value) => self.value(value),
            Operand::Size(path) => format!("size({})", self.path(path)),
        }
    }

    pub(super) fn key_condition(&mut self, key: &KeyCondition) -> String {
        let name = self.name(&key.attribute);
        let mut hash = format!("{name} = {}", self.value(&key.value));
        for (name, value) in &key.others {
            let name = self.name(name);
            hash = format!("{hash} AND {name} = {}", self.value(value));
        }
        let Some((range, condition)) = &key.range else { return hash };
        let range = self.name(range);
        let condition = match condition {
            RangeCondition::Compare(how, value) => format!("{range} {} {}", sign(*how), self.value(value)),
            RangeCondition::Between(lower, upper) => {
                let lower = self.value(lower);
                format!("{range} BETWEEN {lower} AND {}", self.value(upper))
            }
            RangeCondition::BeginsWith(start) => format!("begins_with({range}, {})", self.value(start)),
        };
        format!("{hash} AND {condition}")
    }
}

/// Whether the text of a condition would fall apart beside another.
fn has_parts(condition: &Condition) -> bool {
    match condition {
        Condition::And(parts) | Condition::Or(parts) => match parts.as_slice() {
            [only] => has_parts(only),
            _ => true,
        },
        Condition::Not(_) | Condition::Between(..) => true,
        _ => false,
    }
}

fn sign(how: Comparison) -> &'static str {
    match how {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Below => "<",
        Comparison::AtMost => "<=",
        Comparison::Above => ">",
        Comparison::AtLeast => ">=",
    }
}

fn letters(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "S",
        Kind::Number => "N",
        Kind::Binary => "B",
        Kind::Bool => "BOOL",
        Kind::Null => "NULL",
        Kind::List => "L",
        Kind::Map => "M",
        Kind::TextSet => "SS",
        Kind::NumberSet => "NS",
        Kind::BinarySet => "BS",
    }
}

/// Projections and updates.
impl Expressions {
    pub(super) fn projection<'a>(&mut self, paths: impl IntoIterator<Item = &'a Path>) -> String {
        paths.into_iter().map(|path| self.path(path)).collect::<Vec<_>>().join(", ")
    }

    /// An update; none if it changes nothing, for an empty expression is refused.
    pub(super) fn update(&mut self, update: &Update) -> Option<String> {
        let set = update.set.iter().map(|(path, value)| {
            let path = self.path(path);
            format!("{path} = {}", self.set_value(value))
        });
        let set: Vec<_> = set.collect();
        let remove: Vec<_> = update.remove.iter().map(|path| self.path(path)).collect();
        let mut pairs = |pairs: &[(Path, Value)]| -> Vec<String> {
            let pair = |(path, value): &(Path, Value)| {
                let path = self.path(path);
                format!("{path} {}", self.value(value))
            };
            pairs.iter().map(pair).collect()
        };
        let (add, delete) = (pairs(&update.add), pairs(&update.delete));
        let clauses = [("SET", set), ("REMOVE", remove), ("ADD", add), ("DELETE", delete)];
        let clauses = clauses.into_iter().filter(|(_, parts)| !parts.is_empty());
        let clauses: Vec<_> = clauses.map(|(word, parts)| format!("{word} {}", parts.join(", "))).collect();
        (!clauses.is_empty()).then(|| clauses.join(" "))
    }

    fn set_value(&mut self, value: &SetValue) -> String {
        match value {
            SetValue::Operand(operand) => self.set_operand(operand),
            SetValue::Plus(one, other) => {
                let one = self.set_operand(one);
                format!("{one} + {}", self.set_operand(other))
            }
            SetValue::Minus(one, other) => {
                let one = self.set_operand(one);
                format!("{one} - {}", self.set_operand(other))
            }
        }
    }

    fn set_operand(&mut self, operand: &SetOperand) -> String {
        match operand {
            SetOperand::Path(path) => self.path(path),
            SetOperand::Value(value) => self.value(value),
            SetOperand::IfMissing(path, otherwise) => {
                let path = self.path(path);
                format!("if_not_exists({path}, {})", self.set_operand(otherwise))
            }
            SetOperand::ListAppend(one, other) => {
                let one = self.set_operand(one);
                format!("list_append({one}, {})", self.set_operand(other))
            }
        }
    }
}

#[cfg(test)]
mod tests;
