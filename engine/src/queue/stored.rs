//! Values of the rows of queues.

use std::collections::BTreeMap;

use anabranch_model::queue::{Attribute, AttributeValue, NewMessage, QueueName};
use anabranch_model::{Error, Result};
use bytes::Bytes;

use crate::encoding::{Malformed, Put, Take};

/// What the value of an attribute is. A trace stands among the attributes, without a name and a kind: rows without one
/// look as they did before there were any.
const TEXT: u8 = 0;
const BINARY: u8 = 1;
const TRACE: u8 = 2;

/// Stands in the first number of a body if no row of the order of visibility names the message before its first receive.
const UNLISTED: u64 = 1 << 63;

/// Bytes of a [`Head`].
pub const HEAD_BYTES: usize = 8;

/// What a body begins with. Whoever walks over rows sees no more of a long one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// From when on the message was visible at first.
    pub due: u64,
    /// Whether a row of the order of visibility names it from the beginning. A message that is visible when it is sent
    /// needs none: its place says when it is due.
    pub listed: bool,
}

/// A message as it was sent, and what it brought with it from another queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// From when on it was visible at first.
    pub due: u64,
    /// Its identifier, where that is not its place: dead letters keep theirs.
    pub id: Option<u128>,
    /// Receives in other queues.
    pub receives_before: u32,
    /// The queue that it is a dead letter of.
    pub source: Option<QueueName>,
    /// Its group.
    pub group: Option<String>,
    /// By which duplicates are recognised.
    pub deduplication: Option<String>,
    /// What its sender says about it.
    pub attributes: BTreeMap<String, Attribute>,
    /// The work that it is part of.
    pub trace: Option<String>,
    /// What it says.
    pub body: Bytes,
}

/// Where a message stands once it is not as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// From when on it is visible.
    pub due: u64,
    /// How often this row changed.
    pub change: u32,
    /// Receives in this queue.
    pub receives: u32,
    /// The first of them.
    pub first_received_at: u64,
    /// The last of them.
    pub received_at: u64,
}

/// A standing, and the group in queues that keep an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Where it stands.
    pub standing: Standing,
    /// Its group, in queues that keep an order.
    pub group: Option<String>,
}

/// What a row of the order of visibility says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// When the message was sent.
    pub sent_at: u64,
    /// Whether it was received before.
    pub received: bool,
    /// Its group, in queues that keep an order.
    pub group: Option<String>,
}

impl Standing {
    /// A message that nobody has received.
    pub fn new(due: u64) -> Standing {
        Standing { due, change: 0, receives: 0, first_received_at: 0, received_at: 0 }
    }
}

impl Head {
    /// From the beginning of a row.
    pub fn decode(row: &[u8]) -> Result<Head> {
        let number = Take(row).u64().map_err(|_| corrupt("a message"))?;
        Ok(Head::from(number))
    }

    fn encode(self) -> u64 {
        self.due | if self.listed { 0 } else { UNLISTED }
    }
}

impl From<u64> for Head {
    fn from(number: u64) -> Head {
        Head { due: number & !UNLISTED, listed: number & UNLISTED == 0 }
    }
}

impl Body {
    /// What a sender hands over.
    pub fn of(message: NewMessage, deduplication: Option<String>) -> Body {
        Body {
            due: 0,
            id: None,
            receives_before: 0,
            source: None,
            group: message.group,
            deduplication,
            attributes: message.attributes,
            trace: message.trace,
            body: message.body,
        }
    }

    /// As it is stored.
    pub fn encode(&self, listed: bool) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + self.body.len());
        bytes.put_u64(Head { due: self.due, listed }.encode());
        bytes.put_u8(u8::from(self.id.is_some()));
        bytes.put_u128(self.id.unwrap_or(0));
        bytes.put_u32(self.receives_before);
        put_option(&mut bytes, self.source.as_ref().map(QueueName::as_str));
        put_option(&mut bytes, self.group.as_deref());
        put_option(&mut bytes, self.deduplication.as_deref());
        bytes.put_u32((self.attributes.len() + usize::from(self.trace.is_some())) as u32);
        for (name, attribute) in &self.attributes {
            let (tag, value) = match &attribute.value {
                AttributeValue::Text(text) => (TEXT, text.as_bytes()),
                AttributeValue::Binary(value) => (BINARY, &value[..]),
            };
            put_attribute(&mut bytes, name, &attribute.kind, tag, value);
        }
        if let Some(trace) = &self.trace {
            put_attribute(&mut bytes, "", "", TRACE, trace.as_bytes());
        }
        bytes.put(&self.body);
        bytes
    }

    /// From what is stored.
    pub fn decode(stored: &Bytes) -> Result<Body> {
        let mut take = Take(stored);
        Body::take(&mut take, stored).map_err(|_| corrupt("a message"))
    }

    fn take(take: &mut Take<'_>, stored: &Bytes) -> std::result::Result<Body, Malformed> {
        let due = Head::from(take.u64()?).due;
        let has_id = take.u8()? == 1;
        let id = take.u128()?;
        let receives_before = take.u32()?;
        let source =
            take_option(take)?.map(|name| QueueName::new(&name)).transpose().map_err(|_| Malformed)?;
        let (group, deduplication) = (take_option(take)?, take_option(take)?);
        let (mut attributes, mut trace) = (BTreeMap::new(), None);
        for _ in 0..take.u32()? {
            let (name, kind) = (take.text()?.to_owned(), take.text()?.to_owned());
            let (tag, length) = (take.u8()?, take.u32()? as usize);
            let value = take.bytes(length)?;
            let text = || std::str::from_utf8(value).map(str::to_owned).map_err(|_| Malformed);
            let value = match tag {
                TEXT => AttributeValue::Text(text()?),
                BINARY => AttributeValue::Binary(stored.slice_ref(value)),
                TRACE => {
                    trace = Some(text()?);
                    continue;
                }
                _ => return Err(Malformed),
            };
            attributes.insert(name, Attribute { kind, value });
        }
        let body = stored.slice_ref(take.0);
        let id = has_id.then_some(id);
        Ok(Body { due, id, receives_before, source, group, deduplication, attributes, trace, body })
    }
}

impl State {
    /// As it is stored.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(40);
        bytes.put_u64(self.standing.due);
        bytes.put_u32(self.standing.change);
        bytes.put_u32(self.standing.receives);
        bytes.put_u64(self.standing.first_received_at);
        bytes.put_u64(self.standing.received_at);
        put_option(&mut bytes, self.group.as_deref());
        bytes
    }

    /// From what is stored.
    pub fn decode(stored: &[u8]) -> Result<State> {
        let mut take = Take(stored);
        let mut decode = || -> std::result::Result<State, Malformed> {
            let standing = Standing {
                due: take.u64()?,
                change: take.u32()?,
                receives: take.u32()?,
                first_received_at: take.u64()?,
                received_at: take.u64()?,
            };
            Ok(State { standing, group: take_option(&mut take)? })
        };
        let state = decode().map_err(|_| corrupt("the state of a message"))?;
        take.end().map(|()| state).map_err(|_| corrupt("the state of a message"))
    }
}

impl Waiting {
    /// As it is stored.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(10);
        bytes.put_u64(self.sent_at);
        bytes.put_u8(u8::from(self.received));
        put_option(&mut bytes, self.group.as_deref());
        bytes
    }

    /// From what is stored.
    pub fn decode(stored: &[u8]) -> Result<Waiting> {
        let mut take = Take(stored);
        let mut decode = || -> std::result::Result<Waiting, Malformed> {
            Ok(Waiting { sent_at: take.u64()?, received: take.u8()? == 1, group: take_option(&mut take)? })
        };
        decode().map_err(|_| corrupt("a waiting message"))
    }
}

fn put_attribute(bytes: &mut Vec<u8>, name: &str, kind: &str, tag: u8, value: &[u8]) {
    bytes.put_text(name);
    bytes.put_text(kind);
    bytes.put_u8(tag);
    bytes.put_u32(value.len() as u32);
    bytes.put(value);
}

/// Appends a text that may be missing.
pub fn put_option(bytes: &mut Vec<u8>, text: Option<&str>) {
    bytes.put_u8(u8::from(text.is_some()));
    if let Some(text) = text {
        bytes.put_text(text);
    }
}

/// Takes a text that may be missing.
pub fn take_option(take: &mut Take<'_>) -> std::result::Result<Option<String>, Malformed> {
    match take.u8()? {
        0 => Ok(None),
        1 => take.text().map(|text| Some(text.to_owned())),
        _ => Err(Malformed),
    }
}

/// A row that makes no sense.
pub fn corrupt(what: &str) -> Error {
    Error::Corrupt(format!("{what} in a queue cannot be read: put the directory back from a backup"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bodies_round_trip(
            id: Option<u128>, receives_before: u32, group: Option<String>, text in ".*", trace: Option<String>,
            listed: bool,
            body in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let value = AttributeValue::Text(text);
            let binary = AttributeValue::Binary(body.clone().into());
            let attributes = BTreeMap::from([
                ("a".to_string(), Attribute { kind: "x".into(), value }),
                ("b".to_string(), Attribute { kind: "y".into(), value: binary }),
            ]);
            let source = QueueName::new("q").ok();
            let body = Body {
                due: 7, id, receives_before, source, deduplication: group.clone(), group, attributes, trace,
                body: body.into(),
            };
            let stored = body.encode(listed);
            prop_assert_eq!(Head::decode(&stored).expect("a head"), Head { due: 7, listed });
            prop_assert_eq!(Body::decode(&stored.into()).expect("a body"), body);
        }

        #[test]
        fn small_rows_round_trip(due: u64, change: u32, receives: u32, group: Option<String>, received: bool) {
            let standing = Standing { due, change, receives, first_received_at: due / 2, received_at: due / 3 };
            let state = State { standing, group: group.clone() };
            prop_assert_eq!(State::decode(&state.encode()).expect("a state"), state);
            let waiting = Waiting { sent_at: due, received, group };
            prop_assert_eq!(Waiting::decode(&waiting.encode()).expect("a row"), waiting);
        }
    }
}
