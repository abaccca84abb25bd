//! `anabranch bench`: the engine beside the limit of the machine it runs on, in one run.
//!
//! What must hold: an absolute figure says more about the machine and its neighbours than about the engine, so every
//! figure is a ratio to a raw limit that is measured in turn with it, round by round. The raw side does the least that
//! any engine has to do with the same bytes; it knows nothing of frames, shards or locks. Where the machine has nothing
//! of the kind, as for messages, the limit is what the same engine does at its best: appends, or an empty queue.
//!
//! | file | what it owns |
//! |---|---|
//! | `append`, `read`, `follow`, `open`, `produce`, `queue`, `table`, `blob`, `cdc`, `consumer`, `scaling`, `telemetry`, `aws`, `wire` | one bench each: what is done in a round, and which figures come of it |
//! | `subject` | the engine under test, brought into its steady state |
//! | `recording` | a disk that notes the sizes of the engine's writes |
//! | `tasks` | tasks that do the same at the same time |
//! | `writers`, `cycles`, `items` | what such tasks do with streams, queues and tables |
//! | `raw` | the limit: plain files, one thread |
//! | `plain_files`, `plain_rows` | the limits of blobs and of queries: files that take their place, a redb database |
//! | `stub`, `answers` | a server of AWS's protocols that answers at once, and what it says |
//! | `process` | `anabranch up` as a process |
//! | `statistics`, `report`, `machine` | medians, the table and the JSON, where the figures come from |
//! | `options`, `scale`, `place`, `progress` | the command line, the folder, the bar |

mod append;
mod aws;
mod blob;
mod cdc;
mod consumer;
mod follow;
mod open;
mod produce;
mod queue;
mod read;
mod scaling;
mod table;
mod telemetry;
mod wire;

mod answers;
mod cycles;
mod items;
mod process;
mod queue_round;
mod recording;
mod stub;
mod subject;
mod tasks;
mod writers;

mod plain_files;
mod plain_rows;
mod raw;

mod machine;
mod report;
mod statistics;

mod options;
mod place;
mod progress;
mod scale;

use clap::{Args, Subcommand};

use crate::backend::EngineName;
use crate::failure::Failure;
use crate::logging::{self, LogFormat};
use crate::output::Output;
use crate::runtime::{self, Signals};
use options::Bounds;
use place::Place;
use report::Report;
use scale::Scale;
use wire::WireArgs;

/// Arguments of `anabranch bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Print JSON for programs instead of a table for people
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    bounds: Bounds,
    /// Taken to say that there is only one
    #[arg(long, global = true, hide = true, env = "ANABRANCH_ENGINE", value_enum, default_value_t)]
    engine: EngineName,
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum BenchCommand {
    /// Append records, beside plain writes and syncs of the same sizes
    Append,
    /// Read records back from the page cache, beside plain reads with a checksum
    Read,
    /// Time from a put to its follower, beside a plain write and sync
    Follow,
    /// Time until a server answers and its memory when idle, beside plain files
    Open,
    /// Send, receive and delete messages, beside appends and beside an empty queue
    Queue(Scale),
    /// Update and query items, beside appends and beside plain reads of a redb database
    Table(Scale),
    /// Put blobs, beside plain files that are written, synced and renamed
    Blob,
    /// Changes of a table into blobs, beside appends and beside plain files
    Cdc,
    /// Records through a producer, beside appends of the same records
    Produce,
    /// Submissions from a queue into a stream, beside the same steps without stores
    Telemetry(Scale),
    /// Splits that a scaler needs, at the median of the load beside the middle of the range
    Scale,
    /// Read with leases, beside bare reads; and how soon a worker begins, hands over and is replaced
    Consumer,
    /// What the stores on AWS cost, beside bare calls of the SDK
    Aws,
    /// A server of AWS's protocols by its clients, beside servers that others wrote
    Wire(WireArgs),
}

/// What every bench works with.
struct Setting<'a> {
    bounds: &'a Bounds,
    place: &'a Place,
}

/// Runs a bench and prints its report.
pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    args.bounds.check()?;
    if args.engine == EngineName::Aws && !matches!(args.command, BenchCommand::Aws) {
        return Err(Failure::usage(
            "a bench measures the embedded engine beside the limits of this machine, and AWS runs elsewhere",
            "`anabranch bench aws` measures what the stores on AWS cost this machine; otherwise leave --engine aws (and \
             ANABRANCH_ENGINE) out",
        ));
    }
    let runtime = runtime::start()?;
    let result = runtime.block_on(run_until_signal(args));
    // A raw round may still be on its way after Ctrl-C; its files are gone already.
    runtime.shutdown_background();
    result
}

async fn run_until_signal(args: &BenchArgs) -> Result<(), Failure> {
    // What goes wrong is a failure of the bench; after Ctrl-C the engine would log that its folder is gone.
    logging::start(None, LogFormat::Text, "off")?;
    let mut signals = Signals::take_over()?;
    let place = Place::make(args.bounds.dir.as_deref())?;
    let setting = Setting { bounds: &args.bounds, place: &place };
    let report = tokio::select! {
        report = measure(&args.command, &setting) => report?,
        _ = signals.next() => return Err(Failure::Interrupted),
    };
    Output { json: args.json }.print(&report)
}

async fn measure(command: &BenchCommand, setting: &Setting<'_>) -> Result<Report, Failure> {
    match command {
        BenchCommand::Append => append::measure(setting).await,
        BenchCommand::Aws => aws::measure(setting).await,
        BenchCommand::Read => read::measure(setting).await,
        BenchCommand::Follow => follow::measure(setting).await,
        BenchCommand::Produce => produce::measure(setting).await,
        BenchCommand::Telemetry(scale) => telemetry::measure(setting, *scale).await,
        BenchCommand::Scale => scaling::measure(setting).await,
        BenchCommand::Open => open::measure(setting).await,
        BenchCommand::Queue(scale) => queue::measure(setting, *scale).await,
        BenchCommand::Table(scale) => table::measure(setting, *scale).await,
        BenchCommand::Blob => blob::measure(setting).await,
        BenchCommand::Cdc => cdc::measure(setting).await,
        BenchCommand::Consumer => consumer::measure(setting).await,
        BenchCommand::Wire(args) => wire::measure(setting, args).await,
    }
}

/// Runs what waits for the disk on a thread where waiting is allowed.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Failure::new("bench", format!("a round did not end: {error}"), "report this"))
}
