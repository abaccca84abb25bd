//! Conditions and filters.

use anabranch_model::limits::IN_OPERANDS_MAX;
use anabranch_model::table::expression::{Comparison, Condition, Operand};
use anabranch_model::table::{Kind, Value};

use super::cursor::{Cursor, IF_NOT_EXISTS, LIST_APPEND, Term};
use super::resolve::{Resolver, literal_kind};
use super::token::{Keyword, Kind as Word};
use super::{Expressions, type_of};
use crate::dynamodb::attribute::{TYPE_NAMES, kind_named, type_name};
use crate::fault::Fault;

/// How tightly a part binds.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binding {
    Or,
    And,
    Not,
}

/// A condition as it is written.
#[derive(Debug)]
enum Raw {
    Compare(Term, Comparison, &'static str, Term),
    Between(Term, Term, Term),
    In(Term, Vec<Term>),
    Call(String, Vec<Term>),
    And(Vec<Raw>),
    Or(Vec<Raw>),
    Not(Box<Raw>),
}

/// What stands between two operators: only what follows tells whether `(a)` is a value or should be a condition.
enum Node {
    Term(Term),
    Condition(Raw),
}

impl Expressions {
    /// A condition on an item.
    pub(in crate::dynamodb) fn condition(&mut self, text: &str) -> Result<Condition, Fault> {
        self.read_condition("ConditionExpression", "a condition", text)
    }

    /// A filter of a query or scan.
    pub(in crate::dynamodb) fn filter(&mut self, text: &str) -> Result<Condition, Fault> {
        self.read_condition("FilterExpression", "a filter", text)
    }

    pub(super) fn read_condition(
        &mut self,
        parameter: &'static str,
        kind: &str,
        text: &str,
    ) -> Result<Condition, Fault> {
        let mut cursor = Cursor::new(parameter, text)?;
        let (node, _) = node(&mut cursor, Binding::Or)?;
        let raw = condition(&cursor, node)?;
        cursor.finish(|function| ![IF_NOT_EXISTS, LIST_APPEND].contains(&function), kind)?;
        Resolver { parameter, expressions: self }.condition(&raw)
    }
}

/// What binds at least so tightly, and whether it stands in parentheses.
fn node(cursor: &mut Cursor<'_>, binding: Binding) -> Result<(Node, bool), Fault> {
    let (mut left, mut parenthesised) = if cursor.accept_keyword(Keyword::Not) {
        cursor.enter()?;
        cursor.count_operator();
        let (inner, _) = node(cursor, Binding::Not)?;
        cursor.leave();
        (Node::Condition(Raw::Not(Box::new(condition(cursor, inner)?))), false)
    } else {
        comparison(cursor)?
    };
    let joints = [
        (Binding::And, Keyword::And, Binding::Not, Raw::And as fn(Vec<Raw>) -> Raw),
        (Binding::Or, Keyword::Or, Binding::And, Raw::Or),
    ];
    for (level, keyword, tighter, join) in joints {
        if binding > level || cursor.kind() != Word::Keyword(keyword) {
            continue;
        }
        let mut all = vec![condition(cursor, left)?];
        while cursor.accept_keyword(keyword) {
            cursor.count_operator();
            let (right, _) = node(cursor, tighter)?;
            all.push(condition(cursor, right)?);
        }
        (left, parenthesised) = (Node::Condition(join(all)), false);
    }
    Ok((left, parenthesised))
}

/// A value alone is no condition; a function may be one.
fn condition(cursor: &Cursor<'_>, node: Node) -> Result<Raw, Fault> {
    match node {
        Node::Condition(raw) => Ok(raw),
        Node::Term(Term::Call(function, operands)) => Ok(Raw::Call(function, operands)),
        Node::Term(_) => Err(cursor.syntax_error()),
    }
}

/// A comparison, a function, or anything in parentheses.
fn comparison(cursor: &mut Cursor<'_>) -> Result<(Node, bool), Fault> {
    let parenthesised = cursor.accept(Word::Symbol('('));
    let first = if parenthesised {
        cursor.enter()?;
        let (inner, again) = node(cursor, Binding::Or)?;
        cursor.expect(Word::Symbol(')'))?;
        cursor.leave();
        if again {
            cursor.note_redundant_parentheses();
        }
        inner
    } else {
        Node::Term(cursor.term()?)
    };
    let follows = matches!(
        cursor.kind(),
        Word::Comparator | Word::Keyword(Keyword::Between) | Word::Keyword(Keyword::In)
    );
    match first {
        Node::Term(first) if follows => {
            cursor.count_operator();
            Ok((Node::Condition(compared(cursor, first)?), false))
        }
        first => Ok((first, parenthesised)),
    }
}

fn compared(cursor: &mut Cursor<'_>, first: Term) -> Result<Raw, Fault> {
    if cursor.accept_keyword(Keyword::Between) {
        let lower = cursor.operand()?;
        cursor.expect(Word::Keyword(Keyword::And))?;
        return Ok(Raw::Between(first, lower, cursor.operand()?));
    }
    if cursor.accept_keyword(Keyword::In) {
        cursor.expect(Word::Symbol('('))?;
        let mut others = vec![cursor.operand()?];
        while cursor.accept(Word::Symbol(',')) {
            others.push(cursor.operand()?);
        }
        cursor.expect(Word::Symbol(')'))?;
        return Ok(Raw::In(first, others));
    }
    let (comparison, spelled) = match cursor.take() {
        "=" => (Comparison::Equal, "="),
        "<>" => (Comparison::NotEqual, "<>"),
        "<" => (Comparison::Below, "<"),
        "<=" => (Comparison::AtMost, "<="),
        ">" => (Comparison::Above, ">"),
        _ => (Comparison::AtLeast, ">="),
    };
    Ok(Raw::Compare(first, comparison, spelled, cursor.operand()?))
}

impl Resolver<'_> {
    fn condition(&mut self, raw: &Raw) -> Result<Condition, Fault> {
        match raw {
            Raw::And(all) => Ok(Condition::And(self.conditions(all)?)),
            Raw::Or(any) => Ok(Condition::Or(self.conditions(any)?)),
            Raw::Not(inner) => Ok(self.condition(inner)?.negated()),
            Raw::Compare(one, how, operator, other) => self.compare(one, *how, operator, other),
            Raw::Between(one, lower, upper) => self.between(one, lower, upper),
            Raw::In(one, others) => self.one_of(one, others),
            Raw::Call(function, operands) => self.call(function, operands),
        }
    }

    fn conditions(&mut self, all: &[Raw]) -> Result<Vec<Condition>, Fault> {
        all.iter().map(|raw| self.condition(raw)).collect()
    }

    fn compare(
        &mut self,
        one: &Term,
        how: Comparison,
        operator: &str,
        other: &Term,
    ) -> Result<Condition, Fault> {
        let (one, other) = (self.operand(one)?, self.operand(other)?);
        if how.is_of_order() {
            [&one, &other].into_iter().try_for_each(|operand| self.check_ordered(operator, operand))?;
        }
        self.check_distinct(operator, &one, [&other])?;
        Ok(Condition::Compare(one, how, other))
    }

    fn between(&mut self, one: &Term, lower: &Term, upper: &Term) -> Result<Condition, Fault> {
        let (one, lower, upper) = (self.operand(one)?, self.operand(lower)?, self.operand(upper)?);
        [&one, &lower, &upper].into_iter().try_for_each(|operand| self.check_ordered("BETWEEN", operand))?;
        self.check_distinct("BETWEEN", &one, [&lower, &upper])?;
        if let (Operand::Value(low), Operand::Value(high)) = (&lower, &upper) {
            let wrong = if low.kind() != high.kind() {
                Some("same data type for lower and upper bounds")
            } else if !Comparison::AtMost.holds(low, high) {
                Some("upper bound to be greater than or equal to lower bound")
            } else {
                None
            };
            if let Some(wrong) = wrong {
                let (low, high) = (shown(low), shown(high));
                return Err(self.refuse(format_args!(
                    "The BETWEEN operator requires {wrong}; lower bound operand: AttributeValue: {low}, upper bound \
                     operand: AttributeValue: {high}"
                )));
            }
        }
        Ok(Condition::Between(one, lower, upper))
    }

    fn one_of(&mut self, one: &Term, others: &[Term]) -> Result<Condition, Fault> {
        if others.len() > IN_OPERANDS_MAX {
            let count = others.len() + 1;
            return Err(self.refuse(format_args!(
                "The IN operator is provided with too many operands; number of operands: {count}"
            )));
        }
        let one = self.operand(one)?;
        let others: Vec<_> = others.iter().map(|other| self.operand(other)).collect::<Result<_, _>>()?;
        self.check_distinct("IN", &one, &others)?;
        Ok(Condition::In(one, others))
    }

    fn check_ordered(&self, operator: &str, operand: &Operand) -> Result<(), Fault> {
        match literal_kind(operand) {
            None | Some(Kind::Text | Kind::Number | Kind::Binary) => Ok(()),
            Some(kind) => Err(self.wrong_type(operator, type_name(kind))),
        }
    }

    fn call(&mut self, function: &str, operands: &[Term]) -> Result<Condition, Fault> {
        match function {
            "attribute_exists" | "attribute_not_exists" => {
                self.check_count(function, operands, 1)?;
                let path = self.first_path(function, operands)?;
                let exists = function == "attribute_exists";
                Ok(if exists { Condition::Exists(path) } else { Condition::Missing(path) })
            }
            "attribute_type" => {
                self.check_count(function, operands, 2)?;
                let first = match &operands[0] {
                    value @ Term::Value(_) => self.operand(value)?,
                    _ => Operand::Path(self.first_path(function, operands)?),
                };
                let kind = self.kind(function, &operands[1])?;
                Ok(match first {
                    // Of what was given with the call it is known already.
                    Operand::Value(value) => {
                        let how =
                            [Comparison::NotEqual, Comparison::Equal][usize::from(value.kind() == kind)];
                        Condition::compare(value.clone(), how, value)
                    }
                    Operand::Path(path) | Operand::Size(path) => Condition::HasKind(path, kind),
                })
            }
            "begins_with" | "contains" => {
                self.check_count(function, operands, 2)?;
                let (one, other) = (self.operand(&operands[0])?, self.operand(&operands[1])?);
                if function == "contains" {
                    self.check_distinct(function, &one, [&other])?;
                    return Ok(Condition::Contains(one, other));
                }
                for kind in [&one, &other].into_iter().filter_map(literal_kind) {
                    if !matches!(kind, Kind::Text | Kind::Binary) {
                        return Err(self.wrong_type(function, type_name(kind)));
                    }
                }
                self.check_distinct(function, &one, [&other])?;
                Ok(Condition::BeginsWith(one, other))
            }
            _ => Err(self.misplaced(function)),
        }
    }

    /// The kind that a value names.
    fn kind(&mut self, function: &str, term: &Term) -> Result<Kind, Fault> {
        let valid = format!("{{{}}}", TYPE_NAMES.join(","));
        match self.operand(term)? {
            Operand::Value(Value::Text(name)) => kind_named(&name).ok_or_else(|| {
                self.refuse(format_args!(
                    "Invalid attribute type name found; type: {name}, valid types: {valid}"
                ))
            }),
            Operand::Value(value) => Err(self.wrong_type(function, type_of(&value))),
            Operand::Size(_) => Err(self.wrong_type(function, "N")),
            Operand::Path(_) => Err(self.wrong_type(function, &valid)),
        }
    }
}

/// A value of an order, as messages show it.
pub(in crate::dynamodb) fn shown(value: &Value) -> String {
    let name = type_of(value);
    match value {
        Value::Text(text) => format!("{{{name}:{text}}}"),
        Value::Number(number) => format!("{{{name}:{number}}}"),
        other => format!("{{{name}:{other:?}}}"),
    }
}
