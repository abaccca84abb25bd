//! Workers in this process, and what they saw.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anabranch_consumer::{Application, Consumer, Delivery, Handle, Lease, StreamChoice, process_fn};
use anabranch_engine::{Engine, SystemClock};
use anabranch_model::{
    Clock, NewRecord, SequenceNumber, ShardId, ShardSource, StreamName, StreamStore, TableName, TableStore,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::runtime::pause;

/// Sights that wait to be looked at.
const SIGHTS_MAX: usize = 100_000;
/// How long anything may take that a bench waits for.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often the table is looked at while a bench waits.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Records of a load, and how often they are appended.
const LOAD_RECORDS: u64 = 40;
const LOAD_EVERY: Duration = Duration::from_millis(20);

/// A record that a worker saw.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    pub(super) worker: &'static str,
    pub(super) shard: ShardId,
    pub(super) at: Duration,
}

/// The workers of one application on one stream.
pub(super) struct Fleet {
    pub(super) engine: Engine,
    pub(super) stream: StreamName,
    pub(super) application: String,
    pub(super) lease_time: Duration,
    pub(super) checkpoint_every: Duration,
    pub(super) clock: Arc<SystemClock>,
    sender: mpsc::Sender<(&'static str, ShardId, Vec<SequenceNumber>, Duration)>,
    sights: mpsc::Receiver<(&'static str, ShardId, Vec<SequenceNumber>, Duration)>,
    seen: HashSet<(ShardId, SequenceNumber)>,
    /// Records that were seen more than once.
    pub(super) repeated: u64,
    /// Why a worker ended that nobody had stopped.
    broken: Arc<OnceLock<String>>,
}

/// A worker that runs.
pub(super) struct Worker {
    handle: Handle,
    task: JoinHandle<anabranch_model::Result<()>>,
}

impl Fleet {
    pub(super) fn new(engine: &Engine, stream: &StreamName, application: &str, lease_time: Duration) -> Self {
        let (sender, sights) = mpsc::channel(SIGHTS_MAX);
        Fleet {
            engine: engine.clone(),
            stream: stream.clone(),
            application: application.to_owned(),
            lease_time,
            checkpoint_every: Duration::from_secs(10),
            clock: Arc::new(SystemClock::new()),
            sender,
            sights,
            seen: HashSet::new(),
            repeated: 0,
            broken: Arc::default(),
        }
    }

    /// Starts a worker that notes what it sees.
    pub(super) fn start(&self, name: &'static str) -> Result<Worker, Failure> {
        let (sender, clock) = (self.sender.clone(), self.clock.clone());
        let processor = process_fn(move |delivery: Delivery| {
            let (sender, at) = (sender.clone(), clock.elapsed());
            async move {
                let numbers = delivery.records.iter().map(|record| record.sequence).collect();
                let outcomes = delivery.done();
                let told = sender.send((name, delivery.shard.shard, numbers, at)).await;
                // Nobody listens any more once the bench is over.
                if told.is_err() { Vec::new() } else { outcomes }
            }
        });
        self.start_with(name, processor)
    }

    pub(super) fn start_with(
        &self,
        name: &str,
        processor: impl anabranch_consumer::ProcessorFactory,
    ) -> Result<Worker, Failure> {
        let source: Arc<dyn ShardSource> = Arc::new(self.engine.clone());
        let tables: Arc<dyn TableStore> = Arc::new(self.engine.clone());
        let choice = [StreamChoice::only(self.stream.clone())];
        let clock = self.clock.clone();
        let consumer = Consumer::builder(&self.application, choice, source, tables, clock, processor)
            .worker(name)
            .lease_time(self.lease_time)
            .checkpoint_every(self.checkpoint_every)
            .build()?;
        let (handle, broken) = (consumer.handle(), self.broken.clone());
        let task = tokio::spawn(async move {
            let ended = consumer.run().await;
            if let Err(error) = &ended {
                let _ = broken.set(error.to_string());
            }
            ended
        });
        Ok(Worker { handle, task })
    }

    /// The next sight, of the first record of a delivery.
    pub(super) async fn sight(&mut self) -> Result<Sight, Failure> {
        let next = tokio::time::timeout(PATIENCE, self.sights.recv()).await;
        let Ok(Some((worker, shard, numbers, at))) = next else {
            self.check()?;
            return Err(late("no record comes"));
        };
        for number in numbers {
            if !self.seen.insert((shard.clone(), number)) {
                self.repeated += 1;
            }
        }
        Ok(Sight { worker, shard, at })
    }

    /// Waiting makes no sense for what a worker does not do any more.
    fn check(&self) -> Result<(), Failure> {
        match self.broken.get() {
            Some(why) => Err(Failure::new("bench", format!("a worker broke off: {why}"), "report this")),
            None => Ok(()),
        }
    }

    pub(super) async fn leases(&self) -> Result<Vec<Lease>, Failure> {
        let tables: Arc<dyn TableStore> = Arc::new(self.engine.clone());
        let name = TableName::new(&self.application)?;
        Ok(Application::open(tables, &name).await?.leases().await?)
    }

    /// Waits until the leases are as they should be; what is seen meanwhile is taken note of.
    pub(super) async fn until(&mut self, holds: impl Fn(&[Lease]) -> bool) -> Result<Vec<Lease>, Failure> {
        let began = self.clock.elapsed();
        loop {
            // There is no table before the first worker has made it.
            let leases = self.leases().await.unwrap_or_default();
            if !leases.is_empty() && holds(&leases) {
                return Ok(leases);
            }
            self.check()?;
            if self.clock.elapsed() - began > PATIENCE {
                return Err(late("the leases are not spread"));
            }
            pause(LOOK_EVERY).await;
            while !self.sights.is_empty() {
                self.sight().await?;
            }
        }
    }

    /// Appends records to all shards until it is dropped.
    pub(super) fn load(&self) -> Load {
        let (engine, stream) = (self.engine.clone(), self.stream.clone());
        Load(tokio::spawn(async move {
            let mut number = 0u64;
            loop {
                let numbers = number..number + LOAD_RECORDS;
                let records = numbers.map(|n| NewRecord::new(format!("key-{}", n % 997), n.to_string()));
                let stored = engine.append(&stream, records.collect()).await?;
                stored.into_iter().collect::<anabranch_model::Result<Vec<_>>>()?;
                number += LOAD_RECORDS;
                pause(LOAD_EVERY).await;
            }
        }))
    }
}

/// A task that appends.
pub(super) struct Load(JoinHandle<anabranch_model::Result<()>>);

impl Drop for Load {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Worker {
    /// Stops it in good order.
    pub(super) async fn stop(self) -> Result<(), Failure> {
        self.handle.shutdown();
        match self.task.await {
            Ok(ended) => Ok(ended?),
            Err(error) => Err(Failure::new("bench", format!("a worker broke off: {error}"), "report this")),
        }
    }

    /// Ends it as a crash would.
    pub(super) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// How many leases a worker reads.
pub(super) fn of(leases: &[Lease], worker: &str) -> usize {
    leases
        .iter()
        .filter(|lease| lease.owner.as_deref() == Some(worker) && lease.checkpoint_owner.is_none())
        .count()
}

pub(super) fn late(what: &str) -> Failure {
    Failure::new("bench", format!("{what} within {} s", PATIENCE.as_secs()), "report this")
}

pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
