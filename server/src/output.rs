//! What a command prints: a text for people, or JSON for programs. Reports are types that can do both.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{self, IsTerminal, Write};

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

/// Bytes of lines that are written at once. A batch of records is larger than the caches of a processor.
const PORTION_BYTES: usize = 64 << 10;

/// Records or messages as lines on standard output: payloads as text, or one JSON object each.
pub(crate) struct Lines {
    json: bool,
    /// Whether a terminal would obey control characters.
    terminal: bool,
    /// What is not written yet.
    bytes: Vec<u8>,
}

impl Lines {
    pub(crate) fn new(json: bool) -> Self {
        Lines { json, terminal: io::stdout().is_terminal(), bytes: Vec::new() }
    }

    /// Adds a line, and writes what has come together if it is much.
    pub(crate) fn push<R: Serialize>(
        &mut self,
        payload: &[u8],
        report: impl FnOnce() -> R,
    ) -> Result<(), Failure> {
        if self.json {
            serde_json::to_writer(&mut self.bytes, &report()).map_err(io::Error::from)?;
        } else {
            self.bytes.extend_from_slice(shown(payload, self.terminal).as_bytes());
        }
        self.bytes.push(b'\n');
        if self.bytes.len() < PORTION_BYTES { Ok(()) } else { self.flush() }
    }

    /// Writes what is left.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        let written = if self.bytes.is_empty() { Ok(()) } else { write_out(&self.bytes) };
        self.bytes.clear();
        // One long line does not keep its memory.
        self.bytes.shrink_to(2 * PORTION_BYTES);
        written
    }
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

/// A payload as text. Bytes that are not UTF-8 become `\xNN`, and so do, on a terminal, characters that it would obey.
pub(crate) fn shown(data: &[u8], terminal: bool) -> Cow<'_, str> {
    match std::str::from_utf8(data) {
        Ok(text) if !terminal || !text.contains(steers) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(data, terminal)),
    }
}

fn escaped(data: &[u8], terminal: bool) -> String {
    let mut text = String::with_capacity(data.len());
    for chunk in data.utf8_chunks() {
        for c in chunk.valid().chars() {
            if terminal && steers(c) {
                text.extend(c.escape_default());
            } else {
                text.push(c);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Control characters except the tab, and marks that change the direction of what follows.
fn steers(c: char) -> bool {
    c.is_control() && c != '\t' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_cannot_steer_a_terminal() {
        assert_eq!(shown(b"plain \xc3\xa4\ttab", true), "plain ä\ttab");
        assert_eq!(shown(b"\x1b[31mred\r\n", true), "\\u{1b}[31mred\\r\\n");
        assert_eq!(shown("\u{202e}drow".as_bytes(), true), "\\u{202e}drow");
        assert_eq!(shown(b"\x1b[31mred", false), "\x1b[31mred");
        assert_eq!(shown(b"a\xff\x00", false), "a\\xff\0");
    }
}
