//! The commands on tables. Each is written once, against [`TableStore`], and works the same on a running server and on a
//! directory that nobody holds.

mod changes;
mod input;
mod manage;
mod plain;
mod read;
mod write;

use anabranch_model::TableStore;
use clap::{Args, Subcommand};

use self::plain::Form;
use crate::command::DataArgs;
use crate::connect::{Connection, Missing};
use crate::failure::Failure;
use crate::output::Output;

/// Arguments of `anabranch table`.
#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Read and print values with their kinds, as in {"id": {"S": "a"}, "n": {"N": "1"}}: so sets and binaries can be told
    #[arg(long, global = true)]
    tagged: bool,
    #[command(subcommand)]
    command: TableCommand,
}

#[derive(Debug, Subcommand)]
enum TableCommand {
    /// List the tables
    Ls,
    /// Make a table
    Create(manage::CreateArgs),
    /// Print an item
    Get(read::GetArgs),
    /// Write items
    ///
    /// An item is a JSON object. One with the same key is replaced.
    Put(write::PutArgs),
    /// Change parts of an item, or make it
    Update(write::UpdateArgs),
    /// Delete an item
    Delete(write::DeleteArgs),
    /// Print the items with one hash value, in the order of their range values
    Query(read::QueryArgs),
    /// Print all items
    Scan(read::ScanArgs),
    /// Print what has changed
    Changes(changes::ChangesArgs),
    /// Remove a table with all its items
    Rm(manage::RmArgs),
}

/// What every command on tables works with.
struct Session<'a> {
    store: &'a dyn TableStore,
    /// Whether others can write meanwhile.
    shared: bool,
    form: Form,
    output: Output,
}

/// Runs a command on tables.
pub(crate) fn run(args: &TableArgs) -> Result<(), Failure> {
    let command = format!("anabranch table {}", args.command.verb());
    args.data.run(&command, args.command.missing(), async |connection| run_command(args, connection).await)
}

async fn run_command(args: &TableArgs, connection: &Connection) -> Result<(), Failure> {
    let session = Session {
        store: connection.stores().tables()?,
        shared: connection.is_shared(),
        form: if args.tagged { Form::Tagged } else { Form::Plain },
        output: args.data.output(),
    };
    match &args.command {
        TableCommand::Ls => manage::ls(&session).await,
        TableCommand::Create(args) => manage::create(&session, args).await,
        TableCommand::Get(args) => read::get(&session, args).await,
        TableCommand::Put(args) => write::put(&session, args).await,
        TableCommand::Update(args) => write::update(&session, args).await,
        TableCommand::Delete(args) => write::delete(&session, args).await,
        TableCommand::Query(args) => read::query(&session, args).await,
        TableCommand::Scan(args) => read::scan(&session, args).await,
        TableCommand::Changes(args) => changes::changes(&session, args).await,
        TableCommand::Rm(args) => manage::rm(&session, args).await,
    }
}

impl TableCommand {
    fn verb(&self) -> &'static str {
        match self {
            TableCommand::Ls => "ls",
            TableCommand::Create(_) => "create",
            TableCommand::Get(_) => "get",
            TableCommand::Put(_) => "put",
            TableCommand::Update(_) => "update",
            TableCommand::Delete(_) => "delete",
            TableCommand::Query(_) => "query",
            TableCommand::Scan(_) => "scan",
            TableCommand::Changes(_) => "changes",
            TableCommand::Rm(_) => "rm",
        }
    }

    /// Only a command that can succeed on an empty store makes one.
    fn missing(&self) -> Missing {
        match self {
            TableCommand::Create(_) => Missing::Create,
            _ => Missing::Refuse,
        }
    }
}
