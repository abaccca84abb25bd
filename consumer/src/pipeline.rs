//! One shard, from the first fetch to the last checkpoint.
//!
//! ```text
//!   reading ──▶ lease lost ──────────────▶ stopped at once
//!      │ ├────▶ asked to go ──▶ draining ──▶ last checkpoint ──▶ released, or handed over
//!      │ ├────▶ halted ──────▶ (lost or asked to go)
//!      │ └────▶ gone
//!      └──────▶ read to the end ──▶ all acknowledged ──▶ leases of the children ──▶ shard end
//! ```

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Error, Result, ShardId, ShardSource};
use tokio::sync::mpsc;

use crate::attached::Attached;
use crate::delivery::Received;
use crate::fetch::{self, Fetched, Fetcher, Memory, Share};
use crate::flag::Flag;
use crate::lease::held::{Held, Loss, Signal};
use crate::lease::{Checkpoint, Lease, LeaseTable};
use crate::metrics::{self, LeaseEvent};
use crate::pause::pause;
use crate::processor::ProcessorFactory;
use crate::settings::{Settings, StreamChoice};
use crate::shards;
use crate::watchdog::Progress;
use crate::work::{Halted, Work};

/// Batches that are fetched ahead of the one that is processed.
const AHEAD: usize = 1;
/// How often a merged shard waits for the lease of its other parent. A parent that never gets one must not stop it for ever.
const PARENT_WAITS_MAX: u32 = 100;
/// How often the end of a shard is looked for. A source that cannot say it is read from there all the same.
const END_SEARCHES_MAX: u32 = 3;
/// Pauses between attempts at a last write: the longest first one, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How a pipeline ended.
#[derive(Debug)]
pub(crate) enum End {
    Lost(Loss),
    /// The lease was given back, or handed over.
    Released,
    /// The shard is processed to its end.
    Finished,
    /// It is processed to its end, but what continues it must wait for a shard that comes before: the lease was given
    /// back until then.
    TooEarly,
    /// The shard or its stream does not exist.
    Gone(Error),
    /// The task that fetches panicked; the lease is still ours.
    Broken,
}

/// What one shard needs.
pub(crate) struct Pipeline {
    pub(crate) held: Arc<Held>,
    pub(crate) choice: StreamChoice,
    pub(crate) source: Arc<dyn ShardSource>,
    pub(crate) table: LeaseTable,
    pub(crate) settings: Arc<Settings>,
    pub(crate) factory: Arc<dyn ProcessorFactory>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) memory: Arc<Memory>,
    /// The worker stops.
    pub(crate) stop: Flag,
}

/// Why reading ended.
enum Read {
    AskedToGo,
    Ended(Vec<ShardId>),
    Gone(Error),
    Broken,
    Halted(Halted),
}

impl Pipeline {
    /// Runs to the end.
    pub(crate) async fn run(self) -> End {
        // What an earlier pipeline of the shard did is not known here, and must not be mixed up with where this one begins.
        self.held.watch(None);
        let settled = tokio::select! {
            biased;
            loss = self.held.lost() => return End::Lost(loss),
            () = self.asked_to_go() => Ok(()),
            settled = self.settle_start() => settled,
        };
        if let Err(gone) = settled {
            return End::Gone(gone);
        }
        let from = self.held.checkpoint();
        let begin = Work::begin(
            self.held.info.clone(),
            from,
            self.settings.clone(),
            self.factory.clone(),
            self.progress.clone(),
        );
        let mut work = tokio::select! {
            biased;
            loss = self.held.lost() => return End::Lost(loss),
            work = begin => work,
        };
        self.progress.watch(&work.tracker);
        self.held.watch(Some(work.tracker.clone()));
        let read = tokio::select! {
            biased;
            loss = self.held.lost() => Err(loss),
            read = self.read(&mut work, from) => Ok(read),
            () = self.checkpoint_regularly() => Err(Loss::Released),
        };
        self.progress.excuse(true);
        match read {
            Err(loss) => {
                work.lease_lost().await;
                End::Lost(loss)
            }
            Ok(Read::Gone(error)) => {
                work.lease_lost().await;
                End::Gone(error)
            }
            Ok(Read::Broken) => End::Broken,
            Ok(Read::AskedToGo | Read::Halted(_)) => self.go(work).await,
            Ok(Read::Ended(children)) => self.end(work, children).await,
        }
    }

    /// Finds out what `LATEST` stands for and writes it down, before anything is read: whoever has the lease next goes on
    /// there. An error if there is no shard.
    async fn settle_start(&self) -> Result<()> {
        if self.held.checkpoint() != Checkpoint::Latest || self.held.latest_since().is_some() {
            return Ok(());
        }
        let shard = &self.held.info.shard;
        let mut attempts = 0;
        let start = loop {
            let error = match fetch::find_end(&self.source, &self.held.info).await {
                Ok(Some(start)) => break start,
                Ok(None) => return Ok(()),
                Err(error @ (Error::ShardNotFound(..) | Error::StreamNotFound(_))) => return Err(error),
                Err(error) => error,
            };
            attempts += 1;
            tracing::warn!(%shard, %error, attempts, "the end of the shard cannot be found");
            if attempts >= END_SEARCHES_MAX {
                return Ok(());
            }
            pause(self.settings.dice.pause(attempts, PAUSE_FIRST, PAUSE_MAX)).await;
        };
        let mut attempts = 0;
        while let Err(error) = self.held.write_start(start).await {
            attempts += 1;
            tracing::warn!(%shard, %error, attempts, "where the shard begins cannot be written");
            pause(self.settings.dice.pause(attempts, PAUSE_FIRST, PAUSE_MAX)).await;
        }
        Ok(())
    }

    /// A shard that halts keeps no memory that others could use: what was fetched ahead is dropped.
    async fn read(&self, work: &mut Work, from: Checkpoint) -> Read {
        match self.read_on(work, from).await {
            Read::Halted(halted) => {
                work.tracker.forget_payloads();
                self.halt(halted).await
            }
            read => read,
        }
    }

    async fn read_on(&self, work: &mut Work, from: Checkpoint) -> Read {
        let (out, mut fetched) = mpsc::channel(AHEAD);
        let fetcher = Fetcher {
            source: self.source.clone(),
            shard: self.held.info.clone(),
            latest_since: self.held.latest_since(),
            settings: self.settings.clone(),
            tracker: work.tracker.clone(),
            progress: self.progress.clone(),
            share: Share::new(&self.memory, self.settings.in_flight_bytes),
        };
        let _fetching = Attached::spawn(fetcher.run(from, out));
        let mut end = None;
        loop {
            let tracker = work.tracker.clone();
            let changed = tracker.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if tracker.has_failed() {
                self.progress.excuse(true);
                let redelivered = self.until_asked(work.redeliver_failed()).await;
                self.progress.excuse(false);
                match redelivered {
                    Some(Ok(())) => continue,
                    Some(Err(halted)) => return Read::Halted(halted),
                    None => return Read::AskedToGo,
                }
            }
            if tracker.load().0 == 0
                && let Some(end) = end.take()
            {
                return end;
            }
            tokio::select! {
                biased;
                () = self.asked_to_go() => return Read::AskedToGo,
                () = &mut changed => {}
                next = fetched.recv(), if end.is_none() => match next {
                    Some(Fetched::Records { records, behind, bytes, room }) => {
                        self.held.count(bytes as u64);
                        match self.deliver(work, records, behind).await {
                            Some(Ok(())) => {}
                            Some(Err(halted)) => return Read::Halted(halted),
                            None => return Read::AskedToGo,
                        }
                        drop(room);
                    }
                    Some(Fetched::Ended(children)) => {
                        self.progress.excuse(false);
                        end = Some(Read::Ended(children));
                    }
                    Some(Fetched::Gone(error)) => end = Some(Read::Gone(error)),
                    // The fetcher ended without a word, so it panicked.
                    None => return Read::Broken,
                },
            }
        }
    }

    /// Delivers records in batches. None if the worker was asked to go meanwhile and they took too long.
    async fn deliver(
        &self,
        work: &mut Work,
        mut records: Vec<Received>,
        behind: Duration,
    ) -> Option<std::result::Result<(), Halted>> {
        while !records.is_empty() {
            if self.is_asked_to_go() {
                return None;
            }
            let rest = records.split_off(records.len().min(self.settings.batch_records));
            let newest = records.last().map(|record| record.arrival);
            self.progress.excuse(true);
            let delivered = self.until_asked(work.deliver(records, behind)).await;
            self.progress.excuse(false);
            match delivered {
                Some(Ok(())) => {}
                other => return other,
            }
            if let Some(arrival) = newest {
                metrics::processed_age(&self.held.info, self.settings.clock.now().since(arrival));
            }
            records = rest;
        }
        Some(Ok(()))
    }

    /// The answer of a call to the processor; none if it takes too long after the worker was asked to go.
    async fn until_asked<T>(&self, call: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(call);
        tokio::select! {
            biased;
            answer = &mut call => Some(answer),
            () = self.asked_to_go() => {
                tokio::time::timeout(self.settings.drain_max, &mut call).await.ok()
            }
        }
    }

    /// Stands still until the lease goes somewhere else.
    async fn halt(&self, halted: Halted) -> Read {
        let Halted { at, why } = halted;
        metrics::halted(&self.held.info);
        tracing::error!(shard = %self.held.info.shard, %at, why, "halted: a record cannot be processed");
        self.progress.excuse(true);
        self.asked_to_go().await;
        Read::AskedToGo
    }

    fn is_asked_to_go(&self) -> bool {
        self.stop.is_raised() || *self.held.signal().borrow() == Signal::HandOver
    }

    async fn asked_to_go(&self) {
        let mut signal = self.held.signal();
        let asked = async {
            // A sender that is gone has nothing more to say.
            if signal.wait_for(|signal| *signal == Signal::HandOver).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = self.stop.raised() => {}
            () = asked => {}
        }
    }

    /// Writes down how far everything is acknowledged where that is wanted more often than the lease is renewed: every renewal
    /// does it too.
    async fn checkpoint_regularly(&self) {
        let (clock, every) = (&self.settings.clock, self.settings.checkpoint_every);
        // Shards that began together do not all write at the same moment.
        let mut wait = self.settings.dice.between(every / 2, every);
        loop {
            pause(wait).await;
            let lately = clock.elapsed().saturating_sub(every);
            wait = match self.held.checkpoint_unless(lately).await {
                // Without anything new the last write may be older than that.
                Ok(()) => (self.held.written_at() + every).checked_sub(clock.elapsed()).unwrap_or(every),
                Err(error) => {
                    tracing::warn!(shard = %self.held.info.shard, %error, "a checkpoint cannot be written");
                    every / 4
                }
            };
            wait = wait.max(PAUSE_FIRST);
        }
    }

    /// Waits for what is under way, writes the last checkpoint and lets the lease go.
    async fn go(&self, mut work: Work) -> End {
        let handed_over = *self.held.signal().borrow() == Signal::HandOver;
        let tracker = work.tracker.clone();
        let drained = async {
            loop {
                let changed = tracker.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if tracker.load().0 == 0 || !tracker.has_deferred() {
                    return;
                }
                changed.await;
            }
        };
        let leave = async {
            if tokio::time::timeout(self.settings.drain_max, drained).await.is_err() {
                tracing::warn!(shard = %self.held.info.shard, "records were not acknowledged in time");
            }
            work.shutdown().await;
            self.write_last(|| tracker.watermark(), Vec::new()).await
        };
        let left = tokio::select! {
            biased;
            left = leave => left,
            loss = self.held.lost() => Err(loss),
        };
        match left {
            Ok(()) => {
                metrics::lease(if handed_over { LeaseEvent::HandedOver } else { LeaseEvent::Released });
                End::Released
            }
            Err(loss) => {
                work.lease_lost().await;
                End::Lost(loss)
            }
        }
    }

    /// Everything is acknowledged: the children can begin.
    async fn end(&self, mut work: Work, children: Vec<ShardId>) -> End {
        let ended_at = work.tracker.watermark();
        let finish = async {
            let mut attempts = 0;
            let early = loop {
                let error = match self.make_children(&children, ended_at, attempts).await {
                    Ok(made) => break !made,
                    Err(error) => error,
                };
                attempts += 1;
                let shard = &self.held.info.shard;
                tracing::warn!(%shard, %error, attempts, "the leases of the children cannot be made");
                // Whoever has the lease next reads nothing, and makes them.
                if self.is_asked_to_go() {
                    break true;
                }
                pause(self.settings.dice.pause(attempts, PAUSE_FIRST, PAUSE_MAX)).await;
            };
            if early {
                work.shutdown().await;
                self.write_last(|| ended_at, Vec::new()).await?;
                return Ok::<_, Loss>(End::TooEarly);
            }
            work.shard_ended().await;
            self.write_last(|| Checkpoint::ShardEnd, children.clone()).await?;
            Ok(End::Finished)
        };
        let finished = tokio::select! {
            biased;
            finished = finish => finished,
            loss = self.held.lost() => Err(loss),
        };
        match finished {
            Ok(end) => {
                let early = matches!(end, End::TooEarly);
                metrics::lease(if early { LeaseEvent::Released } else { LeaseEvent::Ended });
                end
            }
            Err(loss) => {
                work.lease_lost().await;
                End::Lost(loss)
            }
        }
    }

    /// False if a child has to wait until a shard is read that comes before it.
    async fn make_children(&self, children: &[ShardId], ended_at: Checkpoint, attempts: u32) -> Result<bool> {
        if children.is_empty() {
            return Ok(true);
        }
        let graph = shards::list(&self.source, &self.choice).await?;
        let leases = shards::children(&graph, children, &self.choice, ended_at)
            .ok_or_else(|| Error::Unavailable("the children of the shard are not listed yet".to_owned()))?;
        let known = self.table.leases().await?;
        let early = |lease: &Lease| !shards::parents_known(&graph, lease, &known, &self.choice);
        if leases.iter().any(|lease| shards::awaits_ancestor(&graph, lease, &known, &self.choice)) {
            return Ok(false);
        }
        if attempts < PARENT_WAITS_MAX && leases.iter().any(early) {
            return Err(Error::Unavailable("another parent of a child has no lease yet".to_owned()));
        }
        for lease in leases {
            let lease = Lease { counter: self.settings.first_counter(), ..lease };
            if self.table.create(&lease).await? {
                tracing::info!(lease = %lease.key, parent = %self.held.info.shard, "made the lease of a child");
            }
        }
        Ok(true)
    }

    async fn write_last(
        &self,
        watermark: impl Fn() -> Checkpoint,
        children: Vec<ShardId>,
    ) -> std::result::Result<(), Loss> {
        let mut attempts = 0;
        loop {
            match self.held.write_last(watermark(), children.clone()).await {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(Loss::Taken),
                Err(error) => {
                    attempts += 1;
                    tracing::warn!(shard = %self.held.info.shard, %error, "the last checkpoint cannot be written");
                    pause(self.settings.dice.pause(attempts, PAUSE_FIRST, PAUSE_MAX)).await;
                }
            }
        }
    }
}
