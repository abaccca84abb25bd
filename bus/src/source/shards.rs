//! A bot on shards: the consumer reads, holds the leases and writes the checkpoints, and this tells it what became of each
//! record.

use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{
    Consumer, Delivery, FailurePolicy, InitialPosition, Outcome as Said, Processor, ProcessorFactory,
    Received, ShardInfo, StreamChoice,
};
use anabranch_model::{Result, ShardSource, TableStore};
use async_trait::async_trait;
use tokio::sync::watch;

use crate::batcher::{BatchLimits, Batcher, Waiting};
use crate::event::Event;
use crate::line::Line;
use crate::pause::stopped;
use crate::sink::Outcome;

/// The longest that a call to the line takes in the eyes of the consumer. A sink that is down is waited for, and the line
/// has limits of its own for everything else.
const PROCESS_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
/// How long records that are under way may take when a shard goes to another worker, or the bot stops.
const DRAIN_MAX: Duration = Duration::from_secs(20);
/// The same where records wait for their batch: they wait for nothing else, and are written when this is over.
const DRAIN_BATCH_MAX: Duration = Duration::from_secs(1);

/// Shards that a bot reads.
pub struct Shards {
    /// Whose they are.
    pub source: Arc<dyn ShardSource>,
    /// Their stream.
    pub stream: StreamChoice,
    /// Where the leases are kept.
    pub tables: Arc<dyn TableStore>,
    /// The table of the leases.
    pub lease_table: String,
    /// Where reading starts the first time.
    pub initial: InitialPosition,
    /// How long a lease holds without renewal.
    pub lease_time: Duration,
    /// How often progress is written down.
    pub checkpoint_every: Duration,
    /// What this worker is called; a unique name if there is none.
    pub worker: Option<String>,
}

impl Shards {
    /// The shards of a stream, with the times that most want.
    pub fn new(
        source: Arc<dyn ShardSource>,
        stream: StreamChoice,
        tables: Arc<dyn TableStore>,
        lease_table: &str,
    ) -> Self {
        Shards {
            source,
            stream,
            tables,
            lease_table: lease_table.to_owned(),
            initial: InitialPosition::TrimHorizon,
            lease_time: Duration::from_secs(10),
            checkpoint_every: Duration::from_secs(10),
            worker: None,
        }
    }

    /// Reads until the bot is stopped.
    pub(crate) async fn run(
        self,
        line: Arc<Line>,
        batch: Option<BatchLimits>,
        failure: FailurePolicy,
        mut stop: watch::Receiver<bool>,
    ) -> Result<()> {
        let factory = Factory { line: line.clone(), batch, stop: stop.clone() };
        let mut builder = Consumer::builder(
            &line.bot,
            [self.stream],
            self.source,
            self.tables,
            line.clock.clone(),
            factory,
        )
        .table_template(&self.lease_table)
        .initial_position(self.initial)
        .lease_time(self.lease_time)
        .checkpoint_every(self.checkpoint_every)
        .process_max(PROCESS_MAX)
        .drain_max(if batch.is_some() { DRAIN_BATCH_MAX } else { DRAIN_MAX })
        .failure(failure);
        if let Some(limits) = batch {
            // What waits for its batch is in flight: a whole one, and what is gathered while it is written.
            builder = builder
                .in_flight(limits.records.saturating_mul(2), limits.bytes.saturating_mul(2))
                .memory(limits.bytes.saturating_mul(2).max(64 << 20));
        }
        if let Some(worker) = &self.worker {
            builder = builder.worker(worker);
        }
        let consumer = builder.build()?;
        let handle = consumer.handle();
        let running = consumer.run();
        tokio::pin!(running);
        tokio::select! {
            biased;
            ended = &mut running => return ended,
            () = stopped(&mut stop) => handle.shutdown(),
        }
        running.await
    }
}

struct Factory {
    line: Arc<Line>,
    batch: Option<BatchLimits>,
    stop: watch::Receiver<bool>,
}

impl ProcessorFactory for Factory {
    fn make(&self, _: &ShardInfo) -> Box<dyn Processor> {
        let batcher = self.batch.map(|limits| Batcher::spawn(self.line.clone(), limits, self.stop.clone()));
        Box::new(OnShard { line: self.line.clone(), batcher })
    }
}

struct OnShard {
    line: Arc<Line>,
    batcher: Option<Batcher>,
}

#[async_trait]
impl Processor for OnShard {
    async fn process(&mut self, delivery: Delivery) -> Vec<Said> {
        self.line.meter.behind(delivery.behind);
        let Delivery { shard, records, .. } = delivery;
        let Some(batcher) = &self.batcher else {
            let events = records.iter().map(|record| Event::of_record(&shard, record)).collect();
            return self.line.process(events).await.into_iter().map(said).collect();
        };
        let (mut outcomes, mut events) =
            (Vec::with_capacity(records.len()), Vec::with_capacity(records.len()));
        for record in &records {
            outcomes.push(gather(&self.line, &mut events, &shard, record).await);
            // Steps that wait for nothing would keep a thread for as long as all of this takes.
            tokio::task::consume_budget().await;
        }
        batcher.take(events).await;
        outcomes
    }

    async fn shutdown(&mut self) {
        if let Some(batcher) = &self.batcher {
            batcher.flush(DRAIN_MAX).await;
        }
    }

    async fn lease_lost(&mut self) {
        self.batcher = None;
    }
}

/// Sends a record through the steps; what comes of it is for the batcher.
async fn gather(line: &Line, events: &mut Vec<Waiting>, shard: &ShardInfo, record: &Received) -> Said {
    let event = Event::of_record(shard, record);
    let at = event.at;
    match line.prepare(event).await {
        Ok(parts) if parts.is_empty() => {
            line.ended(&Outcome::Done, at);
            Said::Done
        }
        Ok(parts) => {
            events.extend(Waiting::parts(parts, record.defer(), line.clock.elapsed()));
            Said::Deferred
        }
        Err(outcome) => {
            line.ended(&outcome, at);
            said(outcome)
        }
    }
}

fn said(outcome: Outcome) -> Said {
    match outcome {
        Outcome::Done => Said::Done,
        Outcome::Failed(why) | Outcome::Refused(why) | Outcome::Unavailable(why) => Said::Failed(why),
    }
}
