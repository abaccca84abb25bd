//! What is wrong with a flow, where, and what to do about it.

use std::fmt;
use std::ops::Range;

/// A flow cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowError {
    /// The file.
    pub file: String,
    /// The line, counted from one.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for FlowError {}

/// A file, for those who say where in it something is wrong.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) file: String,
    pub(super) text: String,
}

impl Text {
    pub(super) fn error(
        &self,
        at: Range<usize>,
        message: impl fmt::Display,
        hint: impl Into<String>,
    ) -> FlowError {
        let before = self.text.get(..at.start).unwrap_or(&self.text);
        FlowError {
            file: self.file.clone(),
            line: 1 + before.matches('\n').count(),
            message: message.to_string(),
            hint: hint.into(),
        }
    }
}
