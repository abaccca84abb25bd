//! A bot on shards: the consumer reads, holds the leases and writes the checkpoints, and this tells it what became of each
//! record.

use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{
    Consumer, Delivery, Ending, FailurePolicy, InitialPosition, Outcome as Said, Processor, ProcessorFactory,
    Received, ShardInfo, StreamChoice, TableNames,
};
use anabranch_model::{Result, ShardSource, TableStore};
use async_trait::async_trait;
use tokio::sync::watch;

use super::lineage::{LOOK_EVERY, Lineage, Past};
use crate::batcher::{BatchLimits, Batcher, Waiting};
use crate::event::Event;
use crate::line::Line;
use crate::pause::{pause, stopped};
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
    /// What comes before it and behind its end; nothing, if the bot ends with being stopped only.
    pub lineage: Option<Arc<dyn Lineage>>,
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
            lineage: None,
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
        let reader = Reader { line: &line, batch, failure: &failure, stop: stop.clone() };
        let Some(lineage) = &self.lineage else {
            let running = self.consumer(&reader, &self.stream, self.initial)?;
            return running.run(stop, false).await.map(drop);
        };
        let names = TableNames::new(&self.lease_table, &line.bot)?;
        let past = Past { source: &self.source, tables: &self.tables, names, lineage: &**lineage };
        let resumed = tokio::select! {
            biased;
            () = stopped(&mut stop) => return Ok(()),
            resumed = past.resume(&self.stream) => resumed?,
        };
        let (mut stream, mut continues) = resumed;
        let mut has_begun = false;
        loop {
            // What continues a stream is read as a whole, wherever reading began the first time.
            let initial = if continues { InitialPosition::TrimHorizon } else { self.initial };
            if continues {
                past.tell_removed(&stream).await;
            }
            match self.consumer(&reader, &stream, initial)?.run(stop.clone(), true).await {
                Ok(Ending::Stopped) => return Ok(()),
                Ok(Ending::Finished) => {}
                Ok(Ending::Gone) => past.forget(&stream).await,
                Err(error) if has_begun => {
                    tracing::error!(bot = %line.bot, stream = %stream.name, %error, "a stream cannot be begun");
                    tokio::select! {
                        biased;
                        () = stopped(&mut stop) => return Ok(()),
                        () = pause(LOOK_EVERY) => continue,
                    }
                }
                Err(error) => return Err(error),
            }
            has_begun = true;
            let next = tokio::select! {
                biased;
                () = stopped(&mut stop) => return Ok(()),
                next = past.next(&stream) => next,
            };
            if next.name != stream.name {
                tracing::info!(bot = %line.bot, ended = %stream.name, next = %next.name,
                    "a stream of changes has ended; the bot goes on with the next one from its beginning");
                (stream, continues) = (next, true);
            }
        }
    }

    fn consumer(
        &self,
        reader: &Reader<'_>,
        stream: &StreamChoice,
        initial: InitialPosition,
    ) -> Result<Reading> {
        let Reader { line, batch, failure, stop } = reader;
        let factory = Factory { line: (*line).clone(), batch: *batch, stop: stop.clone() };
        let mut builder = Consumer::builder(
            &line.bot,
            [stream.clone()],
            self.source.clone(),
            self.tables.clone(),
            line.clock.clone(),
            factory,
        )
        .table_template(&self.lease_table)
        .initial_position(initial)
        .lease_time(self.lease_time)
        .checkpoint_every(self.checkpoint_every)
        .process_max(PROCESS_MAX)
        .drain_max(if batch.is_some() { DRAIN_BATCH_MAX } else { DRAIN_MAX })
        .failure((*failure).clone());
        if let Some(limits) = batch {
            // What waits for its batch is in flight: a whole one, and what is gathered while it is written.
            builder = builder
                .in_flight(limits.records.saturating_mul(2), limits.bytes.saturating_mul(2))
                .memory(limits.bytes.saturating_mul(2).max(64 << 20));
        }
        if let Some(worker) = &self.worker {
            builder = builder.worker(worker);
        }
        Ok(Reading(builder.build()?))
    }
}

/// What reads every stream of a bot.
struct Reader<'a> {
    line: &'a Arc<Line>,
    batch: Option<BatchLimits>,
    failure: &'a FailurePolicy,
    stop: watch::Receiver<bool>,
}

/// One stream of a bot.
struct Reading(Consumer);

impl Reading {
    async fn run(self, mut stop: watch::Receiver<bool>, to_end: bool) -> Result<Ending> {
        let handle = self.0.handle();
        let running = async {
            match to_end {
                true => self.0.run_to_end().await,
                false => self.0.run().await.map(|()| Ending::Stopped),
            }
        };
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
