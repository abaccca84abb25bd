//! Tags of tables: a document each, under the key of the tag.

use std::collections::BTreeSet;

use anabranch_model::TableName;
use anabranch_model::admin::{Document, Owner};
use serde::{Deserialize, Serialize};

use super::attribute::INVALID;
use super::errors::fault;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::{Pattern, Validation};

const KIND: &str = "table-tags";
/// Most tags of one table.
const TAGS_MAX: usize = 50;

/// What keys and values consist of.
const CHARACTERS: Pattern = Pattern {
    text: "^([\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*)$",
    matches: |text| {
        let allowed = |c: char| c.is_alphanumeric() || c.is_whitespace() || "_.:/=+-@".contains(c);
        text.chars().all(allowed)
    },
};

/// A tag.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Tag {
    key: Option<String>,
    value: Option<String>,
}

/// Checks tags that a request brings.
pub(super) fn check(tags: &[Tag]) -> Result<(), Fault> {
    let mut validation = Validation::default();
    for (at, tag) in tags.iter().enumerate() {
        let field = |member: &str| format!("tags.{}.member.{member}", at + 1);
        validation.required(&field("key"), &tag.key).length(&field("key"), tag.key.as_deref(), 1..=128);
        validation.required(&field("value"), &tag.value);
        validation.length(&field("value"), tag.value.as_deref(), 0..=256);
        validation.pattern(&field("key"), tag.key.as_deref(), CHARACTERS);
        validation.pattern(&field("value"), tag.value.as_deref(), CHARACTERS);
    }
    validation.done()?;
    let keys: BTreeSet<_> = tags.iter().filter_map(|tag| tag.key.as_deref()).collect();
    if keys.len() < tags.len() {
        return Err(Fault::validation(format!("{INVALID} Tags contain duplicate keys")));
    }
    check_count(keys.len())?;
    match keys.iter().find(|key| key.to_ascii_lowercase().starts_with("aws:")) {
        Some(key) => Err(Fault::validation(format!(
            "{INVALID} Tag key {key} is reserved: it must not begin with aws:"
        ))),
        None => Ok(()),
    }
}

fn check_count(count: usize) -> Result<(), Fault> {
    if count <= TAGS_MAX {
        return Ok(());
    }
    Err(Fault::validation(format!("{INVALID} Too many tags: Number of tags can not be more than {TAGS_MAX}")))
}

/// Adds tags to those of a table. They have been checked.
pub(super) async fn put(context: &Context, table: &TableName, tags: Vec<Tag>) -> Result<(), Fault> {
    if tags.is_empty() {
        return Ok(());
    }
    let there = list(context, table).await?;
    let keys = there.iter().chain(&tags).filter_map(|tag| tag.key.as_deref());
    check_count(keys.collect::<BTreeSet<_>>().len())?;
    let documents =
        tags.into_iter().map(|tag| Document::new(tag.key.unwrap_or_default(), tag.value.unwrap_or_default()));
    let owner = Owner::Table(table.clone());
    context.ports.admin.put_documents(&owner, KIND, documents.collect()).await.map_err(fault)
}

/// The tags of a table, by their keys.
pub(super) async fn list(context: &Context, table: &TableName) -> Result<Vec<Tag>, Fault> {
    let owner = Owner::Table(table.clone());
    let page = context.ports.admin.documents(&owner, KIND, None, TAGS_MAX).await.map_err(fault)?;
    let tag = |document: Document| Tag {
        key: Some(document.name),
        value: Some(String::from_utf8_lossy(&document.value).into_owned()),
    };
    Ok(page.entries.into_iter().map(tag).collect())
}

/// Takes tags away.
pub(super) async fn remove(context: &Context, table: &TableName, keys: Vec<String>) -> Result<(), Fault> {
    let owner = Owner::Table(table.clone());
    context.ports.admin.delete_documents(&owner, KIND, keys).await.map_err(fault)
}
