//! Dead letters on their way back.
//!
//! ```text
//! Running ──► Completed              every message that could be moved was
//!    │ └────► Failed                 a message has nowhere to go; it and those behind it stay
//!    └──────► Cancelled              what was moved stays moved
//! ```

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::name::{QueueName, check_visible, text_traits};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::limits;

/// What a store calls a move.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MoveId(Arc<str>);

impl MoveId {
    /// Checks that a text can be an identifier of any store.
    pub fn new(id: &str) -> Result<Self> {
        check_visible("move id", id, limits::RECEIPT_CHARS_MAX)?;
        Ok(MoveId(id.into()))
    }

    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_traits!(MoveId);

/// How far a move is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveStatus {
    /// Messages are being moved.
    Running,
    /// Every message that could be moved was.
    Completed,
    /// It was told to stop.
    Cancelled,
    /// It could not go on, for this reason.
    Failed(String),
}

/// A move as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveSummary {
    /// What the store calls it.
    pub id: MoveId,
    /// The queue that messages are taken from.
    pub from: QueueName,
    /// The queue that they go to; without it each goes back to where it came from.
    pub to: Option<QueueName>,
    /// Most messages in a second.
    pub messages_per_second: Option<u32>,
    /// How far it is.
    pub status: MoveStatus,
    /// Messages that were moved.
    pub moved: u64,
    /// Messages that there were at the start.
    pub to_move: u64,
    /// When it was started.
    pub started_at: Timestamp,
}

/// Whether messages may be moved at this rate.
pub fn check_rate(messages_per_second: Option<u32>) -> Result<()> {
    match messages_per_second {
        Some(rate) if !(1..=limits::MOVE_MESSAGES_PER_SECOND_MAX).contains(&rate) => {
            Err(Error::Invalid(format!(
                "{rate} messages a second cannot be moved: 1 to {} are allowed",
                limits::MOVE_MESSAGES_PER_SECOND_MAX
            )))
        }
        _ => Ok(()),
    }
}
