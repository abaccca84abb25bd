//! What a comparison found, for people and for programs.

use std::collections::BTreeMap;
use std::fmt;

use anabranch_bus::archive::{Difference, Verification};
use anabranch_bus::flow::Archive;
use serde::Serialize;

use crate::output::{table, table_text};
use crate::quantity::counted;

/// Differences that a person is shown; programs get all.
const SHOWN_MAX: usize = 20;

/// A table and its archive, compared.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    table: String,
    bucket: String,
    prefix: String,
    rows: u64,
    blobs: u64,
    changes: u64,
    /// Those among them that are of an older table of this name.
    older: u64,
    /// Rows that changed while they were compared.
    moving: u64,
    found: BTreeMap<&'static str, u64>,
    differences: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    found: &'static str,
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<String>,
    what: String,
}

impl Report {
    pub(super) fn new(archive: &Archive, verification: &Verification) -> Self {
        let line = |difference: &Difference| Line {
            found: difference.found.word(),
            key: difference.key.clone(),
            sequence: difference.sequence.map(|sequence| sequence.to_string()),
            what: difference.what.clone(),
        };
        Report {
            table: archive.table.to_string(),
            bucket: archive.bucket.to_string(),
            prefix: archive.template.prefix(),
            rows: verification.rows,
            blobs: verification.blobs,
            changes: verification.documents,
            older: verification.older,
            moving: verification.moving,
            found: verification.counts.iter().map(|(found, count)| (found.word(), *count)).collect(),
            differences: verification.differences.iter().map(line).collect(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "table {}: {}; archive {}/{}: {} in {}",
            self.table,
            counted(self.rows, "row"),
            self.bucket,
            self.prefix,
            counted(self.changes, "change"),
            counted(self.blobs, "blob")
        )?;
        if self.older > 0 {
            let older = counted(self.older, "change");
            writeln!(
                f,
                "{older} from before the table was made, of an older one of its name, were not compared"
            )?;
        }
        if self.moving > 0 {
            writeln!(f, "{} changed meanwhile and prove nothing", counted(self.moving, "row"))?;
        }
        if self.found.is_empty() {
            return writeln!(f, "they tell the same");
        }
        let mut shown = table(&["found", "key", "sequence", "what"], &[]);
        for line in self.differences.iter().take(SHOWN_MAX) {
            shown.add_row([
                line.found,
                &crate::output::shown(line.key.as_bytes(), true),
                line.sequence.as_deref().unwrap_or("-"),
                &line.what,
            ]);
        }
        f.write_str(&table_text(&shown))?;
        let all: u64 = self.found.values().sum();
        match all.saturating_sub(SHOWN_MAX as u64) {
            0 => Ok(()),
            more => writeln!(f, "and {} more; --json shows them", counted(more, "difference")),
        }
    }
}
