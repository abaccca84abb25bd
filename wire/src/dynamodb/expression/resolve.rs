//! What the parts of an expression stand for, once its placeholders are looked up.

use std::fmt::Display;

use anabranch_model::table::expression::Operand;
use anabranch_model::table::{Kind, Number, Path, Projection, Step, Value, path};

use super::cursor::{RawPath, RawStep, Term};
use super::{Expressions, type_of};
use crate::fault::Fault;

/// Looks up placeholders for the expression of one parameter.
pub(super) struct Resolver<'a> {
    pub(super) parameter: &'static str,
    pub(super) expressions: &'a mut Expressions,
}

impl Resolver<'_> {
    /// A message about the expression.
    pub(super) fn refuse(&self, why: impl Display) -> Fault {
        Fault::validation(format!("Invalid {}: {why}", self.parameter))
    }

    /// A function or operator does not take what it is given.
    pub(super) fn wrong_type(&self, operator: &str, kind: &str) -> Fault {
        self.refuse(format_args!(
            "Incorrect operand type for operator or function; operator or function: {operator}, operand type: {kind}"
        ))
    }

    /// A function stands where it cannot.
    pub(super) fn misplaced(&self, function: &str) -> Fault {
        self.refuse(format_args!(
            "The function is not allowed to be used this way in an expression; function: {function}"
        ))
    }

    /// A path with its names looked up.
    pub(super) fn path(&mut self, raw: &RawPath) -> Result<Path, Fault> {
        let mut steps = raw.steps.iter();
        let attribute = match steps.next() {
            Some(step) => self.name(step)?,
            None => String::new(),
        };
        let mut found = path(attribute);
        for step in steps {
            found.steps.push(match step {
                RawStep::Index(index) => Step::Index(*index),
                name => Step::Name(self.name(name)?),
            });
        }
        Ok(found)
    }

    fn name(&mut self, step: &RawStep) -> Result<String, Fault> {
        match step {
            RawStep::Word(word) => Ok(word.clone()),
            RawStep::Index(index) => Ok(index.to_string()),
            RawStep::Name(key) => match self.expressions.names.get_mut(key) {
                Some(name) => {
                    name.used = true;
                    self.expressions.copied.bytes += name.bytes;
                    let content = name.content.clone();
                    self.check_copies().map(|()| content)
                }
                None => Err(self.refuse(format_args!(
                    "An expression attribute name used in the document path is not defined; attribute name: {key}"
                ))),
            },
        }
    }

    /// The value of a placeholder.
    pub(super) fn value(&mut self, key: &str) -> Result<Value, Fault> {
        match self.expressions.values.get_mut(key) {
            Some(value) => {
                value.used = true;
                self.expressions.copied.bytes += value.bytes;
                let content = value.content.clone();
                self.check_copies().map(|()| content)
            }
            None => Err(self.refuse(format_args!(
                "An expression attribute value used in expression is not defined; attribute value: {key}"
            ))),
        }
    }

    /// A small expression can name a large value a thousand times.
    fn check_copies(&self) -> Result<(), Fault> {
        let copied = self.expressions.copied;
        if copied.bytes > copied.bytes_max {
            return Err(
                self.refuse("The expression uses large values or names of its placeholders too often")
            );
        }
        Ok(())
    }

    /// What a condition looks at.
    pub(super) fn operand(&mut self, term: &Term) -> Result<Operand, Fault> {
        match term {
            Term::Path(raw) => self.path(raw).map(Operand::Path),
            Term::Value(key) => self.value(key).map(Operand::Value),
            Term::Call(function, operands) if function == "size" => {
                self.check_count(function, operands, 1)?;
                match self.operand(&operands[0])? {
                    Operand::Path(path) => Ok(Operand::Size(path)),
                    Operand::Value(value) => match size_of(&value) {
                        Some(size) => Ok(Operand::Value(Value::Number(Number::from(size as u64)))),
                        None => Err(self.wrong_type(function, type_of(&value))),
                    },
                    Operand::Size(_) => Err(self.wrong_type(function, "N")),
                }
            }
            Term::Call(function, _) => Err(self.misplaced(function)),
        }
    }

    /// How many operands a function has.
    pub(super) fn check_count(&self, function: &str, operands: &[Term], wanted: usize) -> Result<(), Fault> {
        let count = operands.len();
        if count == wanted {
            return Ok(());
        }
        Err(self.refuse(format_args!(
            "Incorrect number of operands for operator or function; operator or function: {function}, number of \
             operands: {count}"
        )))
    }

    /// The first operand, which must be a path.
    pub(super) fn first_path(&mut self, function: &str, operands: &[Term]) -> Result<Path, Fault> {
        match &operands[0] {
            Term::Path(raw) => self.path(raw),
            _ => Err(self.refuse(format_args!(
                "Operator or function requires a document path; operator or function: {function}"
            ))),
        }
    }

    /// A comparison of a path with itself is a mistake.
    pub(super) fn check_distinct<'b>(
        &self,
        operator: &str,
        first: &Operand,
        others: impl IntoIterator<Item = &'b Operand>,
    ) -> Result<(), Fault> {
        let Operand::Path(path) = first else { return Ok(()) };
        if others.into_iter().any(|other| other == first) {
            return Err(self.same_operand(operator, path));
        }
        Ok(())
    }

    /// The refusal of such a comparison.
    pub(super) fn same_operand(&self, operator: &str, path: &Path) -> Fault {
        self.refuse(format_args!(
            "The first operand must be distinct from the remaining operands for this operator or function; \
             operator: {operator}, first operand: {}",
            path_text(path)
        ))
    }

    /// Paths of which none contains another and which agree on what is a list and what is a map.
    pub(super) fn check_paths(&self, paths: &[Path]) -> Result<(), Fault> {
        if paths.is_empty() || Projection(paths.to_vec()).check().is_ok() {
            return Ok(());
        }
        let pairs =
            paths.iter().enumerate().flat_map(|(at, two)| paths[..at].iter().map(move |one| (one, two)));
        for (one, two) in pairs {
            if let Some(what) = collision(one, two) {
                let (one, two) = (path_text(one), path_text(two));
                return Err(self.refuse(format_args!(
                    "Two document paths {what} with each other; must remove or rewrite one of these paths; path one: \
                     {one}, path two: {two}"
                )));
            }
        }
        Ok(())
    }
}

/// How two paths are in each other's way.
fn collision(one: &Path, two: &Path) -> Option<&'static str> {
    if one.attribute != two.attribute {
        return None;
    }
    for (one, two) in one.steps.iter().zip(&two.steps) {
        match (one, two) {
            (Step::Name(_), Step::Index(_)) | (Step::Index(_), Step::Name(_)) => return Some("conflict"),
            _ if one != two => return None,
            _ => {}
        }
    }
    Some("overlap")
}

/// A path as messages show it, for instance `[a, [0], b]`.
fn path_text(path: &Path) -> String {
    let steps = path.steps.iter().map(|step| match step {
        Step::Name(name) => name.clone(),
        Step::Index(index) => format!("[{index}]"),
    });
    let all: Vec<_> = std::iter::once(path.attribute.clone()).chain(steps).collect();
    format!("[{}]", all.join(", "))
}

/// The size of a value that does not depend on an item.
fn size_of(value: &Value) -> Option<usize> {
    Some(match value {
        Value::Text(text) => text.len(),
        Value::Binary(bytes) => bytes.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::TextSet(set) => set.len(),
        Value::NumberSet(set) => set.len(),
        Value::BinarySet(set) => set.len(),
        Value::Number(_) | Value::Bool(_) | Value::Null => return None,
    })
}

/// The type of an operand that does not depend on an item.
pub(super) fn literal_kind(operand: &Operand) -> Option<Kind> {
    match operand {
        Operand::Value(value) => Some(value.kind()),
        Operand::Size(_) => Some(Kind::Number),
        Operand::Path(_) => None,
    }
}
