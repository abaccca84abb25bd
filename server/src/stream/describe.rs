//! `stream describe`: a stream, its shards, and who came from whom.

use std::fmt;

use anabranch_model::{HashRange, Shard, ShardGraph, ShardId, StreamName};
use clap::Args;
use serde::{Serialize, Serializer};

use super::Session;
use super::lineage;
use super::listing::{StreamReport, all_shards};
use crate::failure::Failure;
use crate::output::{table, table_text};
use crate::quantity::{grouped, rfc3339};

/// Arguments of `stream describe`.
#[derive(Debug, Args)]
pub(super) struct DescribeArgs {
    /// The stream
    name: String,
}

pub(super) async fn describe(session: &Session<'_>, args: &DescribeArgs) -> Result<(), Failure> {
    let name = StreamName::new(&args.name)?;
    let summary = session.store.stream(&name).await?;
    let graph = ShardGraph::new(all_shards(session.store, &name).await?);
    let shards = lineage::tree(&graph)
        .into_iter()
        .map(|line| ShardReport::new(&graph, line.shard, line.branch))
        .collect();
    session.output.print(&StreamDescription { stream: StreamReport::from(&summary), shards })
}

#[derive(Serialize)]
struct StreamDescription {
    #[serde(flatten)]
    stream: StreamReport,
    /// Parents before children.
    shards: Vec<ShardReport>,
}

#[derive(Serialize)]
struct ShardReport {
    id: String,
    state: &'static str,
    #[serde(serialize_with = "as_texts")]
    parents: Vec<ShardId>,
    #[serde(serialize_with = "as_texts")]
    children: Vec<ShardId>,
    range: Option<RangeReport>,
    starts_at: String,
    ends_before: Option<String>,
    closed_at: Option<String>,
    #[serde(skip)]
    branch: String,
}

#[derive(Serialize)]
struct RangeReport {
    first: String,
    last: String,
    /// The part of all hash keys before the first one, from 0 to 1.
    begin: f64,
    /// The part of all hash keys, from 0 to 1.
    share: f64,
}

impl ShardReport {
    fn new(graph: &ShardGraph, shard: &Shard, branch: String) -> Self {
        ShardReport {
            id: shard.id.to_string(),
            state: if shard.is_open() { "open" } else { "closed" },
            parents: shard.parents.clone(),
            children: graph.children_of(&shard.id).into_iter().cloned().collect(),
            range: shard.range.map(RangeReport::from),
            starts_at: shard.starts_at.to_string(),
            ends_before: shard.ends_before.map(|number| number.to_string()),
            closed_at: shard.closed_at.map(rfc3339),
            branch,
        }
    }
}

impl From<HashRange> for RangeReport {
    fn from(range: HashRange) -> Self {
        let keys = (range.last().get() - range.first().get()) as f64 + 1.0;
        RangeReport {
            first: range.first().to_string(),
            last: range.last().to_string(),
            begin: range.first().get() as f64 / 2f64.powi(128),
            share: keys / 2f64.powi(128),
        }
    }
}

impl fmt::Display for StreamDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stream = &self.stream;
        writeln!(f, "stream     {}", stream.name)?;
        writeln!(f, "created    {}", stream.created_at)?;
        writeln!(f, "retention  {}", stream.retention())?;
        let count = |number: usize| grouped(number as u64);
        writeln!(
            f,
            "shards     {} open, {} closed\n",
            count(stream.open_shards),
            count(stream.closed_shards)
        )?;
        let headings =
            ["SHARD", "STATE", "KEYS FROM", "SHARE", "PARENTS", "CHILDREN", "STARTS AT", "ENDS BEFORE"];
        let mut table = table(&headings, &[2, 3]);
        for shard in &self.shards {
            table.add_row([
                format!("{}{}", shard.branch, shard.id),
                shard.state.to_owned(),
                shard.range.as_ref().map_or_else(nothing, |range| percent(range.begin)),
                shard.range.as_ref().map_or_else(nothing, |range| percent(range.share)),
                joined(&shard.parents),
                joined(&shard.children),
                shard.starts_at.clone(),
                shard.ends_before.clone().unwrap_or_else(nothing),
            ]);
        }
        f.write_str(&table_text(&table))
    }
}

fn as_texts<S: Serializer>(ids: &[ShardId], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ids.iter().map(ShardId::as_str))
}

fn nothing() -> String {
    "-".to_owned()
}

/// Shards in the space of a column: numbered ones begin alike, so the end of their number is enough.
fn joined(ids: &[ShardId]) -> String {
    let short = |id: &ShardId| id.number().map_or_else(|| id.to_string(), |number| format!("…{number:03}"));
    if ids.is_empty() { nothing() } else { ids.iter().map(short).collect::<Vec<_>>().join(" ") }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.01 { "<0.01 %".to_owned() } else { format!("{percent:.2} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parts_of_the_whole_space() {
        let shares: Vec<String> =
            HashRange::even(3).into_iter().map(|range| percent(RangeReport::from(range).share)).collect();
        assert_eq!(shares, ["33.33 %"; 3]);
        assert_eq!(percent(RangeReport::from(HashRange::ALL).share), "100.00 %");
        assert_eq!(percent(1e-30), "<0.01 %");
    }
}
