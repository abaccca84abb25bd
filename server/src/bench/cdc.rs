//! `bench cdc`: changes of a table on their way into blobs, beside appends and beside plain files.
//!
//! Every round of a case is a bot of its own that begins with the oldest change, so all rounds archive the same changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_bus::archive::{
    Batches, Blobs, Documents, Format, KEY_DEFAULT, KeyTemplate, LINES_KEY_DEFAULT, Names, Shape,
};
use anabranch_bus::{
    BatchLimits, Bot, Changes, Earlier, Event, Outcome, Refusal, Shards, Sink, Source, Step,
};
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
use super::machine::{Machine, processor_time};
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
        "rows of 1 KiB, told of with their new image; each round is a bot of its own that begins with the oldest change; its \
         leases and its start count among singles"
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
        let (bot, counted) = self.bot("latency", &captured, usize::MAX, false)?;
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
                until(&mut heard, |count| count.events >= written as u64).await?;
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
            let archived = self.archive(&format!("singles-{round}"), &captured, changes, false).await?;
            engine.push(changes as f64 / archived.elapsed.as_secs_f64());
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
        let (mut engine, mut raw) = (Vec::new(), Vec::new());
        let (mut starts, mut costs) = (Vec::new(), Vec::new());
        let mut payloads = None;
        for round in 0..self.setting.bounds.rounds {
            self.subject.upkeep().await?;
            let archived = self.archive(&format!("batches-{round}"), &captured, changes, true).await?;
            engine.push(archived.bytes as f64 / archived.working.as_secs_f64());
            starts.push((archived.elapsed - archived.working).as_secs_f64() * 1_000.0);
            costs.push(archived.processor.as_secs_f64() * 1_000_000.0 / changes as f64);
            let payloads = payloads.get_or_insert_with(|| Payloads::make(APPENDS, archived.bytes));
            self.subject.upkeep().await?;
            let written =
                writers::write(self.subject.engine(), self.subject.stream(), payloads, PATIENCE).await?;
            raw.push(written.bytes_per_second());
            self.progress.step();
        }
        let what = "bytes of documents into compressed blobs of up to 8 MiB, from the first change that is read to the last that \
                    is durable, beside appends of as many bytes: 1 KiB records in batches of 500 from 8 writers";
        let figure =
            Figure::beside("batches", what, Unit::BytesPerSecond, Spread::of(engine), Spread::of(raw));
        report.figures.push(figure.aim(Goal::RatioAtLeast(BATCHES_GOAL)));
        report.notes.push(format!(
            "batches: {:.0} ms from the start of a bot to the first change that it reads; {:.1} µs of processor time a change, all \
             threads together",
            Spread::of(starts).median,
            Spread::of(costs).median
        ));
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
    ) -> Result<Archived, Failure> {
        let clock = SystemClock::new();
        let begun = clock.elapsed();
        let (bot, counted) = self.bot(name, captured, changes, lines)?;
        let (handle, running) = (bot.handle(), tokio::spawn(bot.run()));
        let mut heard = counted.subscribe();
        until(&mut heard, |count| count.read > 0).await?;
        let (first, processor) = (clock.elapsed(), processor_time());
        until(&mut heard, |count| count.read >= changes as u64).await?;
        // Nothing more comes, so the last batch of each shard need not wait for it.
        handle.stop();
        until(&mut heard, |count| count.events >= changes as u64).await?;
        let (elapsed, processor) = (clock.elapsed() - begun, processor_time().saturating_sub(processor));
        ended(running).await?;
        let (working, bytes) = (elapsed.saturating_sub(first - begun), counted.borrow().bytes);
        Ok(Archived { elapsed, working, processor, bytes })
    }

    /// A bot for so many changes, and how many of them it has read and made durable.
    fn bot(
        &self,
        name: &str,
        captured: &Captured,
        changes: usize,
        lines: bool,
    ) -> Result<(Bot, watch::Sender<Count>), Failure> {
        let engine: Arc<Engine> = Arc::new(self.subject.engine().clone());
        // Each bot has an archive of its own: in that of another it would write over what is there.
        let names =
            Names { keyspace: Some("bench".to_owned()), table: Some(name.to_owned()), ..Names::default() };
        let (blobs, bucket) = (engine.clone(), self.bucket.clone());
        let sink: Arc<dyn Sink> = match lines {
            true => Arc::new(Batches {
                blobs,
                bucket,
                template: KeyTemplate::new(LINES_KEY_DEFAULT, &names)?,
                format: Format::Lines,
            }),
            false => Arc::new(Blobs { blobs, bucket, template: KeyTemplate::new(KEY_DEFAULT, &names)? }),
        };
        let counted = watch::Sender::new(Count::default());
        let sink = Arc::new(Counting { sink, counted: counted.clone() });
        let source = Arc::new(Changes(engine.clone()));
        let mut shards = Shards::new(
            source,
            StreamChoice::only(captured.changes.clone()),
            engine,
            &format!("leases-{name}"),
        );
        shards.initial = InitialPosition::TrimHorizon;
        let documents = Documents { region: "bench".to_owned(), view: ChangeView::New, shape: Shape::Items };
        let mut builder = Bot::builder(name, Source::Shards(shards), sink, Arc::new(SystemClock::new()));
        let reading = Reading { counted: counted.clone(), all: changes as u64, read: AtomicU64::new(0) };
        builder = builder.step(Arc::new(reading)).step(Arc::new(documents));
        if lines {
            let age = Duration::from_millis(200);
            builder = builder.batch(BatchLimits { records: 10_000, bytes: 8 << 20, age });
        }
        Ok((builder.build()?, counted))
    }
}

async fn until(
    counted: &mut watch::Receiver<Count>,
    enough: impl FnMut(&Count) -> bool,
) -> Result<(), Failure> {
    let late = || Failure::new("bench", "a bot does not get on", "report this");
    match tokio::time::timeout(PATIENCE, counted.wait_for(enough)).await {
        Ok(Ok(_)) => Ok(()),
        _ => Err(late()),
    }
}

async fn ended(running: tokio::task::JoinHandle<ModelResult<()>>) -> Result<(), Failure> {
    let ended = running.await;
    Ok(ended.map_err(|error| Failure::new("bench", format!("a bot broke off: {error}"), "report this"))??)
}

/// What a bot has read and made durable.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    read: u64,
    events: u64,
    bytes: u64,
}

/// What a bot has archived, and in which time.
struct Archived {
    elapsed: Duration,
    /// Without its start.
    working: Duration,
    /// Of all threads, in that time.
    processor: Duration,
    bytes: u64,
}

/// A step that tells how many changes have come.
struct Reading {
    counted: watch::Sender<Count>,
    /// As many as there are.
    all: u64,
    read: AtomicU64,
}

#[async_trait]
impl Step for Reading {
    fn name(&self) -> &str {
        "reading"
    }

    async fn apply(&self, event: Event) -> Result<Vec<Event>, Refusal> {
        // Told of are the first and the last: whoever waits is not to be woken for each.
        let read = self.read.fetch_add(1, Ordering::Relaxed) + 1;
        if read == 1 || read == self.all {
            self.counted.send_modify(|count| count.read = count.read.max(read));
        }
        Ok(vec![event])
    }
}

/// A sink that tells how much is durable in another.
struct Counting {
    sink: Arc<dyn Sink>,
    counted: watch::Sender<Count>,
}

#[async_trait]
impl Sink for Counting {
    async fn write(&self, events: &[Event]) -> Vec<Outcome> {
        let outcomes = self.sink.write(events).await;
        let done = events.iter().zip(&outcomes).filter(|(_, outcome)| **outcome == Outcome::Done);
        let bytes: Vec<u64> = done.map(|(event, _)| event.data.len() as u64).collect();
        self.counted.send_modify(|count| {
            count.events += bytes.len() as u64;
            count.bytes += bytes.iter().sum::<u64>();
        });
        outcomes
    }

    async fn earlier(&self, first: &Event) -> ModelResult<Option<Earlier>> {
        self.sink.earlier(first).await
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
