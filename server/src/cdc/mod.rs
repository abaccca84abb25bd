//! `anabranch cdc`: whether the archive of a table's changes tells the same as the table.

mod report;

use std::path::PathBuf;
use std::sync::Arc;

use anabranch_bus::archive::{Pair, verify};
use anabranch_engine::SystemClock;
use anabranch_model::Clock;
use clap::{Args, Subcommand};

use crate::bots;
use crate::command::DataArgs;
use crate::connect::{Connection, Missing};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::quantity::counted;
use report::Report;

/// Arguments of `anabranch cdc`.
#[derive(Debug, Args)]
pub(crate) struct CdcArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(subcommand)]
    command: CdcCommand,
}

#[derive(Debug, Subcommand)]
enum CdcCommand {
    /// Find rows that are missing, duplicated or altered in the archive of a table
    ///
    /// The table is read as a whole and so is its archive; both may be larger than memory. What is compared lies in files
    /// meanwhile, where TMPDIR says. It fails if anything differs.
    Verify(VerifyArgs),
}

#[derive(Debug, Args)]
struct VerifyArgs {
    /// The file that declares the bot
    file: PathBuf,
    /// The bot, if the file has several
    #[arg(long, value_name = "NAME")]
    bot: Option<String>,
    /// The archive began when the table had rows already: rows that it says nothing about are no difference
    #[arg(long)]
    partial: bool,
}

/// Runs a command on archives.
pub(crate) fn run(args: &CdcArgs) -> Result<(), Failure> {
    let CdcCommand::Verify(verify) = &args.command;
    let flows = bots::read_all(std::slice::from_ref(&verify.file))?;
    args.data.run("anabranch cdc verify", Missing::Refuse, async |connection| {
        for flow in &flows {
            compare(args, verify, flow, connection).await?;
        }
        Ok(())
    })
}

async fn compare(
    args: &CdcArgs,
    choice: &VerifyArgs,
    flow: &anabranch_bus::flow::Flow,
    connection: &Connection,
) -> Result<(), Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let ports = bots::ports(connection.stores(), connection.cloud(), clock.clone())?;
    let archive = flow.archive(flow.bot(choice.bot.as_deref())?, &ports).await?;
    let mut progress = Progress::new(&*clock, None);
    let pair = Pair {
        tables: &*ports.tables,
        table: &archive.table,
        blobs: &*ports.blobs,
        bucket: &archive.bucket,
        template: &archive.template,
        documents: &archive.documents,
        partial: choice.partial,
    };
    let verification = verify(&pair, &mut |rows, documents| {
        progress.show(0, || format!("{}, {}", counted(rows, "row"), counted(documents, "change")));
    })
    .await?;
    progress.finish();
    let report = Report::new(&archive, &verification);
    args.data.output().print(&report)?;
    if verification.is_clean() {
        return Ok(());
    }
    let differences = verification.counts.values().sum();
    Err(Failure::new(
        "differs",
        format!("table {} and its archive differ in {}", archive.table, counted(differences, "place")),
        "if the bot lags behind, wait until it has caught up and compare again; --partial is for an archive that began late",
    ))
}
