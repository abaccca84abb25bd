//! Time that moves when a test moves it.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Clock, Timestamp};
use parking_lot::Mutex;

/// A clock that stands still between calls. Clones show the same time.
#[derive(Clone, Debug)]
pub struct SimClock {
    hands: Arc<Mutex<Hands>>,
}

#[derive(Debug)]
struct Hands {
    /// What the calendar showed when the stopwatch stood at `since`. Kept as a pair, because a calendar that is
    /// moved by each step loses the part of a millisecond that every step leaves over.
    calendar: Timestamp,
    since: Duration,
    stopwatch: Duration,
}

impl SimClock {
    /// A clock whose calendar shows `now` and whose stopwatch shows zero.
    pub fn new(now: Timestamp) -> Self {
        let hands = Hands { calendar: now, since: Duration::ZERO, stopwatch: Duration::ZERO };
        SimClock { hands: Arc::new(Mutex::new(hands)) }
    }

    /// Lets time pass: the calendar and the stopwatch both move.
    pub fn advance(&self, duration: Duration) {
        let mut hands = self.hands.lock();
        hands.stopwatch = hands.stopwatch.saturating_add(duration);
    }

    /// Sets the calendar, forwards or backwards, as an operator or a time server does. The stopwatch stays.
    pub fn jump_to(&self, now: Timestamp) {
        let mut hands = self.hands.lock();
        hands.calendar = now;
        hands.since = hands.stopwatch;
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let hands = self.hands.lock();
        hands.calendar.plus(hands.stopwatch.saturating_sub(hands.since))
    }

    fn elapsed(&self) -> Duration {
        self.hands.lock().stopwatch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advancing_moves_both_hands() {
        let clock = SimClock::new(Timestamp::from_millis(1_000));
        clock.clone().advance(Duration::from_millis(250));
        assert_eq!(clock.now(), Timestamp::from_millis(1_250));
        assert_eq!(clock.elapsed(), Duration::from_millis(250));
    }

    #[test]
    fn a_jump_moves_only_the_calendar() {
        let clock = SimClock::new(Timestamp::from_millis(1_000));
        clock.advance(Duration::from_millis(5));
        clock.jump_to(Timestamp::from_millis(10));
        assert_eq!(clock.now(), Timestamp::from_millis(10));
        assert_eq!(clock.elapsed(), Duration::from_millis(5));
        clock.advance(Duration::from_millis(1));
        assert_eq!(clock.now(), Timestamp::from_millis(11));
    }

    #[test]
    fn steps_below_a_millisecond_add_up() {
        let clock = SimClock::new(Timestamp::EPOCH);
        for _ in 0..10 {
            clock.advance(Duration::from_micros(100));
        }
        assert_eq!(clock.now(), Timestamp::from_millis(1));
    }
}
