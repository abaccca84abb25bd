//! The commands on streams. Each is written once, against [`StreamStore`], and works the same on a running server
//! and on a directory that nobody holds.

mod describe;
mod lineage;
mod listing;
mod manage;
mod put;
mod reshard;
mod scale;
mod tail;

use std::sync::Arc;

use anabranch_engine::SystemClock;
use anabranch_model::{Clock, StreamStore};
use clap::{Args, Subcommand};

pub(crate) use self::tail::RecordReport;

use crate::command::DataArgs;
use crate::connect::{Connection, Missing};
use crate::failure::Failure;
use crate::output::Output;
use crate::stores::Stores;

/// Arguments of `anabranch stream`.
#[derive(Debug, Args)]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(subcommand)]
    command: StreamCommand,
}

#[derive(Debug, Subcommand)]
enum StreamCommand {
    /// List the streams
    Ls,
    /// Make a stream
    Create(manage::CreateArgs),
    /// Show a stream with its shards and who came from whom
    Describe(describe::DescribeArgs),
    /// Store records
    ///
    /// A batch whose answer gets lost is sent again, so a record may be stored twice but is never left out.
    Put(put::PutArgs),
    /// Print records, and go on as they come
    Tail(tail::TailArgs),
    /// Split a shard in two
    Split(reshard::SplitArgs),
    /// Merge two neighbouring shards into one
    Merge(reshard::MergeArgs),
    /// Split and merge shards as the load of the stream demands, until Ctrl-C
    ///
    /// It acts on the traffic that producers tell. Of several processes that scale a stream one acts.
    Scale(scale::ScaleArgs),
    /// Show what producers send to each shard
    Traffic(scale::TrafficArgs),
    /// Change how long records are kept
    Retention(manage::RetentionArgs),
    /// Remove a stream with all its records
    Rm(manage::RmArgs),
}

/// What every command on streams works with.
struct Session<'a> {
    store: &'a dyn StreamStore,
    stores: &'a Stores,
    /// Whether others can write while the command reads.
    shared: bool,
    clock: &'a dyn Clock,
    shared_clock: Arc<dyn Clock>,
    output: Output,
}

/// Runs a command on streams.
pub(crate) fn run(args: &StreamArgs) -> Result<(), Failure> {
    let command = format!("anabranch stream {}", args.command.verb());
    args.data.run(&command, args.command.missing(), async |connection| run_command(args, connection).await)
}

async fn run_command(args: &StreamArgs, connection: &Connection) -> Result<(), Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let session = Session {
        store: connection.stores().streams()?,
        stores: connection.stores(),
        shared: connection.is_shared(),
        clock: &*clock,
        shared_clock: clock.clone(),
        output: args.data.output(),
    };
    match &args.command {
        StreamCommand::Ls => listing::ls(&session).await,
        StreamCommand::Create(args) => manage::create(&session, args).await,
        StreamCommand::Describe(args) => describe::describe(&session, args).await,
        StreamCommand::Put(args) => put::put(&session, args).await,
        StreamCommand::Tail(args) => tail::tail(&session, args).await,
        StreamCommand::Split(args) => reshard::split(&session, args).await,
        StreamCommand::Merge(args) => reshard::merge(&session, args).await,
        StreamCommand::Scale(args) => scale::scale(&session, args).await,
        StreamCommand::Traffic(args) => scale::traffic(&session, args).await,
        StreamCommand::Retention(args) => manage::retention(&session, args).await,
        StreamCommand::Rm(args) => manage::rm(&session, args).await,
    }
}

impl StreamCommand {
    fn verb(&self) -> &'static str {
        match self {
            StreamCommand::Ls => "ls",
            StreamCommand::Create(_) => "create",
            StreamCommand::Describe(_) => "describe",
            StreamCommand::Put(_) => "put",
            StreamCommand::Tail(_) => "tail",
            StreamCommand::Split(_) => "split",
            StreamCommand::Merge(_) => "merge",
            StreamCommand::Scale(_) => "scale",
            StreamCommand::Traffic(_) => "traffic",
            StreamCommand::Retention(_) => "retention",
            StreamCommand::Rm(_) => "rm",
        }
    }

    /// Only a command that can succeed on an empty store makes one.
    fn missing(&self) -> Missing {
        match self {
            StreamCommand::Create(_) => Missing::Create,
            _ => Missing::Refuse,
        }
    }
}
