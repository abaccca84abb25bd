//! Time as a value: code that needs the time is given a [`Clock`], so that a test can hold it in its hand.

use std::fmt;
use std::time::Duration;

/// Milliseconds since the Unix epoch, as records carry them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The first moment that can be expressed.
    pub const EPOCH: Timestamp = Timestamp(0);

    /// The moment `millis` milliseconds after the Unix epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Timestamp(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This moment moved into the future, at most to the last one that can be expressed.
    pub fn plus(self, duration: Duration) -> Self {
        Timestamp(self.0.saturating_add(millis(duration)))
    }

    /// This moment moved into the past, at most to the epoch.
    pub fn minus(self, duration: Duration) -> Self {
        Timestamp(self.0.saturating_sub(millis(duration)))
    }

    /// How long ago `earlier` was; zero if it lies in the future.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// Two clocks in one: what a calendar shows, which may jump, and what a stopwatch shows, which may not.
pub trait Clock: Send + Sync + 'static {
    /// The time of day. It may go backwards between two calls.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment. It never goes backwards.
    fn elapsed(&self) -> Duration;
}
