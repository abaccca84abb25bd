//! `bench read`: reading a shard from its beginning out of the page cache, beside plain reads of the same files.

use std::time::Duration;

use anabranch_engine::SystemClock;
use anabranch_model::{Clock, Next, Position, ReadLimit, ShardSource, limits};

use super::Setting;
use super::machine::Machine;
use super::progress::Progress;
use super::raw::read_and_sum;
use super::report::{Figure, Goal, Report, Unit};
use super::statistics::Spread;
use super::subject::Subject;
use super::writers::{self, Load, Payloads, RECORD_BYTES};
use crate::failure::Failure;

const GOAL: f64 = 0.6;
/// Single records make as many frames; a part of the bytes is enough of them.
const SINGLES_BYTES_MAX: u64 = 96 << 20;

/// What is read.
struct Case {
    name: &'static str,
    what: &'static str,
    load: Load,
    shards: usize,
    read_bytes: usize,
    aims: bool,
}

const CASES: [Case; 5] = [
    Case {
        name: "frames_of_500",
        what: "reads of 1 MiB, records appended 500 at a time, beside pread of 1 MiB and crc32 of the same files",
        load: Load { writers: 8, records: 500 },
        shards: 1,
        read_bytes: 1 << 20,
        aims: true,
    },
    Case {
        name: "frames_of_500_large_reads",
        what: "the same, both sides in reads of 10 MiB",
        load: Load { writers: 8, records: 500 },
        shards: 1,
        read_bytes: limits::READ_BYTES_MAX,
        aims: true,
    },
    Case {
        name: "frames_of_500_of_8_shards",
        what: "the same in reads of 1 MiB from a stream of 8 shards, one shard after the other",
        load: Load { writers: 8, records: 500 },
        shards: 8,
        read_bytes: 1 << 20,
        aims: false,
    },
    Case {
        name: "frames_of_1",
        what: "reads of 1 MiB, records appended one at a time, beside the same",
        load: Load { writers: 64, records: 1 },
        shards: 1,
        read_bytes: 1 << 20,
        aims: false,
    },
    Case {
        name: "frames_of_1_large_reads",
        what: "the same, both sides in reads of 10 MiB",
        load: Load { writers: 64, records: 1 },
        shards: 1,
        read_bytes: limits::READ_BYTES_MAX,
        aims: false,
    },
];

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Report, Failure> {
    let mut report = Report::new("read", Machine::with(setting.place.root()), setting.bounds);
    let progress = Progress::new(CASES.len() * setting.bounds.rounds);
    for case in CASES.iter().filter(|case| setting.bounds.wants(case.name)) {
        let figure = measure_case(setting, &progress, case).await?;
        report.figures.push(if case.aims { figure.aim(Goal::RatioAtLeast(GOAL)) } else { figure });
    }
    report.notes.push(
        "both sides read what was just written, so all of it is in the page cache; the engine's bytes are payload, \
         those of the limit are whole files; the engine checks every frame and makes records, the limit sums its chunks"
            .into(),
    );
    Ok(report)
}

async fn measure_case(setting: &Setting<'_>, progress: &Progress, case: &Case) -> Result<Figure, Failure> {
    progress.say(case.name);
    let folder = setting.place.folder(case.name)?;
    let subject = Subject::open(&folder, case.shards).await?;
    let bytes = if case.load.records == 1 { SINGLES_BYTES_MAX } else { u64::MAX }.min(setting.bounds.bytes());
    let payloads = Payloads::make(case.load, bytes);
    writers::write(subject.engine(), subject.stream(), &payloads, setting.bounds.duration()).await?;
    drop(payloads);
    // The index is where it is for all but the newest records, and nobody writes while others read.
    subject.upkeep().await?;
    let journal_bytes = subject.recorded().bytes();
    let paths = subject.segments()?;

    let (mut engine, mut raw) = (Vec::new(), Vec::new());
    for _ in 0..setting.bounds.rounds {
        let (read_bytes, elapsed) = read_all(&subject, case.read_bytes).await?;
        engine.push(read_bytes as f64 / elapsed.as_secs_f64());
        let elapsed = read_and_sum(&paths, journal_bytes, case.read_bytes).await?;
        raw.push(journal_bytes as f64 / elapsed.as_secs_f64());
        progress.step();
    }
    subject.close().await?;
    setting.place.clear(case.name);
    Ok(Figure::beside(case.name, case.what, Unit::BytesPerSecond, Spread::of(engine), Spread::of(raw)))
}

/// Reads every shard to its end, once. Returns the payload and how long it took.
async fn read_all(subject: &Subject, read_bytes: usize) -> Result<(u64, Duration), Failure> {
    let shards = subject.shards().await?;
    let limit = ReadLimit { bytes: read_bytes, ..ReadLimit::default() };
    let (engine, stream) = (subject.engine().clone(), subject.stream().clone());
    let reader = tokio::spawn(async move {
        let clock = SystemClock::new();
        let (mut records, start) = (0, clock.elapsed());
        for shard in &shards {
            let mut at = Position::TrimHorizon;
            loop {
                let batch = engine.read(&stream, shard, at, limit).await?;
                records += batch.records.len() as u64;
                match batch.next {
                    Next::At(next) if !batch.records.is_empty() => at = next,
                    _ => break,
                }
            }
        }
        Ok::<_, anabranch_model::Error>((records * RECORD_BYTES as u64, clock.elapsed() - start))
    });
    let read = reader.await;
    Ok(read
        .map_err(|error| Failure::new("bench", format!("a reader did not end: {error}"), "report this"))??)
}
