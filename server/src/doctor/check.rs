//! One thing that was looked at, and all of them as a report.

use std::fmt;

use anabranch_model::Error;
use serde::Serialize;

use crate::failure::{Failure, hint};
use crate::output::{table, table_text};
use crate::quantity::counted;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Finding {
    /// It is as it should be.
    Ok,
    /// It is in the way of some, and perhaps not of you.
    Warning,
    /// It does not work.
    Failed,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Check {
    pub(super) name: String,
    pub(super) result: Finding,
    pub(super) detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

impl Check {
    pub(super) fn ok(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Check { name: name.into(), result: Finding::Ok, detail: detail.into(), hint: None }
    }

    pub(super) fn failed(name: impl Into<String>, failure: &Failure) -> Self {
        let (detail, hint) = failure.words();
        Check { name: name.into(), result: Finding::Failed, detail, hint: Some(hint) }
    }

    /// What an attempt says about a thing: fine with this detail, or what went wrong.
    pub(super) fn of(name: impl Into<String>, attempt: Result<String, Error>) -> Self {
        match attempt {
            Ok(detail) => Check::ok(name, detail),
            Err(error) => Check {
                name: name.into(),
                result: Finding::Failed,
                detail: error.to_string(),
                hint: Some(hint(&error).to_owned()),
            },
        }
    }

    /// The same finding where not everybody needs the thing.
    pub(super) fn or_warning(self, hint: &str) -> Self {
        match self.result {
            Finding::Failed => Check { result: Finding::Warning, hint: Some(hint.to_owned()), ..self },
            Finding::Ok | Finding::Warning => self,
        }
    }
}

/// Everything that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) checks: Vec<Check>,
}

impl Report {
    /// Fails if something did.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let failed = self.checks.iter().filter(|check| check.result == Finding::Failed).count();
        if failed == 0 {
            return Ok(());
        }
        let all = counted(self.checks.len() as u64, "check");
        Err(Failure::new(
            "doctor",
            format!("{failed} of {all} failed"),
            "do what stands beside each, then run it again",
        ))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = table(&["CHECK", "RESULT", "DETAIL"], &[]);
        for check in &self.checks {
            let result = match check.result {
                Finding::Ok => "ok",
                Finding::Warning => "warning",
                Finding::Failed => "FAILED",
            };
            table.add_row([check.name.as_str(), result, &check.detail]);
            if let Some(hint) = &check.hint {
                table.add_row(["", "", &format!("-> {hint}")]);
            }
        }
        f.write_str(&table_text(&table))
    }
}
