//! The commands on blobs. Each is written once, against [`BlobStore`], and works the same on a running server and on a
//! directory that nobody holds.

mod get;
mod listing;
mod place;
mod put;
mod remove;

use std::sync::Arc;

use anabranch_engine::SystemClock;
use anabranch_model::{BlobStore, Clock};
use clap::{Args, Subcommand};

use crate::command::DataArgs;
use crate::connect::{Connection, Missing};
use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `anabranch blob`.
#[derive(Debug, Args)]
pub(crate) struct BlobArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(subcommand)]
    command: BlobCommand,
}

#[derive(Debug, Subcommand)]
enum BlobCommand {
    /// List the buckets, or the blobs of a bucket
    Ls(listing::LsArgs),
    /// Make a bucket
    Create(listing::CreateArgs),
    /// Store a file or standard input as a blob
    Put(put::PutArgs),
    /// Write a blob to a file or to standard output
    ///
    /// A file is replaced when all of the blob is there, and not before.
    Get(get::GetArgs),
    /// Remove a blob, everything below a prefix, or a bucket
    Rm(remove::RmArgs),
}

/// What every command on blobs works with.
struct Session<'a> {
    store: &'a dyn BlobStore,
    clock: &'a dyn Clock,
    output: Output,
}

/// Runs a command on blobs.
pub(crate) fn run(args: &BlobArgs) -> Result<(), Failure> {
    let command = format!("anabranch blob {}", args.command.verb());
    args.data.run(&command, args.command.missing(), async |connection| run_command(args, connection).await)
}

async fn run_command(args: &BlobArgs, connection: &Connection) -> Result<(), Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let session = Session { store: connection.stores().blobs()?, clock: &*clock, output: args.data.output() };
    match &args.command {
        BlobCommand::Ls(args) => listing::ls(&session, args).await,
        BlobCommand::Create(args) => listing::create(&session, args).await,
        BlobCommand::Put(args) => put::put(&session, args).await,
        BlobCommand::Get(args) => get::get(&session, args).await,
        BlobCommand::Rm(args) => remove::rm(&session, args).await,
    }
}

impl BlobCommand {
    fn verb(&self) -> &'static str {
        match self {
            BlobCommand::Ls(_) => "ls",
            BlobCommand::Create(_) => "create",
            BlobCommand::Put(_) => "put",
            BlobCommand::Get(_) => "get",
            BlobCommand::Rm(_) => "rm",
        }
    }

    /// Only a command that can succeed on an empty store makes one.
    fn missing(&self) -> Missing {
        match self {
            BlobCommand::Create(_) => Missing::Create,
            _ => Missing::Refuse,
        }
    }
}
