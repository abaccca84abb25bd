//! `bench produce`: records one by one through a producer, beside appends of the same records in batches that are made
//! already; and through a producer that speaks to a server.

use std::sync::Arc;

use anabranch_aws::{AccessKey, Aws, AwsOptions, Streams};
use anabranch_engine::SystemClock;
use anabranch_model::{StreamName, StreamOptions, StreamStore};
use anabranch_producer::{Producer, Settings};

use super::Setting;
use super::machine::{Machine, processor_us};
use super::process::Server;
use super::progress::Progress;
use super::report::{Figure, Goal, Report, Unit};
use super::statistics::Spread;
use super::subject::Subject;
use super::writers::{self, Load, Payloads, Written};
use crate::failure::Failure;

const SHARDS: usize = 8;
/// As in `bench append`.
const BATCHES: Load = Load { writers: 8, records: 500 };
const GOAL: f64 = 0.8;
/// Records a second with a server in between.
const WIRE_GOAL: f64 = 50_000.0;
/// What an aggregate holds at most in the case with aggregates.
const AGGREGATE_BYTES: usize = 51_200;

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Report, Failure> {
    let mut report = Report::new("produce", Machine::with(setting.place.root()), setting.bounds);
    let progress = Progress::new(3 * setting.bounds.rounds);
    let payloads = Payloads::make(BATCHES, setting.bounds.bytes());
    let cases = [
        ("produce", "1 KiB records one by one from 8 writers through a producer", None),
        ("aggregate", "the same with aggregates", Some(AGGREGATE_BYTES)),
    ];
    if cases.iter().any(|(name, ..)| setting.bounds.wants(name)) {
        progress.say("fill the segments");
        let subject = Subject::open(&setting.place.folder("engine")?, SHARDS).await?;
        subject.warm_up(setting.bounds, SHARDS).await?;
        for (name, what, aggregate_bytes) in cases {
            if setting.bounds.wants(name) {
                progress.say(name);
                let case = Case { setting, subject: &subject, payloads: &payloads, progress: &progress };
                case.beside_appends(&mut report, name, what, aggregate_bytes).await?;
            }
        }
        subject.close().await?;
    }
    if setting.bounds.wants("wire") {
        progress.say("wire");
        over_the_wire(setting, &payloads, &progress, &mut report).await?;
    }
    Ok(report)
}

/// One case beside appends to the same engine.
struct Case<'a> {
    setting: &'a Setting<'a>,
    subject: &'a Subject,
    payloads: &'a Payloads,
    progress: &'a Progress,
}

impl Case<'_> {
    async fn beside_appends(
        &self,
        report: &mut Report,
        name: &'static str,
        what: &str,
        aggregate_bytes: Option<usize>,
    ) -> Result<(), Failure> {
        let Case { setting, subject, payloads, progress } = self;
        let (mut produced, mut appended) = (Vec::new(), Vec::new());
        let (mut costs, mut raw_costs) = (Vec::new(), Vec::new());
        for _ in 0..setting.bounds.rounds {
            let (written, cost) = self.produce(aggregate_bytes).await?;
            costs.push(cost);
            produced.push(written.records_per_second());
            subject.renew(SHARDS).await?;
            let (before_us, at_most) = (processor_us(), setting.bounds.duration());
            let raw = writers::write(subject.engine(), subject.stream(), payloads, at_most).await?;
            raw_costs.push((processor_us() - before_us) / raw.records as f64);
            appended.push(raw.records_per_second());
            progress.step();
        }
        let what = format!("{what}, beside appends of 500");
        let (ours, raw) = (Spread::of(produced), Spread::of(appended));
        let figure = Figure::beside(name, what, Unit::RecordsPerSecond, ours, raw);
        let figure = if aggregate_bytes.is_none() { figure.aim(Goal::RatioAtLeast(GOAL)) } else { figure };
        report.figures.push(figure);
        report.notes.push(format!(
            "{name}: {:.1} µs of processor time a record, {:.1} µs in appends of 500",
            Spread::of(costs).median,
            Spread::of(raw_costs).median
        ));
        Ok(())
    }

    /// A round through a producer, and the processor time of a record.
    async fn produce(&self, aggregate_bytes: Option<usize>) -> Result<(Written, f64), Failure> {
        let Case { setting, subject, payloads, .. } = self;
        subject.renew(SHARDS).await?;
        let settings = Settings { aggregate_bytes, ..Settings::default() };
        let before_us = processor_us();
        let store = Arc::new(subject.engine().clone());
        let written = produce(store, subject.stream(), settings, payloads, setting).await?;
        Ok((written, (processor_us() - before_us) / written.records as f64))
    }
}

async fn produce(
    store: Arc<dyn StreamStore>,
    stream: &StreamName,
    settings: Settings,
    payloads: &Payloads,
    setting: &Setting<'_>,
) -> Result<Written, Failure> {
    let producer = Producer::start(store, stream.clone(), Arc::new(SystemClock::new()), settings).await?;
    let written = writers::produce(&producer, payloads, setting.bounds.duration()).await;
    producer.close().await;
    written
}

/// The same against a server, which is a process of its own on the same machine.
async fn over_the_wire(
    setting: &Setting<'_>,
    payloads: &Payloads,
    progress: &Progress,
    report: &mut Report,
) -> Result<(), Failure> {
    let server = Server::start(&setting.place.folder("wire")?).await?;
    let options = AwsOptions {
        endpoint: Some(server.url.clone()),
        region: Some("us-east-1".to_owned()),
        key: Some(AccessKey { id: "AKIDEXAMPLE".to_owned(), secret: "secret".to_owned() }),
        ..AwsOptions::default()
    };
    let aws = Aws::connect(options, Arc::new(SystemClock::new()), 1).await?;
    let store: Arc<dyn StreamStore> = Arc::new(Streams::new(&aws));
    let stream = StreamName::new("bench")?;
    let mut produced = Vec::new();
    for _ in 0..setting.bounds.rounds {
        let shards = StreamOptions { shards: SHARDS, ..StreamOptions::default() };
        store.create_stream(&stream, shards).await?;
        let written = produce(store.clone(), &stream, Settings::default(), payloads, setting).await?;
        produced.push(written.records_per_second());
        store.delete_stream(&stream).await?;
        progress.step();
    }
    let what = "1 KiB records one by one from 8 writers through a producer to a server over HTTP, on the same machine";
    let figure = Figure::with_ratio("wire", what, Unit::RecordsPerSecond, Spread::of(produced), None, None);
    report.figures.push(figure.aim(Goal::AtLeast(WIRE_GOAL)));
    Ok(())
}
