//! `anabranch run`: bots of files, in a process of their own. The server runs bots in the same way (`up`).

mod running;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use anabranch_aws::{Aws, KeyspaceChanges};
use anabranch_bus::flow::{Flow, FlowError, Keyspaces, Ports};
use anabranch_engine::SystemClock;
use anabranch_model::Clock;
use clap::Args;

use crate::command::DataArgs;
use crate::connect::{Connection, Missing};
use crate::failure::Failure;
use crate::output;
use crate::runtime::Signals;
use crate::stores::Stores;

pub(crate) use self::running::Bots;

/// What documents call the region where there is none.
const REGION: &str = "us-east-1";
/// What is logged while bots run: every change of their state, and nothing of the SDK.
const LOG: &str = "info,aws_config=off,aws_smithy_runtime=off,aws_runtime=off";

/// Arguments of `anabranch run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Files that declare bots, in TOML
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Runs the bots of files until a signal ends them.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let flows = read_all(&args.files)?;
    args.data.run_to_the_end("anabranch run", Missing::Refuse, LOG, async |connection, signals| {
        run_flows(&flows, connection, signals).await
    })
}

async fn run_flows(flows: &[Flow], connection: &Connection, mut signals: Signals) -> Result<(), Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let ports = ports(connection.stores(), connection.cloud(), clock)?;
    let mut bots = Vec::new();
    for flow in flows {
        for bot in &flow.bots {
            bots.push(flow.assemble(bot, &ports).await?);
        }
    }
    let names: Vec<_> = bots.iter().map(|bot| bot.name().to_owned()).collect();
    let mut running = Bots::start(bots);
    // Bots whose output nobody reads still run.
    let _ = output::write_out(format!("anabranch runs {}\n", names.join(", ")).as_bytes());
    let ended = tokio::select! {
        ended = running.first_end() => ended,
        signal = signals.next() => {
            tracing::info!(signal, "stopping: bots finish what is under way");
            Ok(())
        }
    };
    tokio::select! {
        () = running.stop() => ended.map_err(Failure::from),
        _ = signals.next() => Err(Failure::Interrupted),
    }
}

/// Understands files with bots. No two bots have one name.
pub(crate) fn read_all(files: &[PathBuf]) -> Result<Vec<Flow>, Failure> {
    let mut names = BTreeSet::new();
    let mut flows = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::io("read the file with bots", file, &error))?;
        let flow = Flow::parse(&file.display().to_string(), &text)?;
        for bot in &flow.bots {
            if !names.insert(bot.name.get_ref().clone()) {
                return Err(Failure::usage(
                    format!("{}: another file has a bot `{}` too", file.display(), bot.name.get_ref()),
                    "give one of them another name",
                ));
            }
        }
        flows.push(flow);
    }
    Ok(flows)
}

/// What bots work on.
pub(crate) fn ports(stores: &Stores, aws: Option<&Aws>, clock: Arc<dyn Clock>) -> Result<Ports, Failure> {
    Ok(Ports {
        streams: stores.shared_streams()?,
        queues: stores.shared_queues()?,
        tables: stores.shared_tables()?,
        blobs: stores.shared_blobs()?,
        keyspaces: aws.map(keyspaces),
        clock,
        region: aws.map_or(REGION, Aws::region).to_owned(),
        steps: BTreeMap::new(),
    })
}

/// Keyspaces tells of changes by a service of its own.
fn keyspaces(aws: &Aws) -> Keyspaces {
    let changes = KeyspaceChanges::new(aws);
    let lister = changes.clone();
    Keyspaces {
        source: Arc::new(changes),
        streams_of: Arc::new(move |keyspace, table| {
            let lister = lister.clone();
            Box::pin(async move { lister.of_table(&keyspace, &table).await })
        }),
    }
}

impl From<FlowError> for Failure {
    fn from(error: FlowError) -> Self {
        Failure::usage(error.to_string(), error.hint)
    }
}
