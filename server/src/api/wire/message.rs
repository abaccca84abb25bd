//! Messages on their way in and out, and what became of each.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_model::limits::MESSAGE_BATCH_MAX;
use anabranch_model::queue::{
    Attribute, AttributeValue, Message, MessageId, NewMessage, QueueName, Receipt, ReceiveOptions, Sent,
};
use anabranch_model::{Error, Result, SequenceNumber, Timestamp};
use serde::{Deserialize, Serialize};

use super::super::error::ErrorBody;
use super::super::text::{Base64, Text};
use super::bounded::bounded;

/// Sends messages.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendRequest {
    /// Where.
    pub queue: Text<QueueName>,
    /// What.
    #[serde(deserialize_with = "bounded::<_, _, MESSAGE_BATCH_MAX>")]
    pub messages: Vec<NewMessageBody>,
}

/// Takes messages.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveRequest {
    /// Whose messages.
    pub queue: Text<QueueName>,
    /// Most messages.
    pub messages_max: usize,
    /// How long to wait for the first one; what the queue says if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Duration>,
    /// How long they are hidden; what the queue says if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Duration>,
    /// Makes the receive repeatable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
}

impl ReceiveRequest {
    /// What a queue is asked for.
    pub fn new(queue: &QueueName, options: ReceiveOptions) -> Self {
        ReceiveRequest {
            queue: Text(queue.clone()),
            messages_max: options.messages_max,
            wait: options.wait,
            visibility: options.visibility,
            attempt: options.attempt,
        }
    }

    /// What the store is asked for.
    pub fn options(self) -> ReceiveOptions {
        ReceiveOptions {
            messages_max: self.messages_max,
            wait: self.wait,
            visibility: self.visibility,
            attempt: self.attempt,
        }
    }
}

/// What became of the entries of a call, in their order.
#[derive(Debug, Serialize, Deserialize)]
pub struct ResultsReply<T> {
    /// One result an entry.
    pub results: Vec<ResultBody<T>>,
}

/// What became of one entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultBody<T> {
    /// It is done.
    Done(T),
    /// It is not.
    Error(ErrorBody),
}

impl<T> ResultsReply<T> {
    /// Results of the model in the words of the wire.
    pub fn of<M: Into<T>>(results: Vec<Result<M>>) -> Self {
        let one = |result: Result<M>| match result {
            Ok(value) => ResultBody::Done(value.into()),
            Err(error) => ResultBody::Error(error.into()),
        };
        ResultsReply { results: results.into_iter().map(one).collect() }
    }

    /// Results of the wire in the words of the model; there must be as many as entries were sent.
    pub fn into_results<M>(self, count: usize) -> Result<Vec<Result<M>>>
    where
        T: Into<M>,
    {
        if self.results.len() != count {
            return Err(Error::Unavailable("the server answered for another number of entries".to_owned()));
        }
        let one = |body| match body {
            ResultBody::Done(value) => Ok(T::into(value)),
            ResultBody::Error(error) => Err(error.into()),
        };
        Ok(self.results.into_iter().map(one).collect())
    }
}

/// A message on its way in.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewMessageBody {
    /// The body.
    pub body: Base64,
    /// By name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, AttributeBody>,
    /// How long nobody receives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// Its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// By which duplicates are recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deduplication: Option<String>,
    /// The work that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// Something that a sender says about a message.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttributeBody {
    /// What kind of value it is, in the words of the sender.
    pub kind: String,
    /// The value.
    pub value: AttributeValueBody,
}

/// The value of an attribute.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttributeValueBody {
    /// Text.
    Text(String),
    /// Anything else.
    Binary(Base64),
}

impl From<Attribute> for AttributeBody {
    fn from(attribute: Attribute) -> Self {
        let value = match attribute.value {
            AttributeValue::Text(text) => AttributeValueBody::Text(text),
            AttributeValue::Binary(bytes) => AttributeValueBody::Binary(Base64(bytes)),
        };
        AttributeBody { kind: attribute.kind, value }
    }
}

impl From<AttributeBody> for Attribute {
    fn from(body: AttributeBody) -> Self {
        let value = match body.value {
            AttributeValueBody::Text(text) => AttributeValue::Text(text),
            AttributeValueBody::Binary(bytes) => AttributeValue::Binary(bytes.0),
        };
        Attribute { kind: body.kind, value }
    }
}

fn renamed<A: Into<B>, B>(attributes: BTreeMap<String, A>) -> BTreeMap<String, B> {
    attributes.into_iter().map(|(name, attribute)| (name, attribute.into())).collect()
}

impl From<NewMessage> for NewMessageBody {
    fn from(message: NewMessage) -> Self {
        NewMessageBody {
            body: Base64(message.body),
            attributes: renamed(message.attributes),
            delay: message.delay,
            group: message.group,
            deduplication: message.deduplication,
            trace: message.trace,
        }
    }
}

impl From<NewMessageBody> for NewMessage {
    fn from(body: NewMessageBody) -> Self {
        NewMessage {
            body: body.body.0,
            attributes: renamed(body.attributes),
            delay: body.delay,
            group: body.group,
            deduplication: body.deduplication,
            trace: body.trace,
        }
    }
}

/// What a sender learns of a message that was taken.
#[derive(Debug, Serialize, Deserialize)]
pub struct SentBody {
    /// What the store calls it.
    pub id: Text<MessageId>,
    /// Its place, in queues that keep an order.
    pub sequence: Option<Text<SequenceNumber>>,
}

impl From<Sent> for SentBody {
    fn from(sent: Sent) -> Self {
        SentBody { id: Text(sent.id), sequence: sent.sequence.map(Text) }
    }
}

impl From<SentBody> for Sent {
    fn from(body: SentBody) -> Self {
        Sent { id: body.id.0, sequence: body.sequence.map(|number| number.0) }
    }
}

/// The answer to a receive.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReceiveReply {
    /// The messages.
    pub messages: Vec<MessageBody>,
}

/// A message on its way out.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of the model's message")]
pub struct MessageBody {
    pub id: Text<MessageId>,
    pub body: Base64,
    pub attributes: BTreeMap<String, AttributeBody>,
    pub receipt: Text<Receipt>,
    pub receive_count: u32,
    pub sent_at_ms: u64,
    pub first_received_at_ms: u64,
    pub sequence: Option<Text<SequenceNumber>>,
    pub group: Option<String>,
    pub deduplication: Option<String>,
    pub dead_letter_source: Option<Text<QueueName>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

impl From<Message> for MessageBody {
    fn from(message: Message) -> Self {
        MessageBody {
            id: Text(message.id),
            body: Base64(message.body),
            attributes: renamed(message.attributes),
            receipt: Text(message.receipt),
            receive_count: message.receive_count,
            sent_at_ms: message.sent_at.as_millis(),
            first_received_at_ms: message.first_received_at.as_millis(),
            sequence: message.sequence.map(Text),
            group: message.group,
            deduplication: message.deduplication,
            dead_letter_source: message.dead_letter_source.map(Text),
            trace: message.trace,
        }
    }
}

impl From<MessageBody> for Message {
    fn from(body: MessageBody) -> Self {
        Message {
            id: body.id.0,
            body: body.body.0,
            attributes: renamed(body.attributes),
            receipt: body.receipt.0,
            receive_count: body.receive_count,
            sent_at: Timestamp::from_millis(body.sent_at_ms),
            first_received_at: Timestamp::from_millis(body.first_received_at_ms),
            sequence: body.sequence.map(|number| number.0),
            group: body.group,
            deduplication: body.deduplication,
            dead_letter_source: body.dead_letter_source.map(|queue| queue.0),
            trace: body.trace,
        }
    }
}
