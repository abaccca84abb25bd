//! Medians, spreads and percentiles of a few values.

use serde::Serialize;

/// One value a round, and what they amount to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// The one in the middle.
    pub(crate) median: f64,
    /// The smallest.
    pub(crate) min: f64,
    /// The largest.
    pub(crate) max: f64,
    /// All, in the order of the rounds.
    pub(crate) rounds: Vec<f64>,
}

impl Spread {
    /// The spread of at least one value.
    pub(crate) fn of(rounds: Vec<f64>) -> Spread {
        let sorted = sorted(&rounds);
        Spread {
            median: median(&sorted),
            min: sorted.first().copied().unwrap_or(f64::NAN),
            max: sorted.last().copied().unwrap_or(f64::NAN),
            rounds,
        }
    }

    /// The ratios of two sides, round by round: neighbours in time share the mood of the machine.
    pub(crate) fn ratio(engine: &Spread, raw: &Spread) -> Spread {
        let pairs = engine.rounds.iter().zip(&raw.rounds);
        Spread::of(pairs.map(|(engine, raw)| engine / raw).collect())
    }
}

/// The value at `percent` of a sorted list: the smallest that at least so many percent do not exceed.
pub(crate) fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}

/// The values in rising order.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_value_in_the_middle() {
        let spread = Spread::of(vec![5.0, 1.0, 4.0, 2.0, 900.0]);
        assert_eq!((spread.median, spread.min, spread.max), (4.0, 1.0, 900.0));
        assert_eq!(spread.rounds, [5.0, 1.0, 4.0, 2.0, 900.0]);
        assert_eq!(Spread::of(vec![1.0, 2.0]).median, 1.5);
        assert!(Spread::of(Vec::new()).median.is_nan());
    }

    #[test]
    fn ratios_pair_the_rounds() {
        let (engine, raw) = (Spread::of(vec![8.0, 1.0, 30.0]), Spread::of(vec![10.0, 2.0, 40.0]));
        let ratio = Spread::ratio(&engine, &raw);
        assert_eq!(ratio.rounds, [0.8, 0.5, 0.75]);
        assert_eq!(ratio.median, 0.75);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values = sorted(&(1..=200).rev().map(f64::from).collect::<Vec<_>>());
        assert_eq!(percentile(&values, 50.0), 100.0);
        assert_eq!(percentile(&values, 99.0), 198.0);
        assert_eq!(percentile(&values, 100.0), 200.0);
        assert_eq!(percentile(&[7.0], 1.0), 7.0);
        assert!(percentile(&[], 50.0).is_nan());
    }
}
