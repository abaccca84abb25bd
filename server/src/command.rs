//! What the commands on streams, queues, blobs and tables share: where the data is, how output looks, and an orderly end.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::backend::{EngineArgs, connect_aws};
use crate::config::DATA_DEFAULT;
use crate::connect::{Connection, Missing, connect};
use crate::emf::{Emf, MetricsFormat};
use crate::failure::Failure;
use crate::logging::{self, LogFormat};
use crate::output::Output;
use crate::runtime::{self, Signals};

/// What a command logs unless it is told otherwise. What the SDK finds noteworthy is in the error of the command.
pub(crate) const LOG_DEFAULT: &str = "warn,aws_config=off,aws_smithy_runtime=off,aws_runtime=off";

/// Arguments of every command on data.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// The data directory; if a server holds it, the command goes to that server
    #[arg(long, global = true, env = "ANABRANCH_DATA", default_value = DATA_DEFAULT, value_name = "DIR")]
    data: PathBuf,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    /// Also write metrics to standard output
    #[arg(long, global = true, env = "ANABRANCH_METRICS", value_enum, value_name = "FORMAT")]
    metrics: Option<MetricsFormat>,
    /// Print JSON for programs instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

impl DataArgs {
    /// Where the data is.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    pub(crate) fn output(&self) -> Output {
        Output { json: self.json }
    }

    /// Runs a command on the data. `command` is what another process is told that finds the directory in use.
    pub(crate) fn run(
        &self,
        command: &str,
        missing: Missing,
        work: impl AsyncFnOnce(&Connection) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.run_to_the_end(command, missing, LOG_DEFAULT, async |connection, mut signals| {
            tokio::select! {
                result = work(connection) => result,
                _ = signals.next() => Err(Failure::Interrupted),
            }
        })
    }

    /// The same for a command that has something to finish when a signal comes.
    pub(crate) fn run_to_the_end(
        &self,
        command: &str,
        missing: Missing,
        log: &str,
        work: impl AsyncFnOnce(&Connection, Signals) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let runtime = runtime::start()?;
        let result = runtime.block_on(async {
            logging::start(None, LogFormat::Text, log)?;
            let signals = Signals::take_over()?;
            let metrics = self.metrics.map(|MetricsFormat::Emf| Emf::start()).transpose()?;
            let connection = self.connect(command, missing).await?;
            let result = work(&connection, signals).await;
            // The directory is left in order whatever became of the command.
            let closed = connection.close().await;
            let told = metrics.map_or(Ok(()), Emf::finish);
            result.and(closed).and(told)
        });
        // A thread may still wait for standard input; it does not hold up the end.
        runtime.shutdown_background();
        result
    }

    async fn connect(&self, command: &str, missing: Missing) -> Result<Connection, Failure> {
        match self.engine.aws()? {
            Some(options) => Connection::aws(&connect_aws(options).await?, &self.engine),
            None => connect(&self.data, command, missing).await,
        }
    }
}
