//! Why a store refused a write or a read of items, in the words of DynamoDB.
//!
//! The store checks everything; here the same is looked for once more, and only when it has refused, to find the words
//! that clients know.

use anabranch_model::limits::{HASH_VALUE_BYTES_MAX, ITEM_BYTES_MAX, RANGE_VALUE_BYTES_MAX};
use anabranch_model::table::expression::{SetOperand, SetValue};
use anabranch_model::table::{
    Action, Item, KeyAttribute, KeyKind, KeySchema, Path, TableOptions, Update, Value,
};
use anabranch_model::{Error, TableName};

use super::attribute::{INVALID, type_name};
use super::errors::fault;
use crate::context::Context;
use crate::fault::Fault;

pub(super) const NOT_THE_SCHEMA: &str = "The provided key element does not match the schema";
const TOO_LARGE: &str = "Item size has exceeded the maximum allowed size";
const TOO_LARGE_TO_UPDATE: &str = "Item size to update has exceeded the maximum allowed size";
const NESTED_TOO_DEEP: &str = "Nesting Levels have exceeded supported limits: Attributes in the item have nested \
                               levels beyond supported limit";
pub(super) const WRONG_TYPE: &str = "An operand in the update expression has an incorrect data type";

/// What is wrong with a write.
#[derive(Debug)]
pub(super) struct Wrong {
    /// In the words of the service.
    pub(super) words: String,
    /// What it is called that a key has without any bytes. Where a transaction is otherwise told what is wrong with each
    /// of its parts, this is told as if there were no others.
    pub(super) empty: Option<&'static str>,
}

impl From<String> for Wrong {
    fn from(words: String) -> Self {
        Wrong { words, empty: None }
    }
}

/// Whether a table can hold an item of this size. That depends on no table, and is told even where there is none.
pub(super) fn check_size(item: &Item) -> Result<(), Fault> {
    if item.size() > ITEM_BYTES_MAX {
        return Err(Fault::validation(TOO_LARGE));
    }
    Ok(())
}

/// Whether paths leave keys alone, whose values have no parts.
pub(super) fn check_scalars<'a>(
    options: &TableOptions,
    mut paths: impl Iterator<Item = &'a Path>,
) -> Result<(), Fault> {
    let wrong = |path: &&Path| !path.steps.is_empty() && role_in_keys(options, &path.attribute).is_some();
    match paths.find(wrong) {
        Some(path) => Err(Fault::validation(not_scalar(options, &path.attribute))),
        None => Ok(()),
    }
}

/// What an attribute is called that is part of a key.
fn role_in_keys(options: &TableOptions, attribute: &str) -> Option<&'static str> {
    let in_index = || options.indexes.iter().any(|index| index.key.names(attribute));
    match options.key.names(attribute) {
        true => Some("Key"),
        false => in_index().then_some("IndexKey"),
    }
}

fn not_scalar(options: &TableOptions, attribute: &str) -> String {
    let role = role_in_keys(options, attribute).unwrap_or("Key");
    format!(
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: {role}: {attribute}"
    )
}

/// The fault for a write that was refused.
pub(super) async fn write_fault(
    context: &Context,
    table: &TableName,
    action: &Action,
    error: Error,
) -> Fault {
    let Error::Invalid(why) = &error else { return fault(error) };
    if let Ok(summary) = context.ports.tables.table(table).await
        && let Some(wrong) = of_action(action, &summary.options)
    {
        return Fault::validation(wrong.words);
    }
    match of_item(why) {
        Some(words) => Fault::validation(words),
        None => fault(error),
    }
}

/// The fault for reads of items by their keys that were refused.
pub(super) async fn keys_fault(context: &Context, keys: &[(&TableName, &Item)], error: Error) -> Fault {
    if !matches!(error, Error::Invalid(_)) {
        return fault(error);
    }
    for (table, key) in keys {
        if let Ok(summary) = context.ports.tables.table(table).await
            && let Some(wrong) = of_key(key, &summary.options.key)
        {
            return Fault::validation(wrong.words);
        }
    }
    fault(error)
}

/// What is wrong with a write, whatever the item is.
pub(super) fn of_action(action: &Action, options: &TableOptions) -> Option<Wrong> {
    match action {
        Action::Put(item) => of_put(item, options),
        Action::Delete(key) | Action::Check(key) => of_key(key, &options.key),
        Action::Update(key, update) => of_key(key, &options.key).or_else(|| of_update(update, options)),
    }
}

/// What is wrong with an update, as far as it depends on nothing but the update.
fn of_update(update: &Update, options: &TableOptions) -> Option<Wrong> {
    if let Some(part) = update.paths().find(|path| options.key.names(&path.attribute)) {
        let name = &part.attribute;
        let words = format!("{INVALID} Cannot update attribute {name}. This attribute is part of the key");
        return Some(words.into());
    }
    let set = update.set.iter().filter_map(|(path, value)| match value {
        SetValue::Operand(SetOperand::Value(value)) => Some((path, value)),
        _ => None,
    });
    let values = set.chain(update.add.iter().map(|(path, value)| (path, value)));
    let whole = values.filter(|(path, _)| path.steps.is_empty());
    let given: Item = whole.map(|(path, value)| (path.attribute.as_str(), value.clone())).collect();
    let Some(mut wrong) = of_index_keys(&given, options) else {
        let in_key =
            |path: &&Path| !path.steps.is_empty() && role_in_keys(options, &path.attribute).is_some();
        return update.paths().find(in_key).map(|path| not_scalar(options, &path.attribute).into());
    };
    if let Some(kind) = wrong.empty {
        wrong.words = format!(
            "One or more parameter values are not valid. The update expression attempted to update a secondary index key \
             to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty {kind} value."
        );
    }
    Some(wrong)
}

/// What is wrong with a key.
pub(super) fn of_key(key: &Item, schema: &KeySchema) -> Option<Wrong> {
    let fits =
        |part: &KeyAttribute| key.get(&part.name).is_some_and(|value| value.kind() == part.kind.kind());
    if key.len() != schema.attributes().count() || !schema.attributes().all(fits) {
        return Some(NOT_THE_SCHEMA.to_string().into());
    }
    of_key_values(key, schema)
}

fn of_key_values(item: &Item, schema: &KeySchema) -> Option<Wrong> {
    for part in schema.attributes() {
        let bytes = size_of_key(item.get(&part.name)?)?;
        if bytes == 0 {
            let kind = name_of(part.kind);
            let words = format!(
                "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an \
                 empty {kind} value. Key: {}",
                part.name
            );
            return Some(Wrong { words, empty: Some(kind) });
        }
        let is_hash = part.name == schema.hash.name;
        if is_hash && bytes > HASH_VALUE_BYTES_MAX {
            let words = format!(
                "{INVALID} Size of hashkey has exceeded the maximum size limit of{HASH_VALUE_BYTES_MAX} bytes"
            );
            return Some(words.into());
        }
        if !is_hash && bytes > RANGE_VALUE_BYTES_MAX {
            let words = format!(
                "{INVALID} Aggregated size of all range keys has exceeded the size limit of {RANGE_VALUE_BYTES_MAX} bytes"
            );
            return Some(words.into());
        }
    }
    None
}

/// What values of a kind are called where they are empty.
fn name_of(kind: KeyKind) -> &'static str {
    if kind == KeyKind::Text { "string" } else { "binary" }
}

/// Bytes of a text or binary; a number always has some.
fn size_of_key(value: &Value) -> Option<usize> {
    match value {
        Value::Text(text) => Some(text.len()),
        Value::Binary(bytes) => Some(bytes.len()),
        Value::Number(_) => Some(1),
        _ => None,
    }
}

fn of_put(item: &Item, options: &TableOptions) -> Option<Wrong> {
    for part in options.key.attributes() {
        let Some(value) = item.get(&part.name) else {
            return Some(format!("{INVALID} Missing the key {} in the item", part.name).into());
        };
        if value.kind() != part.kind.kind() {
            let (expected, actual) = (type_name(part.kind.kind()), type_name(value.kind()));
            let name = &part.name;
            let words =
                format!("{INVALID} Type mismatch for key {name} expected: {expected} actual: {actual}");
            return Some(words.into());
        }
    }
    of_key_values(item, &options.key).or_else(|| of_index_keys(item, options)).or_else(|| {
        if item.iter().any(|(name, _)| name.is_empty()) {
            return Some(format!("{INVALID} Empty attribute name").into());
        }
        (item.size() > ITEM_BYTES_MAX).then(|| TOO_LARGE.to_string().into())
    })
}

/// Of several indexes the first by name is told of.
fn of_index_keys(item: &Item, options: &TableOptions) -> Option<Wrong> {
    let mut indexes: Vec<_> = options.indexes.iter().collect();
    indexes.sort_by(|one, other| one.name.cmp(&other.name));
    for index in indexes {
        let name = &index.name;
        for part in index.key.attributes() {
            let key = &part.name;
            let Some(value) = item.get(key) else { continue };
            if value.kind() != part.kind.kind() {
                let (expected, actual) = (type_name(part.kind.kind()), type_name(value.kind()));
                let words = format!(
                    "{INVALID} Type mismatch for Index Key {key} Expected: {expected} Actual: {actual} IndexName: {name}"
                );
                return Some(words.into());
            }
            if size_of_key(value) == Some(0) {
                let kind = name_of(part.kind);
                let words = format!(
                    "One or more parameter values are not valid. A value specified for a secondary index key is not \
                     supported. The AttributeValue for a key attribute cannot contain an empty {kind} value. \
                     IndexName: {name}, IndexKey: {key}"
                );
                return Some(Wrong { words, empty: Some(kind) });
            }
            let is_hash = index.key.hashes(key);
            let limit = if is_hash { HASH_VALUE_BYTES_MAX } else { RANGE_VALUE_BYTES_MAX };
            if size_of_key(value).is_some_and(|bytes| bytes > limit) {
                let what = if is_hash { "hashkey" } else { "rangekey" };
                let words = format!(
                    "{INVALID} Size of {what} has exceeded the maximum size limit of {limit} bytes. IndexName: {name}, \
                     IndexKey: {key}"
                );
                return Some(words.into());
            }
        }
    }
    None
}

/// What the store says about an item and an update that do not go together. Clients depend on some of it: to them an
/// invalid path means that the item is not there yet.
pub(super) fn of_item(why: &str) -> Option<&'static str> {
    const WORDS: [(&str, &str); 10] = [
        (
            "leads through what does not exist",
            "The document path provided in the update expression is invalid for update",
        ),
        (
            "which the item does not have",
            "The provided expression refers to an attribute that does not exist in the item",
        ),
        ("an update calculates with numbers only", WRONG_TYPE),
        ("only lists are appended to lists", WRONG_TYPE),
        ("which does not go together with", WRONG_TYPE),
        (
            "have no exact sum",
            "Number overflow. Attempting to store a number with magnitude larger than supported range",
        ),
        (
            "the update has",
            "Invalid UpdateExpression: The expression contains too many operators; operator count: 301",
        ),
        ("names of attributes included", TOO_LARGE_TO_UPDATE),
        ("levels deep", NESTED_TOO_DEEP),
        (
            "the key attribute",
            "The update expression attempted to update the secondary index key to unsupported type",
        ),
    ];
    WORDS.iter().find(|(part, _)| why.contains(part)).map(|(_, words)| *words)
}
