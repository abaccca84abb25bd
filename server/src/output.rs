//! What a command prints: a text for people, or JSON for programs. Reports are types that can do both.

use std::fmt::Display;
use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::failure::Failure;

/// Where reports go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
}

impl Output {
    /// Prints a report: one line of JSON, or the text it displays as.
    pub(crate) fn print<R: Serialize + Display>(self, report: &R) -> Result<(), Failure> {
        let mut text = if self.json {
            serde_json::to_string(report).map_err(io::Error::from)?
        } else {
            report.to_string()
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        write_out(text.as_bytes())
    }
}

/// Writes to standard output, all of it and at once.
pub(crate) fn write_out(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()?;
    Ok(())
}

/// A remark for a person, beside the output.
pub(crate) fn note(text: impl Display) {
    // Nobody can be told that standard error is closed.
    let _ = writeln!(io::stderr(), "note: {text}");
}

/// A table without lines, as wide as it needs to be: it is copied, searched and cut by other programs.
pub(crate) fn table(headings: &[&str], right_aligned: &[usize]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(headings);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for index in right_aligned {
        if let Some(column) = table.column_mut(*index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A table as text without blanks at the ends of its lines.
pub(crate) fn table_text(table: &Table) -> String {
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
