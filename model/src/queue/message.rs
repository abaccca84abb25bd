//! What goes in and what comes out.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::name::{MessageId, QueueName, check_visible};
use super::options::QueueOptions;
use super::receipt::Receipt;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::limits;
use crate::name::excerpt;
use crate::sequence::SequenceNumber;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// Text, and numbers as text.
    Text(String),
    /// Anything else.
    Binary(Bytes),
}

impl AttributeValue {
    fn bytes(&self) -> usize {
        match self {
            AttributeValue::Text(text) => text.len(),
            AttributeValue::Binary(bytes) => bytes.len(),
        }
    }
}

/// Something that a sender says about a message beside its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// What kind of value it is, in the words of the sender; a store keeps it and does not look into it.
    pub kind: String,
    /// The value.
    pub value: AttributeValue,
}

/// A message that a sender hands over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewMessage {
    /// Text or anything else, at least one byte.
    pub body: Bytes,
    /// By name.
    pub attributes: BTreeMap<String, Attribute>,
    /// How long nobody receives it; the delay of the queue if there is none. Not in queues that keep an order.
    pub delay: Option<Duration>,
    /// Messages of one group stay in order where the queue keeps one, which asks for a group.
    pub group: Option<String>,
    /// Messages with one such identifier are one message, where the queue keeps an order.
    pub deduplication: Option<String>,
    /// The work that it is part of, for those who follow work from place to place. It is no attribute, and its size does
    /// not count.
    pub trace: Option<String>,
}

impl NewMessage {
    /// A message with nothing but a body.
    pub fn new(body: impl Into<Bytes>) -> Self {
        NewMessage { body: body.into(), ..NewMessage::default() }
    }

    /// This message as part of a group.
    pub fn in_group(self, group: &str) -> Self {
        NewMessage { group: Some(group.to_string()), ..self }
    }

    /// This message under an identifier by which it is recognised when it is sent again.
    pub fn known_as(self, deduplication: &str) -> Self {
        NewMessage { deduplication: Some(deduplication.to_string()), ..self }
    }

    /// This message with a delay of its own.
    pub fn after(self, delay: Duration) -> Self {
        NewMessage { delay: Some(delay), ..self }
    }

    /// What counts against limits of size: the body, and names, kinds and values of attributes.
    pub fn size(&self) -> usize {
        let attribute = |(name, attribute): (&String, &Attribute)| {
            name.len() + attribute.kind.len() + attribute.value.bytes()
        };
        self.body.len() + self.attributes.iter().map(attribute).sum::<usize>()
    }

    /// Whether a queue with these options may take this message.
    pub fn check(&self, options: &QueueOptions) -> Result<()> {
        if self.body.is_empty() {
            return Err(Error::Invalid("message has an empty body: at least 1 byte is needed".to_string()));
        }
        let (bytes, most) = (self.size(), options.message_bytes_max);
        if bytes > most {
            return Err(Error::Invalid(format!(
                "message has {bytes} bytes with its attributes: the queue takes at most {most}"
            )));
        }
        check_attributes(&self.attributes)?;
        if let Some(delay) = self.delay {
            super::options::check_delay(delay)?;
        }
        for (what, text) in [("group", &self.group), ("deduplication id", &self.deduplication)] {
            if let Some(text) = text {
                check_visible(what, text, limits::GROUP_CHARS_MAX)?;
            }
        }
        check_trace(self.trace.as_deref())?;
        if options.fifo { self.check_fifo(options) } else { self.check_standard() }
    }

    fn check_fifo(&self, options: &QueueOptions) -> Result<()> {
        let refuse = |why: &str| Err(Error::Invalid(format!("message {why}")));
        if self.group.is_none() {
            return refuse("has no group: a queue that keeps an order needs one");
        }
        if self.delay.is_some() {
            return refuse("has a delay of its own: a queue that keeps an order has one delay for all");
        }
        if self.deduplication.is_none() && !options.deduplicates_content {
            return refuse("has no deduplication id: give one, or let the queue deduplicate by content");
        }
        Ok(())
    }

    fn check_standard(&self) -> Result<()> {
        match self.deduplication {
            None => Ok(()),
            Some(_) => Err(Error::Invalid(
                "message has a deduplication id: only queues that keep an order recognise duplicates"
                    .to_string(),
            )),
        }
    }

    /// The identifier by which a queue that keeps an order recognises this message: the one that it came with, or the
    /// SHA-256 digest of the body in hexadecimal digits. Attributes do not count.
    pub fn deduplication_id(&self) -> String {
        self.deduplication.clone().unwrap_or_else(|| {
            Sha256::digest(&self.body).iter().fold(String::with_capacity(64), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
        })
    }
}

fn check_trace(trace: Option<&str>) -> Result<()> {
    match trace.map(|trace| trace.chars().count()) {
        None | Some(1..=limits::TRACE_CHARS_MAX) => Ok(()),
        Some(chars) => Err(Error::Invalid(format!(
            "trace of a message has {chars} characters: it must have 1 to {}",
            limits::TRACE_CHARS_MAX
        ))),
    }
}

fn check_attributes(attributes: &BTreeMap<String, Attribute>) -> Result<()> {
    if attributes.len() > limits::MESSAGE_ATTRIBUTES_MAX {
        return Err(Error::Invalid(format!(
            "message has {} attributes: at most {} are allowed",
            attributes.len(),
            limits::MESSAGE_ATTRIBUTES_MAX
        )));
    }
    for (name, attribute) in attributes {
        check_attribute_name(name)?;
        check_visible("kind of an attribute", &attribute.kind, limits::ATTRIBUTE_NAME_CHARS_MAX)?;
        if attribute.value.bytes() == 0 {
            return Err(Error::Invalid(format!("attribute {} has an empty value", excerpt(name))));
        }
    }
    Ok(())
}

fn check_attribute_name(name: &str) -> Result<()> {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let dots = name.starts_with('.') || name.ends_with('.') || name.contains("..");
    let short = !name.is_empty() && name.chars().count() <= limits::ATTRIBUTE_NAME_CHARS_MAX;
    if short && !dots && name.chars().all(allowed) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "attribute name {} is not allowed: it must have 1 to {} letters, digits, `_`, `-` and single dots inside",
        excerpt(name),
        limits::ATTRIBUTE_NAME_CHARS_MAX
    )))
}

/// What a sender learns of a message that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The message, or the earlier one that it is a duplicate of.
    pub id: MessageId,
    /// Its place, in queues that keep an order.
    pub sequence: Option<SequenceNumber>,
}

/// A message that a receiver gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What the store calls it, the same at every receive.
    pub id: MessageId,
    /// As it was sent.
    pub body: Bytes,
    /// As they were sent.
    pub attributes: BTreeMap<String, Attribute>,
    /// With which this receiver deletes it; another one at every receive.
    pub receipt: Receipt,
    /// How often it was received, this time included, in this queue and those that it was a dead letter of.
    pub receive_count: u32,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// When it was received for the first time in this queue.
    pub first_received_at: Timestamp,
    /// Its place, in queues that keep an order.
    pub sequence: Option<SequenceNumber>,
    /// The group that it was sent to.
    pub group: Option<String>,
    /// By which duplicates are recognised, in queues that keep an order.
    pub deduplication: Option<String>,
    /// The queue that it is a dead letter of.
    pub dead_letter_source: Option<QueueName>,
    /// The work that it is part of.
    pub trace: Option<String>,
}
