//! How long a command goes on trying when the store says "later".

use std::time::Duration;

use anabranch_model::{Clock, Error, NextMove, Result};

use crate::runtime::pause;

/// The first pause; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How long a server may be gone: long enough for a restart.
const ABSENCE_MAX: Duration = Duration::from_secs(10);
/// How long a store may be busy, throttle, or have a full disk.
const REFUSAL_MAX: Duration = Duration::from_secs(60);

/// The patience of one piece of work. It is as good as new after every success.
pub(crate) struct Patience<'a> {
    clock: &'a dyn Clock,
    /// When the failures in a row began, and how many there were.
    failing: Option<(Duration, u32)>,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(clock: &'a dyn Clock) -> Self {
        Patience { clock, failing: None }
    }

    /// The work went on.
    pub(crate) fn restore(&mut self) {
        self.failing = None;
    }

    /// Waits before the next attempt; gives the error back if another attempt is pointless.
    pub(crate) async fn wait(&mut self, error: Error) -> Result<()> {
        match self.next_pause(&error) {
            Some(duration) => {
                pause(duration).await;
                Ok(())
            }
            None => Err(error),
        }
    }

    fn next_pause(&mut self, error: &Error) -> Option<Duration> {
        if error.next_move() != NextMove::Retry {
            return None;
        }
        let now = self.clock.elapsed();
        let (since, attempt) = self.failing.unwrap_or((now, 0));
        let limit = if matches!(error, Error::Unavailable(_)) { ABSENCE_MAX } else { REFUSAL_MAX };
        if now.saturating_sub(since) >= limit {
            return None;
        }
        self.failing = Some((since, attempt.saturating_add(1)));
        let doubled = PAUSE_MIN.saturating_mul(1 << attempt.min(16)).min(PAUSE_MAX);
        Some(match error {
            Error::Throttled { retry_after, .. } => (*retry_after).max(doubled).min(limit),
            _ => doubled,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use anabranch_model::{ShardId, Timestamp};

    use super::*;

    #[derive(Default)]
    struct HandClock(Mutex<Duration>);

    impl HandClock {
        fn advance(&self, by: Duration) {
            *self.0.lock().unwrap() += by;
        }
    }

    impl Clock for HandClock {
        fn now(&self) -> Timestamp {
            Timestamp::EPOCH
        }

        fn elapsed(&self) -> Duration {
            *self.0.lock().unwrap()
        }
    }

    #[test]
    fn pauses_grow_and_come_to_an_end() {
        let clock = HandClock::default();
        let mut patience = Patience::new(&clock);
        let gone = Error::Unavailable("gone".into());
        let mut pauses = Vec::new();
        while let Some(pause) = patience.next_pause(&gone) {
            pauses.push(pause);
            clock.advance(pause);
        }
        assert!(pauses.is_sorted());
        assert!(pauses.iter().sum::<Duration>() >= ABSENCE_MAX);
        assert!(pauses.len() < 20);
        patience.restore();
        assert_eq!(patience.next_pause(&gone), Some(PAUSE_MIN));
    }

    #[test]
    fn a_throttled_call_waits_as_long_as_it_was_told() {
        let clock = HandClock::default();
        let mut patience = Patience::new(&clock);
        let throttled = Error::Throttled {
            shard: ShardId::numbered(0),
            limit: "5 reads a second",
            retry_after: Duration::from_millis(900),
        };
        assert_eq!(patience.next_pause(&throttled), Some(Duration::from_millis(900)));
        assert_eq!(patience.next_pause(&Error::Invalid("wrong".into())), None);
    }
}
