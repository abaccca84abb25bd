//! What a backup or a restore says at its end.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::api::wire::ContentsBody;
use crate::output::{table, table_text};
use crate::quantity::Size;

/// What was copied, where to, and how long it took.
#[derive(Serialize)]
pub(super) struct CopyReport {
    target: String,
    #[serde(flatten)]
    contents: ContentsBody,
    seconds: f64,
}

impl CopyReport {
    pub(super) fn new(target: &Path, contents: ContentsBody, taken: Duration) -> Self {
        let seconds = (taken.as_secs_f64() * 1000.0).round() / 1000.0;
        CopyReport { target: target.display().to_string(), contents, seconds }
    }
}

impl fmt::Display for CopyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contents = &self.contents;
        let mut rows = table(
            &["BYTES", "STREAMS", "QUEUES", "TABLES", "BUCKETS", "SECONDS", "TARGET"],
            &[0, 1, 2, 3, 4, 5],
        );
        rows.add_row([
            Size(contents.bytes).to_string(),
            contents.streams.to_string(),
            contents.queues.to_string(),
            contents.tables.to_string(),
            contents.buckets.to_string(),
            format!("{:.1}", self.seconds),
            self.target.clone(),
        ]);
        f.write_str(&table_text(&rows))?;
        if contents.lost_bodies > 0 {
            write!(f, "{} bodies of blobs were missing before, and still are", contents.lost_bodies)?;
        }
        Ok(())
    }
}
