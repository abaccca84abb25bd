//! How fast one shard is sent to: two buckets that refill with time, one of records and one of bytes.

use std::time::Duration;

use crate::settings::Pace;

/// A bucket holds what this much time brings, so that a burst is short beside the second in which a shard counts.
const DEPTH: f64 = 0.2;

/// Faster than anything: nobody is held back.
const UNPACED: Pace = Pace { records: 1e15, bytes: 1e18 };

/// The buckets of one shard.
#[derive(Debug)]
pub(crate) struct Bucket {
    pace: Pace,
    records: f64,
    bytes: f64,
    at: Duration,
    /// A shard that refused is left alone until then.
    shut_until: Duration,
}

impl Bucket {
    /// Full buckets; without a pace they are never empty.
    pub(crate) fn new(pace: Option<Pace>, now: Duration) -> Self {
        let pace = pace.unwrap_or(UNPACED);
        Bucket {
            pace,
            records: pace.records * DEPTH,
            bytes: pace.bytes * DEPTH,
            at: now,
            shut_until: Duration::ZERO,
        }
    }

    /// When the next record may go: now, or in this much time. A record that is larger than the bucket goes when the
    /// bucket is full, and those behind it wait for longer.
    pub(crate) fn wait(&mut self, now: Duration, bytes: usize) -> Duration {
        // What was there is enough: how much came in the meantime need not be known yet.
        if self.records >= 1.0 && self.bytes >= bytes as f64 && self.shut_until <= now {
            return Duration::ZERO;
        }
        self.refill(now);
        let lacking = |have: f64, want: f64, rate: f64| ((want - have) / rate).max(0.0);
        let want_bytes = (bytes as f64).min(self.pace.bytes * DEPTH);
        let records = lacking(self.records, 1.0_f64.min(self.pace.records * DEPTH), self.pace.records);
        let bytes = lacking(self.bytes, want_bytes, self.pace.bytes);
        let wait = Duration::from_secs_f64(records.max(bytes));
        // Less than a timer can tell apart is no wait.
        let wait = if wait < Duration::from_micros(100) { Duration::ZERO } else { wait };
        wait.max(self.shut_until.saturating_sub(now))
    }

    /// Takes what a record of this size uses.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.take_run(1, bytes);
    }

    /// Takes what records that go together use. They go if the first may, and those behind them wait for longer.
    pub(crate) fn take_run(&mut self, records: usize, bytes: usize) {
        self.records -= records as f64;
        self.bytes -= bytes as f64;
    }

    /// Whether records that go together are no more than the buckets hold.
    pub(crate) fn holds(&self, records: usize, bytes: usize) -> bool {
        records as f64 <= self.pace.records * DEPTH && bytes as f64 <= self.pace.bytes * DEPTH
    }

    /// The shard has refused: nothing goes there for a while.
    pub(crate) fn shut(&mut self, now: Duration, time: Duration) {
        self.shut_until = self.shut_until.max(now + time);
    }

    fn refill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = now;
        self.records = (self.records + passed * self.pace.records).min(self.pace.records * DEPTH);
        self.bytes = (self.bytes + passed * self.pace.bytes).min(self.pace.bytes * DEPTH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends as fast as the bucket lets it for a time, and counts.
    fn sent(bytes: usize, seconds: u64) -> usize {
        let mut bucket = Bucket::new(Some(Pace { records: 1000.0, bytes: 1e6 }), Duration::ZERO);
        let (mut now, mut sent) = (Duration::ZERO, 0);
        while now < Duration::from_secs(seconds) {
            let wait = bucket.wait(now, bytes);
            if wait.is_zero() {
                bucket.take(bytes);
                sent += 1;
            }
            now += wait;
        }
        sent
    }

    #[test]
    fn records_and_bytes_are_both_held_to_their_rate() {
        assert!((9_900..=10_300).contains(&sent(10, 10)), "{}", sent(10, 10));
        assert!((990..=1_030).contains(&sent(10_000, 10)), "{}", sent(10_000, 10));
    }

    #[test]
    fn a_record_larger_than_the_bucket_goes_and_is_paid_for() {
        let count = sent(3_000_000, 30);
        assert!((9..=12).contains(&count), "{count}");
    }

    #[test]
    fn a_shard_that_refused_is_left_alone() {
        let mut bucket = Bucket::new(Some(Pace::SHARD), Duration::ZERO);
        bucket.shut(Duration::ZERO, Duration::from_millis(700));
        assert_eq!(bucket.wait(Duration::from_millis(200), 1), Duration::from_millis(500));
        assert_eq!(bucket.wait(Duration::from_millis(700), 1), Duration::ZERO);
    }
}
