//! `bench produce`: records one by one through a producer, beside appends of the same records in batches that are made
//! already.

use std::sync::Arc;

use anabranch_engine::SystemClock;
use anabranch_producer::{Producer, Settings};

use super::Setting;
use super::machine::{Machine, processor_us};
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
/// What an aggregate holds at most in the case with aggregates.
const AGGREGATE_BYTES: usize = 51_200;

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Report, Failure> {
    let mut report = Report::new("produce", Machine::with(setting.place.root()), setting.bounds);
    let progress = Progress::new(2 * setting.bounds.rounds);
    progress.say("fill the segments");
    let subject = Subject::open(&setting.place.folder("engine")?, SHARDS).await?;
    subject.warm_up(setting.bounds, SHARDS).await?;
    let payloads = Payloads::make(BATCHES, setting.bounds.bytes());
    for (name, what, aggregate_bytes) in [
        ("produce", "1 KiB records one by one from 8 writers through a producer", None),
        ("aggregate", "the same with aggregates", Some(AGGREGATE_BYTES)),
    ] {
        if !setting.bounds.wants(name) {
            continue;
        }
        progress.say(name);
        let (mut produced, mut appended, mut costs) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..setting.bounds.rounds {
            let before_us = processor_us();
            let written = produce(&subject, &payloads, setting, aggregate_bytes).await?;
            costs.push((processor_us() - before_us) / written.records as f64);
            produced.push(written.records_per_second());
            subject.renew(SHARDS).await?;
            let at_most = setting.bounds.duration();
            let raw = writers::write(subject.engine(), subject.stream(), &payloads, at_most).await?;
            appended.push(raw.records_per_second());
            progress.step();
        }
        let what = format!("{what}, beside appends of 500");
        let (ours, raw) = (Spread::of(produced), Spread::of(appended));
        let figure = Figure::beside(name, what, Unit::RecordsPerSecond, ours, raw);
        report.figures.push(if aggregate_bytes.is_none() {
            figure.aim(Goal::RatioAtLeast(GOAL))
        } else {
            figure
        });
        report.notes.push(format!("{name}: {:.1} µs of processor time a record", Spread::of(costs).median));
    }
    subject.close().await?;
    Ok(report)
}

async fn produce(
    subject: &Subject,
    payloads: &Payloads,
    setting: &Setting<'_>,
    aggregate_bytes: Option<usize>,
) -> Result<Written, Failure> {
    subject.renew(SHARDS).await?;
    let settings = Settings { aggregate_bytes, ..Settings::default() };
    let (store, clock) = (Arc::new(subject.engine().clone()), Arc::new(SystemClock::new()));
    let producer = Producer::start(store, subject.stream().clone(), clock, settings).await?;
    let written = writers::produce(&producer, payloads, setting.bounds.duration()).await;
    producer.close().await;
    written
}
