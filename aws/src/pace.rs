//! Calls a second that an account may make, shared by everyone in this process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::action::{Action, Lane, Service};

/// When the next call of each action of the control plane may be made. A second's worth may be made at once; from then
/// on calls are spaced evenly, each caller waiting for a moment of its own.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// For each action the moment at which everything taken so far is used up.
    taken_to: Mutex<HashMap<(Service, &'static str), Duration>>,
}

impl Pace {
    /// Takes a place for a call, and says how long to wait for it. A place beyond `wait_max` is not taken: the wait that
    /// it would have needed is the error.
    pub(crate) fn take(
        &self,
        action: &Action,
        now: Duration,
        wait_max: Duration,
    ) -> Result<Duration, Duration> {
        let Lane::Control { per_second } = action.lane else { return Ok(Duration::ZERO) };
        let burst = Duration::from_secs(1);
        let interval = burst / per_second.max(1);
        let mut taken_to = self.taken_to.lock().unwrap_or_else(PoisonError::into_inner);
        let taken_to = taken_to.entry((action.service, action.name)).or_default();
        // What was not used for longer than a second is lost.
        let end = (*taken_to).max(now) + interval;
        let wait = end.saturating_sub(now + burst);
        if wait > wait_max {
            return Err(wait);
        }
        *taken_to = end;
        Ok(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Resource, Use};

    const FIVE: Action = Action::new(Service::Kinesis, "Five", Use::Write, Resource::Stream).control(5);
    const FREE: Action = Action::new(Service::Kinesis, "Free", Use::Write, Resource::Stream);
    const LONG: Duration = Duration::from_secs(100);

    #[test]
    fn a_second_is_spent_at_once_and_the_rest_is_spaced() {
        let pace = Pace::default();
        let now = Duration::from_secs(10);
        let waits: Vec<_> = (0..8).map(|_| pace.take(&FIVE, now, LONG).unwrap().as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 200, 400, 600]);
        assert_eq!(pace.take(&FREE, now, LONG), Ok(Duration::ZERO));
    }

    #[test]
    fn no_second_has_more_calls_than_two_bursts() {
        let pace = Pace::default();
        let mut calls = Vec::new();
        for step in 0..200u64 {
            let now = Duration::from_millis(step * 37);
            calls.push(now + pace.take(&FIVE, now, LONG).unwrap());
        }
        for start in &calls {
            let second = *start..*start + Duration::from_secs(1);
            let within = calls.iter().filter(|call| second.contains(*call)).count();
            assert!(within <= 10, "{within} calls in the second from {start:?}");
        }
        let span = calls[calls.len() - 1] - calls[0];
        assert!(span >= Duration::from_secs(38), "200 calls at 5 a second took {span:?}");
    }

    #[test]
    fn a_place_that_is_too_late_is_left_to_others() {
        let pace = Pace::default();
        let now = Duration::ZERO;
        for _ in 0..5 {
            pace.take(&FIVE, now, Duration::ZERO).unwrap();
        }
        let soon = Duration::from_millis(100);
        assert_eq!(pace.take(&FIVE, now, soon), Err(Duration::from_millis(200)));
        assert_eq!(pace.take(&FIVE, now, soon), Err(Duration::from_millis(200)), "a refused place was taken");
        assert_eq!(pace.take(&FIVE, now + soon, soon), Ok(soon));
    }
}
