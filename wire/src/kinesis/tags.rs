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

/// Adds the check that a request which is about tags brings some.
pub(super) fn check_given(validation: &mut Validation, tags: &Option<BTreeMap<String, String>>) {
    validation.required("tags", tags);
    if let Some(tags) = tags {
        validation.size("tags", shown(tags), tags.len(), 1..=TAGS_GIVEN_MAX);
        check_lengths(validation, tags);
    }
}

/// Checks tags that a request brings along with something else.
pub(super) fn check(tags: &BTreeMap<String, String>) -> Result<(), Fault> {
    let mut validation = Validation::default();
    validation.size("tags", shown(tags), tags.len(), 0..=TAGS_GIVEN_MAX);
    check_lengths(&mut validation, tags);
    validation.done()?;
    check_letters(tags.iter().flat_map(|(key, value)| [key, value]))?;
    check_keys_free(tags)?;
    check_count(tags, "resource")
}

/// Adds tags whose lengths were checked to those that are there. `whose` is how a refusal calls their owner.
pub(super) fn add(
    there: &mut BTreeMap<String, String>,
    tags: BTreeMap<String, String>,
    whose: &str,
) -> Result<(), Fault> {
    check_letters(tags.iter().flat_map(|(key, value)| [key, value]))?;
    check_keys_free(&tags)?;
    there.extend(tags);
    check_count(there, whose)
}

/// Takes the tags with these keys away.
pub(super) fn remove(there: &mut BTreeMap<String, String>, keys: &[String]) -> Result<(), Fault> {
    check_letters(keys)?;
    there.retain(|key, _| !keys.contains(key));
    Ok(())
}

/// Adds the checks of the keys of tags that are to be removed.
pub(super) fn check_keys(validation: &mut Validation, keys: &Option<Vec<String>>) {
    validation.required("tagKeys", keys);
    if let Some(keys) = keys {
        let shown = format!("[{}]", keys.join(", "));
        validation.size("tagKeys", &shown, keys.len(), 1..=50).lengths(
            "tagKeys",
            &shown,
            "Member",
            keys,
            1..=128,
        );
    }
}

fn check_lengths(validation: &mut Validation, tags: &BTreeMap<String, String>) {
    validation.lengths("tags", shown(tags), "Map keys", tags.keys(), 1..=128).lengths(
        "tags",
        shown(tags),
        "Map value",
        tags.values(),
        0..=256,
    );
}

fn check_letters<'t>(texts: impl IntoIterator<Item = &'t String>) -> Result<(), Fault> {
    // A colon is not in the list that the service gives, but other services write tags with one to streams; a percent sign
    // is, and is refused.
    let allowed = |letter: char| {
        let space = letter.is_whitespace() && !letter.is_control();
        letter.is_alphanumeric() || space || "_.:/=+-@".contains(letter)
    };
    if texts.into_iter().all(|text| text.chars().all(allowed)) {
        return Ok(());
    }
    Err(invalid(
        "Some tags contain invalid characters. Valid characters: Unicode letters, digits, white space, _ . / = + - % @.",
    ))
}

fn check_keys_free(tags: &BTreeMap<String, String>) -> Result<(), Fault> {
    match tags.keys().find(|key| key.to_ascii_lowercase().starts_with("aws:")) {
        Some(key) => Err(invalid(format!("Tag key {key} is reserved: it must not begin with aws:."))),
        None => Ok(()),
    }
}

fn check_count(tags: &BTreeMap<String, String>, whose: &str) -> Result<(), Fault> {
    if tags.len() <= TAGS_MAX {
        return Ok(());
    }
    Err(invalid(format!(
        "Failed to add tags to {whose} because a given stream cannot have more than {TAGS_MAX} tags associated with it."
    )))
}

/// Tags as refusals repeat them.
fn shown(tags: &BTreeMap<String, String>) -> String {
    let tags: Vec<String> = tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{{{}}}", tags.join(", "))
}
