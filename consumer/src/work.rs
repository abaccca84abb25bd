//! Calls the processor of a shard, and sees to it that every record comes to an end: see [`crate::failure`].

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Error, NextMove};
use futures_util::FutureExt;

use crate::acknowledge::Tracker;
use crate::dead_letter::Letter;
use crate::delivery::{Delivery, Outcome, Received, ShardInfo};
use crate::failure::Finally;
use crate::lease::Checkpoint;
use crate::metrics;
use crate::pause::pause;
use crate::processor::{Processor, ProcessorFactory};
use crate::settings::Settings;
use crate::watchdog::Progress;

/// The shard must stand still: a record was given up, and there is nowhere to put it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Halted {
    pub(crate) at: Checkpoint,
    pub(crate) why: String,
}

/// The processor of a shard with its records under way.
pub(crate) struct Work {
    pub(crate) shard: ShardInfo,
    pub(crate) tracker: Arc<Tracker>,
    settings: Arc<Settings>,
    factory: Arc<dyn ProcessorFactory>,
    processor: Box<dyn Processor>,
    progress: Arc<Progress>,
}

impl Work {
    /// Makes the processor of a shard and tells it where it begins.
    pub(crate) async fn begin(
        shard: ShardInfo,
        from: Checkpoint,
        settings: Arc<Settings>,
        factory: Arc<dyn ProcessorFactory>,
        progress: Arc<Progress>,
    ) -> Self {
        let processor = factory.make(&shard);
        let tracker = Tracker::new(from, settings.clock.clone());
        let mut work = Work { shard, tracker, settings, factory, processor, progress };
        work.initialize(from).await;
        work
    }

    /// Delivers records, and returns when each is done with or deferred.
    pub(crate) async fn deliver(
        &mut self,
        mut records: Vec<Received>,
        behind: Duration,
    ) -> Result<(), Halted> {
        self.tracker.admit(&mut records);
        self.deliver_admitted(records, behind).await
    }

    /// Delivers deferred records again that failed.
    pub(crate) async fn redeliver_failed(&mut self) -> Result<(), Halted> {
        for (record, why) in self.tracker.take_failed() {
            self.retry(record, why).await?;
        }
        Ok(())
    }

    /// Tells the processor that its lease is gone.
    pub(crate) async fn lease_lost(&mut self) {
        let call = AssertUnwindSafe(self.processor.lease_lost()).catch_unwind();
        limited(&self.settings, &self.shard, "lease_lost", call).await;
    }

    /// Tells the processor that the shard is at its end.
    pub(crate) async fn shard_ended(&mut self) {
        let call = AssertUnwindSafe(self.processor.shard_ended()).catch_unwind();
        limited(&self.settings, &self.shard, "shard_ended", call).await;
    }

    /// Tells the processor that it stops.
    pub(crate) async fn shutdown(&mut self) {
        let call = AssertUnwindSafe(self.processor.shutdown()).catch_unwind();
        limited(&self.settings, &self.shard, "shutdown", call).await;
    }

    async fn initialize(&mut self, from: Checkpoint) {
        let call = AssertUnwindSafe(self.processor.initialized(&self.shard, from)).catch_unwind();
        limited(&self.settings, &self.shard, "initialized", call).await;
    }

    /// Delivers a batch, and when it has failed often enough its halves, in order and once each.
    async fn deliver_admitted(&mut self, records: Vec<Received>, behind: Duration) -> Result<(), Halted> {
        let mut waiting = VecDeque::from([records]);
        let mut attempts = 0;
        while let Some(batch) = waiting.pop_front() {
            // Everything in it was acknowledged meanwhile.
            if batch.is_empty() {
                continue;
            }
            let why = match self.call(&batch, behind).await {
                Ok(outcomes) => {
                    self.conclude(batch, outcomes).await?;
                    continue;
                }
                Err(why) => why,
            };
            self.progress.advanced();
            attempts += 1;
            if batch.len() == 1 {
                for record in batch {
                    self.retry(record, why.clone()).await?;
                }
            } else if attempts < self.settings.failure.attempts {
                pause_after(&self.settings, attempts).await;
                waiting.push_front(self.again(batch));
            } else {
                let mut batch = self.again(batch);
                let upper = batch.split_off(batch.len() / 2);
                tracing::warn!(shard = %self.shard.shard, records = batch.len() + upper.len(), why, "bisecting");
                waiting.push_front(upper);
                waiting.push_front(batch);
            }
        }
        Ok(())
    }

    async fn conclude(&mut self, batch: Vec<Received>, outcomes: Vec<Outcome>) -> Result<(), Halted> {
        let mut failed = Vec::new();
        for (record, outcome) in batch.into_iter().zip(outcomes) {
            if let Some(why) = self.tracker.conclude(&record, outcome) {
                failed.push((record, why));
            }
        }
        self.progress.advanced();
        for (record, why) in failed {
            self.retry(record, why).await?;
        }
        Ok(())
    }

    /// Delivers one record that failed until it is processed or given up.
    async fn retry(&mut self, mut record: Received, mut why: String) -> Result<(), Halted> {
        loop {
            if self.tracker.is_done(&record) {
                return Ok(());
            }
            if record.attempt >= self.settings.failure.attempts {
                return self.give_up(record, why).await;
            }
            pause_after(&self.settings, record.attempt).await;
            if self.tracker.is_done(&record) {
                return Ok(());
            }
            self.tracker.redeliver(&mut record);
            metrics::retried(&self.shard);
            match self.call(std::slice::from_ref(&record), Duration::ZERO).await {
                Err(reason) => why = reason,
                Ok(outcomes) => {
                    match outcomes.into_iter().next().and_then(|o| self.tracker.conclude(&record, o)) {
                        Some(reason) => why = reason,
                        None => return Ok(()),
                    }
                }
            }
            self.progress.advanced();
        }
    }

    async fn give_up(&mut self, record: Received, why: String) -> Result<(), Halted> {
        let halted = |why: String| Halted { at: record.checkpoint(), why };
        let Finally::DeadLetter(to) = &self.settings.failure.finally else {
            return Err(halted(why));
        };
        let letter = Letter {
            application: &self.settings.application,
            shard: &self.shard,
            record: &record,
            why: &why,
            now: self.settings.clock.now(),
        };
        let mut attempts = 0;
        loop {
            let send = tokio::time::timeout(self.settings.process_max, letter.send(to));
            let sent = send.await.unwrap_or_else(|_| Err(Error::Unavailable("no answer".to_owned())));
            let Err(error) = sent else { break };
            if error.next_move() == NextMove::FixCall {
                return Err(halted(format!("{why}; and its dead letter cannot be written: {error}")));
            }
            attempts += 1;
            tracing::error!(shard = %self.shard.shard, %error, attempts, "a dead letter cannot be written");
            pause_after(&self.settings, attempts).await;
            self.progress.advanced();
        }
        metrics::dead_letter(&self.shard);
        let sequence = record.sequence;
        tracing::error!(shard = %self.shard.shard, %sequence, why, attempts = record.attempt, "dead letter");
        if let Some(seat) = &record.seat {
            self.tracker.finish(seat.index);
        }
        Ok(())
    }

    /// One call to the processor. An error if it failed as a whole.
    async fn call(&mut self, records: &[Received], behind: Duration) -> Result<Vec<Outcome>, String> {
        let delivery = Delivery { shard: self.shard.clone(), records: records.to_vec(), behind };
        let call = AssertUnwindSafe(self.processor.process(delivery)).catch_unwind();
        let why = match tokio::time::timeout(self.settings.process_max, call).await {
            Ok(Ok(outcomes)) if outcomes.len() == records.len() => return Ok(outcomes),
            Ok(Ok(outcomes)) => {
                format!("the processor said {} outcomes for {} records", outcomes.len(), records.len())
            }
            Ok(Err(panic)) => {
                let why = format!("the processor panicked: {}", panic_text(&*panic));
                // What a panic left behind is not to be trusted.
                self.processor = self.factory.make(&self.shard);
                self.initialize(self.tracker.watermark()).await;
                why
            }
            Err(_) => format!("the processor took longer than {} ms", self.settings.process_max.as_millis()),
        };
        metrics::failed_call(&self.shard);
        tracing::warn!(shard = %self.shard.shard, records = records.len(), why, "a call to the processor failed");
        Err(why)
    }

    /// The batch as it is delivered next, without what was acknowledged meanwhile.
    fn again(&self, mut batch: Vec<Received>) -> Vec<Received> {
        batch.retain(|record| !self.tracker.is_done(record));
        for record in &mut batch {
            self.tracker.redeliver(record);
        }
        metrics::retried(&self.shard);
        batch
    }
}

async fn pause_after(settings: &Settings, attempts: u32) {
    let policy = &settings.failure;
    pause(settings.dice.pause(attempts, policy.pause_first, policy.pause_max)).await;
}

/// A call to the processor that says nothing about records.
async fn limited(
    settings: &Settings,
    shard: &ShardInfo,
    what: &str,
    call: impl Future<Output = std::thread::Result<()>>,
) {
    let shard = &shard.shard;
    match tokio::time::timeout(settings.process_max, call).await {
        Ok(Ok(())) => {}
        Ok(Err(panic)) => {
            tracing::error!(%shard, what, why = panic_text(&*panic), "the processor panicked");
        }
        Err(_) => tracing::error!(%shard, what, "the processor took too long"),
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a text".to_owned())
}
