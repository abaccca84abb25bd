//! A faulty way to the services: answers that are late, lost, cut and doubled, and services that have enough.
//!
//! What must hold: a success that looks like a timeout becomes neither a loss, nor a double where a condition forbids it,
//! nor a hang. The laws are put to the test again, and what a law cannot say because an outcome is unknown is said by
//! scenarios of their own, whose truth is looked up at the server itself.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

#[path = "../peer/mod.rs"]
mod peer;

mod blobs;
mod queues;
mod silence;
mod streams;
mod tables;

use std::time::Duration;

use anabranch_model::{Error, NextMove};
use peer::proxy::Fault::{self, *};

/// How long an attempt may take on the way to a server on the same machine, where some requests are never answered.
const ATTEMPT_MAX: Option<Duration> = Some(Duration::from_millis(1_500));
/// Requests in a hundred that something goes wrong with.
const PERCENT: u64 = 15;

/// Faults that leave no doubt. Calls that are not repeated by themselves are spared the others when laws are put to the
/// test: those cannot say what holds when nobody knows.
const CERTAIN: &[Fault] = &[Delay, Throttle];
/// Faults of which the service learns nothing.
const UNHEARD: &[Fault] = &[Delay, Throttle, Refuse];
/// Faults that are followed by a look. A request that comes twice may be refused the second time.
const LOOKED_UP: &[Fault] = &[Delay, Throttle, Refuse, Drop, Fail, Cut, Double];
/// Faults of calls that have the same effect twice.
const REPEATED: &[Fault] = &[Delay, Throttle, Refuse, Drop, Fail, Cut, Double, Echo];
/// The same with answers that never come.
const ALL: &[Fault] = &[Delay, Throttle, Refuse, Drop, Fail, Cut, Double, Echo, Hang];
/// Faults of calls that come to the service once at most.
const AT_MOST_ONCE: &[Fault] = &[Delay, Throttle, Refuse, Drop, Fail, Cut, Hang];
/// Faults of changes that are made once each.
const OF_CHANGES: &[Fault] = &[Delay, Throttle, Refuse, Drop, Fail, Cut, Double, Hang, Late];
/// Faults behind which a write may have been carried out or not.
const DOUBTFUL: &[Fault] = &[Refuse, Drop, Hang, Fail, Cut];

/// What became of something that was to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate<T> {
    Stored(T),
    InDoubt,
    Refused,
}

impl<T> Fate<T> {
    /// Sorts an answer, and fails if it is an error that no fault explains.
    fn of(result: Result<T, Error>) -> Fate<T> {
        match result {
            Ok(stored) => Fate::Stored(stored),
            Err(error) if is_doubt(&error) => Fate::InDoubt,
            Err(error) => {
                assert_eq!(error.next_move(), NextMove::Retry, "{error:?}");
                Fate::Refused
            }
        }
    }
}

/// Whether an error says that nobody knows.
fn is_doubt(error: &Error) -> bool {
    error.to_string().contains("is not known")
}
