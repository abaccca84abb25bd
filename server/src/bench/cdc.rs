//! `bench cdc`: changes of a table on their way into blobs, beside appends and beside plain files.
//!
//! Every round of a case is a bot of its own that begins with the oldest change, so all rounds archive the same changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_bus::archive::{
    Blobs, Documents, KEY_DEFAULT, KeyTemplate, LINES_KEY_DEFAULT, Lines, Names, Shape,
};
use anabranch_bus::{BatchLimits, Bot, Changes, Event, Outcome, Shards, Sink, Source};
use anabranch_consumer::{InitialPosition, StreamChoice};
use anabranch_engine::{Engine, SystemClock};
use anabranch_model::table::{ChangeView, Write};
use anabranch_model::{
    BlobStore, BucketName, Clock, Error, Result as ModelResult, StreamName, TableName, TableStore,
};
use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::watch;

use super::Setting;
use super::cycles::bodies;
use super::items;
use super::machine::Machine;
use super::plain_files::PlainFiles;
use super::progress::Progress;
use super::report::{Figure, Goal, Report, Unit};
use super::statistics::{Spread, percentile, sorted};
use super::subject::Subject;
use super::writers::{self, Load, Payloads, RECORD_BYTES};
use crate::failure::Failure;

/// Shards of the stream that appends go to.
const SHARDS: usize = 8;
/// What batches stand beside.
const APPENDS: Load = Load { writers: 8, records: 500 };
/// Changes of a round with a blob for each.
const SINGLES: usize = 2_000;
/// Changes of a round that are waited for one by one.
const LATENCIES: usize = 200;
/// Threads that make plain files.
const THREADS: [usize; 2] = [4, 1];
/// Longest wait for a bot.
const PATIENCE: Duration = Duration::from_secs(120);
const LATENCY_GOAL_MS: f64 = 50.0;
const BATCHES_GOAL: f64 = 0.5;
const SINGLES_GOAL: f64 = 0.5;
/// Cases that [`measure`] goes through.
const CASES: usize = 3;

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Report, Failure> {
    let mut report = Report::new("cdc", Machine::with(setting.place.root()), setting.bounds);
    let progress = Progress::new(CASES * setting.bounds.rounds);
    progress.say("fill the segments");
    let subject = Subject::open(&setting.place.folder("engine")?, SHARDS).await?;
    subject.warm_up(setting.bounds, SHARDS).await?;
    let bench = Bench { setting, subject, progress, bucket: BucketName::new("archive")? };
    bench.subject.engine().create_bucket(&bench.bucket).await?;
    if setting.bounds.wants("latency") {
        bench.latency(&mut report).await?;
    }
    if setting.bounds.wants("singles") {
        bench.singles(&mut report).await?;
    }
    if setting.bounds.wants("batches") {
        bench.batches(&mut report).await?;
    }
    report.notes.push(
        "rows of 1 KiB, told of with their new image; each round is a bot of its own that begins with the oldest change, its \
         leases and its start included"
            .into(),
    );
    bench.subject.close().await?;
    Ok(report)
}

struct Bench<'a> {
    setting: &'a Setting<'a>,
    subject: Subject,
    progress: Progress,
    bucket: BucketName,
}

/// A table whose changes are archived.
struct Captured {
    table: TableName,
    changes: StreamName,
}

impl Bench<'_> {
    /// The time from the beginning of a write to its durable blob, one at a time.
    async fn latency(&self, report: &mut Report) -> Result<(), Failure> {
        self.progress.say("change to blob");
        let captured = self.table("latency").await?;
        let (clock, data) = (SystemClock::new(), bodies(0));
        let (bot, counted) = self.bot("latency", &captured, InitialPosition::TrimHorizon, false)?;
        let (handle, running) = (bot.handle(), tokio::spawn(bot.run()));
        let mut heard = counted.subscribe();
        let (mut written, mut halves, mut tails) = (0, Vec::new(), Vec::new());
        for round in 0..=self.setting.bounds.rounds {
            let mut times = Vec::with_capacity(LATENCIES);
            for _ in 0..LATENCIES {
                let item = items::item(0, written, data[written % data.len()].clone());
                let begun = clock.elapsed();
                self.subject.engine().write(&captured.table, Write::put(item)).await?;
                written += 1;
                until(&mut heard, written as u64).await?;
                times.push((clock.elapsed() - begun).as_secs_f64() * 1_000.0);
            }
            // The first round finds a bot that is still taking its lease.
            if round > 0 {
                let times = sorted(&times);
                halves.push(percentile(&times, 50.0));
                tails.push(percentile(&times, 99.0));
                self.progress.step();
            }
        }
        handle.stop();
        ended(running).await?;
        let figure = |name, what: &str, values| {
            Figure::with_ratio(name, what, Unit::Milliseconds, Spread::of(values), None, None)
        };
        report.figures.push(figure(
            "latency_p50",
            "half of all changes are a durable blob within this",
            halves,
        ));
        let what = "99 of 100 changes are a durable blob within this time of the beginning of their write";
        report.figures.push(figure("latency_p99", what, tails).aim(Goal::Below(LATENCY_GOAL_MS)));
        Ok(())
    }

    /// A blob for each change, beside plain files of the same size.
    async fn singles(&self, report: &mut Report) -> Result<(), Failure> {
        self.progress.say("a blob for each change");
        let captured = self.table("singles").await?;
        let changes = items::fill(self.subject.engine(), &captured.table, SINGLES).await?;
        let files =
            PlainFiles::new(self.setting.place.folder("plain")?, Bytes::from(vec![b'x'; RECORD_BYTES]));
        let (mut engine, mut raw) = (Vec::new(), [Vec::new(), Vec::new()]);
        for round in 0..self.setting.bounds.rounds {
            self.subject.upkeep().await?;
            let elapsed = self.archive(&format!("singles-{round}"), &captured, changes, false).await?;
            engine.push(changes as f64 / elapsed.as_secs_f64());
            for (threads, raw) in THREADS.into_iter().zip(&mut raw) {
                let done = files.put(threads, SINGLES / threads, self.setting.bounds.duration()).await?;
                raw.push(done.per_second());
                files.clear().await?;
            }
            self.progress.step();
        }
        let [four, one] = raw.map(Spread::of);
        let engine = Spread::of(engine);
        let what = "changes into blobs of their own, beside 4 threads that each make a file, write it, sync it, rename it and \
                    sync its folder";
        let unit = Unit::OperationsPerSecond;
        let figure = Figure::beside("singles", what, unit, engine.clone(), four);
        report.figures.push(figure.aim(Goal::RatioAtLeast(SINGLES_GOAL)));
        report.figures.push(Figure::beside(
            "singles_beside_1",
            "the same beside one thread",
            unit,
            engine,
            one,
        ));
        Ok(())
    }

    /// Many changes in a blob, beside appends of as many bytes.
    async fn batches(&self, report: &mut Report) -> Result<(), Failure> {
        self.progress.say("many changes in a blob");
        let captured = self.table("batches").await?;
        let wanted = self.setting.bounds.bytes() as usize / RECORD_BYTES;
        let changes = items::fill(self.subject.engine(), &captured.table, wanted).await?;
        let bytes = (changes * RECORD_BYTES) as u64;
        let payloads = Payloads::make(APPENDS, bytes);
        let (mut engine, mut raw) = (Vec::new(), Vec::new());
        for round in 0..self.setting.bounds.rounds {
            self.subject.upkeep().await?;
            let elapsed = self.archive(&format!("batches-{round}"), &captured, changes, true).await?;
            engine.push(bytes as f64 / elapsed.as_secs_f64());
            self.subject.upkeep().await?;
            let written =
                writers::write(self.subject.engine(), self.subject.stream(), &payloads, PATIENCE).await?;
            raw.push(written.bytes_per_second());
            self.progress.step();
        }
        let what = "changes into compressed blobs of up to 8 MiB, beside appends of 1 KiB records in batches of 500 from 8 \
                    writers";
        let figure =
            Figure::beside("batches", what, Unit::BytesPerSecond, Spread::of(engine), Spread::of(raw));
        report.figures.push(figure.aim(Goal::RatioAtLeast(BATCHES_GOAL)));
        Ok(())
    }

    async fn table(&self, name: &str) -> Result<Captured, Failure> {
        let (table, engine) = (TableName::new(name)?, self.subject.engine());
        engine.create_table(&table, items::options().with_changes(ChangeView::New)).await?;
        let changes = engine.table(&table).await?.changes;
        let changes = changes.ok_or_else(|| Error::Invalid("the changes are not written down".to_owned()))?;
        Ok(Captured { table, changes })
    }

    /// Archives all changes of a table, and says how long it took.
    async fn archive(
        &self,
        name: &str,
        captured: &Captured,
        changes: usize,
        lines: bool,
    ) -> Result<Duration, Failure> {
        let clock = SystemClock::new();
        let begun = clock.elapsed();
        let (bot, counted) = self.bot(name, captured, InitialPosition::TrimHorizon, lines)?;
        let (handle, running) = (bot.handle(), tokio::spawn(bot.run()));
        until(&mut counted.subscribe(), changes as u64).await?;
        let elapsed = clock.elapsed() - begun;
        handle.stop();
        ended(running).await?;
        Ok(elapsed)
    }

    /// A bot, and how many events it has made durable.
    fn bot(
        &self,
        name: &str,
        captured: &Captured,
        initial: InitialPosition,
        lines: bool,
    ) -> Result<(Bot, watch::Sender<u64>), Failure> {
        let engine: Arc<Engine> = Arc::new(self.subject.engine().clone());
        let names = Names {
            keyspace: Some("bench".to_owned()),
            table: Some(captured.table.to_string()),
            ..Names::default()
        };
        let (blobs, bucket) = (engine.clone(), self.bucket.clone());
        let sink: Arc<dyn Sink> = match lines {
            true => Arc::new(Lines { blobs, bucket, template: KeyTemplate::new(LINES_KEY_DEFAULT, &names)? }),
            false => Arc::new(Blobs { blobs, bucket, template: KeyTemplate::new(KEY_DEFAULT, &names)? }),
        };
        let counted = watch::Sender::new(0);
        let sink = Arc::new(Counting { sink, count: AtomicU64::new(0), counted: counted.clone() });
        let source = Arc::new(Changes(engine.clone()));
        let mut shards = Shards::new(
            source,
            StreamChoice::only(captured.changes.clone()),
            engine,
            &format!("leases-{name}"),
        );
        shards.initial = initial;
        let documents = Documents { region: "bench".to_owned(), view: ChangeView::New, shape: Shape::Items };
        let mut builder = Bot::builder(name, Source::Shards(shards), sink, Arc::new(SystemClock::new()));
        builder = builder.step(Arc::new(documents));
        if lines {
            let age = Duration::from_millis(200);
            builder = builder.batch(BatchLimits { records: 10_000, bytes: 8 << 20, age });
        }
        Ok((builder.build()?, counted))
    }
}

async fn until(counted: &mut watch::Receiver<u64>, count: u64) -> Result<(), Failure> {
    let late = || Failure::new("bench", "a bot does not get on", "report this");
    match tokio::time::timeout(PATIENCE, counted.wait_for(|seen| *seen >= count)).await {
        Ok(Ok(_)) => Ok(()),
        _ => Err(late()),
    }
}

async fn ended(running: tokio::task::JoinHandle<ModelResult<()>>) -> Result<(), Failure> {
    let ended = running.await;
    Ok(ended.map_err(|error| Failure::new("bench", format!("a bot broke off: {error}"), "report this"))??)
}

/// A sink that tells how many events are durable in another.
struct Counting {
    sink: Arc<dyn Sink>,
    count: AtomicU64,
    counted: watch::Sender<u64>,
}

#[async_trait]
impl Sink for Counting {
    async fn write(&self, events: &[Event]) -> Vec<Outcome> {
        let outcomes = self.sink.write(events).await;
        let done = outcomes.iter().filter(|outcome| **outcome == Outcome::Done).count() as u64;
        let count = self.count.fetch_add(done, Ordering::Relaxed) + done;
        self.counted.send_if_modified(|seen| {
            let grown = count > *seen;
            *seen = (*seen).max(count);
            grown
        });
        outcomes
    }

    fn belong_together(&self, first: &Event, other: &Event) -> bool {
        self.sink.belong_together(first, other)
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Bounds;
    use super::super::place::Place;
    use super::*;
    use anabranch_model::blob::ListOptions;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_round_archives_every_change() {
        let folder = tempfile::tempdir().unwrap();
        let bounds = Bounds { rounds: 5, seconds: 1, megabytes: 1, dir: None, only: None };
        let place = Place::make(Some(folder.path())).unwrap();
        let setting = Setting { bounds: &bounds, place: &place };
        let subject = Subject::open(&place.folder("engine").unwrap(), 1).await.unwrap();
        let bucket = BucketName::new("archive").unwrap();
        let bench = Bench { setting: &setting, subject, progress: Progress::new(1), bucket };
        let engine = bench.subject.engine().clone();
        engine.create_bucket(&bench.bucket).await.unwrap();
        let captured = bench.table("people").await.unwrap();
        let changes = items::fill(&engine, &captured.table, 1).await.unwrap();
        for (name, lines) in [("one", false), ("many", true)] {
            bench.archive(name, &captured, changes, lines).await.unwrap();
        }
        let (mut singles, mut lines, mut after) = (0, 0, None);
        loop {
            let options = ListOptions { after, ..ListOptions::default() };
            let page = engine.list(&bench.bucket, options).await.unwrap();
            let data = page.entries.iter().filter(|blob| !blob.key.as_str().contains("_manifest"));
            for blob in data {
                let single = blob.key.as_str().ends_with(".json");
                *(if single { &mut singles } else { &mut lines }) += 1;
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(singles, changes);
        assert!(lines > 0 && lines < changes, "{lines}");
        bench.subject.close().await.unwrap();
    }
}
