//! How a command fails: one line that says what is wrong, one that says what to do next, and an exit code.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anabranch_model::{Error, NextMove};
use serde_json::json;

use crate::api::error::code;
use crate::quantity::counted;

/// The exit code of a call that must be changed.
const EXIT_USAGE: u8 = 2;
/// The exit code of everything else that went wrong.
const EXIT_FAILED: u8 = 1;
/// The exit code after Ctrl-C, as shells expect it.
const EXIT_INTERRUPTED: u8 = 130;

/// Why a command did not do all that was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something for a person to read.
    Told(Box<Told>),
    /// Whoever read the output has seen enough, as `| head` does. Nothing to say.
    BrokenPipe,
    /// A person pressed Ctrl-C and knows.
    Interrupted,
}

/// What a person reads.
#[derive(Debug)]
pub(crate) struct Told {
    code: &'static str,
    message: String,
    hint: String,
    exit: u8,
    /// What was stored before the failure, where a command stores many: how many, and what they are.
    stored: Option<(u64, &'static str)>,
}

impl Failure {
    /// The call is wrong and must be changed.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure::told("usage", message, hint, EXIT_USAGE)
    }

    /// Something outside the call is wrong.
    pub(crate) fn new(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure::told(code, message, hint, EXIT_FAILED)
    }

    fn told(code: &'static str, message: impl Into<String>, hint: impl Into<String>, exit: u8) -> Self {
        Failure::Told(Box::new(Told { code, message: message.into(), hint: hint.into(), exit, stored: None }))
    }

    /// A file or folder cannot be used.
    pub(crate) fn io(what: &str, path: &Path, error: &io::Error) -> Self {
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => "change its permissions, or choose another place",
            io::ErrorKind::NotFound => "check the path",
            io::ErrorKind::StorageFull => "free some space, or choose another place",
            _ => "check the path, or choose another place",
        };
        Failure::new("io", format!("cannot {what} {}: {error}", path.display()), hint)
    }

    /// The same failure with what it happened to in front.
    pub(crate) fn at(mut self, place: impl std::fmt::Display) -> Self {
        if let Failure::Told(told) = &mut self {
            told.message = format!("{place}: {}", told.message);
        }
        self
    }

    /// The same failure, which came after so many of these had been stored.
    pub(crate) fn after_storing(mut self, count: u64, one: &'static str) -> Self {
        if let Failure::Told(told) = &mut self {
            told.stored = Some((count, one));
        }
        self
    }

    /// What is wrong, and what to do about it.
    pub(crate) fn words(&self) -> (String, String) {
        match self {
            Failure::Told(told) => (told.message.clone(), told.hint.clone()),
            Failure::BrokenPipe | Failure::Interrupted => ("broken off".to_owned(), "try again".to_owned()),
        }
    }

    /// Tells a person, or a program if it asked for JSON, and returns the exit code.
    pub(crate) fn tell(self, json: bool) -> ExitCode {
        match self {
            Failure::BrokenPipe => ExitCode::SUCCESS,
            Failure::Interrupted => ExitCode::from(EXIT_INTERRUPTED),
            Failure::Told(told) => {
                let text = if json { told.json() } else { told.text() };
                // Nobody can be told that nobody can be told.
                let _ = io::stderr().write_all(text.as_bytes());
                ExitCode::from(told.exit)
            }
        }
    }
}

impl Told {
    fn text(&self) -> String {
        let stored = match self.stored {
            Some((count, one)) => format!("note: {} stored before that\n", counted(count, one)),
            None => String::new(),
        };
        format!("error: {}\n{stored}hint: {}\n", one_line(&self.message), one_line(&self.hint))
    }

    fn json(&self) -> String {
        let mut error = json!({ "code": self.code, "message": self.message, "hint": self.hint });
        if let Some((count, _)) = self.stored {
            error["stored"] = count.into();
        }
        format!("{}\n", json!({ "error": error }))
    }
}

/// A text as one line that cannot steer a terminal.
fn one_line(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error.next_move() {
            NextMove::FixCall => EXIT_USAGE,
            NextMove::Retry | NextMove::FixSetup | NextMove::Reopen | NextMove::Report => EXIT_FAILED,
        };
        Failure::told(code(&error), error.to_string(), hint(&error), exit)
    }
}

impl From<io::Error> for Failure {
    /// Of a failed write to standard output.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::BrokenPipe;
        }
        Failure::new("io", format!("cannot write the output: {error}"), "check where the output goes")
    }
}

/// What to do about an error.
pub(crate) fn hint(error: &Error) -> &'static str {
    match error {
        Error::Invalid(_) => "change the value and try again; nothing was changed",
        Error::StreamNotFound(_) => {
            "`anabranch stream ls` shows the streams, `anabranch stream create NAME` makes one"
        }
        Error::StreamExists(_) => "choose another name, or remove it with `anabranch stream rm NAME`",
        Error::ShardNotFound(..) | Error::ShardClosed(_) => {
            "`anabranch stream describe NAME` shows the shards and which of them are open"
        }
        Error::NotNeighbours(..) => {
            "`anabranch stream describe NAME` shows the shards in the order of their ranges"
        }
        Error::QueueNotFound(_) => {
            "`anabranch queue ls` shows the queues, `anabranch queue create NAME` makes one"
        }
        Error::QueueExists(_) => "choose another name, or remove it with `anabranch queue rm NAME`",
        Error::ReceiptInvalid(..) | Error::ReceiptExpired(_) | Error::NotInFlight(_) => {
            "receive the message again and use the receipt that comes with it"
        }
        Error::MoveNotRunning(_) => "look at the moves of the queue",
        Error::MoveRunning(_) => "wait until the move has ended, or cancel it",
        Error::InFlightLimit { .. } => "delete messages that were dealt with, then try again",
        Error::BucketNotFound(_) => {
            "`anabranch blob ls` shows the buckets, `anabranch blob create BUCKET` makes one"
        }
        Error::BucketExists(_) => "use it, or choose another name",
        Error::BucketNotEmpty(_) => "`anabranch blob rm BUCKET --recursive` removes it with its blobs",
        Error::BlobNotFound(..) => "`anabranch blob ls BUCKET` shows the keys",
        Error::PreconditionFailed(_) => "someone else was faster: look at the blob again and decide anew",
        Error::NotModified(_) => "there is nothing to do: use what you have",
        Error::RangeInvalid { .. } => "ask for bytes that the body has",
        Error::ChecksumMismatch(_) | Error::BodySizeMismatch { .. } => "send it again; nothing was changed",
        Error::BodyTooLarge { .. } => "send it in parts, as `anabranch blob put` does",
        Error::UploadNotFound(_) => "begin the upload anew",
        Error::PartNotFound(_) | Error::PartsOutOfOrder(..) | Error::PartTooSmall { .. } => {
            "list the parts of the upload, and put again what is missing"
        }
        Error::TableNotFound(_) => {
            "`anabranch table ls` shows the tables, `anabranch table create NAME --key id:S` makes one"
        }
        Error::IndexNotFound(..) => "`anabranch table ls` shows the tables and their indexes",
        Error::TableExists(_) => "choose another name, or remove it with `anabranch table rm NAME`",
        Error::StreamBusy(_) | Error::TableBusy(_) | Error::TransactionConflict => "try again in a moment",
        Error::ConditionFailed { .. } | Error::TransactionCancelled { .. } => {
            "read the items again and decide anew; nothing was changed"
        }
        Error::TokenReused => "send the transaction with a token of its own",
        Error::LimitExceeded(_) => "remove something first",
        Error::Throttled { .. } => "wait, split the shard, or switch `shard_limits` off in the configuration",
        Error::SlowDown { .. } => "wait, or call less often",
        Error::Denied { .. } => "let someone grant the permission to the credentials that are used",
        Error::Unauthenticated(_) => "renew the credentials, or set others",
        Error::Misconfigured(_) => "correct the setting that the message names",
        Error::Busy { .. } => "try again, or raise `memory` in the configuration of `anabranch up`",
        Error::DiskFull => "free some space; nothing that was acknowledged is lost",
        Error::Unavailable(_) => {
            "see whether `anabranch up` runs and what its log says, or let `anabranch doctor` look; then try again"
        }
        Error::Stopped(_) => {
            "start `anabranch up` again; its log says why it stopped. A directory that is open for reading only comes back from a \
             backup: `anabranch restore`"
        }
        Error::Damaged { .. } => "go on with `anabranch stream tail NAME --from` the number after it",
        Error::Corrupt(_) => {
            "keep a copy of the data directory, and restore it from a backup if there is one"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_and_a_hint() {
        let Failure::Told(told) =
            Failure::usage("bad\nname \u{1b}[31m", "look").after_storing(1_000, "record")
        else {
            panic!("it is for people");
        };
        assert_eq!(
            told.text(),
            "error: bad\\nname \\u{1b}[31m\nnote: 1,000 records stored before that\nhint: look\n"
        );
        let json: serde_json::Value = serde_json::from_str(&told.json()).unwrap();
        assert_eq!(json["error"]["stored"], 1_000);
        assert_eq!(json["error"]["code"], "usage");
    }
}
