//! What clients report, as metrics of this server: for each series how many values there were, their sum, and the last
//! one.
//!
//! ```text
//!   anabranch_cloudwatch_values_total{namespace="App", metric="Latency", dimensions="Host=a,Zone=b", unit="Seconds"}
//!   anabranch_cloudwatch_sum{…}
//!   anabranch_cloudwatch_last{…}
//! ```

use std::collections::HashSet;

use parking_lot::Mutex;

/// Most series. Each costs memory for as long as the server runs.
const SERIES_MAX: usize = 10_000;

/// Most bytes of the names of all series. Each metric that shows one has a copy.
const SERIES_BYTES_MAX: usize = 8 << 20;

/// The series that are known.
#[derive(Default)]
pub(crate) struct State {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    series: HashSet<Series>,
    /// Of their names.
    bytes: usize,
}

/// What a value belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Series {
    pub(super) namespace: String,
    pub(super) metric: String,
    /// `Host=a,Zone=b`, in the order of the names.
    pub(super) dimensions: String,
    pub(super) unit: String,
}

impl Series {
    fn bytes(&self) -> usize {
        self.namespace.len() + self.metric.len() + self.dimensions.len() + self.unit.len()
    }
}

/// Values of a series that were reported together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Values {
    pub(super) count: f64,
    pub(super) sum: f64,
    pub(super) last: f64,
}

impl State {
    /// Makes room for series; false if there is none, and then none of them is new.
    pub(super) fn admit<'a>(&self, series: impl Iterator<Item = &'a Series>) -> bool {
        let mut known = self.known.lock();
        let new: HashSet<&Series> = series.filter(|series| !known.series.contains(*series)).collect();
        let bytes = known.bytes + new.iter().map(|series| series.bytes()).sum::<usize>();
        if known.series.len() + new.len() > SERIES_MAX || bytes > SERIES_BYTES_MAX {
            return false;
        }
        known.series.extend(new.into_iter().cloned());
        known.bytes = bytes;
        true
    }
}

/// Shows values.
pub(super) fn show(series: &Series, values: Values) {
    let Series { namespace, metric, dimensions, unit } = series.clone();
    let labels = [("namespace", namespace), ("metric", metric), ("dimensions", dimensions), ("unit", unit)];
    // Counts are whole numbers, except for those of clients that weigh their samples.
    metrics::counter!("anabranch_cloudwatch_values_total", &labels).increment(values.count.round() as u64);
    metrics::gauge!("anabranch_cloudwatch_sum", &labels).increment(values.sum);
    metrics::gauge!("anabranch_cloudwatch_last", &labels).set(values.last);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(number: usize) -> Series {
        let (namespace, metric) = ("n".to_owned(), number.to_string());
        Series { namespace, metric, dimensions: String::new(), unit: "None".to_owned() }
    }

    #[test]
    fn the_number_of_series_is_bounded() {
        let state = State::default();
        let all: Vec<_> = (0..SERIES_MAX).map(series).collect();
        assert!(state.admit(all.iter()));
        assert!(state.admit(all.iter()), "they are known already");
        assert!(!state.admit([series(0), series(SERIES_MAX)].iter()));
        assert!(state.admit([series(7)].iter()));
    }

    #[test]
    fn and_so_are_their_names() {
        let state = State::default();
        let long = |number| Series { dimensions: "x".repeat(SERIES_BYTES_MAX / 4), ..series(number) };
        for number in 0..3 {
            assert!(state.admit([long(number)].iter()));
        }
        assert!(!state.admit([series(4), long(3)].iter()));
        assert!(state.admit([long(1), series(4)].iter()), "what is known or small has room");
    }
}
