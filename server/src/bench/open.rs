//! `bench open`: how long `anabranch up` takes until it answers, and how much memory it holds when idle.
//!
//! Every opening is a process of its own, and every process is killed: nothing is warm but the page cache, and every
//! log that is opened was left in disorder.

use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Engine, Options, SystemClock, SystemDisk};
use anabranch_model::{Clock, Disk, Open, StreamName, StreamOptions, StreamStore};

use super::machine::Machine;
use super::process::Server;
use super::progress::Progress;
use super::raw::read_and_sum;
use super::report::{Figure, Goal, Report, Unit};
use super::statistics::Spread;
use super::writers::{self, Load, Payloads};
use super::{Setting, blocking};
use crate::failure::Failure;

/// The log that is opened.
const LOG_BYTES: u64 = 1 << 30;
/// Parts that the log is written in, so that the payloads of one are enough.
const LOG_PARTS: u64 = 8;
const LOAD: Load = Load { writers: 8, records: 500 };
const SHARDS: usize = 8;
const SEGMENT_BYTES: u64 = 64 << 20;
const READ_BYTES: usize = 1 << 20;

const EMPTY_GOAL_MS: f64 = 100.0;
const LOG_GOAL_MS: f64 = 1_000.0;
const IDLE_GOAL_MIB: f64 = 30.0;

/// How often a dropped engine is looked at until its threads have let go of the disk.
const LET_GO_WAIT: Duration = Duration::from_millis(5);
/// How long an idle server is left alone before its memory is read.
const IDLE_WAIT: Duration = Duration::from_millis(500);

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Report, Failure> {
    let mut report = Report::new("open", Machine::with(setting.place.root()), setting.bounds);
    let progress = Progress::new(2 * setting.bounds.rounds);
    progress.say("an empty directory");
    let (opened, idle) = empty(setting, &progress).await?;
    progress.say("fill 1 GiB");
    let folder = setting.place.folder("log")?;
    let uncovered = fill(&folder).await?;
    progress.say("1 GiB of log");
    let (log, log_idle) = log(setting, &progress, &folder, uncovered).await?;
    report.figures = vec![opened, idle, log, log_idle];
    report.notes.push(format!(
        "each opening is `anabranch up` from its start to the line that says it is ready, and ends with a kill; the state \
         lacked {} MiB of the log when the first process died",
        uncovered >> 20
    ));
    Ok(report)
}

async fn empty(setting: &Setting<'_>, progress: &Progress) -> Result<(Figure, Figure), Failure> {
    let (mut opened, mut idle, mut raw) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..setting.bounds.rounds {
        let server = Server::start(&setting.place.folder("empty")?).await?;
        opened.push(milliseconds(server.ready_after));
        crate::runtime::pause(IDLE_WAIT).await;
        idle.push(server.resident_mib());
        drop(server);
        setting.place.clear("empty");
        let folder = setting.place.folder("raw")?;
        let elapsed = blocking({
            let folder = folder.clone();
            move || make_files(&folder)
        });
        raw.push(milliseconds(elapsed.await?.map_err(|error| Failure::io("write to", &folder, &error))?));
        setting.place.clear("raw");
        progress.step();
    }
    let what = "`up` on an empty directory, beside making and syncing two segments, two small files and their folder";
    let opened = Figure::beside("empty", what, Unit::Milliseconds, Spread::of(opened), Spread::of(raw));
    let what = "resident memory of that server, idle";
    let idle = Figure::with_ratio("empty_idle", what, Unit::Mebibytes, Spread::of(idle), None, None);
    Ok((opened.aim(Goal::Below(EMPTY_GOAL_MS)), idle.aim(Goal::Below(IDLE_GOAL_MIB))))
}

async fn log(
    setting: &Setting<'_>,
    progress: &Progress,
    folder: &Path,
    uncovered: u64,
) -> Result<(Figure, Figure), Failure> {
    let segments = segments_in(folder)?;
    let (mut opened, mut idle, mut raw) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..setting.bounds.rounds {
        let server = Server::start(folder).await?;
        opened.push(milliseconds(server.ready_after));
        idle.push(server.resident_mib());
        drop(server);
        raw.push(milliseconds(read_and_sum(&segments, uncovered.max(1), READ_BYTES).await?));
        progress.step();
    }
    let what = "`up` on 1 GiB of log after a kill, beside reading and summing what the state lacks";
    let opened = Figure::beside("log", what, Unit::Milliseconds, Spread::of(opened), Spread::of(raw));
    let what = "resident memory of that server when it is ready";
    let idle = Figure::with_ratio("log_idle", what, Unit::Mebibytes, Spread::of(idle), None, None);
    Ok((opened.aim(Goal::Below(LOG_GOAL_MS)), idle))
}

/// Writes the log, and drops the engine as if the process were killed. Returns how much of it the state lacks.
async fn fill(folder: &Path) -> Result<u64, Failure> {
    let disk: Arc<dyn Disk> =
        Arc::new(SystemDisk::open(folder).map_err(|error| Failure::io("open", folder, &error))?);
    let of_engine = disk.clone();
    let engine =
        blocking(move || Engine::open(of_engine, Arc::new(SystemClock::new()), Options::default())).await??;
    let stream = StreamName::new("bench")?;
    engine.create_stream(&stream, StreamOptions { shards: SHARDS, ..StreamOptions::default() }).await?;
    let payloads = Payloads::make(LOAD, LOG_BYTES / LOG_PARTS);
    for _ in 0..LOG_PARTS {
        writers::write(&engine, &stream, &payloads, Duration::MAX / 2).await?;
    }
    let status = engine.status();
    drop(engine);
    while Arc::strong_count(&disk) > 1 {
        crate::runtime::pause(LET_GO_WAIT).await;
    }
    Ok(status.journal_position.saturating_sub(status.covered_position))
}

/// The files of a journal in their order.
fn segments_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let journal = folder.join("journal");
    let entries = std::fs::read_dir(&journal).map_err(|error| Failure::io("read", &journal, &error))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

/// What has to be made for an empty directory, whatever the engine.
fn make_files(folder: &Path) -> io::Result<Duration> {
    let disk = SystemDisk::open(folder)?;
    let clock = SystemClock::new();
    let start = clock.elapsed();
    for name in ["1", "2"] {
        let file = disk.open(name, Open::CreateNew)?;
        file.allocate(SEGMENT_BYTES)?;
        file.write_all_at(0, &[IoSlice::new(&[1; 80])])?;
        file.sync()?;
    }
    for name in ["format", "state"] {
        let mut file = File::create(folder.join(name))?;
        file.write_all(&[1; 4096])?;
        file.sync_data()?;
    }
    disk.sync_directory("")?;
    Ok(clock.elapsed() - start)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
