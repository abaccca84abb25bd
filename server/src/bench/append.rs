//! `bench append`: many writers on one journal, beside the same writes without an engine.

use super::Setting;
use super::machine::{Machine, processor_us};
use super::progress::Progress;
use super::raw::RawThread;
use super::recording::Recorded;
use super::report::{Figure, Goal, Report, Unit};
use super::statistics::Spread;
use super::subject::Subject;
use super::writers::{self, Load, Payloads, Written};
use crate::failure::Failure;

/// Shards of the stream where nothing else is said.
const SHARDS: usize = 8;
/// The largest appends that the model allows.
const BATCHES: Load = Load { writers: 8, records: 500 };
/// Single records of many.
const SINGLES: Load = Load { writers: 64, records: 1 };
/// What the limit of single records writes at a time: as many records as there are writers, without their headers.
const SINGLES_WRITE_BYTES: usize = 64 << 10;
/// The segments of the engine, by default.
const SEGMENT_BYTES: u64 = 64 << 20;
/// Enough raw files for the largest round.
const RAW_SEGMENTS: usize = 7;
/// Cases that [`measure`] goes through.
const CASES: usize = 3;

const BATCHES_GOAL: f64 = 0.7;
const SINGLES_GOAL: f64 = 0.5;

/// One round of one case: what the engine did, and what the machine does with the same writes.
struct Round {
    written: Written,
    recorded: Recorded,
    /// Processor time of the engine and its writers.
    processor_us: f64,
    /// Bytes a second of the replay.
    replayed: f64,
    /// Records a second of whole writes of single records.
    whole: Option<f64>,
}

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Report, Failure> {
    let mut report = Report::new("append", Machine::with(setting.place.root()), setting.bounds);
    let progress = Progress::new(CASES * setting.bounds.rounds);
    progress.say("fill the segments");
    let mut bench = Bench {
        setting,
        subject: Subject::open(&setting.place.folder("engine")?, SHARDS).await?,
        raw: RawThread::start(&setting.place.folder("raw")?, RAW_SEGMENTS, SEGMENT_BYTES).await?,
        progress,
    };
    bench.subject.warm_up(setting.bounds, SHARDS).await?;

    if setting.bounds.wants("batches") {
        bench.batches(&mut report).await?;
    }
    if setting.bounds.wants("one_shard") {
        bench.batches_to_one_shard(&mut report).await?;
    }
    if setting.bounds.wants("singles") {
        bench.singles(&mut report).await?;
    }
    report.notes.push(
        "steady state: before every round the stream is deleted and its segments are recycled, so both sides write to \
         files that were written before; one raw thread, one write and one fdatasync at a time"
            .into(),
    );
    bench.subject.close().await?;
    Ok(report)
}

struct Bench<'a> {
    setting: &'a Setting<'a>,
    subject: Subject,
    raw: RawThread,
    progress: Progress,
}

impl Bench<'_> {
    async fn batches(&mut self, report: &mut Report) -> Result<(), Failure> {
        let rounds = self.rounds("batches", BATCHES, SHARDS).await?;
        let what = "1 KiB records in batches of 500 from 8 writers to 8 shards, beside the same writes and syncs alone";
        report.figures.push(by_replay("batches", what, &rounds).aim(Goal::RatioAtLeast(BATCHES_GOAL)));
        report.notes.push(described("batches", &rounds));
        Ok(())
    }

    async fn batches_to_one_shard(&mut self, report: &mut Report) -> Result<(), Failure> {
        let rounds = self.rounds("batches to one shard", BATCHES, 1).await?;
        report.figures.push(by_replay("one_shard", "the same to a stream with one shard", &rounds));
        report.notes.push(described("one_shard", &rounds));
        Ok(())
    }

    async fn singles(&mut self, report: &mut Report) -> Result<(), Failure> {
        let rounds = self.rounds("single records", SINGLES, SHARDS).await?;
        let what = "single 1 KiB records from 64 writers to 8 shards, beside 64 records in every raw write of 64 KiB";
        report.figures.push(by_whole_writes("singles", what, &rounds).aim(Goal::RatioAtLeast(SINGLES_GOAL)));
        let what = "the same, beside the engine's own writes and syncs alone";
        report.figures.push(by_replay("singles_replayed", what, &rounds));
        report.notes.push(described("singles", &rounds));
        Ok(())
    }

    /// Engine, limit, engine, limit, and so on.
    async fn rounds(&mut self, name: &str, load: Load, shards: usize) -> Result<Vec<Round>, Failure> {
        self.progress.say(name);
        let payloads = Payloads::make(load, self.setting.bounds.bytes());
        let mut rounds = Vec::new();
        for _ in 0..self.setting.bounds.rounds {
            rounds.push(self.round(load, shards, &payloads).await?);
            self.progress.step();
        }
        Ok(rounds)
    }

    async fn round(&mut self, load: Load, shards: usize, payloads: &Payloads) -> Result<Round, Failure> {
        let (subject, bounds) = (&self.subject, self.setting.bounds);
        subject.renew(shards).await?;
        subject.recorded();
        let before_us = processor_us();
        let written = writers::write(subject.engine(), subject.stream(), payloads, bounds.duration()).await?;
        let processor_us = processor_us() - before_us;
        let recorded = subject.recorded();
        // The raw side has the disk for itself.
        subject.upkeep().await?;

        let sizes = recorded.sizes();
        let (bytes, records, at_most) = (recorded.bytes() as f64, written.records, bounds.duration());
        let (replayed, whole) = self
            .raw
            .run(move |raw| {
                let replayed = bytes / raw.replay(&sizes)?.as_secs_f64();
                if load.records > 1 {
                    return Ok((replayed, None));
                }
                let records_each = (SINGLES_WRITE_BYTES / writers::RECORD_BYTES) as u64;
                let (done, elapsed) = raw.repeat(SINGLES_WRITE_BYTES, records / records_each, at_most)?;
                Ok((replayed, Some((done * records_each) as f64 / elapsed.as_secs_f64())))
            })
            .await?;
        Ok(Round { written, recorded, processor_us, replayed, whole })
    }
}

fn by_replay(name: &'static str, what: &str, rounds: &[Round]) -> Figure {
    let engine = Spread::of(rounds.iter().map(|round| round.written.bytes_per_second()).collect());
    let raw = Spread::of(rounds.iter().map(|round| round.replayed).collect());
    Figure::beside(name, what, Unit::BytesPerSecond, engine, raw)
}

fn by_whole_writes(name: &'static str, what: &str, rounds: &[Round]) -> Figure {
    let engine = Spread::of(rounds.iter().map(|round| round.written.records_per_second()).collect());
    let raw = Spread::of(rounds.iter().filter_map(|round| round.whole).collect());
    Figure::beside(name, what, Unit::RecordsPerSecond, engine, raw)
}

/// How the engine wrote: how many records a sync made durable, and where the time of its committer went.
fn described(name: &str, rounds: &[Round]) -> String {
    let median = |value: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(value).collect()).median;
    let share =
        |round: &Round, pick: fn((std::time::Duration, std::time::Duration)) -> std::time::Duration| {
            100.0 * pick(round.recorded.busy()).as_secs_f64() / round.written.elapsed.as_secs_f64()
        };
    let fresh: u64 = rounds.iter().map(|round| round.recorded.fresh_bytes).sum();
    format!(
        "{name}: {:.0} records and {:.0} KiB a sync; {:.1} µs of processor time a record; the committer spends {:.0} % of a round in writes and {:.0} % in \
         syncs; {} MiB of all rounds went to new segments",
        median(&|round| round.written.records as f64 / round.recorded.writes.len() as f64),
        median(&|round| round.recorded.bytes() as f64 / 1024.0 / round.recorded.writes.len() as f64),
        median(&|round| round.processor_us / round.written.records as f64),
        median(&|round| share(round, |(write, _)| write)),
        median(&|round| share(round, |(_, sync)| sync)),
        fresh >> 20,
    )
}
