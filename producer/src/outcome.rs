//! What becomes of a record. Whoever sent it always gets to know, and "certainly not stored" is never confused with
//! "nobody knows".

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anabranch_model::{Error, NextMove, SequenceNumber, ShardId};
use tokio::sync::oneshot;

use crate::page::Page;

/// What became of a record.
pub type Outcome = Result<Stored, Lost>;

/// The record is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The shard that took it.
    pub shard: ShardId,
    /// Its place there; records of one aggregate share it.
    pub sequence: SequenceNumber,
    /// How often it was sent, the last time included.
    pub attempts: u32,
    /// An earlier attempt may have stored it too, so readers may see it more than once.
    pub repeated: bool,
}

/// The record is not known to be durable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// It is certainly not in the stream.
    #[error("the record is not stored: {0}")]
    NotStored(Why),
    /// An attempt was made whose answer never came: it may be in the stream.
    #[error("whether the record is stored is not known: {0}")]
    Unknown(Why),
}

/// Why nobody tries any longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The store does not take it, and trying again would not change that.
    Refused(Error),
    /// Its deadline has passed; this is what the last attempt met.
    Expired(Option<Error>),
    /// A record before it in its run was lost, and it may not overtake that one.
    Behind,
    /// The producer has ended.
    Closed,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Refused(error) => error.fmt(f),
            Why::Expired(None) => f.write_str("its deadline passed before it could be sent"),
            Why::Expired(Some(error)) => write!(f, "its deadline passed; the last attempt: {error}"),
            Why::Behind => f.write_str("a record before it in its run was lost"),
            Why::Closed => f.write_str("the producer has ended"),
        }
    }
}

impl Lost {
    /// Sorts what was lost by whether an attempt may have stored it.
    pub(crate) fn new(doubtful: bool, why: Why) -> Self {
        if doubtful { Lost::Unknown(why) } else { Lost::NotStored(why) }
    }

    /// Why nobody tries any longer.
    pub fn why(&self) -> &Why {
        match self {
            Lost::NotStored(why) | Lost::Unknown(why) => why,
        }
    }
}

/// Whether a record may be in the stream although an append reported this error.
pub(crate) fn in_doubt(error: &Error) -> bool {
    match error.next_move() {
        NextMove::FixCall | NextMove::FixSetup => false,
        NextMove::Retry => matches!(error, Error::Unavailable(_)),
        NextMove::Reopen | NextMove::Report => true,
    }
}

/// A place in the buffer. Wait for it to learn what became of the record; dropping it does not take the record back.
#[derive(Debug)]
pub struct Ticket(Told);

/// How the outcome gets to its sender.
#[derive(Debug)]
enum Told {
    Alone(oneshot::Receiver<Outcome>),
    OnPage(Arc<Page>, usize),
}

impl Ticket {
    pub(crate) fn alone(answer: oneshot::Receiver<Outcome>) -> Self {
        Ticket(Told::Alone(answer))
    }

    pub(crate) fn on_page(page: Arc<Page>, index: usize) -> Self {
        Ticket(Told::OnPage(page, index))
    }
}

impl Future for Ticket {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        match &mut self.0 {
            // A producer that ends without a word took its knowledge along.
            Told::Alone(answer) => {
                Pin::new(answer).poll(context).map(|answer| answer.unwrap_or(Err(Lost::Unknown(Why::Closed))))
            }
            Told::OnPage(page, index) => page.poll(*index, context),
        }
    }
}
