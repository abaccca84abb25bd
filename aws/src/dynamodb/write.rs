//! Writing one item.

use std::collections::{HashMap, HashSet};

use anabranch_model::table::expression::{SetOperand, SetValue};
use anabranch_model::table::{
    Action, Item, Key, KeyKind, KeySchema, Path, Returning, Step, TableOptions, Update, Value, Write,
};
use anabranch_model::{Error, Result, TableName};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};

use super::expression::{Expressions, Placeholders};
use super::get::check_fresh;
use super::known::Known;
use super::{Tables, action, explain};
use crate::attribute::tables::{attributes, item};
use crate::call::Deadline;
use crate::failure::Failure;

type Attributes = HashMap<String, AttributeValue>;

/// The texts of a write, and what stands behind their placeholders.
pub(super) struct Texts {
    pub(super) condition: Option<String>,
    pub(super) update: Option<String>,
    pub(super) placeholders: Placeholders,
    pub(super) on_failure: Option<ReturnValuesOnConditionCheckFailure>,
}

impl Texts {
    pub(super) fn of(write: &Write) -> Texts {
        let mut expressions = Expressions::default();
        let condition = write.condition.as_ref().map(|condition| expressions.condition(condition));
        let update = match &write.action {
            Action::Update(_, update) => expressions.update(update),
            _ => None,
        };
        // An update without text makes an item of nothing but its key; it has no condition on attributes to be shown.
        let shows = write.item_on_failure && condition.is_some();
        let on_failure = shows.then_some(ReturnValuesOnConditionCheckFailure::AllOld);
        Texts { condition, update, placeholders: expressions.placeholders(), on_failure }
    }
}

/// A write on its way.
struct Call<'a> {
    table: &'a TableName,
    write: &'a Write,
    texts: Texts,
    deadline: Deadline,
}

/// Gives the builder of a write, or of a part of a transaction, its table and texts. The SDK's builders have these methods
/// in common, but no trait.
macro_rules! with_texts {
    ($builder:expr, $table:expr, $texts:expr) => {
        $builder
            .table_name($table.as_str())
            .set_condition_expression($texts.condition.clone())
            .set_return_values_on_condition_check_failure($texts.on_failure.clone())
            .set_expression_attribute_names($texts.placeholders.names.clone())
            .set_expression_attribute_values($texts.placeholders.values.clone())
    };
}
pub(super) use with_texts;

/// Sends a write that `request` begins. Which of its errors is a condition that failed only its own type knows.
macro_rules! sent {
    ($tables:expr, $call:expr, $row:expr, $request:expr, $failed:path) => {{
        let Call { table, write, texts, deadline } = $call;
        let row = crate::action::Action { repeatable: is_repeatable(write), ..$row };
        let request =
            || with_texts!($request(), table, texts).return_values(return_value(write.returning)).send();
        match $tables.caller.call(&row, deadline, request).await {
            Ok(answer) => Ok(answer.attributes),
            Err(failure) => {
                let found = |error| match error {
                    $failed(failed) => failed.item,
                    _ => None,
                };
                Err($tables.refused(failure, found, table, deadline).await)
            }
        }
    }};
}

impl Tables {
    pub(super) async fn write_item(&self, table: &TableName, write: &Write) -> Result<Option<Item>> {
        check(write)?;
        let deadline = self.soon();
        let fits = |known: &Known| known.check(table, |options| fits(write, options)).map(drop);
        self.check([table], deadline, fits).await?;
        let call = Call { table, write, texts: Texts::of(write), deadline };
        let returned = match &write.action {
            Action::Put(put) => self.put(call, put).await,
            Action::Update(key, _) => self.update_item(call, key).await,
            Action::Delete(key) => self.delete(call, key).await,
            Action::Check(_) => Err(Error::Invalid("a check is part of a transaction only".to_string())),
        };
        let returned = returned?.filter(|attributes| !attributes.is_empty()).map(item).transpose()?;
        let parts = match (&write.action, write.returning, returned) {
            (Action::Update(_, update), Returning::UpdatedOld, Some(old)) => update.parts_before(&old)?,
            (Action::Update(_, update), Returning::UpdatedNew, Some(new)) => update.parts_after(&new)?,
            (_, _, returned) => return Ok(returned),
        };
        Ok(Some(parts).filter(|parts| !parts.is_empty()))
    }

    /// Checks writes of which no two may be about one item.
    pub(super) async fn check_writes(&self, writes: &[(TableName, Write)], deadline: Deadline) -> Result<()> {
        writes.iter().try_for_each(|(_, write)| check(write))?;
        let check = |known: &Known| {
            let mut keys = HashSet::new();
            for (table, write) in writes {
                let key = known.check(table, |options| fits(write, options))?;
                check_fresh(key.is_none_or(|key| keys.insert((table, key))))?;
            }
            Ok(())
        };
        self.check(writes.iter().map(|(table, _)| table), deadline, check).await
    }

    async fn put(&self, call: Call<'_>, put: &Item) -> Result<Option<Attributes>> {
        let put = attributes(put);
        let request = || self.client.put_item().set_item(Some(put.clone()));
        sent!(self, call, action::PUT_ITEM, request, PutItemError::ConditionalCheckFailedException)
    }

    async fn update_item(&self, call: Call<'_>, key: &Item) -> Result<Option<Attributes>> {
        let (key, update) = (attributes(key), call.texts.update.clone());
        let request =
            || self.client.update_item().set_key(Some(key.clone())).set_update_expression(update.clone());
        sent!(self, call, action::UPDATE_ITEM, request, UpdateItemError::ConditionalCheckFailedException)
    }

    async fn delete(&self, call: Call<'_>, key: &Item) -> Result<Option<Attributes>> {
        let key = attributes(key);
        let request = || self.client.delete_item().set_key(Some(key.clone()));
        sent!(self, call, action::DELETE_ITEM, request, DeleteItemError::ConditionalCheckFailedException)
    }

    /// The error for a write that failed. `found` is the item that a condition did not fit.
    async fn refused<D>(
        &self,
        mut failure: Failure<D>,
        found: impl FnOnce(D) -> Option<Attributes>,
        table: &TableName,
        deadline: Deadline,
    ) -> Error {
        if failure.is("ConditionalCheckFailedException") {
            return explain::condition_failed(failure.detail.take().and_then(found));
        }
        self.explained(failure.without_detail(), [table], deadline).await
    }
}

fn return_value(returning: Returning) -> ReturnValue {
    match returning {
        Returning::Nothing => ReturnValue::None,
        // Which parts those are is for the model to say: not every server cuts alike.
        Returning::Old | Returning::UpdatedOld => ReturnValue::AllOld,
        Returning::New | Returning::UpdatedNew => ReturnValue::AllNew,
    }
}

/// Checks what can be told without knowing the table.
pub(super) fn check(write: &Write) -> Result<()> {
    if let Some(condition) = &write.condition {
        condition.check()?;
    }
    let for_updates = !matches!(write.returning, Returning::Nothing | Returning::Old);
    match &write.action {
        Action::Update(key, update) => {
            update.check(&named_by(key))?;
            literals(update).try_for_each(|(path, value)| value.check(&path.attribute))
        }
        _ if for_updates => {
            let returning = write.returning;
            Err(Error::Invalid(format!("only an update returns {returning:?}")))
        }
        Action::Put(item) => item.check(),
        Action::Check(_) if write.condition.is_none() => {
            Err(Error::Invalid("a check has no condition".to_string()))
        }
        Action::Delete(_) | Action::Check(_) => Ok(()),
    }
}

/// The key of a write, if a table that is made like this takes it.
fn fits(write: &Write, options: &TableOptions) -> Result<Key> {
    if let Action::Update(_, update) = &write.action {
        // What an update gives an attribute of an index must fit its key.
        let given = update.set.iter().filter_map(|(path, value)| match value {
            SetValue::Operand(SetOperand::Value(value)) if path.steps.is_empty() => {
                Some((path.attribute.clone(), value.clone()))
            }
            _ => None,
        });
        let given: Item = given.collect();
        options.indexes.iter().try_for_each(|index| index.key.index_key_of(&given).map(drop))?;
    }
    write.check(options)
}

/// A schema of the attributes that a key names, whatever they are: for rules that look at names only.
fn named_by(key: &Item) -> KeySchema {
    let mut names = key.iter().map(|(name, _)| name);
    let schema = KeySchema::hash(names.next().unwrap_or_default(), KeyKind::Text);
    match names.next() {
        Some(range) => schema.and_range(range, KeyKind::Text),
        None => schema,
    }
}

/// The values that an update brings, with the paths that they are for.
fn literals(update: &Update) -> impl Iterator<Item = (&Path, &Value)> {
    let set = update.set.iter().flat_map(|(path, value)| {
        let mut found = Vec::new();
        match value {
            SetValue::Operand(operand) => within(operand, &mut found),
            SetValue::Plus(one, other) | SetValue::Minus(one, other) => {
                within(one, &mut found);
                within(other, &mut found);
            }
        }
        found.into_iter().map(move |value| (path, value))
    });
    set.chain(update.add.iter().chain(&update.delete).map(|(path, value)| (path, value)))
}

fn within<'a>(operand: &'a SetOperand, found: &mut Vec<&'a Value>) {
    match operand {
        SetOperand::Path(_) => {}
        SetOperand::Value(value) => found.push(value),
        SetOperand::IfMissing(_, otherwise) => within(otherwise, found),
        SetOperand::ListAppend(one, other) => {
            within(one, found);
            within(other, found);
        }
    }
}

/// Whether a write may be made twice: the second has no condition that the first could have broken, returns nothing that
/// the first could have changed, and gives what the first gave.
fn is_repeatable(write: &Write) -> bool {
    let blind = write.condition.is_none() && write.returning == Returning::Nothing;
    blind
        && match &write.action {
            Action::Put(_) | Action::Delete(_) | Action::Check(_) => true,
            Action::Update(_, update) => {
                let fixed = |value: &SetValue| matches!(value, SetValue::Operand(SetOperand::Value(_)));
                let number = |value: &Value| matches!(value, Value::Number(_));
                // Elements of a list move when one is added or removed.
                let moves = |path: &Path| path.steps.iter().any(|step| matches!(step, Step::Index(_)));
                update.set.iter().all(|(_, value)| fixed(value))
                    && !update.add.iter().any(|(_, value)| number(value))
                    && !update.paths().any(moves)
            }
        }
}

#[cfg(test)]
mod tests {
    use anabranch_model::table::expression::{exists, if_missing};
    use anabranch_model::table::path;

    use super::*;

    #[test]
    fn only_what_gives_the_same_twice_is_repeated() {
        let key = || Item::new().with("id", "a");
        let set = Value::text_set(["x"]).unwrap();
        for (write, expected) in [
            (Write::put(key()), true),
            (Write::delete(key()), true),
            (Write::put(key()).when(exists("id")), false),
            (Write::delete(key()).when(exists("id")), false),
            (Write::put(key()).returning(Returning::Old), false),
            (Write::update(key(), Update::new()), true),
            (Write::update(key(), Update::new().set("n", 1).remove("m")), true),
            (Write::update(key(), Update::new().set("n", 1)).when(exists("id")), false),
            (Write::update(key(), Update::new().set("n", 1)).returning(Returning::New), false),
            (Write::update(key(), Update::new().set("n", path("n").plus(1))), false),
            (Write::update(key(), Update::new().set("n", if_missing("n", 1))), false),
            (Write::update(key(), Update::new().set("n", path("m"))), false),
            (Write::update(key(), Update::new().add("n", 1)), false),
            (Write::update(key(), Update::new().add("s", set.clone())), true),
            (Write::update(key(), Update::new().delete("s", set)), true),
            (Write::update(key(), Update::new().set(path("l").index(9), 1)), false),
            (Write::update(key(), Update::new().remove(path("l").index(0))), false),
        ] {
            assert_eq!(is_repeatable(&write), expected, "{write:?}");
        }
    }

    #[test]
    fn values_are_looked_at_wherever_they_stand() {
        let empty = || Value::List(vec![Value::TextSet(Default::default())]);
        let key = || Item::new().with("id", "a");
        for update in [
            Update::new().set("a", empty()),
            Update::new().set("a", if_missing("a", empty())),
            Update::new().set("a", anabranch_model::table::expression::list_append(path("a"), empty())),
            Update::new().add("a", Value::TextSet(Default::default())),
        ] {
            assert!(check(&Write::update(key(), update.clone())).is_err(), "{update:?}");
        }
        assert!(check(&Write::update(key(), Update::new().set("a", 1))).is_ok());
        assert!(check(&Write::update(key(), Update::new().set("id", 1))).is_err());
    }
}
