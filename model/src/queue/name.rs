//! Names of queues and identifiers of messages.
//!
//! What must hold: a name that exists is valid, and its ending alone tells the kind of its queue.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits::{MESSAGE_ID_CHARS_MAX, QUEUE_NAME_CHARS_MAX};
use crate::name::excerpt;

/// What the names of queues that keep an order end in.
pub const FIFO_ENDING: &str = ".fifo";

/// The name of a queue: 1 to 80 of `a-z A-Z 0-9 _ -`; a queue that keeps an order ends in `.fifo`, which counts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// Checks a name.
    pub fn new(name: &str) -> Result<Self> {
        let stem = name.strip_suffix(FIFO_ENDING).unwrap_or(name);
        let refuse = |why: String| {
            Err(Error::Invalid(format!(
                "queue name {} {why}: it must have 1 to {QUEUE_NAME_CHARS_MAX} of a-z, A-Z, 0-9, `_` and `-`, \
                 and may end in `{FIFO_ENDING}`",
                excerpt(name)
            )))
        };
        if stem.is_empty() {
            return refuse("is empty".to_string());
        }
        if stem.bytes().any(|byte| !byte.is_ascii_alphanumeric() && byte != b'_' && byte != b'-') {
            return refuse("has a character that is not allowed".to_string());
        }
        // Allowed characters are one byte long, so the length in bytes is the length in characters.
        if name.len() > QUEUE_NAME_CHARS_MAX {
            return refuse(format!("has {} characters", name.len()));
        }
        Ok(QueueName(name.into()))
    }

    /// Whether the name is one of a queue that keeps an order.
    pub fn is_fifo(&self) -> bool {
        self.0.ends_with(FIFO_ENDING)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a store calls a message: 1 to 100 visible ASCII characters. It stays when the message becomes a dead letter.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(Arc<str>);

impl MessageId {
    /// Checks an identifier.
    pub fn new(id: &str) -> Result<Self> {
        check_visible("message id", id, MESSAGE_ID_CHARS_MAX)?;
        Ok(MessageId(id.into()))
    }

    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether `text` has 1 to `chars_max` characters of ASCII that can be seen.
pub(super) fn check_visible(what: &str, text: &str, chars_max: usize) -> Result<()> {
    let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    if visible && !text.is_empty() && text.len() <= chars_max {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "{what} {} is not allowed: it must have 1 to {chars_max} letters, digits and punctuation marks of ASCII",
        excerpt(text)
    )))
}

/// What texts of this folder that are cheap to clone share.
macro_rules! text_traits {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                $name::new(text)
            }
        }
    };
}

pub(super) use text_traits;

text_traits!(QueueName);
text_traits!(MessageId);
