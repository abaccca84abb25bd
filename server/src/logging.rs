//! Structured logs on standard error. Standard output belongs to results.

use std::io;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Starts logging. `filter` is a level or a directive as in `RUST_LOG`, which counts if there is no filter.
pub(crate) fn start(filter: Option<&str>, format: LogFormat, default: &str) -> Result<(), Failure> {
    let wanted = match filter {
        Some(filter) => filter.to_owned(),
        None => std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default(),
    };
    let wanted = if wanted.trim().is_empty() { default.to_owned() } else { wanted };
    let filter = EnvFilter::try_new(&wanted).map_err(|error| {
        Failure::usage(
            format!("log filter `{wanted}` is not understood: {error}"),
            "use error, warn, info, debug or trace, or a directive such as anabranch_engine=debug",
        )
    })?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match format {
        LogFormat::Text => logs.with_ansi(io::IsTerminal::is_terminal(&io::stderr())).try_init(),
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| Failure::new("log", format!("logging cannot start: {error}"), "report this"))
}
