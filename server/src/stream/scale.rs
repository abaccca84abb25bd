//! `stream scale` and `stream traffic`: what goes into the shards of a stream, and what is done about it.

use std::fmt;
use std::path::{Path, PathBuf};

use anabranch_model::{StreamName, TableName};
use anabranch_producer::scaler::{
    Decision, Observed, ObservedShard, Scaler, ScalerSettings, ScalerTable, TABLE_DEFAULT,
};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::Session;
use crate::failure::Failure;
use crate::output::{note, table, table_text};
use crate::quantity::grouped;
use crate::runtime::pause;

/// Arguments of `stream scale`.
#[derive(Debug, Args)]
pub(super) struct ScaleArgs {
    /// The stream
    name: String,
    /// Say what would be done now and why, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Do what is to be done now and end, in place of going on
    #[arg(long, conflicts_with = "dry_run")]
    once: bool,
    /// A file in TOML whose section [traffic_monitor] sets thresholds and times
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

/// Arguments of `stream traffic`.
#[derive(Debug, Args)]
pub(super) struct TrafficArgs {
    /// The stream
    name: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Place {
    /// The table in which producers tell their traffic
    #[arg(long, default_value = TABLE_DEFAULT, value_name = "NAME")]
    table: String,
}

/// What of a configuration file a scaler reads; the rest is for others.
#[derive(Default, Deserialize)]
struct File {
    #[serde(default)]
    traffic_monitor: ScalerSettings,
}

fn settings(path: Option<&Path>) -> Result<ScalerSettings, Failure> {
    let Some(path) = path else { return Ok(ScalerSettings::default()) };
    let refuse = |why: String| {
        Failure::usage(
            format!("{}: {why}", path.display()),
            "see the section on scaling in the README for what can be set",
        )
    };
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    let file: File = toml::from_str(&text).map_err(|error| refuse(error.to_string()))?;
    file.traffic_monitor.check().map_err(|error| refuse(error.to_string()))?;
    Ok(file.traffic_monitor)
}

async fn scaler(
    session: &Session<'_>,
    name: &StreamName,
    place: &Place,
    settings: ScalerSettings,
    make: bool,
) -> Result<Scaler, Failure> {
    session.store.stream(name).await?;
    let (streams, tables) = (session.stores.shared_streams()?, session.stores.shared_tables()?);
    let table = TableName::new(&place.table)?;
    let table = match make {
        true => ScalerTable::open(tables, table).await?,
        false => ScalerTable::existing(tables, table),
    };
    let process = format!("scale-{}", std::process::id());
    let seed = u64::from(std::process::id()) ^ session.clock.now().as_millis();
    Ok(Scaler::new(streams, table, name.clone(), &process, settings, session.shared_clock.clone(), seed)?)
}

pub(super) async fn scale(session: &Session<'_>, args: &ScaleArgs) -> Result<(), Failure> {
    let (name, settings) = (StreamName::new(&args.name)?, settings(args.config.as_deref())?);
    let mut scaler = scaler(session, &name, &args.place, settings, !args.dry_run).await?;
    if args.dry_run {
        let observed = scaler.observe().await?;
        let decisions = anabranch_producer::scaler::plan(&observed, &settings);
        return session.output.print(&Plan::new(&name, &observed, decisions, &settings, false));
    }
    loop {
        match scaler.pass().await {
            Ok(None) if args.once => note("another process scales this stream; nothing was done"),
            Ok(None) => {}
            Ok(Some(decisions))
                if args.once || decisions.iter().any(|decision| decision.action.changes()) =>
            {
                let observed = scaler.observe().await?;
                session.output.print(&Plan::new(&name, &observed, decisions, &settings, true))?;
            }
            Ok(Some(_)) => {}
            Err(error) if args.once => return Err(error.into()),
            Err(error) => note(format!("{error}; trying on")),
        }
        if args.once {
            return scaler.release().await.map_err(Failure::from);
        }
        pause(settings.interval_length).await;
    }
}

pub(super) async fn traffic(session: &Session<'_>, args: &TrafficArgs) -> Result<(), Failure> {
    let (name, settings) = (StreamName::new(&args.name)?, ScalerSettings::default());
    let mut scaler = scaler(session, &name, &args.place, settings, false).await?;
    let observed = scaler.observe().await?;
    session.output.print(&Plan::new(&name, &observed, Vec::new(), &settings, false))
}

#[derive(Serialize)]
struct Plan {
    stream: String,
    shards: Vec<ShardLine>,
    decisions: Vec<DecisionLine>,
    #[serde(skip)]
    done: bool,
}

#[derive(Serialize)]
struct ShardLine {
    shard: String,
    first: String,
    last: String,
    /// Whether a process tells its traffic.
    known: bool,
    bytes_per_second: f64,
    records_per_second: f64,
    throttles: u64,
    /// The worse of bytes and records as a part of the capacity.
    usage: f64,
    active_submissions: u64,
    heaviest_key: Option<String>,
}

#[derive(Serialize)]
struct DecisionLine {
    kind: &'static str,
    action: String,
    why: String,
    usage: f64,
    bytes: f64,
    records: f64,
    demand: f64,
    threshold: f64,
    throttles: u64,
}

impl Plan {
    fn new(
        name: &StreamName,
        observed: &Observed,
        decisions: Vec<Decision>,
        settings: &ScalerSettings,
        done: bool,
    ) -> Self {
        let mut shards: Vec<_> =
            observed.shards.iter().map(|shard| ShardLine::new(shard, settings)).collect();
        shards.sort_by(|a, b| b.usage.total_cmp(&a.usage));
        let line = |decision: Decision| DecisionLine {
            kind: decision.action.word(),
            action: decision.action.to_string(),
            why: decision.why,
            usage: decision.figures.usage,
            bytes: decision.figures.bytes,
            records: decision.figures.records,
            demand: decision.figures.demand,
            threshold: decision.figures.threshold,
            throttles: decision.figures.throttles,
        };
        Plan { stream: name.to_string(), shards, decisions: decisions.into_iter().map(line).collect(), done }
    }
}

impl ShardLine {
    fn new(shard: &ObservedShard, settings: &ScalerSettings) -> Self {
        let period = settings.observation_period.as_secs().max(1);
        let sum = shard.traffic.as_ref().map(|traffic| traffic.sum(period as usize)).unwrap_or_default();
        let heaviest = shard.traffic.as_ref().and_then(|traffic| {
            let hitters = traffic.sketch.hitters().iter().filter(|hitter| hitter.sure().records > 0.0);
            hitters.max_by(|a, b| a.sure().records.total_cmp(&b.sure().records)).map(|hitter| hitter.key)
        });
        ShardLine {
            shard: shard.shard.to_string(),
            first: shard.range.first().to_string(),
            last: shard.range.last().to_string(),
            known: shard.traffic.is_some(),
            bytes_per_second: sum.bytes as f64 / period as f64,
            records_per_second: sum.records as f64 / period as f64,
            throttles: sum.throttles,
            usage: sum.usage(settings.capacity()) / period as f64,
            active_submissions: shard.traffic.as_ref().map_or(0, |traffic| traffic.active),
            heaviest_key: heaviest.map(|key| key.to_string()),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headings = ["SHARD", "USED", "KIB/S", "RECORDS/S", "THROTTLED", "GROUPS", "HEAVIEST KEY"];
        let mut rows = table(&headings, &[1, 2, 3, 4, 5]);
        for shard in &self.shards {
            let figure = |value: String| if shard.known { value } else { "-".to_owned() };
            rows.add_row([
                shard.shard.clone(),
                figure(format!("{:.1} %", shard.usage * 100.0)),
                figure(format!("{:.1}", shard.bytes_per_second / 1024.0)),
                figure(grouped(shard.records_per_second.round() as u64)),
                figure(grouped(shard.throttles)),
                figure(grouped(shard.active_submissions)),
                figure(shard.heaviest_key.clone().unwrap_or_else(|| "-".to_owned())),
            ]);
        }
        f.write_str(&table_text(&rows))?;
        if !self.shards.iter().any(|shard| shard.known) {
            writeln!(
                f,
                "\nnobody tells the traffic of stream {}: a producer does while it runs",
                self.stream
            )?;
        }
        let tense = if self.done { "done" } else { "to do" };
        for decision in &self.decisions {
            writeln!(f, "\n{tense}: {}\n  {}", decision.action, decision.why)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ScalerSettings, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scale.toml");
        std::fs::write(&path, text).unwrap();
        settings(Some(&path)).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn the_keys_of_the_file_have_the_names_that_people_know() {
        let text = "[submission_worker]\nvisibility_timeout = 60\n[traffic_monitor]\nmax_capacity = 1_000_000.0\n\
                    split_usage_threshold = 0.8\nsplit_tp_error_threshold = 2\nmerge_usage_threshold = 0.001\n\
                    merge_tp_error_threshold = 0\nobservation_period = 10\ninterval_length = 1\nentry_lifetime = 60\n";
        let read = read(text).unwrap();
        assert_eq!(read, ScalerSettings { merge_usage_threshold: 0.001, ..ScalerSettings::default() });
    }

    #[test]
    fn what_contradicts_itself_is_refused_with_the_file() {
        let error = read("[traffic_monitor]\nmerge_usage_threshold = 0.9\n").unwrap_err();
        assert!(error.contains("scale.toml") && error.contains("`merge_usage_threshold` (0.9)"), "{error}");
        let error = read("[traffic_monitor]\nmerge_usage = 0.9\n").unwrap_err();
        assert!(error.contains("unknown field `merge_usage`"), "{error}");
        assert!(settings(Some(Path::new("/no/such/file"))).is_err());
    }
}
