//! Where events go in the end.

use anabranch_model::{Error, NextMove, Result};
use async_trait::async_trait;

use crate::event::{Event, Place};

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done with, durably.
    Done,
    /// It cannot be written, this time; the text says why. It is tried as often as the bot says, and then it is a dead letter.
    Failed(String),
    /// It can never be written, however often it is tried.
    Refused(String),
    /// The sink takes nothing at the moment, whatever it is. It is tried again for as long as it takes, and that does not count
    /// as an attempt: an hour without a network must not make dead letters of an hour's events.
    Unavailable(String),
}

impl Outcome {
    /// What an error of a store says about the event that it was given.
    pub fn of_error(error: &Error) -> Self {
        match error.next_move() {
            // A place that is gone is missing for every event, and comes back when somebody makes it.
            _ if matches!(
                error,
                Error::BucketNotFound(_)
                    | Error::StreamNotFound(_)
                    | Error::QueueNotFound(_)
                    | Error::TableNotFound(_)
            ) =>
            {
                Outcome::Unavailable(error.to_string())
            }
            NextMove::FixCall => Outcome::Refused(error.to_string()),
            // Whatever must be set right around the call is right for every event afterwards, so none of them is to blame.
            NextMove::Retry | NextMove::FixSetup | NextMove::Reopen => {
                Outcome::Unavailable(error.to_string())
            }
            NextMove::Report => Outcome::Failed(error.to_string()),
        }
    }
}

impl<T> From<Result<T>> for Outcome {
    fn from(result: Result<T>) -> Self {
        result.map_or_else(|error| Outcome::of_error(&error), |_| Outcome::Done)
    }
}

/// A batch that was begun before: where it ended then, it has to end again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// It held the events up to this place.
    EndsWith(Place),
    /// Events up to this place are in it already, behind others that are not here, and it is durable.
    Holds(Place),
    /// It begins at this place: what comes before is a batch of its own.
    BeginsWith(Place),
}

/// Takes events.
///
/// Laws:
///
/// 1. **Durable before done.** What is said to be done is there after any crash.
/// 2. **An outcome for each.** As many outcomes as events, in their order.
/// 3. **Again is the same.** The same events written once more leave the same as once, where the sink can do that at all: they
///    come again after a crash.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Writes events. Of a bot with batches they are a batch.
    async fn write(&self, events: &[Event]) -> Vec<Outcome>;

    /// What is known of a batch that holds this event, or comes next after it, from an earlier life of the bot. A batch begins
    /// with `first`. None if nothing is: then there is nothing behind it either.
    async fn earlier(&self, first: &Event) -> Result<Option<Earlier>> {
        let _ = first;
        Ok(None)
    }

    /// Whether many events take it about as long as few. A bot on a queue then brings it those of several receives at once.
    fn takes_many(&self) -> bool {
        false
    }

    /// Whether two events may lie in one batch.
    fn belong_together(&self, first: &Event, other: &Event) -> bool {
        let _ = (first, other);
        true
    }
}
