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

/// What was begun and waits for what stands behind it.
enum Open {
    /// A parenthesis.
    Parenthesis,
    Not,
    /// What is joined so far.
    And(Vec<Raw>),
    Or(Vec<Raw>),
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
        let node = whole(&mut cursor)?;
        let raw = condition(&cursor, node)?;
        cursor.finish(|function| ![IF_NOT_EXISTS, LIST_APPEND].contains(&function), kind)?;
        Resolver { parameter, expressions: self }.condition(&raw)
    }
}

/// Reads to where nothing can go on any more. What is begun lies in a list and not on the stack: a text of the largest size
/// nests thousands of times.
fn whole(cursor: &mut Cursor<'_>) -> Result<Node, Fault> {
    let mut open = Vec::new();
    loop {
        let first = first_term(cursor, &mut open)?;
        let (mut node, mut parenthesised) = (compared(cursor, Node::Term(first))?, false);
        loop {
            // Negations bind most tightly, then what is joined by AND.
            match open.pop() {
                Some(Open::Not) => {
                    node = Node::Condition(Raw::Not(Box::new(condition(cursor, node)?)));
                    parenthesised = false;
                    continue;
                }
                Some(Open::And(mut all)) => {
                    all.push(condition(cursor, node)?);
                    if goes_on(cursor, Keyword::And) {
                        open.push(Open::And(all));
                        break;
                    }
                    node = Node::Condition(Raw::And(all));
                    parenthesised = false;
                }
                outer => open.extend(outer),
            }
            if cursor.kind() == Word::Keyword(Keyword::And) {
                open.push(Open::And(vec![condition(cursor, node)?]));
                goes_on(cursor, Keyword::And);
                break;
            }
            match open.pop() {
                Some(Open::Or(mut any)) => {
                    any.push(condition(cursor, node)?);
                    if goes_on(cursor, Keyword::Or) {
                        open.push(Open::Or(any));
                        break;
                    }
                    node = Node::Condition(Raw::Or(any));
                    parenthesised = false;
                }
                outer => open.extend(outer),
            }
            if cursor.kind() == Word::Keyword(Keyword::Or) {
                open.push(Open::Or(vec![condition(cursor, node)?]));
                goes_on(cursor, Keyword::Or);
                break;
            }
            // Only a parenthesis can be open still.
            if open.pop().is_none() {
                return Ok(node);
            }
            cursor.expect(Word::Symbol(')'))?;
            if parenthesised {
                cursor.note_redundant_parentheses();
            }
            parenthesised = !is_compared(cursor, &node);
            node = compared(cursor, node)?;
        }
    }
}

/// The term behind everything that is begun here.
fn first_term(cursor: &mut Cursor<'_>, open: &mut Vec<Open>) -> Result<Term, Fault> {
    loop {
        if cursor.accept_keyword(Keyword::Not) {
            cursor.count_operator();
            open.push(Open::Not);
        } else if cursor.accept(Word::Symbol('(')) {
            open.push(Open::Parenthesis);
        } else {
            return cursor.term();
        }
    }
}

/// Leaves an operator behind that joins conditions, if it is here.
fn goes_on(cursor: &mut Cursor<'_>, keyword: Keyword) -> bool {
    let found = cursor.accept_keyword(keyword);
    if found {
        cursor.count_operator();
    }
    found
}

/// A value alone is no condition; a function may be one.
fn condition(cursor: &Cursor<'_>, node: Node) -> Result<Raw, Fault> {
    match node {
        Node::Condition(raw) => Ok(raw),
        Node::Term(Term::Call(function, operands)) => Ok(Raw::Call(function, operands)),
        Node::Term(_) => Err(cursor.syntax_error()),
    }
}

/// Whether what follows compares something with what was read.
fn is_compared(cursor: &Cursor<'_>, node: &Node) -> bool {
    let follows = matches!(
        cursor.kind(),
        Word::Comparator | Word::Keyword(Keyword::Between) | Word::Keyword(Keyword::In)
    );
    follows && matches!(node, Node::Term(_))
}

/// What was read, with what it is compared with.
fn compared(cursor: &mut Cursor<'_>, node: Node) -> Result<Node, Fault> {
    let follows = is_compared(cursor, &node);
    match node {
        Node::Term(first) if follows => {
            cursor.count_operator();
            comparison(cursor, first).map(Node::Condition)
        }
        node => Ok(node),
    }
}

fn comparison(cursor: &mut Cursor<'_>, first: Term) -> Result<Raw, Fault> {
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
