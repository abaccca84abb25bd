//! What a queue has beside its messages: tags, policies and keys. One document a queue; it goes with the queue.

use std::collections::BTreeMap;

use anabranch_model::{Document, Error, Owner, QueueName};
use serde::{Deserialize, Serialize};

use super::attributes::Attributes;
use super::errors::{fault, invalid};
use crate::context::Context;
use crate::fault::Fault;

const KIND: &str = "sqs";
const NAME: &str = "settings";

/// Most tags of a queue.
const TAGS_MAX: usize = 50;

/// The settings of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Settings {
    /// Attributes that the store does not act upon.
    pub(super) attributes: Attributes,
    /// Tags.
    pub(super) tags: BTreeMap<String, String>,
}

impl Settings {
    /// Those of a queue.
    pub(super) async fn of(context: &Context, queue: &QueueName) -> Result<Self, Fault> {
        let document = context.ports.admin.document(&Owner::Queue(queue.clone()), KIND, NAME).await;
        document
            .map_err(fault)?
            .map_or_else(|| Ok(Settings::default()), |text| Settings::decode(queue, &text))
    }

    /// As they are kept.
    pub(super) fn decode(queue: &QueueName, text: &[u8]) -> Result<Self, Fault> {
        serde_json::from_slice(text)
            .map_err(|error| fault(Error::Corrupt(format!("the settings of queue `{queue}`: {error}"))))
    }

    /// How they are kept.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, Fault> {
        serde_json::to_vec(self).map_err(|error| Fault::server("InternalFailure", error.to_string()))
    }

    /// Keeps them.
    pub(super) async fn keep(&self, context: &Context, queue: &QueueName) -> Result<(), Fault> {
        let documents = vec![Document::new(NAME, self.to_bytes()?)];
        context.ports.admin.put_documents(&Owner::Queue(queue.clone()), KIND, documents).await.map_err(fault)
    }

    /// Adds tags.
    pub(super) fn tag(&mut self, tags: BTreeMap<String, String>) -> Result<(), Fault> {
        for (key, value) in &tags {
            let (key_chars, value_chars) = (key.chars().count(), value.chars().count());
            if !(1..=128).contains(&key_chars) || value_chars > 256 {
                return Err(invalid(
                    "Tag keys must be between 1 and 128 characters in length, tag values at most 256.",
                ));
            }
            if key.to_ascii_lowercase().starts_with("aws:") {
                return Err(invalid("Tag keys cannot begin with aws: in upper or lower case."));
            }
        }
        self.tags.extend(tags);
        if self.tags.len() > TAGS_MAX {
            return Err(invalid(format!("Too many tags: a queue can have {TAGS_MAX} at most.")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_bounded() {
        let mut settings = Settings::default();
        let tags = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        settings.tag(tags(&["a", "b"])).unwrap();
        settings.tag(tags(&["b"])).unwrap();
        assert_eq!(settings.tags.len(), 2);
        for name in ["", "aws:x", "AWS:x", &"x".repeat(129)] {
            assert!(settings.tag(tags(&[name])).is_err(), "{name}");
        }
        assert_eq!(settings.tags.len(), 2);
        let many: Vec<String> = (0..49).map(|number| number.to_string()).collect();
        assert!(settings.tag(tags(&many.iter().map(String::as_str).collect::<Vec<_>>())).is_err());
    }
}
