//! The one way to make a call.
//!
//! ```text
//!   pace ─▶ permit ─▶ attempt ─▶ answer
//!     ▲                  │
//!     └──── pause ◀──────┘ throttled, or away and safe to repeat, and there is time left
//! ```
//!
//! The SDK's own retries are off: what is repeated, how often and how long is decided here and nowhere else. Dropping
//! the future of a call drops its request, its permit and its place in the queue.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_model::{Clock, Dice};
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::Instrument;

use crate::action::{Action, Lane, Service};
use crate::backoff::{after, pause};
use crate::failure::{Failure, IntoFailure, Kind, Outcome};
use crate::pace::Pace;

/// Calls of one service and lane that are under way at the same time.
const CALLS_MAX: usize = 64;
/// Calls of one service that wait at the same time for something to come, or for a body to go.
const WAITING_CALLS_MAX: usize = 256;
/// How long a service may be gone before a call gives up, whatever its deadline.
const ABSENCE_MAX: Duration = Duration::from_secs(10);

/// Bytes of a request that any line moves in a second. Where a request ended sooner, it would end so every time.
const MOVED_A_SECOND: u64 = 128 << 10;

/// When a call must have come to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline {
    /// On the stopwatch of the [`Clock`].
    at: Duration,
    /// What an attempt may take longer than others, for the bytes of its request.
    moving: Duration,
}

/// Makes calls: it holds what all of them share.
#[derive(Clone)]
pub(crate) struct Caller(Arc<Shared>);

struct Shared {
    clock: Arc<dyn Clock>,
    dice: Dice,
    pace: Pace,
    permits: Vec<Permits>,
    /// How long one attempt may take, where that is less than what its action allows.
    attempt_max: Duration,
    /// Every action that was asked for, so that a test can compare it with the tables.
    made: Mutex<BTreeSet<(Service, &'static str)>>,
}

/// The permits of one service.
struct Permits {
    data: Semaphore,
    waiting: Semaphore,
    control: Semaphore,
}

impl Caller {
    /// `seed` is the beginning of all chance. No attempt takes longer than `attempt_max`.
    pub(crate) fn new(clock: Arc<dyn Clock>, seed: u64, attempt_max: Duration) -> Self {
        let permits = |_| Permits {
            data: Semaphore::new(CALLS_MAX),
            waiting: Semaphore::new(WAITING_CALLS_MAX),
            control: Semaphore::new(CALLS_MAX),
        };
        Caller(Arc::new(Shared {
            clock,
            dice: Dice::new(seed),
            pace: Pace::default(),
            permits: Service::ALL.map(permits).into(),
            attempt_max,
            made: Mutex::default(),
        }))
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    /// The moment that lies `patience` ahead.
    pub(crate) fn deadline(&self, patience: Duration) -> Deadline {
        self.deadline_moving(patience, 0)
    }

    /// The same for requests of so many bytes, which take their time over a slow line.
    pub(crate) fn deadline_moving(&self, patience: Duration, bytes: usize) -> Deadline {
        let moving = Duration::from_secs(bytes as u64 / MOVED_A_SECOND);
        Deadline { at: self.0.clock.elapsed().saturating_add(patience).saturating_add(moving), moving }
    }

    /// How long it is until `deadline`.
    pub(crate) fn left(&self, deadline: Deadline) -> Duration {
        deadline.at.saturating_sub(self.0.clock.elapsed())
    }

    /// When a service that has only just failed to answer has been gone for too long.
    pub(crate) fn absence(&self) -> Deadline {
        self.deadline(ABSENCE_MAX)
    }

    /// Waits before the next round of something that failed `rounds` times. False if the deadline would pass meanwhile.
    pub(crate) async fn back_off(&self, rounds: u32, deadline: Deadline) -> bool {
        let duration = after(rounds, &self.0.dice);
        if duration >= self.left(deadline) {
            return false;
        }
        pause(duration).await;
        true
    }

    /// A text that no other call gets, in this process or in another: 32 digits of chance and of the time.
    pub(crate) fn token(&self) -> String {
        let time = self.0.clock.now().as_millis().rotate_left(20);
        format!("{:016x}{:016x}", self.0.dice.roll() ^ time, self.0.dice.roll())
    }

    /// The actions that were asked for so far.
    pub(crate) fn made(&self) -> Vec<&'static Action> {
        let made = self.0.made.lock().unwrap_or_else(PoisonError::into_inner);
        crate::action::all().filter(|action| made.contains(&(action.service, action.name))).collect()
    }

    /// Makes the call that `request` begins, again as long as that is safe and may help. The request is begun anew for
    /// each attempt.
    pub(crate) async fn call<T, E, F>(
        &self,
        action: &Action,
        deadline: Deadline,
        request: impl FnMut() -> F,
    ) -> Result<T, Failure<E::Detail>>
    where
        E: IntoFailure,
        F: Future<Output = Result<T, E>>,
    {
        let span = tracing::debug_span!("aws_call", action = action.name, service = action.service.name());
        let started = self.0.clock.elapsed();
        self.note(action);
        let result = self.attempts(action, deadline, request).instrument(span).await;
        let taken = self.0.clock.elapsed().saturating_sub(started);
        observe(action, taken, result.as_ref().map_or_else(|failure| failure.kind.word(), |_| "ok"));
        result
    }

    async fn attempts<T, E, F>(
        &self,
        action: &Action,
        deadline: Deadline,
        mut request: impl FnMut() -> F,
    ) -> Result<T, Failure<E::Detail>>
    where
        E: IntoFailure,
        F: Future<Output = Result<T, E>>,
    {
        let mut attempts = 0;
        let mut away_since = None;
        let mut in_doubt = false;
        loop {
            let mut failure = match self.attempt(action, deadline, &mut request).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            attempts += 1;
            in_doubt |= failure.outcome == Outcome::Unknown;
            let Some(wait) = self.next_pause(&failure, attempts, deadline, &mut away_since) else {
                // An earlier attempt may have been carried out, whatever became of the last one.
                if in_doubt {
                    failure.outcome = Outcome::Unknown;
                }
                return Err(failure);
            };
            tracing::debug!(attempts, kind = failure.kind.word(), message = failure.message, "trying again");
            metrics::counter!("anabranch_aws_retries_total",
                "action" => action.name, "reason" => failure.kind.word())
            .increment(1);
            pause(wait).await;
        }
    }

    /// One attempt, when its turn has come.
    async fn attempt<T, E, F>(
        &self,
        action: &Action,
        deadline: Deadline,
        request: &mut impl FnMut() -> F,
    ) -> Result<T, Failure<E::Detail>>
    where
        E: IntoFailure,
        F: Future<Output = Result<T, E>>,
    {
        let refused = |why: String| Failure::new(action, Kind::Throttled, Outcome::Refused, why);
        match self.0.pace.take(action, self.0.clock.elapsed(), self.left(deadline)) {
            Ok(wait) => pause(wait).await,
            Err(wait) => {
                return Err(refused(format!(
                    "the quota of calls a second has room in {} ms",
                    wait.as_millis()
                )));
            }
        }
        let permit = tokio::time::timeout(self.left(deadline), self.permit(action)).await;
        let _permit = permit
            .map_err(|_| refused(format!("too many calls of {} are under way", action.service.name())))?;
        let limit = action.attempt_max().saturating_add(deadline.moving);
        let limit = limit.min(self.0.attempt_max).min(self.left(deadline));
        match tokio::time::timeout(limit, request()).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(error.into_failure(action, self.0.clock.now())),
            Err(_) => {
                let why = format!("no answer within {} ms", limit.as_millis());
                Err(Failure::new(action, Kind::Away, Outcome::Unknown, why))
            }
        }
    }

    async fn permit(&self, action: &Action) -> Option<SemaphorePermit<'_>> {
        let permits = &self.0.permits[action.service as usize];
        let semaphore = match action.lane {
            Lane::Data => &permits.data,
            Lane::Waiting | Lane::Moving => &permits.waiting,
            Lane::Control { .. } => &permits.control,
        };
        // Nobody closes these semaphores, so there is always a permit in the end.
        semaphore.acquire().await.ok()
    }

    /// How long to wait before the next attempt; none if there should not be one.
    fn next_pause<D>(
        &self,
        failure: &Failure<D>,
        attempts: u32,
        deadline: Deadline,
        away_since: &mut Option<Duration>,
    ) -> Option<Duration> {
        if !failure.may_repeat() {
            return None;
        }
        let now = self.0.clock.elapsed();
        if failure.kind == Kind::Away {
            let since = *away_since.get_or_insert(now);
            if now.saturating_sub(since) >= ABSENCE_MAX {
                return None;
            }
        } else {
            *away_since = None;
        }
        let wait = after(attempts, &self.0.dice).max(failure.retry_after.unwrap_or_default());
        (wait < self.left(deadline)).then_some(wait)
    }

    fn note(&self, action: &Action) {
        let mut made = self.0.made.lock().unwrap_or_else(PoisonError::into_inner);
        if !made.contains(&(action.service, action.name)) {
            made.insert((action.service, action.name));
        }
    }
}

fn observe(action: &Action, taken: Duration, result: &'static str) {
    let (service, action) = (action.service.prefix(), action.name);
    metrics::counter!("anabranch_aws_calls_total",
        "service" => service, "action" => action, "result" => result)
    .increment(1);
    metrics::histogram!("anabranch_aws_call_duration_seconds", "service" => service, "action" => action)
        .record(taken);
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
