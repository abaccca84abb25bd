//! `consumer run`: a worker that prints what it reads. What is printed is done with; what is not, another worker gets.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_consumer::{
    Consumer, Delivery, InitialPosition, Outcome, Processor, Received, ShardInfo, StreamChoice,
};
use anabranch_engine::SystemClock;
use anabranch_model::{Clock, ShardId, StreamName, StreamStore};
use async_trait::async_trait;
use clap::Args;
use serde::Serialize;
use tokio::sync::Notify;

use super::Session;
use super::place::Place;
use crate::failure::Failure;
use crate::output::Lines;
use crate::quantity::Span;
use crate::runtime::Signals;
use crate::stream::RecordReport;

/// How long a shard waits for its processor when the worker stops. Printing does not wait for anything but the output, so
/// a processor that has not come back by then has nothing left to print.
const DRAIN_MAX: Duration = Duration::from_millis(100);

/// Memory for records on their way: they come faster than they are printed, and can wait in the stream.
const MEMORY_BYTES: usize = 4 << 20;

/// Arguments of `consumer run`.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The application; its workers share the shards
    application: String,
    /// The stream
    stream: StreamName,
    /// Where to begin in a stream that the application has not read yet: trim-horizon, latest or a time
    #[arg(long, default_value = "trim-horizon", value_name = "START")]
    from: String,
    /// What this worker is called [default: host, address and a number of its own]
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
    /// How long a lease holds: a worker that dies is replaced this much later, and a second
    #[arg(long, default_value = "10s", value_name = "SPAN")]
    lease_time: Span,
    /// The table of leases; `{app}` stands for the application
    #[arg(long, default_value = anabranch_consumer::TABLE_TEMPLATE, value_name = "NAME")]
    table: String,
    /// Stop after so many records
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

/// Reads until a signal, the limit, or the end of whoever reads the output.
pub(super) async fn run(
    session: &Session,
    streams: Arc<dyn StreamStore>,
    args: &RunArgs,
    mut signals: Signals,
) -> Result<(), Failure> {
    let clock = Arc::new(SystemClock::new());
    let initial = initial(&args.from, &*clock)?;
    let printer = Arc::new(Printer::new(session.output.json, args.limit));
    let printing = printer.clone();
    let factory = move |_: &ShardInfo| Printing { printer: printing.clone() };
    let choice = [StreamChoice::only(args.stream.clone())];
    let mut builder =
        Consumer::builder(&args.application, choice, streams, session.tables.clone(), clock, factory)
            .initial_position(initial)
            .lease_time(args.lease_time.0)
            .table_template(&args.table)
            .drain_max(DRAIN_MAX)
            .memory(MEMORY_BYTES);
    if let Some(worker) = &args.worker {
        builder = builder.worker(worker);
    }
    let consumer = builder.build()?;
    printer.name(consumer.worker());
    let handle = consumer.handle();
    let running = consumer.run();
    tokio::pin!(running);
    let mut stopping = false;
    loop {
        tokio::select! {
            ended = &mut running => {
                ended?;
                return printer.take_failure().map_or(Ok(()), Err);
            }
            // Whoever asks twice does not want to wait for the leases.
            _ = signals.next() => match stopping {
                true => return Err(Failure::Interrupted),
                false => stopping = true,
            },
            () = printer.enough.notified() => stopping = true,
        }
        handle.shutdown();
    }
}

fn initial(text: &str, clock: &dyn Clock) -> Result<InitialPosition, Failure> {
    use anabranch_consumer::Checkpoint;
    match Place::parse(text, clock.now())? {
        Place::At(Checkpoint::TrimHorizon) => Ok(InitialPosition::TrimHorizon),
        Place::At(Checkpoint::Latest) => Ok(InitialPosition::Latest),
        Place::Moment(moment) => Ok(InitialPosition::AtTimestamp(moment)),
        Place::At(_) => Err(Failure::usage(
            "a number is a place in one shard, and an application begins in all of them",
            "say trim-horizon, latest or a time; `anabranch consumer checkpoint` sets one shard to a number",
        )),
    }
}

/// The processor of a shard.
struct Printing {
    printer: Arc<Printer>,
}

#[async_trait]
impl Processor for Printing {
    async fn process(&mut self, delivery: Delivery) -> Vec<Outcome> {
        let (delivery, printed) = self.printer.clone().print(delivery).await;
        if printed == delivery.records.len() {
            return delivery.done();
        }
        for record in &delivery.records[..printed] {
            record.defer().done();
        }
        // The worker stops: the rest is for whoever reads the shard next.
        std::future::pending().await
    }
}

/// Standard output, which all shards share.
struct Printer {
    turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    /// The limit is reached, or nobody reads the output.
    enough: Notify,
}

struct State {
    worker: String,
    lines: Lines,
    left: Option<u64>,
    failure: Option<Failure>,
}

impl Printer {
    fn new(json: bool, limit: Option<u64>) -> Self {
        let state = State { worker: String::new(), lines: Lines::new(json), left: limit, failure: None };
        Printer { turn: tokio::sync::Mutex::default(), state: Mutex::new(state), enough: Notify::new() }
    }

    fn name(&self, worker: &str) {
        self.state().worker = worker.to_owned();
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_failure(&self) -> Option<Failure> {
        self.state().failure.take()
    }

    /// Prints records, as many as are still wanted, and returns how many that were. Shards take turns, and one that waits
    /// holds no thread. Whoever reads the output may be slow; renewal goes on meanwhile.
    async fn print(self: Arc<Self>, delivery: Delivery) -> (Delivery, usize) {
        let printer = self.clone();
        let _turn = self.turn.lock().await;
        let printing = tokio::task::spawn_blocking(move || {
            let printed = printer.print_now(&delivery.shard.shard, &delivery.records);
            (delivery, printed)
        });
        match printing.await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(printed) => printed,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The program ends, and nothing of this was printed.
            Err(Err(_)) => std::future::pending().await,
        }
    }

    fn print_now(&self, shard: &ShardId, records: &[Received]) -> usize {
        let mut guard = self.state();
        let state = &mut *guard;
        let left = state.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let wanted = if state.failure.is_some() { 0 } else { left.min(records.len()) };
        let printed = match state.write(shard, &records[..wanted]) {
            Ok(()) => wanted,
            Err(failure) => {
                state.failure = Some(failure);
                0
            }
        };
        if let Some(left) = &mut state.left {
            *left -= printed as u64;
        }
        if state.left == Some(0) || printed < records.len() {
            self.enough.notify_one();
        }
        printed
    }
}

impl State {
    fn write(&mut self, shard: &ShardId, records: &[Received]) -> Result<(), Failure> {
        for received in records {
            let worker = self.worker.as_str();
            self.lines.push(&received.data, || Line {
                worker,
                record: RecordReport::of(
                    shard,
                    received.sequence,
                    received.arrival,
                    &received.partition_key,
                    &received.data,
                ),
                sub_sequence: received.sub_sequence,
            })?;
        }
        self.lines.flush()
    }
}

/// A record as `--json` shows it.
#[derive(Serialize)]
struct Line<'a> {
    worker: &'a str,
    #[serde(flatten)]
    record: RecordReport<'a>,
    /// Which part of an aggregate it is.
    #[serde(skip_serializing_if = "is_zero")]
    sub_sequence: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
