//! `anabranch backup`: the target is made absolute here, because the server may stand in another directory.

use std::path::PathBuf;

use anabranch_engine::SystemClock;
use anabranch_model::{Clock, Error};
use clap::Args;
use futures_util::StreamExt;

use super::report::CopyReport;
use crate::command::DataArgs;
use crate::connect::{Connection, Missing};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::quantity::Size;

/// What is said about a backup of AWS, and what to do in its place.
pub(crate) const NOT_OF_AWS: &str = "a backup is a copy of a data directory, and AWS has none";
pub(crate) const INSTEAD: &str =
    "use the backups of the services: point-in-time recovery of DynamoDB, versions of S3";

/// Arguments of `anabranch backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// Where the backup goes: a directory that is empty or does not exist
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// Makes a backup.
pub(crate) fn run(args: &BackupArgs) -> Result<(), Failure> {
    args.data.engine.directory_only(NOT_OF_AWS, INSTEAD)?;
    args.data.run("anabranch backup", Missing::Refuse, async |connection| back_up(args, connection).await)
}

async fn back_up(args: &BackupArgs, connection: &Connection) -> Result<(), Failure> {
    let clock = SystemClock::new();
    let target = std::path::absolute(&args.target)
        .map_err(|error| Failure::io("use the target", &args.target, &error))?;
    let mut lines = connection.back_up(&target).await?;
    let mut progress = None;
    while let Some(line) = lines.next().await {
        let line = line?;
        if let Some(error) = line.error {
            return Err(Error::from(error).into());
        }
        if let Some(contents) = line.done {
            drop(progress);
            return args.data.output().print(&CopyReport::new(&target, contents, clock.elapsed()));
        }
        let (copied, total) = (line.copied_bytes, line.total_bytes);
        let shown = progress.get_or_insert_with(|| Progress::new(&clock, Some(total)));
        shown.show_of(copied, total, || format!("{} of {}", Size(copied), Size(total)));
    }
    Err(Error::Unavailable("the backup broke off".to_owned()).into())
}
