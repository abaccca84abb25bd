//! A walk over the words of one expression, and the messages about what is found on the way.

use super::reserved;
use super::token::{Keyword, Kind, Token, tokens};
use crate::fault::Fault;

/// Largest expression, in bytes.
const EXPRESSION_BYTES_MAX: usize = 4_096;
/// Most operators and functions of one expression.
const OPERATORS_MAX: usize = anabranch_model::limits::EXPRESSION_OPERATORS_MAX;
/// How deep operands nest: functions, and parentheses around them. The text is a few kilobytes, the stack is not endless.
const NESTING_MAX: usize = OPERATORS_MAX;
/// Most steps of a path.
const PATH_STEPS_MAX: usize = anabranch_model::limits::NESTING_MAX;

/// The functions of all kinds of expressions.
const FUNCTIONS: [&str; 8] = [
    "attribute_exists",
    "attribute_not_exists",
    "attribute_type",
    "begins_with",
    "contains",
    "size",
    IF_NOT_EXISTS,
    LIST_APPEND,
];
pub(super) const IF_NOT_EXISTS: &str = "if_not_exists";
pub(super) const LIST_APPEND: &str = "list_append";

/// A path as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RawPath {
    /// The names and numbers, the attribute first.
    pub(super) steps: Vec<RawStep>,
}

/// A step of a path as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RawStep {
    /// A name itself.
    Word(String),
    /// A `#name` that stands for one.
    Name(String),
    /// A place in a list.
    Index(usize),
}

/// A part of an expression that stands for a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// Where it lies in the item.
    Path(RawPath),
    /// A `:value` that stands for it.
    Value(String),
    /// A function with its operands.
    Call(String, Vec<Term>),
}

/// The walk.
pub(super) struct Cursor<'a> {
    /// The parameter that holds the expression, for messages.
    parameter: &'static str,
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    operators: usize,
    redundant_parentheses: bool,
    calls: Vec<&'a str>,
    words: Vec<&'a str>,
}

impl<'a> Cursor<'a> {
    /// The beginning of an expression.
    pub(super) fn new(parameter: &'static str, text: &'a str) -> Result<Self, Fault> {
        let tokens = if text.len() <= EXPRESSION_BYTES_MAX { tokens(text) } else { Vec::new() };
        let cursor = Cursor {
            parameter,
            text,
            tokens,
            at: 0,
            depth: 0,
            operators: 0,
            redundant_parentheses: false,
            calls: Vec::new(),
            words: Vec::new(),
        };
        match cursor.tokens.len() {
            0 => Err(cursor.refuse(format_args!(
                "Expression size has exceeded the maximum allowed size; expression size: {}",
                text.len()
            ))),
            1 => Err(cursor.refuse("The expression can not be empty;")),
            _ => Ok(cursor),
        }
    }

    /// A message about this expression.
    pub(super) fn refuse(&self, why: impl std::fmt::Display) -> Fault {
        Fault::validation(format!("Invalid {}: {why}", self.parameter))
    }

    /// The word here does not belong here.
    pub(super) fn syntax_error(&self) -> Fault {
        let here = self.here();
        let token = match here.kind {
            Kind::End => "<EOF>",
            _ => &self.text[here.start..here.end],
        };
        let before = self.at.checked_sub(1).map_or(here, |before| self.tokens[before]);
        let behind = self.tokens.get(self.at + 1).unwrap_or(&here);
        let end = if behind.kind == Kind::End && here.kind != Kind::End { here.end } else { behind.end };
        let near = &self.text[before.start..end];
        self.refuse(format_args!("Syntax error; token: \"{token}\", near: \"{near}\""))
    }

    fn here(&self) -> Token {
        self.tokens[self.at]
    }

    /// What the word here is.
    pub(super) fn kind(&self) -> Kind {
        self.here().kind
    }

    /// The word here, which is left behind.
    pub(super) fn take(&mut self) -> &'a str {
        let Token { start, end, .. } = self.here();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        &self.text[start..end]
    }

    /// Leaves the word here behind if it is this one.
    pub(super) fn accept(&mut self, kind: Kind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.take();
        }
        found
    }

    /// Leaves the word here behind, which must be this one.
    pub(super) fn expect(&mut self, kind: Kind) -> Result<(), Fault> {
        if self.accept(kind) { Ok(()) } else { Err(self.syntax_error()) }
    }

    /// Leaves a word of the grammar behind, if it is here.
    pub(super) fn accept_keyword(&mut self, keyword: Keyword) -> bool {
        self.accept(Kind::Keyword(keyword))
    }

    /// Whether the sign of equality is here.
    pub(super) fn at_equals(&self) -> bool {
        let Token { kind, start, end } = self.here();
        kind == Kind::Comparator && &self.text[start..end] == "="
    }

    /// Goes into an operand that may hold itself.
    pub(super) fn enter(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            let levels = self.depth;
            return Err(self.refuse(format_args!(
                "The expression has too many nesting levels; nesting levels: {levels}"
            )));
        }
        Ok(())
    }

    /// Comes out of it again.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Counts an operator or a function.
    pub(super) fn count_operator(&mut self) {
        self.operators += 1;
    }

    /// Parentheses around parentheses mean nothing, and are refused when the grammar has no complaint.
    pub(super) fn note_redundant_parentheses(&mut self) {
        self.redundant_parentheses = true;
    }

    /// The end of the expression: what is wrong beyond its grammar. `allowed` are the functions of this kind of
    /// expression, `kind` is its name in messages.
    pub(super) fn finish(&self, allowed: impl Fn(&str) -> bool, kind: &str) -> Result<(), Fault> {
        if self.kind() != Kind::End {
            return Err(self.syntax_error());
        }
        if self.redundant_parentheses {
            return Err(self.refuse("The expression has redundant parentheses;"));
        }
        if self.operators > OPERATORS_MAX {
            let count = OPERATORS_MAX + 1;
            return Err(self.refuse(format_args!(
                "The expression contains too many operators; operator count: {count}"
            )));
        }
        for call in &self.calls {
            if !FUNCTIONS.contains(call) {
                return Err(self.refuse(format_args!("Invalid function name; function: {call}")));
            }
            if !allowed(call) {
                return Err(self.refuse(format_args!(
                    "The function is not allowed in {kind} expression; function: {call}"
                )));
            }
        }
        match self.words.iter().find(|word| reserved::is_reserved(word)) {
            Some(word) => {
                Err(self
                    .refuse(format_args!("Attribute name is a reserved keyword; reserved keyword: {word}")))
            }
            None => Ok(()),
        }
    }

    /// A path.
    pub(super) fn path(&mut self) -> Result<RawPath, Fault> {
        let mut steps = vec![self.name()?];
        loop {
            if self.accept(Kind::Symbol('.')) {
                steps.push(self.name()?);
            } else if self.accept(Kind::Symbol('[')) {
                steps.push(self.index()?);
                self.expect(Kind::Symbol(']'))?;
            } else {
                break;
            }
        }
        if steps.len() > PATH_STEPS_MAX {
            let levels = steps.len();
            return Err(self.refuse(format_args!(
                "The document path has too many nesting levels; nesting levels: {levels}"
            )));
        }
        Ok(RawPath { steps })
    }

    fn name(&mut self) -> Result<RawStep, Fault> {
        match self.kind() {
            Kind::Word => {
                let word = self.take();
                self.words.push(word);
                Ok(RawStep::Word(word.to_string()))
            }
            Kind::Name => Ok(RawStep::Name(self.take().to_string())),
            _ => Err(self.syntax_error()),
        }
    }

    fn index(&mut self) -> Result<RawStep, Fault> {
        if self.kind() != Kind::Digits {
            return Err(self.syntax_error());
        }
        let digits = self.take();
        match digits.parse::<i32>() {
            Ok(index) => Ok(RawStep::Index(index as usize)),
            Err(_) => {
                Err(self
                    .refuse(format_args!("List index is not within the allowable range; index: [{digits}]")))
            }
        }
    }

    /// A path, a value or a function.
    pub(super) fn term(&mut self) -> Result<Term, Fault> {
        match self.kind() {
            Kind::Value => Ok(Term::Value(self.take().to_string())),
            Kind::Word if self.tokens[self.at + 1].kind == Kind::Symbol('(') => self.call(),
            _ => self.path().map(Term::Path),
        }
    }

    fn call(&mut self) -> Result<Term, Fault> {
        self.enter()?;
        self.count_operator();
        let function = self.take();
        self.calls.push(function);
        self.expect(Kind::Symbol('('))?;
        let mut operands = Vec::new();
        loop {
            operands.push(self.operand()?);
            if !self.accept(Kind::Symbol(',')) {
                break;
            }
        }
        self.expect(Kind::Symbol(')'))?;
        self.leave();
        Ok(Term::Call(function.to_string(), operands))
    }

    /// A term, which may stand in parentheses.
    pub(super) fn operand(&mut self) -> Result<Term, Fault> {
        if !self.accept(Kind::Symbol('(')) {
            return self.term();
        }
        self.enter()?;
        if self.kind() == Kind::Symbol('(') {
            self.note_redundant_parentheses();
        }
        let term = self.operand()?;
        self.expect(Kind::Symbol(')'))?;
        self.leave();
        Ok(term)
    }
}
