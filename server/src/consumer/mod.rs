//! The commands on consumers: who reads which shard, and how far. They look at the tables only, so they work beside
//! workers in any process and in any language.

mod listing;
mod place;

use std::sync::Arc;

use anabranch_consumer::{Application, Checkpoint, leftovers};
use anabranch_engine::SystemClock;
use anabranch_model::{Clock, StreamName, StreamStore, TableName, TableStore};
use clap::{Args, Subcommand};
use serde::Serialize;

use self::place::Place;
use crate::command::DataArgs;
use crate::confirm::confirm;
use crate::connect::{Connection, Missing};
use crate::failure::Failure;
use crate::output::Output;
use crate::quantity::counted;

/// Arguments of `anabranch consumer`.
#[derive(Debug, Args)]
pub(crate) struct ConsumerArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(subcommand)]
    command: ConsumerCommand,
}

#[derive(Debug, Subcommand)]
enum ConsumerCommand {
    /// List the applications that have leases
    Ls,
    /// Show the leases of an application
    Leases {
        /// The application: the name of its table of leases
        application: TableName,
    },
    /// Set how far one shard is processed, while workers run
    ///
    /// Its worker loses the lease, and whoever takes it next begins there.
    Checkpoint {
        /// The application: the name of its table of leases
        application: TableName,
        /// The lease, as `consumer leases` shows it
        lease: String,
        #[command(flatten)]
        to: PlaceArgs,
    },
    /// Set how far all shards are processed, while workers run
    Rewind {
        /// The application: the name of its table of leases
        application: TableName,
        #[command(flatten)]
        to: PlaceArgs,
    },
    /// List tables of applications that nobody works for
    Gc {
        /// Remove them
        #[arg(long)]
        delete: bool,
        /// Do not ask
        #[arg(long, requires = "delete")]
        yes: bool,
    },
}

#[derive(Debug, Args)]
struct PlaceArgs {
    /// `trim-horizon`, `latest`, a sequence number to begin with, or a time such as 2026-01-31T12:00:00Z or `10m ago`
    #[arg(value_name = "PLACE")]
    place: String,
    /// The stream, where the place is a time: its records tell which numbers that is
    #[arg(long)]
    stream: Option<StreamName>,
}

struct Session {
    tables: Arc<dyn TableStore>,
    output: Output,
}

/// Runs a command on consumers.
pub(crate) fn run(args: &ConsumerArgs) -> Result<(), Failure> {
    args.data
        .run("anabranch consumer", Missing::Refuse, async |connection| run_command(args, connection).await)
}

async fn run_command(args: &ConsumerArgs, connection: &Connection) -> Result<(), Failure> {
    let session = Session { tables: connection.stores().shared_tables()?, output: args.data.output() };
    match &args.command {
        ConsumerCommand::Ls => listing::ls(&session).await,
        ConsumerCommand::Leases { application } => listing::leases(&session, application).await,
        ConsumerCommand::Checkpoint { application, lease, to } => {
            let streams = connection.stores().streams()?;
            set(&session, streams, application, Some(lease), to).await
        }
        ConsumerCommand::Rewind { application, to } => {
            set(&session, connection.stores().streams()?, application, None, to).await
        }
        ConsumerCommand::Gc { delete, yes } => gc(&session, *delete, *yes).await,
    }
}

/// What was set.
#[derive(Debug, Serialize)]
struct SetReport {
    application: String,
    leases: usize,
}

impl std::fmt::Display for SetReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "set {} of {}", counted(self.leases as u64, "checkpoint"), self.application)
    }
}

async fn set(
    session: &Session,
    streams: &dyn StreamStore,
    name: &TableName,
    lease: Option<&str>,
    to: &PlaceArgs,
) -> Result<(), Failure> {
    let place = Place::parse(&to.place, to.stream.as_ref(), SystemClock::new().now())?;
    let application = Application::open(session.tables.clone(), name).await?;
    let mut leases = application.leases().await?;
    leases.retain(|found| lease.is_none_or(|lease| found.key == lease));
    if leases.is_empty() {
        return Err(Failure::usage(
            match lease {
                Some(lease) => format!("application {name} has no lease `{lease}`"),
                None => format!("application {name} has no leases"),
            },
            format!("`anabranch consumer leases {name}` shows those that there are"),
        ));
    }
    let mut wanted: Vec<(&str, Checkpoint)> = Vec::new();
    for lease in &leases {
        wanted.push((&lease.key, place.checkpoint(streams, lease).await?));
    }
    // Every place is known before the first is set.
    for (key, checkpoint) in &wanted {
        application.set_checkpoint(key, *checkpoint).await?;
    }
    session.output.print(&SetReport { application: name.to_string(), leases: wanted.len() })
}

/// Tables that nobody works for.
#[derive(Debug, Serialize)]
struct GcReport {
    tables: Vec<String>,
    deleted: bool,
}

impl std::fmt::Display for GcReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.tables.is_empty() {
            return f.write_str("no table is unused");
        }
        let verb = if self.deleted { "removed" } else { "unused:" };
        self.tables.iter().try_for_each(|table| writeln!(f, "{verb} {table}"))
    }
}

async fn gc(session: &Session, delete: bool, yes: bool) -> Result<(), Failure> {
    let unused = leftovers(&session.tables).await?;
    if delete && !unused.is_empty() {
        if !yes {
            let count = counted(unused.len() as u64, "table");
            confirm("removing tables", &format!("Remove {count} with all their checkpoints?")).await?;
        }
        for table in &unused {
            session.tables.delete_table(table).await?;
        }
    }
    session
        .output
        .print(&GcReport { tables: unused.iter().map(TableName::to_string).collect(), deleted: delete })
}
