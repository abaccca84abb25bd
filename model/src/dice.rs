//! Chance with a given beginning, so that the same seed gives the same run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Steele's SplitMix, which needs nothing but a counter and so no lock. For pauses and choices, not for secrets.
#[derive(Debug)]
pub struct Dice(AtomicU64);

impl Dice {
    /// Everything follows from the seed.
    pub fn new(seed: u64) -> Self {
        Dice(AtomicU64::new(seed))
    }

    /// The next number.
    pub fn roll(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A duration between two others.
    pub fn between(&self, shortest: Duration, longest: Duration) -> Duration {
        let span = u64::try_from(longest.saturating_sub(shortest).as_micros()).unwrap_or(u64::MAX - 1);
        shortest + Duration::from_micros(self.roll() % (span + 1))
    }

    /// The pause before the attempt behind `attempts` failed ones: a random part of its longest, which begins with
    /// `first` and doubles up to `last`, and at least a quarter of it, so that who refuses is left alone for a while.
    pub fn pause(&self, attempts: u32, first: Duration, last: Duration) -> Duration {
        let longest = first.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(last);
        self.between(longest / 4, longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ() {
        let (first, last) = (Duration::from_millis(50), Duration::from_secs(3));
        let dice = Dice::new(7);
        for attempts in 1..40 {
            let longest = first.saturating_mul(1 << (attempts - 1).min(16)).min(last);
            let pauses: Vec<_> = (0..100).map(|_| dice.pause(attempts, first, last)).collect();
            assert!(pauses.iter().all(|pause| (longest / 4..=longest).contains(pause)), "{pauses:?}");
            assert!(pauses.iter().any(|pause| *pause < longest / 2), "{attempts}: {pauses:?}");
            assert!(pauses.iter().any(|pause| *pause > longest / 2), "{attempts}: {pauses:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let [one, same, other] = [1, 1, 2].map(|seed| {
            let dice = Dice::new(seed);
            (0..20).map(|_| dice.roll()).collect::<Vec<_>>()
        });
        assert_eq!(one, same);
        assert_ne!(one, other);
    }
}
