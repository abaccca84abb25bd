//! The commands on consumers: who reads which shard, and how far. They look at the tables only, so they work beside
//! workers in any process and in any language.

mod listing;
mod place;
mod run;

use std::sync::Arc;

use anabranch_consumer::{Application, Checkpoint, Lease, Leftover, StreamChoice, leftovers};
use anabranch_engine::SystemClock;
use anabranch_model::{
    Clock, ShardId, ShardSource, StreamName, StreamStore, TableName, TableStore, Timestamp,
};
use clap::{Args, Subcommand};
use serde::Serialize;

use self::place::Place;
use crate::command::{DataArgs, LOG_DEFAULT};
use crate::confirm::confirm;
use crate::connect::{Connection, Missing};
use crate::failure::Failure;
use crate::output::{Output, note};
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
    /// Read a stream as a worker of an application, and print the records
    ///
    /// Shards are shared with every other worker of the application, Java's included. What is printed is done with. A
    /// signal ends it in good order: checkpoints are written and leases let go.
    Run(run::RunArgs),
    #[command(flatten)]
    Look(LookCommand),
}

/// What is done from outside.
#[derive(Debug, Subcommand)]
enum LookCommand {
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
    /// List applications that nobody works for, with their tables
    ///
    /// An application whose workers are stopped is among them: its tables hold how far it has come, so they are removed
    /// only by name.
    Gc {
        /// Only these applications
        applications: Vec<TableName>,
        /// Remove their tables
        #[arg(long, requires = "applications")]
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
    /// The stream of an application that reads only one: its records tell which numbers a time is, and its older shards
    /// get leases again
    #[arg(long, value_name = "NAME")]
    stream: Option<StreamName>,
}

struct Session {
    tables: Arc<dyn TableStore>,
    output: Output,
}

/// Runs a command on consumers.
pub(crate) fn run(args: &ConsumerArgs) -> Result<(), Failure> {
    let output = args.data.output();
    match &args.command {
        ConsumerCommand::Run(args_of_run) => args.data.run_to_the_end(
            "anabranch consumer run",
            Missing::Refuse,
            LOG_DEFAULT,
            async |connection, signals| {
                let session = Session { tables: connection.stores().shared_tables()?, output };
                run::run(&session, connection.stores().shared_streams()?, args_of_run, signals).await
            },
        ),
        ConsumerCommand::Look(command) => {
            args.data.run("anabranch consumer", Missing::Refuse, async |connection| {
                let session = Session { tables: connection.stores().shared_tables()?, output };
                look(&session, command, connection).await
            })
        }
    }
}

async fn look(session: &Session, command: &LookCommand, connection: &Connection) -> Result<(), Failure> {
    match command {
        LookCommand::Ls => listing::ls(session).await,
        LookCommand::Leases { application } => listing::leases(session, application).await,
        LookCommand::Checkpoint { application, lease, to } => {
            set(session, &connection.stores().shared_streams()?, application, Some(lease), to).await
        }
        LookCommand::Rewind { application, to } => {
            set(session, &connection.stores().shared_streams()?, application, None, to).await
        }
        LookCommand::Gc { applications, delete, yes } => gc(session, applications, *delete, *yes).await,
    }
}

/// What was set.
#[derive(Debug, Serialize)]
struct SetReport {
    application: String,
    leases: usize,
    /// Leases of older shards that were made again.
    revived: usize,
}

impl std::fmt::Display for SetReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "set {} of {}", counted(self.leases as u64, "checkpoint"), self.application)?;
        match self.revived {
            0 => Ok(()),
            revived => write!(f, ", and made {} for older shards", counted(revived as u64, "lease")),
        }
    }
}

async fn set(
    session: &Session,
    streams: &Arc<dyn StreamStore>,
    name: &TableName,
    lease: Option<&str>,
    to: &PlaceArgs,
) -> Result<(), Failure> {
    let now = SystemClock::new().now();
    let place = Place::parse(&to.place, now)?;
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
        let stream = lease.stream_name().or_else(|| to.stream.clone());
        wanted.push((&lease.key, place.checkpoint(&**streams, lease, stream.as_ref()).await?));
    }
    // Every place is known before the first is set; older shards come first, for their children wait for them.
    let revived = match (lease, place.since()) {
        (None, Some(since)) => revive(&application, streams, &leases, to, (since, now)).await?,
        _ => 0,
    };
    for (key, checkpoint) in &wanted {
        application.set_checkpoint(key, *checkpoint).await?;
    }
    session.output.print(&SetReport { application: name.to_string(), leases: wanted.len(), revived })
}

/// Makes leases for shards that had none any more. Returns how many.
async fn revive(
    application: &Application,
    streams: &Arc<dyn StreamStore>,
    leases: &[Lease],
    to: &PlaceArgs,
    (since, now): (Timestamp, Timestamp),
) -> Result<usize, Failure> {
    let source: Arc<dyn ShardSource> = streams.clone();
    let mut choices = Vec::new();
    for lease in leases {
        let Some(name) = lease.stream_name().or_else(|| to.stream.clone()) else { continue };
        let choice = StreamChoice { name, identifier: lease.stream.clone() };
        if !choices.contains(&choice) {
            choices.push(choice);
        }
    }
    if choices.is_empty() {
        let lost = |parent: &ShardId| leases.iter().all(|lease| lease.key != parent.as_str());
        if leases.iter().flat_map(|lease| &lease.parents).any(lost) {
            note(
                "the leases of older shards were removed, so they are not read again; --stream NAME brings them back",
            );
        }
    }
    let mut revived = 0;
    for choice in &choices {
        revived += application.revive(&source, choice, since, now).await?.len();
    }
    Ok(revived)
}

/// An application that nobody works for.
#[derive(Debug, Serialize)]
struct UnusedReport {
    application: String,
    tables: Vec<String>,
}

#[derive(Debug, Serialize)]
struct GcReport {
    unused: Vec<UnusedReport>,
    deleted: bool,
}

impl std::fmt::Display for GcReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.unused.is_empty() {
            return f.write_str("every application has workers");
        }
        let verb = if self.deleted { "removed" } else { "nobody works for" };
        self.unused
            .iter()
            .try_for_each(|unused| writeln!(f, "{verb} {}: {}", unused.application, unused.tables.join(", ")))
    }
}

async fn gc(session: &Session, wanted: &[TableName], delete: bool, yes: bool) -> Result<(), Failure> {
    let mut unused = leftovers(&session.tables).await?;
    for name in wanted {
        if unused.iter().all(|found| found.application != *name) {
            return Err(Failure::usage(
                format!("application {name} has workers, or does not exist"),
                "`anabranch consumer ls` shows the applications; stop the workers first",
            ));
        }
    }
    unused.retain(|found| wanted.is_empty() || wanted.contains(&found.application));
    if delete {
        let tables: Vec<_> = unused.iter().flat_map(|found| &found.tables).collect();
        if !yes {
            let count = counted(tables.len() as u64, "table");
            confirm("removing tables", &format!("Remove {count} with all their checkpoints?")).await?;
        }
        for table in tables {
            session.tables.delete_table(table).await?;
        }
    }
    let report = |found: &Leftover| UnusedReport {
        application: found.application.to_string(),
        tables: found.tables.iter().map(TableName::to_string).collect(),
    };
    session.output.print(&GcReport { unused: unused.iter().map(report).collect(), deleted: delete })
}
