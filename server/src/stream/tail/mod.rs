//! `stream tail`: prints the records of a stream, and goes on as they come.
//!
//! ```text
//!   plan ── which shard may be read now ──▶ cursors, many at a time ── batches ──▶ printer
//!     ▲                                       │
//!     └────────── a shard has ended ──────────┘
//! ```
//!
//! What must hold: no child is read before its parents have ended, so records of one key are printed in order.

mod cursor;
mod plan;
mod printer;
mod run;
mod start;

use anabranch_model::{ShardId, StreamName};
use clap::Args;

use self::plan::Plan;
use self::printer::Printer;
pub(crate) use self::printer::RecordReport;
use self::run::Run;
use self::start::Start;
use super::Session;
use super::listing::all_shards;
use crate::failure::Failure;
use crate::output::note;

/// Arguments of `stream tail`.
#[derive(Debug, Args)]
pub(super) struct TailArgs {
    /// The stream
    name: String,
    /// Where to start: trim-horizon (the oldest record), latest (only new ones), a time (RFC 3339, or `10m ago`),
    /// or a sequence number
    #[arg(long, default_value = "trim-horizon", value_name = "START")]
    from: String,
    /// Only this shard
    #[arg(long, value_name = "ID")]
    shard: Option<String>,
    /// Stop after so many records
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Stop at the end of what is there
    #[arg(long)]
    no_follow: bool,
}

pub(super) async fn tail(session: &Session<'_>, args: &TailArgs) -> Result<(), Failure> {
    let name = StreamName::new(&args.name)?;
    let start = Start::parse(&args.from, session.clock.now())?;
    let only = args.shard.as_deref().map(ShardId::new).transpose()?;
    let plan = Plan::new(all_shards(session.store, &name).await?, &name, start, only)?;
    let printer = Printer::new(session.output.json, args.limit);
    let follows = !args.no_follow && session.shared;
    let was_cut = Run::new(session, &name, plan, printer, follows).finish().await?;
    if !args.no_follow && !session.shared && !was_cut {
        note("no server holds the data directory, so nothing new can come: this is all there is");
    }
    Ok(())
}
