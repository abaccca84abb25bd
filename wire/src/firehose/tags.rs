//! Tags of delivery streams: documents of the stream that records wait in, so that they go with it.

use std::collections::BTreeSet;

use anabranch_model::{Document, Owner};
use serde::{Deserialize, Serialize};

use super::buffer;
use super::errors::{fault, invalid, not_found};
use crate::context::Context;
use crate::fault::Fault;

const KIND: &str = "firehose-tags";
/// Most tags of one delivery stream.
pub(super) const TAGS_MAX: usize = 50;

/// A tag.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Tag {
    pub(super) key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<String>,
}

/// Checks tags that a request brings.
pub(super) fn check(tags: &[Tag]) -> Result<(), Fault> {
    let mut keys = BTreeSet::new();
    for tag in tags {
        let key = tag.key.as_deref().unwrap_or_default();
        if !(1..=128).contains(&key.chars().count()) || key.to_ascii_lowercase().starts_with("aws:") {
            return Err(invalid(
                "The key of a tag must have 1 to 128 characters, and must not begin with aws:.",
            ));
        }
        if tag.value.as_deref().unwrap_or_default().chars().count() > 256 {
            return Err(invalid("The value of a tag can have 256 characters at most."));
        }
        if !keys.insert(key) {
            return Err(invalid(format!("The tag {key} is given twice.")));
        }
    }
    check_count(keys.len())
}

fn check_count(count: usize) -> Result<(), Fault> {
    if count <= TAGS_MAX {
        return Ok(());
    }
    let message = format!("A delivery stream can have {TAGS_MAX} tags at most.");
    Err(Fault::client("LimitExceededException", message))
}

/// Adds tags to those of a delivery stream. They have been checked.
pub(super) async fn put(context: &Context, name: &str, tags: Vec<Tag>) -> Result<(), Fault> {
    if tags.is_empty() {
        return Ok(());
    }
    let there = list(context, name).await?;
    let keys = there.iter().chain(&tags).filter_map(|tag| tag.key.as_deref());
    check_count(keys.collect::<BTreeSet<_>>().len())?;
    let documents =
        tags.into_iter().map(|tag| Document::new(tag.key.unwrap_or_default(), tag.value.unwrap_or_default()));
    let put = context.ports.admin.put_documents(&owner(name)?, KIND, documents.collect()).await;
    put.map_err(|error| missing(name, error))
}

/// The tags of a delivery stream, by their keys.
pub(super) async fn list(context: &Context, name: &str) -> Result<Vec<Tag>, Fault> {
    let page = context.ports.admin.documents(&owner(name)?, KIND, None, TAGS_MAX).await;
    let tag = |document: Document| Tag {
        key: Some(document.name),
        value: Some(String::from_utf8_lossy(&document.value).into_owned()),
    };
    Ok(page.map_err(|error| missing(name, error))?.entries.into_iter().map(tag).collect())
}

/// Takes tags away.
pub(super) async fn remove(context: &Context, name: &str, keys: Vec<String>) -> Result<(), Fault> {
    let removed = context.ports.admin.delete_documents(&owner(name)?, KIND, keys).await;
    removed.map_err(|error| missing(name, error))
}

fn owner(name: &str) -> Result<Owner, Fault> {
    buffer::stream(name).map(Owner::Stream).map_err(fault)
}

fn missing(name: &str, error: anabranch_model::Error) -> Fault {
    match error {
        anabranch_model::Error::StreamNotFound(_) => not_found(name),
        other => fault(other),
    }
}
