//! The commands on queues. Each is written once, against [`QueueStore`], and works the same on a running server and on
//! a directory that nobody holds.

mod input;
mod listing;
mod manage;
mod receive;
mod redrive;
mod send;

use std::sync::Arc;

use anabranch_engine::SystemClock;
use anabranch_model::{Clock, QueueStore};
use clap::{Args, Subcommand};

use crate::command::DataArgs;
use crate::connect::{Connection, Missing};
use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `anabranch queue`.
#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(subcommand)]
    command: QueueCommand,
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    /// List the queues and how many messages they have
    Ls(listing::LsArgs),
    /// Make a queue
    ///
    /// A queue whose name ends in `.fifo` keeps the order of each group and recognises duplicates.
    Create(manage::CreateArgs),
    /// Send messages
    ///
    /// A batch whose answer gets lost is sent again, so a message may be there twice but is never left out.
    Send(send::SendArgs),
    /// Take messages and print them
    ///
    /// A message that is not deleted is visible to others again after a while.
    Receive(receive::ReceiveArgs),
    /// Move dead letters back to where they came from
    Redrive(redrive::RedriveArgs),
    /// Delete all messages of a queue
    Purge(manage::PurgeArgs),
    /// Remove a queue with all its messages
    Rm(manage::RmArgs),
}

/// What every command on queues works with.
struct Session<'a> {
    store: &'a dyn QueueStore,
    clock: &'a dyn Clock,
    output: Output,
}

/// Runs a command on queues.
pub(crate) fn run(args: &QueueArgs) -> Result<(), Failure> {
    let command = format!("anabranch queue {}", args.command.verb());
    args.data.run(&command, args.command.missing(), async |connection| run_command(args, connection).await)
}

async fn run_command(args: &QueueArgs, connection: &Connection) -> Result<(), Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let session =
        Session { store: connection.stores().queues()?, clock: &*clock, output: args.data.output() };
    match &args.command {
        QueueCommand::Ls(args) => listing::ls(&session, args).await,
        QueueCommand::Create(args) => manage::create(&session, args).await,
        QueueCommand::Send(args) => send::send(&session, args).await,
        QueueCommand::Receive(args) => receive::receive(&session, args).await,
        QueueCommand::Redrive(args) => redrive::redrive(&session, args).await,
        QueueCommand::Purge(args) => manage::purge(&session, args).await,
        QueueCommand::Rm(args) => manage::rm(&session, args).await,
    }
}

impl QueueCommand {
    fn verb(&self) -> &'static str {
        match self {
            QueueCommand::Ls(_) => "ls",
            QueueCommand::Create(_) => "create",
            QueueCommand::Send(_) => "send",
            QueueCommand::Receive(_) => "receive",
            QueueCommand::Redrive(_) => "redrive",
            QueueCommand::Purge(_) => "purge",
            QueueCommand::Rm(_) => "rm",
        }
    }

    /// Only a command that can succeed on an empty store makes one.
    fn missing(&self) -> Missing {
        match self {
            QueueCommand::Create(_) => Missing::Create,
            _ => Missing::Refuse,
        }
    }
}
