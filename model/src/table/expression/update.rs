//! Updates: how an item becomes another one.
//!
//! What must hold: every right-hand side sees the item as it was before; no path of an update contains another, so
//! that the order of its parts means nothing.

use super::projection::Projection;
use crate::error::{Error, Result};
use crate::limits::EXPRESSION_OPERATORS_MAX;
use crate::table::key::KeySchema;
use crate::table::path::{Path, PathTree, Step};
use crate::table::value::{Item, Value};

/// Changes to the parts of an item.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Update {
    /// Paths that get a value. An element behind the end of a list is appended to it.
    pub set: Vec<(Path, SetValue)>,
    /// Paths whose values go. Elements behind a removed one move up.
    pub remove: Vec<Path>,
    /// Numbers that are added to a number, and sets that are added to a set; what is missing counts as zero or empty.
    pub add: Vec<(Path, Value)>,
    /// Sets that are taken from a set. A set that becomes empty is removed.
    pub delete: Vec<(Path, Value)>,
}

/// What a path is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetValue {
    /// This.
    Operand(SetOperand),
    /// A sum of numbers.
    Plus(SetOperand, SetOperand),
    /// A difference of numbers.
    Minus(SetOperand, SetOperand),
}

/// Part of what a path is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetOperand {
    /// The value at a path of the item as it was; it must exist.
    Path(Path),
    /// This value.
    Value(Value),
    /// The value at a path of the item as it was, or the operand if there is none.
    IfMissing(Path, Box<SetOperand>),
    /// Two lists, one behind the other.
    ListAppend(Box<SetOperand>, Box<SetOperand>),
}

/// The value at a path, or the operand if there is none.
pub fn if_missing(path: impl Into<Path>, otherwise: impl Into<SetOperand>) -> SetOperand {
    SetOperand::IfMissing(path.into(), Box::new(otherwise.into()))
}

/// Two lists, one behind the other.
pub fn list_append(one: impl Into<SetOperand>, other: impl Into<SetOperand>) -> SetOperand {
    SetOperand::ListAppend(Box::new(one.into()), Box::new(other.into()))
}

/// What happens at one path.
enum Change {
    Put(Value),
    Take,
}

impl Update {
    /// Changes nothing; on an item that does not exist it makes one that has a key only.
    pub fn new() -> Self {
        Update::default()
    }

    /// Gives a path a value.
    pub fn set(mut self, path: impl Into<Path>, value: impl Into<SetValue>) -> Self {
        self.set.push((path.into(), value.into()));
        self
    }

    /// Takes a value away.
    pub fn remove(mut self, path: impl Into<Path>) -> Self {
        self.remove.push(path.into());
        self
    }

    /// Adds to a number or a set.
    pub fn add(mut self, path: impl Into<Path>, value: impl Into<Value>) -> Self {
        self.add.push((path.into(), value.into()));
        self
    }

    /// Takes elements from a set.
    pub fn delete(mut self, path: impl Into<Path>, value: impl Into<Value>) -> Self {
        self.delete.push((path.into(), value.into()));
        self
    }

    /// The paths that are changed.
    pub fn paths(&self) -> impl Iterator<Item = &Path> + Clone {
        let values = self.add.iter().chain(&self.delete).map(|(path, _)| path);
        self.set.iter().map(|(path, _)| path).chain(&self.remove).chain(values)
    }

    /// Bytes of the values that the update brings.
    pub fn size(&self) -> usize {
        let set = self.set.iter().map(|(_, value)| value.size()).sum::<usize>();
        set + self.add.iter().chain(&self.delete).map(|(_, value)| value.size()).sum::<usize>()
    }

    /// Those parts of the item as it was that the update changes.
    pub fn parts_before(&self, old: &Item) -> Result<Item> {
        Projection(self.paths().cloned().collect()).apply(old)
    }

    /// What stands in the item as it is where the update has changed it: new values, and what took the place of a
    /// removed element.
    pub fn parts_after(&self, new: &Item) -> Result<Item> {
        Projection(self.paths().cloned().collect()).apply(new)
    }

    /// Whether a store may be asked for this in a table with this key, whatever the item.
    pub fn check(&self, schema: &KeySchema) -> Result<()> {
        PathTree::check(self.paths(), "updates")?;
        if let Some(path) = self.paths().find(|path| schema.names(&path.attribute)) {
            return Err(Error::Invalid(format!("`{path}` cannot be updated: it is part of the key")));
        }
        let count = self.paths().count() + self.set.iter().map(|(_, value)| value.operators()).sum::<usize>();
        if count > EXPRESSION_OPERATORS_MAX {
            return Err(Error::Invalid(format!(
                "the update has {count} operators: at most {EXPRESSION_OPERATORS_MAX} are allowed"
            )));
        }
        for (path, value) in &self.add {
            if !matches!(value, Value::Number(_)) && !is_set(value) {
                let kind = value.kind();
                return Err(Error::Invalid(format!(
                    "only numbers and sets are added to `{path}`, not {kind}"
                )));
            }
        }
        for (path, value) in &self.delete {
            if !is_set(value) {
                let kind = value.kind();
                return Err(Error::Invalid(format!("only sets are taken from `{path}`, not {kind}")));
            }
        }
        Ok(())
    }

    /// The item that `old` becomes; none if there was none and nothing but removals is asked for. `key` are the
    /// attributes of the key. From an item that does not exist everything can be removed, wherever its path leads.
    pub fn apply(&self, old: Option<&Item>, key: &Item) -> Result<Option<Item>> {
        PathTree::check(self.paths(), "updates")?;
        let only_removes = self.set.is_empty() && self.add.is_empty();
        let removes_any = !self.remove.is_empty() || !self.delete.is_empty();
        let before = old.unwrap_or(key);
        let mut changes = self.changes(before)?;
        // Elements keep their numbers until everything is put, new ones come in order, and the last element goes first.
        changes.sort_by_key(|(path, _)| *path);
        let mut item = before.clone();
        for (path, change) in &changes {
            if let Change::Put(value) = change {
                put(&mut item, path, value.clone())?;
            }
        }
        for (path, change) in changes.iter().rev() {
            if let Change::Take = change
                && old.is_some()
            {
                // An element that was appended a moment ago is not the one that is meant.
                take(&mut item, path, path.find(before).is_some())?;
            }
        }
        Ok((old.is_some() || !only_removes || !removes_any).then_some(item))
    }

    fn changes(&self, before: &Item) -> Result<Vec<(&Path, Change)>> {
        let mut changes = Vec::new();
        for (path, value) in &self.set {
            changes.push((path, Change::Put(value.evaluate(before)?)));
        }
        changes.extend(self.remove.iter().map(|path| (path, Change::Take)));
        for (path, value) in &self.add {
            let sum = match path.find(before) {
                Some(old) => sum(old, value, path)?,
                None => value.clone(),
            };
            changes.push((path, Change::Put(sum)));
        }
        for (path, value) in &self.delete {
            let change = match path.find(before) {
                Some(old) => difference(old, value, path)?.map_or(Change::Take, Change::Put),
                None => Change::Take,
            };
            changes.push((path, change));
        }
        Ok(changes)
    }
}

impl SetValue {
    fn evaluate(&self, item: &Item) -> Result<Value> {
        let number = |operand: &SetOperand| match operand.evaluate(item)? {
            Value::Number(number) => Ok(number),
            other => {
                let kind = other.kind();
                Err(Error::Invalid(format!("an update calculates with numbers only, not with {kind}")))
            }
        };
        match self {
            SetValue::Operand(operand) => operand.evaluate(item),
            SetValue::Plus(one, other) => number(one)?.plus(number(other)?).map(Value::Number),
            SetValue::Minus(one, other) => number(one)?.minus(number(other)?).map(Value::Number),
        }
    }

    fn size(&self) -> usize {
        match self {
            SetValue::Operand(operand) => operand.size(),
            SetValue::Plus(one, other) | SetValue::Minus(one, other) => one.size() + other.size(),
        }
    }

    fn operators(&self) -> usize {
        match self {
            SetValue::Operand(operand) => operand.operators(),
            SetValue::Plus(one, other) | SetValue::Minus(one, other) => {
                1 + one.operators() + other.operators()
            }
        }
    }
}

impl SetOperand {
    fn evaluate(&self, item: &Item) -> Result<Value> {
        match self {
            SetOperand::Path(path) => path.find(item).cloned().ok_or_else(|| {
                Error::Invalid(format!("the update refers to `{path}`, which the item does not have"))
            }),
            SetOperand::Value(value) => Ok(value.clone()),
            SetOperand::IfMissing(path, otherwise) => match path.find(item) {
                Some(value) => Ok(value.clone()),
                None => otherwise.evaluate(item),
            },
            SetOperand::ListAppend(one, other) => match (one.evaluate(item)?, other.evaluate(item)?) {
                (Value::List(mut list), Value::List(more)) => {
                    list.extend(more);
                    Ok(Value::List(list))
                }
                (one, other) => {
                    let kinds = (one.kind(), other.kind());
                    let why = format!("only lists are appended to lists, not {} to {}", kinds.1, kinds.0);
                    Err(Error::Invalid(why))
                }
            },
        }
    }

    fn size(&self) -> usize {
        match self {
            SetOperand::Path(_) => 0,
            SetOperand::Value(value) => value.size(),
            SetOperand::IfMissing(_, otherwise) => otherwise.size(),
            SetOperand::ListAppend(one, other) => one.size() + other.size(),
        }
    }

    fn operators(&self) -> usize {
        match self {
            SetOperand::Path(_) | SetOperand::Value(_) => 0,
            SetOperand::IfMissing(_, otherwise) => 1 + otherwise.operators(),
            SetOperand::ListAppend(one, other) => 1 + one.operators() + other.operators(),
        }
    }

    /// The sum of two numbers.
    pub fn plus(self, other: impl Into<SetOperand>) -> SetValue {
        SetValue::Plus(self, other.into())
    }

    /// The difference of two numbers.
    pub fn minus(self, other: impl Into<SetOperand>) -> SetValue {
        SetValue::Minus(self, other.into())
    }
}

impl Path {
    /// The number at this path and another one.
    pub fn plus(self, other: impl Into<SetOperand>) -> SetValue {
        SetOperand::Path(self).plus(other)
    }

    /// The number at this path less another one.
    pub fn minus(self, other: impl Into<SetOperand>) -> SetValue {
        SetOperand::Path(self).minus(other)
    }
}

impl From<Path> for SetOperand {
    fn from(path: Path) -> Self {
        SetOperand::Path(path)
    }
}

impl<V: Into<Value>> From<V> for SetOperand {
    fn from(value: V) -> Self {
        SetOperand::Value(value.into())
    }
}

impl<O: Into<SetOperand>> From<O> for SetValue {
    fn from(operand: O) -> Self {
        SetValue::Operand(operand.into())
    }
}

fn is_set(value: &Value) -> bool {
    matches!(value, Value::TextSet(_) | Value::NumberSet(_) | Value::BinarySet(_))
}

fn mismatch(path: &Path, old: &Value, value: &Value) -> Error {
    let (old, value) = (old.kind(), value.kind());
    Error::Invalid(format!("`{path}` is {old}, which does not go together with {value}"))
}

fn sum(old: &Value, more: &Value, path: &Path) -> Result<Value> {
    Ok(match (old, more) {
        (Value::Number(old), Value::Number(more)) => Value::Number(old.plus(*more)?),
        (Value::TextSet(old), Value::TextSet(more)) => Value::TextSet(old | more),
        (Value::NumberSet(old), Value::NumberSet(more)) => Value::NumberSet(old | more),
        (Value::BinarySet(old), Value::BinarySet(more)) => Value::BinarySet(old | more),
        _ => return Err(mismatch(path, old, more)),
    })
}

/// What is left of a set; none if nothing is.
fn difference(old: &Value, less: &Value, path: &Path) -> Result<Option<Value>> {
    let (left, empty) = match (old, less) {
        (Value::TextSet(old), Value::TextSet(less)) => {
            let left = old - less;
            (Value::TextSet(left.clone()), left.is_empty())
        }
        (Value::NumberSet(old), Value::NumberSet(less)) => {
            let left = old - less;
            (Value::NumberSet(left.clone()), left.is_empty())
        }
        (Value::BinarySet(old), Value::BinarySet(less)) => {
            let left = old - less;
            (Value::BinarySet(left.clone()), left.is_empty())
        }
        _ => return Err(mismatch(path, old, less)),
    };
    Ok((!empty).then_some(left))
}

/// What contains the value at `path`: the item, or a map or list in it.
enum Parent<'a> {
    Map(&'a mut Item, &'a str),
    List(&'a mut Vec<Value>, usize),
}

fn parent<'a>(item: &'a mut Item, path: &'a Path) -> Result<Parent<'a>> {
    let invalid =
        || Error::Invalid(format!("the path `{path}` of the update leads through what does not exist"));
    let Some((last, steps)) = path.steps.split_last() else {
        return Ok(Parent::Map(item, &path.attribute));
    };
    let attribute = item.get_mut(&path.attribute).ok_or_else(invalid)?;
    let value = steps.iter().try_fold(attribute, |value, step| match (value, step) {
        (Value::Map(map), Step::Name(name)) => map.get_mut(name),
        (Value::List(list), Step::Index(index)) => list.get_mut(*index),
        _ => None,
    });
    match (value.ok_or_else(invalid)?, last) {
        (Value::Map(map), Step::Name(name)) => Ok(Parent::Map(map, name)),
        (Value::List(list), Step::Index(index)) => Ok(Parent::List(list, *index)),
        _ => Err(invalid()),
    }
}

fn put(item: &mut Item, path: &Path, value: Value) -> Result<()> {
    match parent(item, path)? {
        Parent::Map(map, name) => drop(map.insert(name, value)),
        Parent::List(list, index) => match list.get_mut(index) {
            Some(element) => *element = value,
            None => list.push(value),
        },
    }
    Ok(())
}

fn take(item: &mut Item, path: &Path, exists: bool) -> Result<()> {
    match parent(item, path)? {
        Parent::Map(map, name) => drop(map.remove(name)),
        Parent::List(list, index) if exists => drop(list.remove(index)),
        Parent::List(..) => {}
    }
    Ok(())
}
