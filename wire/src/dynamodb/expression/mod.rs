//! Expressions: texts with placeholders for names and values, which become the conditions, projections and updates of
//! the model.
//!
//! A text is cut into words (`token`), walked by the grammar (`cursor`, and the file of its kind), and only then are
//! placeholders looked up (`resolve`): the service complains in this order, and so do we. Behind this folder nobody
//! knows that there were texts.

mod condition;
mod cursor;
mod key_condition;
mod projection;
mod reserved;
mod resolve;
mod token;
mod update;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use anabranch_model::limits::ATTRIBUTE_NAME_BYTES_MAX;
use anabranch_model::table::Value;

use super::attribute::{Attribute, Complaint};
use crate::fault::Fault;

pub(super) use condition::shown;
pub(super) use key_condition::key_parts;

/// Longest placeholder.
const PLACEHOLDER_BYTES_MAX: usize = 255;

/// Most bytes of all that the placeholders of one expression stand for.
const SUBSTITUTED_BYTES_MAX: usize = 2 << 20;

/// Memory that any call may take for what placeholders stand for in all the places where they are used: each place has a
/// copy.
const COPIED_BYTES_FREE: usize = 256 << 10;

/// How often what placeholders stand for may be copied beyond that. Few expressions name a large value more than twice.
const COPIES_MAX: usize = 4;

/// Memory that an element of a list or map takes, whatever it is.
const ELEMENT_BYTES: usize = 64;

/// What the placeholders of one call stand for, and which of them were used.
#[derive(Debug, Default)]
pub(super) struct Expressions {
    names: BTreeMap<String, Placeholder<String>>,
    values: BTreeMap<String, Placeholder<Value>>,
    copied: Copied,
}

/// What the copies of all that the placeholders of a call stand for take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copied {
    /// So far.
    bytes: usize,
    /// At most.
    bytes_max: usize,
}

impl Default for Copied {
    fn default() -> Self {
        Copied { bytes: 0, bytes_max: COPIED_BYTES_FREE }
    }
}

#[derive(Debug)]
struct Placeholder<T> {
    content: T,
    /// Memory for a copy.
    bytes: usize,
    used: bool,
}

/// The expressions that a call has beside its placeholders, each with the name of its parameter.
pub(super) type Given<'a> = [(&'static str, Option<&'a str>)];

impl Expressions {
    /// The placeholders of a call, checked. `with_values` are the expressions that can have values, `others` those that
    /// have names only.
    pub(super) fn new(
        names: Option<BTreeMap<String, String>>,
        values: Option<BTreeMap<String, Attribute>>,
        with_values: &Given<'_>,
        others: &Given<'_>,
    ) -> Result<Self, Fault> {
        Self::check_given(&names, &values, with_values, others)?;
        let (names, values) = (checked_names(names)?, checked_values(values)?);
        let substituted = names.values().map(|name| name.content.len()).sum::<usize>()
            + values.values().map(|value| value.content.size()).sum::<usize>();
        if substituted > SUBSTITUTED_BYTES_MAX {
            return Err(Fault::validation(format!(
                "ExpressionAttributeNames and ExpressionAttributeValues exceed the maximum size of \
                 {SUBSTITUTED_BYTES_MAX} bytes"
            )));
        }
        Ok(Expressions { names, values, copied: Copied::default() }.behind(Copied::default()))
    }

    /// Checks that there are expressions where there are placeholders. A call is refused for that before its items are
    /// looked at, and for what the placeholders stand for afterwards.
    pub(super) fn check_given(
        names: &Option<BTreeMap<String, String>>,
        values: &Option<BTreeMap<String, Attribute>>,
        with_values: &Given<'_>,
        others: &Given<'_>,
    ) -> Result<(), Fault> {
        let any = |given: &Given<'_>| given.iter().any(|(_, text)| text.is_some());
        if names.is_some() && !any(with_values) && !any(others) {
            return Err(Fault::validation(
                "ExpressionAttributeNames can only be specified when using expressions",
            ));
        }
        if values.is_some() && !any(with_values) {
            return Err(Fault::validation(format!(
                "ExpressionAttributeValues can only be specified when using expressions{}",
                absent(with_values)
            )));
        }
        Ok(())
    }

    /// The same, behind others of one call that share its memory for copies.
    pub(super) fn behind(mut self, others: Copied) -> Self {
        let own = self.names.values().map(|name| name.bytes).sum::<usize>()
            + self.values.values().map(|value| value.bytes).sum::<usize>();
        self.copied = Copied { bytes_max: others.bytes_max + COPIES_MAX * own, ..others };
        self
    }

    /// What the copies take so far.
    pub(super) fn copied(&self) -> Copied {
        self.copied
    }

    /// The end of the call: a placeholder that nobody used is a mistake.
    pub(super) fn finish(self) -> Result<(), Fault> {
        let unused = |parameter: &str, keys: Vec<String>| match keys.is_empty() {
            true => Ok(()),
            false => Err(Fault::validation(format!(
                "Value provided in {parameter} unused in expressions: keys: {{{}}}",
                keys.join(", ")
            ))),
        };
        unused("ExpressionAttributeNames", keys_unused(self.names))?;
        unused("ExpressionAttributeValues", keys_unused(self.values))
    }
}

fn keys_unused<T>(placeholders: BTreeMap<String, Placeholder<T>>) -> Vec<String> {
    placeholders.into_iter().filter(|(_, placeholder)| !placeholder.used).map(|(key, _)| key).collect()
}

fn absent(given: &Given<'_>) -> String {
    let names: Vec<_> = given.iter().map(|(parameter, _)| *parameter).collect();
    match names.len() {
        0 => String::new(),
        1 => format!(": {} is null", names[0]),
        _ => format!(": {} are null", names.join(" and ")),
    }
}

fn checked_names(
    names: Option<BTreeMap<String, String>>,
) -> Result<BTreeMap<String, Placeholder<String>>, Fault> {
    let Some(names) = names else { return Ok(BTreeMap::new()) };
    const PARAMETER: &str = "ExpressionAttributeNames";
    check_keys(PARAMETER, '#', &names)?;
    let checked = names.into_iter().map(|(key, name)| {
        if name.is_empty() {
            return Err(Fault::validation(format!(
                "{PARAMETER} contains invalid value: Empty attribute name for key {key}"
            )));
        }
        if name.len() > ATTRIBUTE_NAME_BYTES_MAX {
            return Err(Fault::validation(format!(
                "{PARAMETER} contains invalid value: Attribute name is too large for key {key}, must be at most \
                 {ATTRIBUTE_NAME_BYTES_MAX} bytes"
            )));
        }
        Ok((key, Placeholder { bytes: name.len(), content: name, used: false }))
    });
    checked.collect()
}

fn checked_values(
    values: Option<BTreeMap<String, Attribute>>,
) -> Result<BTreeMap<String, Placeholder<Value>>, Fault> {
    let Some(values) = values else { return Ok(BTreeMap::new()) };
    const PARAMETER: &str = "ExpressionAttributeValues";
    check_keys(PARAMETER, ':', &values)?;
    let checked = values.into_iter().map(|(key, value)| match value.0 {
        // A value nests no deeper than an item may; the rest is checked with the item that it becomes part of.
        Ok(value) => Ok((key, Placeholder { bytes: memory_of(&value), content: value, used: false })),
        Err(Complaint { words, .. }) => {
            Err(Fault::validation(format!("{PARAMETER} contains invalid value: {words} for key {key}")))
        }
    });
    checked.collect()
}

/// Memory that a value takes, about.
fn memory_of(value: &Value) -> usize {
    let elements: usize = match value {
        Value::List(list) => list.iter().map(memory_of).sum(),
        Value::Map(map) => {
            map.iter().map(|(name, value)| ELEMENT_BYTES + name.len() + memory_of(value)).sum()
        }
        Value::TextSet(set) => ELEMENT_BYTES * set.len() + value.size(),
        Value::NumberSet(set) => ELEMENT_BYTES * set.len(),
        Value::BinarySet(set) => ELEMENT_BYTES * set.len(),
        // Bytes are shared.
        Value::Text(_) => value.size(),
        Value::Number(_) | Value::Bool(_) | Value::Null | Value::Binary(_) => 0,
    };
    ELEMENT_BYTES + elements
}

fn check_keys<T>(parameter: &str, mark: char, placeholders: &BTreeMap<String, T>) -> Result<(), Fault> {
    if placeholders.is_empty() {
        return Err(Fault::validation(format!("{parameter} must not be empty")));
    }
    for key in placeholders.keys() {
        if key.len() > PLACEHOLDER_BYTES_MAX {
            let size = key.len();
            return Err(Fault::validation(format!(
                "{parameter} contains invalid key: The expression attribute map contains a key that is too long; \
                 size of key: {size}"
            )));
        }
        let rest = key.strip_prefix(mark);
        if !rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(token::is_part_of_word)) {
            return Err(Fault::validation(format!(
                "{parameter} contains invalid key: Syntax error; key: \"{key}\""
            )));
        }
    }
    Ok(())
}

/// The names of the types of values, as `attribute_type` knows them.
pub(super) fn type_of(value: &Value) -> &'static str {
    super::attribute::type_name(value.kind())
}

/// Refuses expressions beside the parameters that were there before expressions.
pub(super) fn one_style(expressions: &[(&str, bool)], others: &[(&str, bool)]) -> Result<(), Fault> {
    let given = |list: &[(&str, bool)]| {
        let names: Vec<_> = list.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    match (given(expressions), given(others)) {
        (Some(expressions), Some(others)) => Err(Fault::validation(format!(
            "Can not use both expression and non-expression parameters in the same request: Non-expression \
             parameters: {{{others}}} Expression parameters: {{{expressions}}}"
        ))),
        _ => Ok(()),
    }
}
