//! The report of a bench: figures with the limit beside them, as a table for people and as JSON for programs.

use std::fmt;

use serde::Serialize;

use super::machine::Machine;
use super::options::Bounds;
use super::statistics::Spread;
use crate::output::{table, table_text};
use crate::quantity::grouped;

/// A limit that varies by more than this between rounds is not the limit of the machine alone.
const UNSTEADY_FACTOR: f64 = 2.0;

/// What a value is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Unit {
    /// Payload a second.
    #[serde(rename = "bytes/s")]
    BytesPerSecond,
    /// Records a second.
    #[serde(rename = "records/s")]
    RecordsPerSecond,
    /// Calls, or groups of calls that belong together, a second.
    #[serde(rename = "operations/s")]
    OperationsPerSecond,
    /// A length of time.
    #[serde(rename = "ms")]
    Milliseconds,
    /// A short length of time.
    #[serde(rename = "µs")]
    Microseconds,
    /// Memory.
    #[serde(rename = "MiB")]
    Mebibytes,
    /// How many.
    #[serde(rename = "count")]
    Count,
    /// A share.
    #[serde(rename = "%")]
    Percent,
    /// Calls that change a table.
    #[serde(rename = "writes")]
    Writes,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Unit::BytesPerSecond => format!("{} MiB/s", grouped((value / f64::from(1 << 20)).round() as u64)),
            Unit::RecordsPerSecond => format!("{} records/s", grouped(value.round() as u64)),
            Unit::OperationsPerSecond => format!("{} /s", grouped(value.round() as u64)),
            Unit::Milliseconds => format!("{value:.2} ms"),
            Unit::Microseconds => format!("{value:.2} µs"),
            Unit::Mebibytes => format!("{value:.1} MiB"),
            Unit::Count => format!("{value:.0}"),
            Unit::Percent => format!("{value:.1} %"),
            Unit::Writes => format!("{value:.2} writes"),
        }
    }

    /// A value that a figure is to reach, as it was written down.
    fn aimed(self, value: f64) -> String {
        match self {
            Unit::BytesPerSecond | Unit::RecordsPerSecond | Unit::OperationsPerSecond | Unit::Count => {
                self.show(value)
            }
            Unit::Milliseconds | Unit::Microseconds | Unit::Mebibytes | Unit::Percent | Unit::Writes => {
                let shown = self.show(value);
                format!("{value} {}", shown.split_once(' ').map_or("", |(_, unit)| unit))
            }
        }
    }
}

/// What a figure is to reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    /// The ratio is at least this.
    RatioAtLeast(f64),
    /// The ratio is at most this.
    RatioAtMost(f64),
    /// The engine's own value is below this.
    Below(f64),
    /// The engine's own value is at least this.
    AtLeast(f64),
}

/// One figure: the engine, the limit, and how they compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// A short name that stays.
    pub(crate) name: &'static str,
    /// What each side does.
    pub(crate) what: String,
    /// What both values are counted in.
    pub(crate) unit: Unit,
    /// The engine's values.
    pub(crate) engine: Spread,
    /// The limit's values; none where the machine has no limit to offer.
    pub(crate) raw: Option<Spread>,
    /// The median of the ratios of all rounds.
    pub(crate) ratio: Option<f64>,
    /// The smallest ratio of a round.
    pub(crate) ratio_min: Option<f64>,
    /// The largest ratio of a round.
    pub(crate) ratio_max: Option<f64>,
    /// Whether the limit stayed about the same in all rounds. If not, something else used the machine, and the ratio
    /// says who was disturbed more.
    pub(crate) steady: Option<bool>,
    /// What it is to reach, if anything.
    pub(crate) goal: Option<Goal>,
    /// Whether it does.
    pub(crate) met: Option<bool>,
}

impl Figure {
    /// A figure whose ratio is the engine's value over the limit.
    pub(crate) fn beside(
        name: &'static str,
        what: impl Into<String>,
        unit: Unit,
        engine: Spread,
        raw: Spread,
    ) -> Figure {
        let ratio = Spread::ratio(&engine, &raw);
        Figure::with_ratio(name, what, unit, engine, Some(raw), Some(ratio))
    }

    /// A figure with a ratio of its own, or none.
    pub(crate) fn with_ratio(
        name: &'static str,
        what: impl Into<String>,
        unit: Unit,
        engine: Spread,
        raw: Option<Spread>,
        ratio: Option<Spread>,
    ) -> Figure {
        Figure {
            name,
            what: what.into(),
            unit,
            engine,
            steady: raw.as_ref().map(|raw| raw.max <= raw.min * UNSTEADY_FACTOR),
            raw,
            ratio: ratio.as_ref().map(|ratio| ratio.median),
            ratio_min: ratio.as_ref().map(|ratio| ratio.min),
            ratio_max: ratio.as_ref().map(|ratio| ratio.max),
            goal: None,
            met: None,
        }
    }

    /// The same figure with something to reach.
    pub(crate) fn aim(mut self, goal: Goal) -> Figure {
        self.met = match goal {
            Goal::RatioAtLeast(least) => self.ratio.map(|ratio| ratio >= least),
            Goal::RatioAtMost(most) => self.ratio.map(|ratio| ratio <= most),
            Goal::Below(limit) => Some(self.engine.median < limit),
            Goal::AtLeast(least) => Some(self.engine.median >= least),
        };
        self.goal = Some(goal);
        self
    }

    fn row(&self) -> [String; 7] {
        let spread =
            |spread: &Spread| format!("{} – {}", bare(self.unit, spread.min), bare(self.unit, spread.max));
        let goal = match self.goal {
            None => "–".to_owned(),
            Some(Goal::RatioAtLeast(least)) => format!("≥ {least}"),
            Some(Goal::RatioAtMost(most)) => format!("≤ {most}"),
            Some(Goal::Below(limit)) => format!("< {}", self.unit.aimed(limit)),
            Some(Goal::AtLeast(least)) => format!("≥ {}", self.unit.aimed(least)),
        };
        let met = match self.met {
            None => "",
            Some(true) => " ok",
            Some(false) => " MISSED",
        };
        [
            self.name.to_owned(),
            self.unit.show(self.engine.median),
            spread(&self.engine),
            self.raw.as_ref().map_or("–".into(), |raw| self.unit.show(raw.median)),
            self.raw.as_ref().map_or("–".into(), spread),
            match (self.ratio, self.ratio_min, self.ratio_max) {
                (Some(ratio), Some(min), Some(max)) => format!("{ratio:.2} ({min:.2} – {max:.2})"),
                _ => "–".into(),
            },
            format!("{goal}{met}"),
        ]
    }
}

/// A value without its unit.
fn bare(unit: Unit, value: f64) -> String {
    let text = unit.show(value);
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// All figures of a bench with where they come from.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// The bench.
    pub(crate) bench: &'static str,
    /// The version of this program.
    pub(crate) version: &'static str,
    /// The machine.
    pub(crate) machine: Machine,
    /// How long and how much.
    pub(crate) parameters: Bounds,
    /// The figures.
    pub(crate) figures: Vec<Figure>,
    /// What a reader has to know.
    pub(crate) notes: Vec<String>,
}

impl Report {
    /// A report of this program on this machine.
    pub(crate) fn new(bench: &'static str, machine: Machine, parameters: &Bounds) -> Report {
        let mut notes = Vec::new();
        if cfg!(debug_assertions) {
            notes.push("this is a debug build: its figures say nothing; build with --release".into());
        }
        let (version, parameters) = (env!("CARGO_PKG_VERSION"), parameters.clone());
        Report { bench, version, machine, parameters, figures: Vec::new(), notes }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { bench, version, machine, parameters, .. } = self;
        writeln!(
            f,
            "anabranch {version} bench {bench}: {} cores ({}), {} MiB, {}, {}; {} rounds, medians",
            machine.cores,
            machine.processor,
            machine.memory_mib,
            machine.kernel,
            machine.file_system,
            parameters.rounds
        )?;
        let headings = ["figure", "engine", "min – max", "limit", "min – max", "ratio (min – max)", "goal"];
        let mut rows = table(&headings, &[1, 2, 3, 4]);
        for figure in &self.figures {
            rows.add_row(figure.row());
        }
        write!(f, "\n{}\n", table_text(&rows))?;
        for figure in &self.figures {
            writeln!(f, "{}: {}", figure.name, figure.what)?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        let unsteady = |figure: &&Figure| figure.goal.is_some() && figure.steady == Some(false);
        let names: Vec<&str> = self.figures.iter().filter(unsteady).map(|figure| figure.name).collect();
        if !names.is_empty() {
            writeln!(
                f,
                "warning: the limit of {} varied by more than a factor of {UNSTEADY_FACTOR} between rounds: something else \
                 used the machine, and the ratio proves nothing either way; measure again when it is quiet",
                names.join(", ")
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn report() -> Report {
        let machine = Machine {
            cores: 2,
            processor: "Fast One".into(),
            memory_mib: 1024,
            kernel: "linux 6.18".into(),
            file_system: "ext4 on /dev/vda".into(),
        };
        let bounds =
            Bounds { rounds: 5, seconds: 1, megabytes: 64, dir: Some(PathBuf::from("/data")), only: None };
        let mut report = Report::new("append", machine, &bounds);
        let engine = Spread::of(vec![800.0, 700.0, 900.0]);
        let raw = Spread::of(vec![1000.0, 1000.0, 1000.0]);
        report.figures.push(
            Figure::beside("batches", "a beside b", Unit::RecordsPerSecond, engine, raw)
                .aim(Goal::RatioAtLeast(0.7)),
        );
        let open = Spread::of(vec![120.0]);
        report.figures.push(
            Figure::with_ratio("open", "c", Unit::Milliseconds, open, None, None).aim(Goal::Below(100.0)),
        );
        report.notes.push("steady".into());
        report
    }

    #[test]
    fn the_json_has_the_ratio_with_both_sides_and_the_machine() {
        let json = serde_json::to_value(report()).unwrap();
        let figure = &json["figures"][0];
        assert_eq!(figure["ratio"], 0.8);
        assert_eq!((&figure["ratio_min"], &figure["ratio_max"]), (&0.7.into(), &0.9.into()));
        assert_eq!(figure["engine"]["median"], 800.0);
        assert_eq!(figure["raw"]["rounds"].as_array().unwrap().len(), 3);
        assert_eq!(figure["goal"]["ratio_at_least"], 0.7);
        assert_eq!((&figure["met"], &figure["unit"]), (&true.into(), &"records/s".into()));
        assert_eq!(json["figures"][1]["ratio"], serde_json::Value::Null);
        assert_eq!(json["figures"][1]["met"], false);
        assert_eq!(json["machine"]["cores"], 2);
        assert_eq!(json["parameters"]["rounds"], 5);
    }

    #[test]
    fn operations_are_counted_whole() {
        assert_eq!(Unit::OperationsPerSecond.show(1234.5), "1,235 /s");
        assert_eq!(bare(Unit::OperationsPerSecond, 1234.5), "1,235");
        assert_eq!(serde_json::to_value(Unit::OperationsPerSecond).unwrap(), "operations/s");
    }

    #[test]
    fn a_limit_that_jumps_is_not_believed() {
        let mut report = report();
        assert_eq!(report.figures[0].steady, Some(true));
        assert!(!report.to_string().contains("warning"));
        let (engine, raw) = (Spread::of(vec![70.0, 75.0, 72.0]), Spread::of(vec![30.0, 300.0, 31.0]));
        let figure = Figure::beside("singles", "x", Unit::RecordsPerSecond, engine, raw);
        report.figures.push(figure.aim(Goal::RatioAtLeast(0.5)));
        assert_eq!(serde_json::to_value(&report).unwrap()["figures"][2]["steady"], false);
        assert!(report.to_string().contains("warning: the limit of singles varied"));
    }

    #[test]
    fn a_goal_is_told_in_the_unit_of_its_figure() {
        let mut report = report();
        for (unit, goal) in [
            (Unit::Percent, Goal::Below(80.0)),
            (Unit::Mebibytes, Goal::Below(12.5)),
            (Unit::Microseconds, Goal::Below(3.0)),
            (Unit::RecordsPerSecond, Goal::AtLeast(50_000.0)),
            (Unit::BytesPerSecond, Goal::AtLeast(f64::from(3 << 20))),
        ] {
            let figure = Figure::with_ratio("x", "y", unit, Spread::of(vec![79.0]), None, None);
            report.figures.push(figure.aim(goal));
        }
        let text = report.to_string();
        for goal in
            ["< 80 % ok", "< 12.5 MiB MISSED", "< 3 µs MISSED", "≥ 50,000 records/s MISSED", "≥ 3 MiB/s"]
        {
            assert!(text.contains(goal), "{goal}: {text}");
        }
    }

    #[test]
    fn the_table_says_what_was_missed() {
        let text = report().to_string();
        assert!(text.contains("0.80 (0.70 – 0.90)"), "{text}");
        assert!(text.contains("≥ 0.7 ok"), "{text}");
        assert!(text.contains("< 100 ms MISSED"), "{text}");
        assert!(text.contains("note: steady"), "{text}");
    }
}
