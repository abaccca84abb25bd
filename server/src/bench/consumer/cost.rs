//! What reading with leases costs: processor time, writes to the table, memory.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_consumer::{Application, Checkpoint, Delivery, Lease, process_fn};
use anabranch_model::{
    Clock, NewRecord, Next, Position, ReadLimit, ShardSource, StreamName, StreamOptions, StreamStore,
    TableName, TableStore,
};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Notify;

use super::super::Setting;
use super::super::machine::resident_mib;
use super::super::process::Server;
use super::super::progress::Progress;
use super::super::report::{Figure, Goal, Unit};
use super::super::statistics::Spread;
use super::super::subject::Subject;
use super::super::writers::{self, Load, Payloads, RECORD_BYTES, incompressible};
use super::worker::{Fleet, late};
use crate::failure::Failure;
use crate::remote::Remote;
use crate::runtime::pause;

const SHARDS: usize = 8;
const LOAD: Load = Load { writers: 8, records: 500 };
const READ_BYTES: usize = 1 << 20;

/// Shards of a stream that is large for one worker.
const SHARDS_MANY: usize = 100;
/// Short, so that a round is.
const LEASE_TIME: Duration = Duration::from_secs(3);
/// Renewals of a lease in a round. A renewal comes a little more often than three times in the time of a lease.
const RENEWALS: u32 = 6;
const RENEW_EVERY: Duration = Duration::from_millis(975);

const MEMORY_GOAL_MIB: f64 = 30.0;
/// Records that the worker has read before its memory is looked at, and how many at a time.
const BATCHES: u64 = 100;
const BATCH: u64 = 500;
/// How long a worker with all its leases is left alone before its memory is read.
const IDLE_WAIT: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOKS_MAX: usize = 600;

/// Records by second of processor time, beside a loop of bare reads.
pub(super) async fn records(setting: &Setting<'_>, progress: &Progress) -> Result<Figure, Failure> {
    let subject = Subject::open(&setting.place.folder("records")?, SHARDS).await?;
    let payloads = Payloads::make(LOAD, setting.bounds.bytes());
    let written =
        writers::write(subject.engine(), subject.stream(), &payloads, setting.bounds.duration()).await?;
    drop(payloads);
    subject.upkeep().await?;
    let (mut consumed, mut bare) = (Vec::new(), Vec::new());
    for round in 0..setting.bounds.rounds {
        consumed.push(written.records as f64 / consume(&subject, round, written.records).await?);
        bare.push(written.records as f64 / read(&subject, written.records).await?);
        progress.step();
    }
    subject.close().await?;
    setting.place.clear("records");
    let what = format!(
        "records of 1 KiB by second of processor time: a worker that starts, leases {SHARDS} shards, reads them to their end, \
         checkpoints and stops, beside a loop that reads them 1 MiB at a time"
    );
    let (consumed, bare) = (Spread::of(consumed), Spread::of(bare));
    Ok(Figure::beside("records", what, Unit::RecordsPerSecond, consumed, bare))
}

/// Processor time of a worker that reads everything, in seconds.
async fn consume(subject: &Subject, round: usize, records: u64) -> Result<f64, Failure> {
    let application = format!("records-{round}");
    let fleet = Fleet::new(subject.engine(), subject.stream(), &application, Duration::from_secs(10));
    let (left, done) = (Arc::new(AtomicU64::new(records)), Arc::new(Notify::new()));
    let began = processor_seconds();
    let (count, told) = (left.clone(), done.clone());
    let worker = fleet.start_with(
        "one",
        process_fn(move |delivery: Delivery| {
            let got = delivery.records.len() as u64;
            if count.fetch_sub(got, Ordering::Relaxed) <= got {
                told.notify_one();
            }
            async move { delivery.done() }
        }),
    )?;
    done.notified().await;
    worker.stop().await?;
    let took = processor_seconds() - began;
    let ended = |lease: &Lease| matches!(lease.checkpoint, Checkpoint::At { .. });
    if !fleet.leases().await?.iter().all(ended) {
        return Err(Failure::new("bench", "a shard was not checkpointed", "report this"));
    }
    Ok(took)
}

/// Processor time of bare reads, in seconds.
async fn read(subject: &Subject, records: u64) -> Result<f64, Failure> {
    let limit = ReadLimit { bytes: READ_BYTES, ..ReadLimit::default() };
    let (mut seen, began) = (0, processor_seconds());
    for shard in subject.shards().await? {
        let mut at = Position::TrimHorizon;
        loop {
            let batch = subject.engine().read(subject.stream(), &shard, at, limit).await?;
            seen += batch.records.len() as u64;
            match batch.next {
                Next::At(next) if !batch.records.is_empty() => at = next,
                _ => break,
            }
        }
    }
    if seen != records {
        let what = format!("{seen} of {records} records were read");
        return Err(Failure::new("bench", what, "report this"));
    }
    Ok(processor_seconds() - began)
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Writes to a lease beside its renewals: a checkpoint is one of them.
pub(super) async fn writes(
    setting: &Setting<'_>,
    progress: &Progress,
    rounds: usize,
) -> Result<Figure, Failure> {
    let subject = Subject::open(&setting.place.folder("writes")?, SHARDS_MANY).await?;
    let mut fleet = Fleet::new(subject.engine(), subject.stream(), "writes", LEASE_TIME);
    fleet.checkpoint_every = LEASE_TIME;
    let load = fleet.load();
    let worker = fleet.start_with("one", process_fn(|delivery: Delivery| async move { delivery.done() }))?;
    fleet.until(|leases| super::worker::of(leases, "one") == SHARDS_MANY).await?;
    let (mut counted, mut allowed) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (before, began) = (counters(&fleet).await?, fleet.clock.elapsed());
        pause(RENEW_EVERY * RENEWALS).await;
        let (after, took) = (counters(&fleet).await?, fleet.clock.elapsed() - began);
        counted.push((after - before) as f64 / SHARDS_MANY as f64);
        allowed.push(took.as_secs_f64() / RENEW_EVERY.as_secs_f64());
        progress.step();
    }
    drop(load);
    worker.stop().await?;
    subject.close().await?;
    let what = format!(
        "writes to each of {SHARDS_MANY} leases in the time of {RENEWALS} renewals, under load, so that there is always a \
         checkpoint to write, beside the renewals that are due in that time"
    );
    let (counted, allowed) = (Spread::of(counted), Spread::of(allowed));
    Ok(Figure::beside("writes", what, Unit::Writes, counted, allowed).aim(Goal::RatioAtMost(1.0)))
}

/// Every write of an owner counts one further.
async fn counters(fleet: &Fleet) -> Result<u64, Failure> {
    Ok(fleet.leases().await?.iter().map(|lease| lease.counter).sum())
}

/// A process that dies with this.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Resident memory of `anabranch consumer run` with a hundred shards, beside a server.
pub(super) async fn memory(setting: &Setting<'_>) -> Result<Figure, Failure> {
    let folder = setting.place.folder("memory")?;
    let server = Server::start(&folder).await?;
    let address = server.url.trim_start_matches("http://").trim_end_matches([',', '/']);
    let address: SocketAddr = address
        .parse()
        .map_err(|_| Failure::new("bench", format!("{address} is no address"), "report this"))?;
    let (remote, stream) = (Arc::new(Remote::new(address)), StreamName::new("bench")?);
    let options = StreamOptions { shards: SHARDS_MANY, ..StreamOptions::default() };
    remote.create_stream(&stream, options).await?;
    let worker = start_process(&folder).map_err(|error| Failure::io("start a worker on", &folder, &error))?;
    let tables: Arc<dyn TableStore> = remote.clone();
    let application = TableName::new("memory")?;
    for look in 0.. {
        let leases = match Application::open(tables.clone(), &application).await {
            Ok(application) => application.leases().await?,
            Err(_) => Vec::new(),
        };
        if leases.iter().filter(|lease| lease.owner.is_some()).count() == SHARDS_MANY {
            break;
        }
        if look == LOOKS_MAX {
            return Err(late("the worker has not all leases"));
        }
        pause(LOOK_EVERY).await;
    }
    for batch in 0..BATCHES {
        let record = |n: u64| NewRecord::new(format!("key-{n}"), incompressible(n, RECORD_BYTES));
        let records = (batch * BATCH..(batch + 1) * BATCH).map(record).collect();
        for stored in remote.append(&stream, records).await? {
            stored?;
        }
    }
    pause(IDLE_WAIT).await;
    let resident = resident_mib(worker.0.id());
    drop(worker);
    drop(server);
    setting.place.clear("memory");
    let what = format!("resident memory of `consumer run` with {SHARDS_MANY} shards, beside a server");
    let figure = Figure::with_ratio("memory", what, Unit::Mebibytes, Spread::of(vec![resident]), None, None);
    Ok(figure.aim(Goal::Below(MEMORY_GOAL_MIB)))
}

fn start_process(data: &Path) -> std::io::Result<Process> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["consumer", "run", "memory", "bench", "--json", "--data"]).arg(data);
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Process(quiet.spawn()?))
}
