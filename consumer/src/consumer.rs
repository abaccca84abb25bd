//! A worker of an application: built, run, stopped.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{BlobStore, Clock, Dice, Error, Result, ShardSource, TableStore};
use futures_util::FutureExt;
use smol_str::SmolStr;

use crate::attached::Attached;
use crate::coordinator::{Coordinator, Ports};
use crate::failure::FailurePolicy;
use crate::fetch::Memory;
use crate::flag::Flag;
use crate::lease::renew::{Book, renew_all};
use crate::lease::{LeaseTable, TableNames};
use crate::pause::pause;
use crate::processor::ProcessorFactory;
use crate::settings::{BalanceBy, InitialPosition, Reading, Settings, StreamChoice};
use crate::work::panic_text;
use crate::{metrics, name};

/// How long a task of ours that panicked stays away.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// Pauses while a stream or a table is not ready at the start: the longest first one, and the longest.
const START_PAUSE_FIRST: Duration = Duration::from_millis(100);
const START_PAUSE_MAX: Duration = Duration::from_secs(2);

/// The template for the name of the table of leases, unless another is given.
pub const TABLE_TEMPLATE: &str = "{app}";

/// Sets a consumer up. What is not said has a default that fits most.
pub struct ConsumerBuilder {
    source: Arc<dyn ShardSource>,
    tables: Arc<dyn TableStore>,
    factory: Arc<dyn ProcessorFactory>,
    template: String,
    seed: Option<u64>,
    settings: Settings,
}

/// One worker of an application.
pub struct Consumer {
    source: Arc<dyn ShardSource>,
    tables: Arc<dyn TableStore>,
    factory: Arc<dyn ProcessorFactory>,
    names: TableNames,
    settings: Arc<Settings>,
    stop: Flag,
}

/// Why a consumer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was stopped.
    Stopped,
    /// No shard of its streams is open any more, and all of them are processed to their end.
    Finished,
    /// A stream does not exist any more.
    Gone,
}

/// Stops a consumer. Clones stop the same one.
#[derive(Clone, Debug)]
pub struct Handle {
    stop: Flag,
}

impl Handle {
    /// Asks the consumer to finish what is under way, write its checkpoints and let its leases go.
    pub fn shutdown(&self) {
        self.stop.raise();
    }
}

impl Consumer {
    /// A worker of `application`, which reads `streams` of a source and keeps its leases in tables.
    pub fn builder(
        application: &str,
        streams: impl IntoIterator<Item = StreamChoice>,
        source: Arc<dyn ShardSource>,
        tables: Arc<dyn TableStore>,
        clock: Arc<dyn Clock>,
        factory: impl ProcessorFactory,
    ) -> ConsumerBuilder {
        let settings = Settings {
            application: application.into(),
            worker: SmolStr::default(),
            streams: streams.into_iter().collect(),
            initial: InitialPosition::default(),
            clock,
            dice: Dice::new(0),
            lease_time: Duration::from_secs(10),
            leases_max: usize::MAX,
            checkpoint_every: Duration::from_secs(10),
            drain_max: Duration::from_secs(30),
            process_max: Duration::from_secs(300),
            stall_max: Duration::from_secs(300),
            sync_every: Duration::from_secs(60),
            in_flight_records: 10_000,
            in_flight_bytes: 2 << 20,
            batch_records: 500,
            memory_bytes: 64 << 20,
            poll_idle: Duration::from_secs(1),
            reading: Reading::default(),
            balance: BalanceBy::default(),
            failure: FailurePolicy::default(),
            payloads: None,
        };
        let (factory, template) = (Arc::new(factory), TABLE_TEMPLATE.to_owned());
        ConsumerBuilder { source, tables, factory, template, seed: None, settings }
    }

    /// What this worker is called.
    pub fn worker(&self) -> &str {
        &self.settings.worker
    }

    /// What stops it.
    pub fn handle(&self) -> Handle {
        Handle { stop: self.stop.clone() }
    }

    /// Reads until it is stopped. An error means that it could not begin; afterwards it goes on whatever happens.
    pub async fn run(self) -> Result<()> {
        self.work(false).await.map(drop)
    }

    /// Reads until it is stopped or its streams are read to their end, as streams of changes are when they are turned off.
    pub async fn run_to_end(self) -> Result<Ending> {
        match self.work(true).await {
            Err(Error::StreamNotFound(_)) => Ok(Ending::Gone),
            ending => ending,
        }
    }

    async fn work(self, to_end: bool) -> Result<Ending> {
        let Some(table) = self.open().await? else { return Ok(Ending::Stopped) };
        tracing::info!(application = %self.settings.application, worker = %self.settings.worker,
            layout = ?table.layout(), "a consumer begins");
        let book = Arc::new(Book::default());
        let renewing = {
            let (book, settings) = (book.clone(), self.settings.clone());
            Attached::spawn(async move { supervised("renewal", || renew_all(&book, &settings)).await })
        };
        let ports = Ports {
            source: self.source.clone(),
            table,
            factory: self.factory.clone(),
            memory: Memory::new(self.settings.memory_bytes),
        };
        let coordinate = || {
            let (ports, settings, book) = (ports.clone(), self.settings.clone(), book.clone());
            let mut coordinator = Coordinator::new(ports, settings, book, self.stop.clone(), to_end);
            async move { coordinator.run().await }
        };
        let ending = supervised("coordinator", coordinate).await;
        drop(renewing);
        tracing::info!(worker = %self.settings.worker, "a consumer has ended");
        Ok(ending)
    }

    /// Opens the tables and waits for the streams. None if the worker was stopped meanwhile.
    async fn open(&self) -> Result<Option<LeaseTable>> {
        tokio::select! {
            biased;
            () = self.stop.raised() => Ok(None),
            opened = self.open_patiently() => opened.map(Some),
        }
    }

    async fn open_patiently(&self) -> Result<LeaseTable> {
        for choice in &self.settings.streams {
            self.patiently(|| self.source.shards(&choice.name, None, 1)).await?;
        }
        let settings = &self.settings;
        self.patiently(|| {
            let (tables, names) = (self.tables.clone(), self.names.clone());
            let now = settings.clock.now().as_millis();
            LeaseTable::open(tables, names, settings.call_max(), now, &settings.worker)
        })
        .await
    }

    /// Tries again what may succeed later.
    async fn patiently<T, F: Future<Output = Result<T>>>(&self, call: impl Fn() -> F) -> Result<T> {
        let mut attempts = 0;
        loop {
            let error = match call().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if error.next_move() != anabranch_model::NextMove::Retry {
                return Err(error);
            }
            attempts += 1;
            tracing::warn!(%error, attempts, "a consumer cannot begin yet");
            pause(self.settings.dice.pause(attempts, START_PAUSE_FIRST, START_PAUSE_MAX)).await;
        }
    }
}

/// Runs a task of ours, and again when it panics.
async fn supervised<F: Future>(task: &'static str, run: impl Fn() -> F) -> F::Output {
    loop {
        let panic = match AssertUnwindSafe(run()).catch_unwind().await {
            Ok(ended) => return ended,
            Err(panic) => panic,
        };
        metrics::task_panicked(task);
        tracing::error!(task, why = panic_text(&*panic), "a task panicked; it begins anew");
        pause(RESTART_PAUSE).await;
    }
}

impl ConsumerBuilder {
    /// What this worker is called. Unique; otherwise host, address and a random suffix.
    pub fn worker(mut self, worker: &str) -> Self {
        self.settings.worker = worker.into();
        self
    }

    /// The template for the name of the table of leases; `{app}` stands for the application.
    pub fn table_template(mut self, template: &str) -> Self {
        self.template = template.to_owned();
        self
    }

    /// Where reading starts in what the application has not read yet.
    pub fn initial_position(mut self, initial: InitialPosition) -> Self {
        self.settings.initial = initial;
        self
    }

    /// How long a lease holds without renewal; a worker that dies is replaced this much later, and a second.
    pub fn lease_time(mut self, time: Duration) -> Self {
        self.settings.lease_time = time;
        self
    }

    /// Most leases that this worker takes.
    pub fn leases_max(mut self, leases: usize) -> Self {
        self.settings.leases_max = leases;
        self
    }

    /// How often progress is written down.
    pub fn checkpoint_every(mut self, interval: Duration) -> Self {
        self.settings.checkpoint_every = interval;
        self
    }

    /// How long records under way may take when a shard is handed over or the worker stops.
    pub fn drain_max(mut self, time: Duration) -> Self {
        self.settings.drain_max = time;
        self
    }

    /// How long one call to a processor may take.
    pub fn process_max(mut self, time: Duration) -> Self {
        self.settings.process_max = time;
        self
    }

    /// How long a shard may stand still before it is begun anew.
    pub fn stall_max(mut self, time: Duration) -> Self {
        self.settings.stall_max = time;
        self
    }

    /// How often the leader compares leases and shards.
    pub fn sync_every(mut self, interval: Duration) -> Self {
        self.settings.sync_every = interval;
        self
    }

    /// Most records of one shard that are fetched or delivered and not acknowledged, and the bytes of those that are delivered
    /// after which reading waits.
    pub fn in_flight(mut self, records: usize, bytes: usize) -> Self {
        (self.settings.in_flight_records, self.settings.in_flight_bytes) = (records, bytes);
        self
    }

    /// Most records in one call to a processor.
    pub fn batch_records(mut self, records: usize) -> Self {
        self.settings.batch_records = records;
        self
    }

    /// Bytes that records of all shards together take, from before they are read until the processor has answered; a
    /// single record that is larger comes all the same. What a processor defers counts for [`in_flight`](Self::in_flight) of its
    /// shard alone.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.settings.memory_bytes = bytes;
        self
    }

    /// How long polling waits after it found nothing.
    pub fn poll_idle(mut self, time: Duration) -> Self {
        self.settings.poll_idle = time;
        self
    }

    /// How records are fetched.
    pub fn reading(mut self, reading: Reading) -> Self {
        self.settings.reading = reading;
        self
    }

    /// What an even load is.
    pub fn balance(mut self, by: BalanceBy) -> Self {
        self.settings.balance = by;
        self
    }

    /// What happens to records that cannot be processed.
    pub fn failure(mut self, policy: FailurePolicy) -> Self {
        self.settings.failure = policy;
        self
    }

    /// Where payloads lie that were too large for a record; records then come with them. Without it a processor gets the
    /// [`Pointer`](anabranch_model::Pointer).
    pub fn payloads(mut self, blobs: Arc<dyn BlobStore>) -> Self {
        self.settings.payloads = Some(blobs);
        self
    }

    /// Another clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.settings.clock = clock;
        self
    }

    /// The beginning of all chance, for runs that can be repeated.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The worker, if it can be one.
    pub fn build(mut self) -> Result<Consumer> {
        let seed = match self.seed {
            Some(seed) => seed,
            None => random()?,
        };
        self.settings.dice = Dice::new(seed);
        self.settings.failure.attempts = self.settings.failure.attempts.max(1);
        if self.settings.worker.is_empty() {
            self.settings.worker = name::unique(self.settings.dice.roll());
        }
        self.settings.check()?;
        let capabilities = self.source.capabilities();
        if matches!(self.settings.initial, InitialPosition::AtTimestamp(_)) && !capabilities.at_timestamp {
            return Err(Error::Invalid(
                "this source cannot be read from a moment on: choose the oldest or the newest record"
                    .to_owned(),
            ));
        }
        Ok(Consumer {
            source: self.source,
            tables: self.tables,
            factory: self.factory,
            names: TableNames::new(&self.template, &self.settings.application)?,
            settings: Arc::new(self.settings),
            stop: Flag::default(),
        })
    }
}

fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::Misconfigured(format!("the system gives no random numbers: {error}")))?;
    Ok(u64::from_le_bytes(bytes))
}
