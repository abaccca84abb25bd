//! Identifiers of calls: unlike each other, in the shape that clients print.

use std::sync::atomic::{AtomicU64, Ordering};

/// Gives identifiers.
pub(crate) struct RequestIds {
    /// Tells one run of the server from another.
    run: u64,
    next: AtomicU64,
}

impl RequestIds {
    /// Identifiers that no other run gives.
    pub(crate) fn new(run: u64) -> Self {
        RequestIds { run, next: AtomicU64::new(0) }
    }

    /// The next one.
    pub(crate) fn next(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let digits = format!("{:016x}{number:016x}", self.run);
        let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
        parts.join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_differ_and_look_as_clients_expect() {
        let ids = RequestIds::new(0x0123_4567_89ab_cdef);
        assert_eq!(ids.next(), "01234567-89ab-cdef-0000-000000000000");
        assert_eq!(ids.next(), "01234567-89ab-cdef-0000-000000000001");
    }
}
