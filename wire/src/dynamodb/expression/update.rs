//! Updates.

use anabranch_model::table::expression::{SetOperand, SetValue, Update};
use anabranch_model::table::{Kind, Value};

use super::cursor::{Cursor, IF_NOT_EXISTS, LIST_APPEND, RawPath, Term};
use super::resolve::Resolver;
use super::token::{Keyword, Kind as Word};
use super::{Expressions, type_of};
use crate::fault::Fault;

const PARAMETER: &str = "UpdateExpression";

/// An update as it is written.
#[derive(Default)]
struct Raw {
    /// The first section that is there twice.
    twice: Option<&'static str>,
    set: Vec<(RawPath, RawValue)>,
    remove: Vec<RawPath>,
    add: Vec<(RawPath, String)>,
    delete: Vec<(RawPath, String)>,
}

/// What a path is set to, as it is written.
enum RawValue {
    Term(Term),
    Plus(Term, Term),
    Minus(Term, Term),
}

impl Expressions {
    /// Changes to an item.
    pub(in crate::dynamodb) fn update(&mut self, text: &str) -> Result<Update, Fault> {
        let mut cursor = Cursor::new(PARAMETER, text)?;
        let raw = sections(&mut cursor)?;
        cursor.finish(|function| [IF_NOT_EXISTS, LIST_APPEND].contains(&function), "an update")?;
        let mut resolver = Resolver { parameter: PARAMETER, expressions: self };
        if let Some(name) = raw.twice {
            return Err(resolver.refuse(format_args!(
                "The \"{name}\" section can only be used once in an update expression;"
            )));
        }
        resolver.update(&raw)
    }
}

fn sections(cursor: &mut Cursor<'_>) -> Result<Raw, Fault> {
    let mut raw = Raw::default();
    while let Word::Keyword(keyword) = cursor.kind() {
        let (name, begun) = match keyword {
            Keyword::Set => ("SET", !raw.set.is_empty()),
            Keyword::Remove => ("REMOVE", !raw.remove.is_empty()),
            Keyword::Add => ("ADD", !raw.add.is_empty()),
            Keyword::Delete => ("DELETE", !raw.delete.is_empty()),
            _ => return Err(cursor.syntax_error()),
        };
        cursor.take();
        if begun {
            raw.twice.get_or_insert(name);
        }
        loop {
            let path = cursor.path()?;
            match keyword {
                Keyword::Set => raw.set.push((path, assigned(cursor)?)),
                Keyword::Add => raw.add.push((path, value(cursor)?)),
                Keyword::Delete => raw.delete.push((path, value(cursor)?)),
                _ => raw.remove.push(path),
            }
            if !cursor.accept(Word::Symbol(',')) {
                break;
            }
        }
    }
    match cursor.kind() {
        Word::End => Ok(raw),
        _ => Err(cursor.syntax_error()),
    }
}

fn value(cursor: &mut Cursor<'_>) -> Result<String, Fault> {
    match cursor.kind() {
        Word::Value => Ok(cursor.take().to_string()),
        _ => Err(cursor.syntax_error()),
    }
}

/// The sign of equality and what follows it.
fn assigned(cursor: &mut Cursor<'_>) -> Result<RawValue, Fault> {
    if !cursor.at_equals() {
        return Err(cursor.syntax_error());
    }
    cursor.take();
    sum(cursor).map(|(value, _)| value)
}

/// A term, or two of them with a sign between; and whether all of it stands in parentheses.
fn sum(cursor: &mut Cursor<'_>) -> Result<(RawValue, bool), Fault> {
    let (left, parenthesised) = part(cursor)?;
    let minus = match cursor.kind() {
        Word::Symbol('+') => false,
        Word::Symbol('-') => true,
        _ => return Ok((left, parenthesised)),
    };
    let RawValue::Term(left) = left else { return Err(cursor.syntax_error()) };
    cursor.take();
    cursor.count_operator();
    let (RawValue::Term(right), _) = part(cursor)? else { return Err(cursor.syntax_error()) };
    Ok((if minus { RawValue::Minus(left, right) } else { RawValue::Plus(left, right) }, false))
}

fn part(cursor: &mut Cursor<'_>) -> Result<(RawValue, bool), Fault> {
    if !cursor.accept(Word::Symbol('(')) {
        return Ok((RawValue::Term(cursor.term()?), false));
    }
    cursor.enter()?;
    let (inner, again) = sum(cursor)?;
    cursor.expect(Word::Symbol(')'))?;
    cursor.leave();
    if again {
        cursor.note_redundant_parentheses();
    }
    Ok((inner, true))
}

impl Resolver<'_> {
    fn update(&mut self, raw: &Raw) -> Result<Update, Fault> {
        let mut update = Update::new();
        for (path, value) in &raw.set {
            let path = self.path(path)?;
            let value = match value {
                RawValue::Term(term) => SetValue::Operand(self.set_operand(term)?),
                RawValue::Plus(one, other) => {
                    SetValue::Plus(self.addend("+", one)?, self.addend("+", other)?)
                }
                RawValue::Minus(one, other) => {
                    SetValue::Minus(self.addend("-", one)?, self.addend("-", other)?)
                }
            };
            update.set.push((path, value));
        }
        for path in &raw.remove {
            update.remove.push(self.path(path)?);
        }
        for (path, key) in &raw.add {
            let (path, value) = (self.path(path)?, self.value(key)?);
            self.check_section("ADD", &value, matches!(value, Value::Number(_)))?;
            update.add.push((path, value));
        }
        for (path, key) in &raw.delete {
            let (path, value) = (self.path(path)?, self.value(key)?);
            self.check_section("DELETE", &value, false)?;
            update.delete.push((path, value));
        }
        let paths: Vec<_> = update.paths().cloned().collect();
        self.check_paths(&paths)?;
        Ok(update)
    }

    /// The sections that change sets take sets, and one of them numbers as well.
    fn check_section(&self, section: &str, value: &Value, allowed: bool) -> Result<(), Fault> {
        let set = matches!(value.kind(), Kind::TextSet | Kind::NumberSet | Kind::BinarySet);
        if set || allowed {
            return Ok(());
        }
        let kind = crate::dynamodb::attribute::type_in_words(value.kind());
        Err(self.refuse(format_args!(
            "Incorrect operand type for operator or function; operator: {section}, operand type: {kind}"
        )))
    }

    fn addend(&mut self, sign: &str, term: &Term) -> Result<SetOperand, Fault> {
        if let Term::Call(function, _) = term
            && function == LIST_APPEND
        {
            return Err(self.misplaced(function));
        }
        let operand = self.set_operand(term)?;
        self.check_literal(sign, &operand, Kind::Number)?;
        Ok(operand)
    }

    fn set_operand(&mut self, term: &Term) -> Result<SetOperand, Fault> {
        match term {
            Term::Path(raw) => self.path(raw).map(SetOperand::Path),
            Term::Value(key) => self.value(key).map(SetOperand::Value),
            Term::Call(function, operands) if function == IF_NOT_EXISTS => {
                self.check_count(function, operands, 2)?;
                let path = self.first_path(function, operands)?;
                let otherwise = self.set_operand(&operands[1])?;
                if otherwise == SetOperand::Path(path.clone()) {
                    return Err(self.same_operand(function, &path));
                }
                Ok(SetOperand::IfMissing(path, Box::new(otherwise)))
            }
            Term::Call(function, operands) => {
                self.check_count(function, operands, 2)?;
                let (one, other) =
                    (self.list_operand(function, &operands[0])?, self.list_operand(function, &operands[1])?);
                Ok(SetOperand::ListAppend(Box::new(one), Box::new(other)))
            }
        }
    }

    fn list_operand(&mut self, function: &str, term: &Term) -> Result<SetOperand, Fault> {
        let operand = match term {
            Term::Call(inner, _) if inner == LIST_APPEND => return Err(self.misplaced(inner)),
            term => self.set_operand(term)?,
        };
        self.check_literal(function, &operand, Kind::List)?;
        Ok(operand)
    }

    /// A value that does not depend on the item must be of the right kind before the item is looked at.
    fn check_literal(&self, operator: &str, operand: &SetOperand, wanted: Kind) -> Result<(), Fault> {
        match operand {
            SetOperand::Value(value) if value.kind() != wanted => {
                Err(self.wrong_type(operator, type_of(value)))
            }
            SetOperand::IfMissing(_, otherwise) => self.check_literal(operator, otherwise, wanted),
            _ => Ok(()),
        }
    }
}
