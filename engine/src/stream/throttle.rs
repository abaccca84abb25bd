//! The limits that Kinesis puts on a shard, as buckets that refill with time. Off unless asked for, so that throttling
//! and scaling can be seen at home.

use std::time::Duration;

use anabranch_model::limits::{
    SHARD_READ_BYTES_PER_SECOND, SHARD_READS_PER_SECOND, SHARD_WRITE_BYTES_PER_SECOND,
    SHARD_WRITE_RECORDS_PER_SECOND,
};

/// What was asked for too fast, and when it fits again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFast {
    /// The limit in words.
    pub limit: &'static str,
    /// How long to wait.
    pub retry_after: Duration,
}

/// The buckets of one shard. A bucket holds one second's worth and starts full.
#[derive(Debug)]
pub struct Throttle {
    write_bytes: Bucket,
    write_records: Bucket,
    read_bytes: Bucket,
    reads: Bucket,
}

impl Default for Throttle {
    fn default() -> Self {
        Throttle {
            write_bytes: Bucket::new(SHARD_WRITE_BYTES_PER_SECOND, "1 MiB written a second"),
            write_records: Bucket::new(SHARD_WRITE_RECORDS_PER_SECOND, "1000 records written a second"),
            read_bytes: Bucket::new(SHARD_READ_BYTES_PER_SECOND, "2 MiB read a second"),
            reads: Bucket::new(SHARD_READS_PER_SECOND, "5 reads a second"),
        }
    }
}

impl Throttle {
    /// Admits one record, or neither its bytes nor its count.
    pub fn write(&mut self, now: Duration, bytes: usize) -> Result<(), TooFast> {
        self.write_records.ready(now, 1)?;
        self.write_bytes.ready(now, bytes as u64)?;
        self.write_records.take(1);
        self.write_bytes.take(bytes as u64);
        Ok(())
    }

    /// Admits a read. What it returns is counted afterwards, and the next read waits for it.
    pub fn read(&mut self, now: Duration) -> Result<(), TooFast> {
        self.reads.ready(now, 1)?;
        self.read_bytes.ready(now, 0)?;
        self.reads.take(1);
        Ok(())
    }

    /// Counts what a read returned.
    pub fn have_read(&mut self, bytes: usize) {
        self.read_bytes.take(bytes as u64);
    }
}

/// Micro-units, so that slow refills are not rounded away. The level may go below zero: a debt is paid by waiting.
#[derive(Debug)]
struct Bucket {
    per_second: i128,
    level: i128,
    filled_at: Duration,
    limit: &'static str,
}

const UNIT: i128 = 1_000_000;

impl Bucket {
    fn new(per_second: u64, limit: &'static str) -> Bucket {
        let per_second = i128::from(per_second);
        Bucket { per_second, level: per_second * UNIT, filled_at: Duration::ZERO, limit }
    }

    fn ready(&mut self, now: Duration, amount: u64) -> Result<(), TooFast> {
        let passed = now.saturating_sub(self.filled_at).as_micros() as i128;
        self.filled_at = self.filled_at.max(now);
        self.level = (self.level + passed * self.per_second).min(self.per_second * UNIT);
        // More than one second's worth can never be there at once: it passes when the bucket is full.
        let wanted = (i128::from(amount) * UNIT).min(self.per_second * UNIT);
        if self.level >= wanted {
            return Ok(());
        }
        let micros = (wanted - self.level + self.per_second - 1) / self.per_second;
        Err(TooFast { limit: self.limit, retry_after: Duration::from_micros(micros as u64) })
    }

    fn take(&mut self, amount: u64) {
        self.level -= i128::from(amount) * UNIT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_thousand_records_fit_into_a_second_and_one_more_does_not() {
        let mut throttle = Throttle::default();
        for _ in 0..1_000 {
            throttle.write(SECOND, 100).unwrap();
        }
        let refused = throttle.write(SECOND, 100).unwrap_err();
        assert_eq!(
            refused,
            TooFast { limit: "1000 records written a second", retry_after: Duration::from_millis(1) }
        );
        throttle.write(SECOND + refused.retry_after, 100).unwrap();
    }

    #[test]
    fn a_record_larger_than_a_second_of_bytes_passes_alone_and_leaves_a_debt() {
        let mut throttle = Throttle::default();
        throttle.write(SECOND, 3 << 20).unwrap();
        let refused = throttle.write(SECOND, 1).unwrap_err();
        assert_eq!(refused.limit, "1 MiB written a second");
        assert!(refused.retry_after > 2 * SECOND);
        throttle.write(SECOND + refused.retry_after, 1).unwrap();
    }

    #[test]
    fn reads_are_counted_and_their_bytes_delay_the_next() {
        let mut throttle = Throttle::default();
        for _ in 0..5 {
            throttle.read(SECOND).unwrap();
        }
        assert_eq!(throttle.read(SECOND).unwrap_err().limit, "5 reads a second");
        throttle.have_read(4 << 20);
        assert_eq!(throttle.read(SECOND + SECOND / 2).unwrap_err().limit, "2 MiB read a second");
        throttle.read(3 * SECOND).unwrap();
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_gives_nothing_away() {
        let mut bucket = Bucket::new(10, "ten");
        bucket.ready(SECOND, 10).unwrap();
        bucket.take(10);
        assert!(bucket.ready(SECOND, 1).is_err());
        assert!(bucket.ready(Duration::ZERO, 1).is_err());
        assert!(bucket.ready(SECOND, 1).is_err());
    }
}
