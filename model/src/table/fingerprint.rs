//! What tells one transaction from another: a hash of its parts, the same in every version, since a store keeps it beside
//! the token of the transaction.
//!
//! Everything is written with its length or count before it and a tag where there is a choice, so that two different
//! transactions never make the same bytes.

use super::encoding::{put_bytes, put_count};
use super::expression::{Comparison, Condition, Operand, SetOperand, SetValue, Update};
use super::path::{Path, Step};
use super::value::Kind;
use super::write::{Action, Returning, Write};
use crate::hash_key::HashKey;
use crate::name::TableName;

/// The fingerprint of the parts of a transaction.
pub fn fingerprint<'a>(writes: impl IntoIterator<Item = (&'a TableName, &'a Write)>) -> u128 {
    let mut bytes = Vec::new();
    for (table, write) in writes {
        put_bytes(table.as_str().as_bytes(), &mut bytes);
        write.print(&mut bytes);
    }
    HashKey::of(&bytes).get()
}

impl Write {
    fn print(&self, into: &mut Vec<u8>) {
        match &self.action {
            Action::Put(item) => {
                into.push(1);
                item.encode(into);
            }
            Action::Update(key, update) => {
                into.push(2);
                key.encode(into);
                update.print(into);
            }
            Action::Delete(key) => {
                into.push(3);
                key.encode(into);
            }
            Action::Check(key) => {
                into.push(4);
                key.encode(into);
            }
        }
        match &self.condition {
            Some(condition) => condition.print(into),
            None => into.push(0),
        }
        into.push(match self.returning {
            Returning::Nothing => 0,
            Returning::Old => 1,
            Returning::New => 2,
            Returning::UpdatedOld => 3,
            Returning::UpdatedNew => 4,
        });
        into.push(u8::from(self.item_on_failure));
    }
}

impl Update {
    fn print(&self, into: &mut Vec<u8>) {
        put_count(self.set.len() as u64, into);
        for (path, value) in &self.set {
            path.print(into);
            value.print(into);
        }
        put_count(self.remove.len() as u64, into);
        self.remove.iter().for_each(|path| path.print(into));
        for changes in [&self.add, &self.delete] {
            put_count(changes.len() as u64, into);
            for (path, value) in changes {
                path.print(into);
                value.encode(into);
            }
        }
    }
}

impl SetValue {
    fn print(&self, into: &mut Vec<u8>) {
        let (tag, operands) = match self {
            SetValue::Operand(one) => (1, vec![one]),
            SetValue::Plus(one, other) => (2, vec![one, other]),
            SetValue::Minus(one, other) => (3, vec![one, other]),
        };
        into.push(tag);
        operands.into_iter().for_each(|operand| operand.print(into));
    }
}

impl SetOperand {
    fn print(&self, into: &mut Vec<u8>) {
        match self {
            SetOperand::Path(path) => {
                into.push(1);
                path.print(into);
            }
            SetOperand::Value(value) => {
                into.push(2);
                value.encode(into);
            }
            SetOperand::IfMissing(path, otherwise) => {
                into.push(3);
                path.print(into);
                otherwise.print(into);
            }
            SetOperand::ListAppend(one, other) => {
                into.push(4);
                one.print(into);
                other.print(into);
            }
        }
    }
}

impl Condition {
    fn print(&self, into: &mut Vec<u8>) {
        let operands = |tag: u8, operands: &[&Operand], into: &mut Vec<u8>| {
            into.push(tag);
            put_count(operands.len() as u64, into);
            operands.iter().for_each(|operand| operand.print(into));
        };
        match self {
            Condition::Compare(one, how, other) => {
                operands(1, &[one, other], into);
                into.push(match how {
                    Comparison::Equal => 1,
                    Comparison::NotEqual => 2,
                    Comparison::Below => 3,
                    Comparison::AtMost => 4,
                    Comparison::Above => 5,
                    Comparison::AtLeast => 6,
                });
            }
            Condition::Between(one, lower, upper) => operands(2, &[one, lower, upper], into),
            Condition::In(one, others) => {
                operands(3, &std::iter::once(one).chain(others).collect::<Vec<_>>(), into);
            }
            Condition::Exists(path) => {
                into.push(4);
                path.print(into);
            }
            Condition::Missing(path) => {
                into.push(5);
                path.print(into);
            }
            Condition::HasKind(path, kind) => {
                into.push(6);
                path.print(into);
                into.push(tag_of(*kind));
            }
            Condition::BeginsWith(one, start) => operands(7, &[one, start], into),
            Condition::Contains(one, part) => operands(8, &[one, part], into),
            Condition::And(all) | Condition::Or(all) => {
                into.push(if matches!(self, Condition::And(_)) { 9 } else { 10 });
                put_count(all.len() as u64, into);
                all.iter().for_each(|condition| condition.print(into));
            }
            Condition::Not(condition) => {
                into.push(11);
                condition.print(into);
            }
        }
    }
}

impl Operand {
    fn print(&self, into: &mut Vec<u8>) {
        match self {
            Operand::Path(path) => {
                into.push(1);
                path.print(into);
            }
            Operand::Value(value) => {
                into.push(2);
                value.encode(into);
            }
            Operand::Size(path) => {
                into.push(3);
                path.print(into);
            }
        }
    }
}

impl Path {
    fn print(&self, into: &mut Vec<u8>) {
        put_bytes(self.attribute.as_bytes(), into);
        put_count(self.steps.len() as u64, into);
        for step in &self.steps {
            match step {
                Step::Name(name) => {
                    into.push(1);
                    put_bytes(name.as_bytes(), into);
                }
                Step::Index(index) => {
                    into.push(2);
                    put_count(*index as u64, into);
                }
            }
        }
    }
}

fn tag_of(kind: Kind) -> u8 {
    match kind {
        Kind::Text => 1,
        Kind::Number => 2,
        Kind::Binary => 3,
        Kind::Bool => 4,
        Kind::Null => 5,
        Kind::List => 6,
        Kind::Map => 7,
        Kind::TextSet => 8,
        Kind::NumberSet => 9,
        Kind::BinarySet => 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::expression::{exists, if_missing, missing, size};
    use crate::table::{Item, path};

    #[test]
    fn transactions_that_differ_differ_here() {
        let key = || Item::new().with("id", "a");
        let write = |update: Update| Write::update(key(), update);
        let all = [
            Write::put(key()),
            Write::delete(key()),
            Write::put(key().with("n", 1)),
            Write::put(key().with("n", "1")),
            Write::put(key()).when(exists("n")),
            Write::put(key()).when(missing("n")),
            Write::put(key()).when(exists("n").negated()),
            Write::put(key()).when(exists("n").and(exists("m"))),
            Write::put(key()).when(exists("n").or(exists("m"))),
            Write::put(key()).when(exists(path("n").name("m"))),
            Write::put(key()).when(exists(path("n").index(0))),
            Write::put(key()).when(path("n").equals(1)),
            Write::put(key()).when(path("n").above(1)),
            Write::put(key()).when(Condition::compare(size("n"), Comparison::Above, 1)),
            Write::put(key()).when(Condition::HasKind(path("n"), Kind::Text)),
            Write::put(key()).when(Condition::HasKind(path("n"), Kind::Map)),
            Write::put(key()).showing_item(),
            Write::put(key()).returning(Returning::Old),
            write(Update::new()),
            write(Update::new().set("n", 1)),
            write(Update::new().add("n", 1)),
            write(Update::new().remove("n")),
            write(Update::new().set("n", path("m"))),
            write(Update::new().set("n", if_missing("m", 1))),
            write(Update::new().set("n", path("m").plus(1))),
            write(Update::new().set("n", path("m").minus(1))),
        ];
        let (one, other) = (TableName::new("one").expect("a name"), TableName::new("other").expect("a name"));
        let mut seen = std::collections::BTreeSet::new();
        for write in &all {
            assert!(seen.insert(fingerprint([(&one, write)])), "{write:?}");
            assert!(seen.insert(fingerprint([(&other, write)])), "{write:?}");
            assert!(seen.insert(fingerprint([(&one, write), (&other, write)])), "{write:?}");
        }
    }

    #[test]
    fn the_encoding_stays_as_it_is() {
        let mut bytes = Vec::new();
        Write::delete(Item::new().with("id", "a")).when(exists("n")).print(&mut bytes);
        assert_eq!(bytes, [3, 1, 2, b'i', b'd', 1, 1, b'a', 4, 1, b'n', 0, 0, 0]);
    }
}
