//! `anabranch doctor`: whether everything is in place, and what to do about what is not.
//!
//! What must hold: nothing is written or taken away, and the answer comes within seconds, whatever does not answer.

mod aws;
mod check;
mod embedded;
mod named;

use anabranch_engine::SystemClock;
use anabranch_model::Clock;
use clap::Args;

use crate::command::DataArgs;
use crate::failure::Failure;
use crate::logging::{self, LogFormat};
use crate::runtime;
use check::Report;

/// Arguments of `anabranch doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    named: NamedArgs,
}

/// What is going to be used.
#[derive(Debug, Args)]
pub(crate) struct NamedArgs {
    /// A stream that must be there and readable; may be given several times
    #[arg(long = "stream", value_name = "NAME")]
    streams: Vec<String>,
    /// A queue that must be there
    #[arg(long = "queue", value_name = "NAME")]
    queues: Vec<String>,
    /// A table that must be there
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// A bucket that must be there and can be listed
    #[arg(long = "bucket", value_name = "NAME")]
    buckets: Vec<String>,
}

/// Looks at everything and tells what it found. It fails if something is wrong.
pub(crate) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let runtime = runtime::start()?;
    let result = runtime.block_on(async {
        logging::start(None, LogFormat::Text, "off")?;
        let clock = SystemClock::new();
        let checks = match args.data.engine.aws()? {
            Some(options) => aws::examine(options, &args.named, &clock as &dyn Clock).await,
            None => embedded::examine(args.data.data(), &args.named).await,
        };
        let report = Report { checks };
        args.data.output().print(&report)?;
        report.verdict()
    });
    runtime.shutdown_background();
    result
}
