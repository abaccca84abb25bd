//! The command line of all benches: how long, how much, where.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::failure::Failure;

/// Fewest rounds: a median of fewer is one outlier away from nonsense.
const ROUNDS_MIN: usize = 5;
/// Most payload of a round. The engine keeps eight dead segments of 64 MiB, and a round is to find enough of them to
/// write to none that is new.
const MEGABYTES_MAX: u64 = 320;

/// What bounds a bench.
#[derive(Clone, Debug, Args, Serialize)]
pub(crate) struct Bounds {
    /// Rounds of each side; the median of them counts
    #[arg(long, global = true, default_value_t = 21, value_name = "N")]
    pub(crate) rounds: usize,
    /// Longest round of each side
    #[arg(long, global = true, default_value_t = 2, value_name = "N")]
    pub(crate) seconds: u64,
    /// Most payload of a round, in MiB
    #[arg(long, global = true, default_value_t = 64, value_name = "N")]
    pub(crate) megabytes: u64,
    /// Where a folder for the files is made; it is removed at the end
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Only cases whose name begins like this, for whoever profiles one of them
    #[arg(long, global = true, hide = true, value_name = "NAME")]
    pub(crate) only: Option<String>,
}

impl Bounds {
    /// Whether a bench within these bounds says anything.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.rounds < ROUNDS_MIN {
            return Err(Failure::usage(
                format!("{} rounds are too few", self.rounds),
                format!("the median of at least {ROUNDS_MIN} counts"),
            ));
        }
        if self.seconds == 0 {
            return Err(Failure::usage("a round of 0 seconds measures nothing", "give it at least 1"));
        }
        if self.megabytes == 0 || self.megabytes > MEGABYTES_MAX {
            return Err(Failure::usage(
                format!("rounds of {} MiB are not possible", self.megabytes),
                format!(
                    "1 to {MEGABYTES_MAX} are: a round stays within the segments that the engine recycles"
                ),
            ));
        }
        Ok(())
    }

    /// Most payload of a round in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.megabytes << 20
    }

    /// Whether a case is wanted.
    pub(crate) fn wants(&self, case: &str) -> bool {
        self.only.as_deref().is_none_or(|only| case.starts_with(only))
    }

    /// The longest round.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        bounds: Bounds,
    }

    fn parse(words: &[&str]) -> Bounds {
        Line::try_parse_from([&["bench"], words].concat()).unwrap().bounds
    }

    #[test]
    fn the_defaults_are_allowed() {
        let bounds = parse(&[]);
        assert!(bounds.check().is_ok());
        assert!(bounds.rounds >= 5);
        assert_eq!(bounds.bytes(), 64 << 20);
    }

    #[test]
    fn one_case_can_be_asked_for() {
        assert!(parse(&[]).wants("singles"));
        assert!(parse(&["--only", "single"]).wants("singles"));
        assert!(!parse(&["--only", "single"]).wants("batches"));
    }

    #[test]
    fn bounds_that_measure_nothing_are_refused() {
        for words in [["--rounds", "4"], ["--seconds", "0"], ["--megabytes", "0"], ["--megabytes", "321"]] {
            assert!(parse(&words).check().is_err(), "{words:?}");
        }
        assert!(parse(&["--rounds", "5", "--seconds", "1", "--megabytes", "320"]).check().is_ok());
    }
}
