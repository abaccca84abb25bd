//! `stream split` and `stream merge`.

use std::fmt;

use anabranch_model::{Error, HashKey, ShardGraph, ShardId, StreamName};
use clap::Args;
use serde::Serialize;

use super::Session;
use super::listing::all_shards;
use crate::failure::Failure;

/// Arguments of `stream split`.
#[derive(Debug, Args)]
pub(super) struct SplitArgs {
    /// The stream
    name: String,
    /// The shard to split; it must be open
    shard: String,
    /// The first hash key of the upper shard; the middle if not given
    #[arg(long, value_name = "HASHKEY")]
    at: Option<String>,
}

pub(super) async fn split(session: &Session<'_>, args: &SplitArgs) -> Result<(), Failure> {
    let (name, shard) = (StreamName::new(&args.name)?, ShardId::new(&args.shard)?);
    let at = match &args.at {
        Some(at) => at.parse()?,
        None => middle(session, &name, &shard).await?,
    };
    let children = session.store.split(&name, &shard, at).await?;
    session.output.print(&Resharded {
        stream: name.to_string(),
        verb: "split",
        closed: vec![shard.to_string()],
        opened: children.iter().map(ShardId::to_string).collect(),
        at: Some(at.to_string()),
    })
}

async fn middle(session: &Session<'_>, name: &StreamName, shard: &ShardId) -> Result<HashKey, Failure> {
    let graph = ShardGraph::new(all_shards(session.store, name).await?);
    let found = graph.get(shard).ok_or_else(|| Error::ShardNotFound(name.clone(), shard.clone()))?;
    if !found.is_open() {
        return Err(Error::ShardClosed(shard.clone()).into());
    }
    found.range.and_then(|range| range.midpoint()).ok_or_else(|| {
        Error::Invalid(format!("shard `{shard}` holds a single hash key: it cannot be split")).into()
    })
}

/// Arguments of `stream merge`.
#[derive(Debug, Args)]
pub(super) struct MergeArgs {
    /// The stream
    name: String,
    /// One shard; it must be open
    shard: String,
    /// The shard that begins where the first one ends, or ends where it begins
    neighbour: String,
}

pub(super) async fn merge(session: &Session<'_>, args: &MergeArgs) -> Result<(), Failure> {
    let name = StreamName::new(&args.name)?;
    let (shard, neighbour) = (ShardId::new(&args.shard)?, ShardId::new(&args.neighbour)?);
    let child = session.store.merge(&name, &shard, &neighbour).await?;
    session.output.print(&Resharded {
        stream: name.to_string(),
        verb: "merged",
        closed: vec![shard.to_string(), neighbour.to_string()],
        opened: vec![child.to_string()],
        at: None,
    })
}

#[derive(Serialize)]
struct Resharded {
    stream: String,
    #[serde(skip)]
    verb: &'static str,
    closed: Vec<String>,
    opened: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

impl fmt::Display for Resharded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Resharded { stream, verb, .. } = self;
        write!(
            f,
            "{verb} {} of stream {stream} into {}",
            self.closed.join(" and "),
            self.opened.join(" and ")
        )
    }
}
