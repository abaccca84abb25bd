//! The command line: what can be asked for, and who does it.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::backup::{BackupArgs, RestoreArgs};
use crate::bench::BenchArgs;
use crate::blob::BlobArgs;
use crate::bots::RunArgs;
use crate::cdc::CdcArgs;
use crate::consumer::ConsumerArgs;
use crate::doctor::DoctorArgs;
use crate::failure::Failure;
use crate::fleet::FleetArgs;
use crate::policy::PolicyArgs;
use crate::queue::QueueArgs;
use crate::stream::StreamArgs;
use crate::table::TableArgs;
use crate::up::UpArgs;
use crate::{
    backup, bench, blob, bots, cdc, consumer, doctor, fleet, output, policy, queue, stream, table, up,
};

/// An event bus in one binary: durable, ordered, sharded streams.
///
/// Without a command it starts the server, as `anabranch up` does.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    up: UpArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server on a data directory
    Up(UpArgs),
    /// Make, write, read and reshard streams
    Stream(StreamArgs),
    /// Make queues, and send and receive messages
    Queue(QueueArgs),
    /// Make buckets, and store and read blobs
    Blob(BlobArgs),
    /// Copy everything of a moment to another directory, while the server goes on
    Backup(BackupArgs),
    /// Make a data directory of a backup
    Restore(RestoreArgs),
    /// Make tables, and write, find and watch items
    Table(TableArgs),
    /// Run the bots of files until a signal ends them
    Run(RunArgs),
    /// Compare tables with the archives of their changes
    Cdc(CdcArgs),
    /// Play a fleet of sensors that send submissions to a queue
    Fleet(FleetArgs),
    /// See who reads which shard and how far, and set it
    Consumer(ConsumerArgs),
    /// See whether everything is in place, and what to do about what is not
    ///
    /// Nothing is written or taken away. With --engine aws: region, credentials, and whether each service answers and
    /// allows what is asked; otherwise the data directory and the server that holds it.
    Doctor(DoctorArgs),
    /// Print the smallest policy of AWS that allows what is named
    IamPolicy(PolicyArgs),
    /// Measure the engine beside the limit of this machine
    Bench(BenchArgs),
    /// Print the completions of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Does what the command line asks for.
pub(crate) fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let (result, json) = match cli.command {
        None => (up::run(&cli.up), false),
        Some(Command::Up(args)) => (up::run(&args), false),
        Some(Command::Stream(args)) => (stream::run(&args), args.data.json),
        Some(Command::Queue(args)) => (queue::run(&args), args.data.json),
        Some(Command::Blob(args)) => (blob::run(&args), args.data.json),
        Some(Command::Backup(args)) => (backup::make(&args), args.data.json),
        Some(Command::Restore(args)) => (backup::restore(&args), args.data.json),
        Some(Command::Table(args)) => (table::run(&args), args.data.json),
        Some(Command::Run(args)) => (bots::run(&args), args.data.json),
        Some(Command::Cdc(args)) => (cdc::run(&args), args.data.json),
        Some(Command::Fleet(args)) => (fleet::run(&args), args.data.json),
        Some(Command::Consumer(args)) => (consumer::run(&args), args.data.json),
        Some(Command::Doctor(args)) => (doctor::run(&args), args.data.json),
        Some(Command::IamPolicy(args)) => (policy::run(&args), false),
        Some(Command::Bench(args)) => (bench::run(&args), args.json),
        Some(Command::Completions { shell }) => (completions(shell), false),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(json),
    }
}

/// Shows help or the version, or says what is wrong with the command line.
fn refuse(error: &clap::Error) -> ExitCode {
    let wanted = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    // The arguments could not be parsed, so whether JSON is wanted is a guess.
    if !wanted && std::env::args_os().any(|argument| argument == "--json") {
        let text = error.to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        return Failure::usage(message, "`anabranch --help` shows what is possible").tell(true);
    }
    match error.print() {
        Ok(()) => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
        Err(error) => Failure::from(error).tell(false),
    }
}

fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "anabranch", &mut script);
    output::write_out(&script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_command_means_up() {
        let cli = Cli::try_parse_from(["anabranch", "--listen", "127.0.0.1:0"]).unwrap();
        assert!(cli.command.is_none());
        assert!(cli.up.listen.is_some());
    }
}
