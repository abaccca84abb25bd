//! Tags of streams and consumers.

use std::collections::BTreeMap;

use serde::Serialize;

use super::errors::invalid;
use crate::fault::Fault;
use crate::validation::Validation;

/// Most tags of one stream or consumer.
pub(super) const TAGS_MAX: usize = 50;
/// Most tags of one request.
const TAGS_GIVEN_MAX: usize = 200;

/// A tag as answers show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Tag {
    key: String,
    value: String,
}

/// Tags as answers show them.
pub(super) fn shapes(tags: &BTreeMap<String, String>) -> Vec<Tag> {
    tags.iter().map(|(key, value)| Tag { key: key.clone(), value: value.clone() }).collect()
}

/// Checks that a request which is about tags brings some.
pub(super) fn check_given(validation: &mut Validation, tags: &Option<BTreeMap<String, String>>) {
    validation.required("tags", tags);
    if let Some(tags) = tags {
        validation.size("tags", format_args!("{tags:?}"), tags.len(), 1..=TAGS_GIVEN_MAX);
    }
}

/// Checks tags that a request brings.
pub(super) fn check(tags: &BTreeMap<String, String>) -> Result<(), Fault> {
    let mut validation = Validation::default();
    validation.size("tags", format_args!("{tags:?}"), tags.len(), 0..=TAGS_GIVEN_MAX);
    for (key, value) in tags {
        validation.length("tags.key", Some(key), 1..=128).length("tags.value", Some(value), 0..=256);
    }
    validation.done()?;
    check_count(tags)?;
    match tags.keys().find(|key| key.to_ascii_lowercase().starts_with("aws:")) {
        Some(key) => Err(invalid(format!("Tag key {key} is reserved: it must not begin with aws:."))),
        None => Ok(()),
    }
}

/// Adds tags to those that are there.
pub(super) fn add(there: &mut BTreeMap<String, String>, tags: BTreeMap<String, String>) -> Result<(), Fault> {
    there.extend(tags);
    check_count(there)
}

fn check_count(tags: &BTreeMap<String, String>) -> Result<(), Fault> {
    if tags.len() <= TAGS_MAX {
        return Ok(());
    }
    Err(invalid(format!("Failed to add tags: a resource has at most {TAGS_MAX} tags.")))
}

/// Checks keys that a request brings, and takes their tags away.
pub(super) fn remove(there: &mut BTreeMap<String, String>, keys: &[String]) {
    there.retain(|key, _| !keys.contains(key));
}

/// Checks the keys of tags that are to be removed.
pub(super) fn check_keys(keys: &Option<Vec<String>>) -> Result<(), Fault> {
    let mut validation = Validation::default();
    validation.required("tagKeys", keys);
    if let Some(keys) = keys {
        validation.size("tagKeys", format_args!("{keys:?}"), keys.len(), 1..=50);
        for key in keys {
            validation.length("tagKeys", Some(key), 1..=128);
        }
    }
    validation.done()
}
