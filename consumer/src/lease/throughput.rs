//! Kilobytes a second that come through a lease, as its attribute says it.

use std::time::Duration;

/// The shortest time that a throughput is measured over.
const MEASURED_MIN: Duration = Duration::from_millis(500);

/// Bytes since the throughput was last written down, when that was on the stopwatch, and what it was.
pub(super) struct Throughput {
    bytes: u64,
    measured_at: Duration,
    kbps: f64,
}

/// A throughput that is about to be written down.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    pub(super) kbps: f64,
    bytes: u64,
    at: Duration,
}

impl Throughput {
    pub(super) fn new(kbps: f64, now: Duration) -> Self {
        Throughput { bytes: 0, measured_at: now, kbps }
    }

    pub(super) fn count(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Since it was last written down. A moment says nothing, so it repeats what was written then.
    pub(super) fn measure(&self, now: Duration) -> Measured {
        let passed = now.saturating_sub(self.measured_at);
        if passed < MEASURED_MIN {
            return Measured { kbps: self.kbps, bytes: 0, at: self.measured_at };
        }
        Measured { kbps: self.bytes as f64 / 1024.0 / passed.as_secs_f64(), bytes: self.bytes, at: now }
    }

    pub(super) fn wrote(&mut self, measured: Measured) {
        self.bytes = self.bytes.saturating_sub(measured.bytes);
        (self.measured_at, self.kbps) = (measured.at, measured.kbps);
    }
}
