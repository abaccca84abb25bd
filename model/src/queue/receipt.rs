//! What a receiver holds of a message: the right to delete it, or to keep it hidden for longer.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::name::{MessageId, check_visible, text_traits};
use crate::error::{Error, Result};
use crate::limits::RECEIPT_CHARS_MAX;

/// A text that names one handing-out of one message of one queue. Only the store that gave it can read it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt(Arc<str>);

/// What a receipt of our own stores says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptParts {
    /// Tells the queue from every other queue of the store, and from earlier and later ones of the same name.
    pub queue: u64,
    /// Which receive of the message it was, counted in this queue from one.
    pub receive: u64,
    /// The message that was handed out.
    pub message: MessageId,
}

impl Receipt {
    /// Checks that a text can be a receipt of any store.
    pub fn new(text: &str) -> Result<Self> {
        check_visible("receipt", text, RECEIPT_CHARS_MAX)?;
        Ok(Receipt(text.into()))
    }

    /// The receipt as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What a receipt that was made of parts says; none for any other text. Each receipt has one spelling.
    pub fn parts(&self) -> Option<ReceiptParts> {
        let mut parts = self.0.splitn(3, '.');
        let mut number = || parts.next().and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let (queue, receive) = (number()?, number()?);
        let message = MessageId::new(parts.next()?).ok()?;
        let parts = ReceiptParts { queue, receive, message };
        (Receipt::from(&parts) == *self).then_some(parts)
    }
}

impl From<&ReceiptParts> for Receipt {
    fn from(parts: &ReceiptParts) -> Self {
        Receipt(format!("{:x}.{:x}.{}", parts.queue, parts.receive, parts.message).into())
    }
}

text_traits!(Receipt);
