//! Pauses between attempts: they grow, and chance keeps callers from coming back all at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The longest first pause; each further one may be twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// Chance with a given beginning, for pauses only: Steele's SplitMix, which needs nothing but a counter and so no lock.
#[derive(Debug)]
pub(crate) struct Dice(AtomicU64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(AtomicU64::new(seed))
    }

    pub(crate) fn roll(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// The pause before the attempt behind `attempts` failed ones: a random part of its longest, and at least a quarter
    /// of it, so that a service that refuses is left alone for a while.
    pub(crate) fn pause(&self, attempts: u32) -> Duration {
        let longest = PAUSE_FIRST.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(PAUSE_MAX);
        let shortest = longest / 4;
        let span = u64::try_from((longest - shortest).as_micros()).unwrap_or(u64::MAX);
        shortest + Duration::from_micros(self.roll() % (span + 1))
    }
}

/// Lets time pass between two attempts.
#[expect(clippy::disallowed_methods, reason = "the service that is waited for sends no event")]
pub(crate) async fn pause(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ() {
        let dice = Dice::new(7);
        for attempts in 1..40 {
            let longest = PAUSE_FIRST.saturating_mul(1 << (attempts - 1).min(16)).min(PAUSE_MAX);
            let pauses: Vec<_> = (0..100).map(|_| dice.pause(attempts)).collect();
            assert!(pauses.iter().all(|pause| (longest / 4..=longest).contains(pause)), "{pauses:?}");
            assert!(pauses.iter().any(|pause| *pause < longest / 2), "{attempts}: {pauses:?}");
            assert!(pauses.iter().any(|pause| *pause > longest / 2), "{attempts}: {pauses:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_pauses() {
        let [one, same, other] = [1, 1, 2].map(|seed| {
            let dice = Dice::new(seed);
            (0..20).map(|_| dice.pause(5)).collect::<Vec<_>>()
        });
        assert_eq!(one, same);
        assert_ne!(one, other);
    }
}
