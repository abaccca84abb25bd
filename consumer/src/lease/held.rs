//! A lease that this worker holds. Its writes go one after another, each with the counter that the one before wrote. A renewal
//! says how far the shard is processed, and a checkpoint renews: both are the same write, so neither costs one of its own.
//!
//! What must hold: a lease is given up as soon as another write is seen, and at the latest when its time has passed on the
//! own stopwatch since the last renewal *began*; nobody else may have begun to count earlier.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::table::{Item, Write};
use anabranch_model::{Error, ShardId, Timestamp};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::checkpoint::Checkpoint;
use super::item::Lease;
use super::table::LeaseTable;
use super::throughput::Throughput;
use super::write::{self, Progress};
use crate::acknowledge::Tracker;
use crate::delivery::ShardInfo;
use crate::metrics;
use crate::settings::Settings;

/// How often one write is tried: once more for a handoff, and once more for a doubt.
const ATTEMPTS_MAX: usize = 3;

/// What a lease says to its pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Go on.
    Owned,
    /// Someone else is to have it: finish what is under way and hand it over.
    HandOver,
    /// It is gone: stop at once.
    Lost(Loss),
}

/// How a lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Another worker has it, or somebody took it away.
    Taken,
    /// Someone else writes with the name of this worker.
    Twin,
    /// It could not be renewed in time.
    Expired,
    /// It was given up.
    Released,
}

/// What `LATEST` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// What comes behind this.
    Behind(Checkpoint),
    /// What arrives at this moment or later: nothing has, so far.
    Since(Timestamp),
}

/// A lease that this worker holds.
pub(crate) struct Held {
    pub(crate) info: ShardInfo,
    settings: Arc<Settings>,
    table: LeaseTable,
    /// Held for the length of a write, so that writes go one after another.
    fence: tokio::sync::Mutex<Fence>,
    seen: Mutex<Seen>,
    signal: watch::Sender<Signal>,
}

/// What the next write is conditional on.
struct Fence {
    counter: u64,
    /// When the first write began that may or may not have been carried out, if there is one.
    doubted_since: Option<Duration>,
    /// The lease as it was read, to be put back if someone deletes it.
    lease: Lease,
}

impl Fence {
    /// From here on a write may have been carried out, until its answer says more: whoever waits for it may be dropped.
    /// Returns the doubt that there was before.
    fn doubt(&mut self, began: Duration) -> Option<Duration> {
        let before = self.doubted_since;
        self.doubted_since = before.or(Some(began));
        before
    }
}

/// What others look at without waiting for a write.
struct Seen {
    checkpoint: Checkpoint,
    /// What knows how far the shard is processed, once it is read.
    tracker: Option<Arc<Tracker>>,
    /// The moment that `LATEST` stands for.
    latest_since: Option<Timestamp>,
    /// When the last write that succeeded began, on the stopwatch.
    renewed_at: Duration,
    throughput: Throughput,
}

/// What it means that a condition did not hold.
enum Refused {
    /// The write had been carried out before.
    Done,
    /// It may be tried again.
    Again,
    Lost(Loss),
}

impl Held {
    /// A lease that a write which began at `since` made ours.
    pub(crate) fn new(
        lease: Lease,
        info: ShardInfo,
        settings: Arc<Settings>,
        table: LeaseTable,
        since: Duration,
    ) -> Arc<Self> {
        let seen = Seen {
            checkpoint: lease.checkpoint,
            tracker: None,
            latest_since: lease.latest_since,
            renewed_at: since,
            throughput: Throughput::new(lease.throughput_kbps, since),
        };
        Arc::new(Held {
            info,
            settings,
            table,
            fence: tokio::sync::Mutex::new(Fence { counter: lease.counter, doubted_since: None, lease }),
            seen: Mutex::new(seen),
            signal: watch::Sender::new(Signal::Owned),
        })
    }

    /// How far the shard is processed, as far as the table knows.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        self.seen.lock().checkpoint
    }

    /// From here on this says how far the shard is processed, and what writes to the lease writes that down.
    pub(crate) fn watch(&self, tracker: Option<Arc<Tracker>>) {
        self.seen.lock().tracker = tracker;
    }

    /// How far the shard is processed, if that is further than the table knows.
    fn news(&self) -> Option<Checkpoint> {
        let seen = self.seen.lock();
        let reached = seen.tracker.as_ref()?.watermark();
        (reached > seen.checkpoint).then_some(reached)
    }

    /// When the last write that succeeded began, on the stopwatch.
    pub(crate) fn written_at(&self) -> Duration {
        self.seen.lock().renewed_at
    }

    /// The moment that `LATEST` stands for, if that is written down.
    pub(crate) fn latest_since(&self) -> Option<Timestamp> {
        self.seen.lock().latest_since
    }

    /// Counts bytes that were read, for the throughput.
    pub(crate) fn count(&self, bytes: u64) {
        self.seen.lock().throughput.count(bytes);
    }

    pub(crate) fn signal(&self) -> watch::Receiver<Signal> {
        self.signal.subscribe()
    }

    pub(crate) fn is_lost(&self) -> bool {
        matches!(*self.signal.borrow(), Signal::Lost(_))
    }

    /// When the lease is given up unless a write succeeds, on the stopwatch.
    pub(crate) fn expires_at(&self) -> Duration {
        self.written_at() + self.settings.lease_time
    }

    /// Gives the lease up if its time has passed.
    pub(crate) fn expire(&self, now: Duration) {
        if now >= self.expires_at() {
            self.lose(Loss::Expired);
        }
    }

    /// Waits until the lease is lost.
    pub(crate) async fn lost(&self) -> Loss {
        let mut signal = self.signal.subscribe();
        loop {
            if let Signal::Lost(loss) = *signal.borrow_and_update() {
                return loss;
            }
            if signal.changed().await.is_err() {
                return Loss::Released;
            }
        }
    }

    pub(crate) fn lose(&self, loss: Loss) {
        self.signal.send_if_modified(|signal| {
            let first = !matches!(signal, Signal::Lost(_));
            if first {
                *signal = Signal::Lost(loss);
            }
            first
        });
    }

    /// Renews the lease, unless something was written since a moment. Says whether that is done with.
    pub(crate) async fn renew(&self, since: Duration) -> bool {
        let mut fence = self.fence.lock().await;
        if self.is_lost() || self.written_at() > since {
            return true;
        }
        let began = self.settings.clock.elapsed();
        let renewed = self.write_news(&mut fence).await;
        if let Err(error) = &renewed {
            self.complain(error, began);
        }
        renewed.is_ok()
    }

    /// Writes down how far the shard is processed, unless that is known or something was written since a moment. An error
    /// if it may be tried again.
    pub(crate) async fn checkpoint_unless(&self, since: Duration) -> Result<(), Error> {
        let mut fence = self.fence.lock().await;
        if self.is_lost() || self.written_at() > since || self.news().is_none() {
            return Ok(());
        }
        self.write_news(&mut fence).await
    }

    async fn write_news(&self, fence: &mut Fence) -> Result<(), Error> {
        let began = self.settings.clock.elapsed();
        let measured = self.seen.lock().throughput.measure(began);
        let (lease, mut progress) = (&self.info.lease, self.news().map(Progress::to));
        let write = |counter, progress: Option<&Progress>, handing_over| {
            write::renew(lease, counter, progress, measured.kbps, handing_over)
        };
        if self.write(fence, write, &mut progress, false).await? {
            self.seen.lock().throughput.wrote(measured);
            if let Some(progress) = progress {
                self.advanced(progress.checkpoint, began);
            }
        }
        Ok(())
    }

    /// Writes down what `LATEST` stands for. That is no progress, so what it says may even come before `LATEST` in the
    /// order of checkpoints: a shard without any record begins with the oldest one. False if the lease is lost.
    pub(crate) async fn write_start(&self, start: Start) -> Result<bool, Error> {
        let mut progress = Some(match start {
            Start::Behind(checkpoint) => Progress::to(checkpoint),
            Start::Since(moment) => Progress { since: Some(moment), ..Progress::to(Checkpoint::Latest) },
        });
        let mut fence = self.fence.lock().await;
        if self.is_lost() {
            return Ok(false);
        }
        let (lease, began) = (&self.info.lease, self.settings.clock.elapsed());
        let kbps = self.seen.lock().throughput.measure(began).kbps;
        let write = |counter, progress: Option<&Progress>, handing_over| {
            write::renew(lease, counter, progress, kbps, handing_over)
        };
        let written = self.write(&mut fence, write, &mut progress, false).await?;
        if let Some(progress) = progress.filter(|_| written) {
            fence.lease.latest_since = progress.since;
            let mut seen = self.seen.lock();
            (seen.checkpoint, seen.latest_since) = (progress.checkpoint, progress.since);
        }
        Ok(written)
    }

    /// The last checkpoint, with the shards that go on if it is the end of the shard. Whoever was to have the lease next
    /// has it then, and otherwise nobody. False if the lease is lost.
    pub(crate) async fn write_last(
        &self,
        reached: Checkpoint,
        children: Vec<ShardId>,
    ) -> Result<bool, Error> {
        let mut fence = self.fence.lock().await;
        if self.is_lost() {
            return Ok(false);
        }
        let began = self.settings.clock.elapsed();
        // A renewal may just have written more than the caller knew.
        let last = Progress { children, ..Progress::to(reached.max(self.checkpoint())) };
        let (lease, me) = (&self.info.lease, &self.settings.worker);
        let write = |counter, progress: Option<&Progress>, handing_over| match handing_over {
            true => write::hand_over(lease, counter, me, progress.unwrap_or(&last)),
            false => write::release(lease, counter, me, progress.unwrap_or(&last)),
        };
        let mut progress = Some(last.clone());
        let written = self.write(&mut fence, write, &mut progress, true).await?;
        if let Some(progress) = progress.filter(|_| written) {
            self.advanced(progress.checkpoint, began);
        }
        self.lose(Loss::Released);
        Ok(written)
    }

    /// The table knows a checkpoint, by a write that began at this moment.
    fn advanced(&self, checkpoint: Checkpoint, began: Duration) {
        let tracker = {
            let mut seen = self.seen.lock();
            seen.checkpoint = checkpoint;
            seen.tracker.clone()
        };
        if let Some(waited) = tracker.and_then(|tracker| tracker.written(checkpoint, began)) {
            let took = self.settings.clock.elapsed().saturating_sub(began);
            metrics::checkpointed(&self.settings.application, &self.info, waited, took);
        }
    }

    /// A write, and what follows from its answer; false if the lease is lost. What is written depends on the counter and
    /// on whether the lease is to be handed over. The progress is raised to what an earlier write of ours turns out to have
    /// written: the one that was to be written may come from a pipeline that began behind it.
    async fn write(
        &self,
        fence: &mut Fence,
        write: impl Fn(u64, Option<&Progress>, bool) -> Write,
        progress: &mut Option<Progress>,
        last: bool,
    ) -> Result<bool, Error> {
        for _ in 0..ATTEMPTS_MAX {
            let began = self.settings.clock.elapsed();
            let handing_over = *self.signal.borrow() == Signal::HandOver;
            let before = fence.doubt(began);
            let written = self.table.write(write(fence.counter, progress.as_ref(), handing_over)).await;
            let item = match written {
                Ok(_) => {
                    self.wrote(fence, fence.counter + 1, began);
                    return Ok(true);
                }
                Err(Error::ConditionFailed { item }) => {
                    fence.doubted_since = before;
                    item
                }
                Err(error) => return Err(error),
            };
            // A store need not show the item; what it is now is just as good.
            let item = match item {
                Some(item) => Some(item),
                None => self.read_item().await?,
            };
            match item {
                None => return self.put_back(fence, progress.as_ref(), last).await,
                Some(item) => match self.refused(fence, &item, progress.as_ref(), last)? {
                    Refused::Done => return Ok(true),
                    Refused::Again => {
                        if let Some(progress) = progress {
                            progress.raise(self.checkpoint());
                        }
                    }
                    Refused::Lost(loss) => {
                        self.lose(loss);
                        return Ok(false);
                    }
                },
            }
        }
        self.lose(Loss::Taken);
        Ok(false)
    }

    /// The condition did not hold. That need not mean that the lease is lost.
    fn refused(
        &self,
        fence: &mut Fence,
        item: &Item,
        progress: Option<&Progress>,
        last: bool,
    ) -> Result<Refused, Error> {
        let Some(lease) = Lease::read(item)? else { return Ok(Refused::Lost(Loss::Taken)) };
        let ours = lease.reader() == Some(&self.settings.worker);
        if let Some(since) = fence.doubted_since.filter(|_| lease.counter == fence.counter + 1) {
            // An earlier write of ours was carried out after all: this one, or another one before it. The last one gives
            // the lease away, so whoever still reads has not written it.
            let this = progress.is_none_or(|progress| progress.is_in(&lease));
            let gone = !ours && lease.checkpoint_owner.is_none();
            if this && if last { gone } else { ours } {
                self.note_handoff(&lease);
                self.accept(fence, &lease, since);
                return Ok(Refused::Done);
            }
            if ours {
                self.accept(fence, &lease, since);
            }
        }
        if !ours {
            return Ok(Refused::Lost(Loss::Taken));
        }
        if lease.counter != fence.counter {
            return Ok(Refused::Lost(Loss::Twin));
        }
        // Nothing but a wish to hand the lease over stands in the way.
        self.note_handoff(&lease);
        Ok(Refused::Again)
    }

    async fn read_item(&self) -> Result<Option<Item>, Error> {
        self.table.get(&self.table.names().leases, write::key(&self.info.lease)).await
    }

    /// Someone deleted the lease. It is put back with what is known, so that nothing is left out.
    async fn put_back(
        &self,
        fence: &mut Fence,
        progress: Option<&Progress>,
        last: bool,
    ) -> Result<bool, Error> {
        let began = self.settings.clock.elapsed();
        // Whoever looks must not take this lease for the one that was deleted. One more may be what a write made of it
        // whose answer is lost, and what an attempt to put it back wrote before.
        fence.counter += 2;
        let lease = Lease {
            owner: (!last).then(|| self.settings.worker.clone()),
            checkpoint_owner: None,
            counter: fence.counter,
            checkpoint: progress.map_or(self.checkpoint(), |progress| progress.checkpoint),
            children: progress.map_or_else(Vec::new, |progress| progress.children.clone()),
            ..fence.lease.clone()
        };
        let before = fence.doubt(began);
        match self.table.create(&lease).await {
            Ok(true) => {
                tracing::warn!(lease = %lease.key, checkpoint = %lease.checkpoint, "put a deleted lease back");
                self.wrote(fence, lease.counter, began);
                Ok(true)
            }
            Ok(false) => {
                fence.doubted_since = before;
                self.lose(Loss::Taken);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// A write that was in doubt since a moment had been carried out.
    fn accept(&self, fence: &mut Fence, lease: &Lease, since: Duration) {
        self.wrote(fence, lease.counter, since);
        let mut seen = self.seen.lock();
        seen.checkpoint = seen.checkpoint.max(lease.checkpoint);
    }

    fn wrote(&self, fence: &mut Fence, counter: u64, began: Duration) {
        fence.counter = counter;
        fence.doubted_since = None;
        self.seen.lock().renewed_at = began;
    }

    /// Looks whether somebody wants the lease to be handed over.
    pub(crate) fn note_handoff(&self, lease: &Lease) {
        if lease.checkpoint_owner.as_ref() != Some(&self.settings.worker) {
            return;
        }
        let asked = self.signal.send_if_modified(|signal| {
            let news = *signal == Signal::Owned;
            if news {
                *signal = Signal::HandOver;
            }
            news
        });
        if asked {
            let next = lease.owner.as_deref().unwrap_or("nobody");
            tracing::info!(lease = %self.info.lease, next, "asked to hand the lease over");
        }
    }

    /// Gives the lease up if somebody else has written to it since and it is not ours any more: taken, or its checkpoint
    /// was set from outside. Waiting for the next renewal to be refused would only deliver more records in vain.
    pub(crate) fn note_loss(&self, lease: &Lease) {
        // While a write is under way or in doubt the answer to it says what is the case.
        let Ok(fence) = self.fence.try_lock() else { return };
        let news = fence.doubted_since.is_none() && lease.counter > fence.counter;
        if news && lease.reader() != Some(&self.settings.worker) {
            self.lose(Loss::Taken);
        }
    }

    fn complain(&self, error: &Error, began: Duration) {
        metrics::renewal_failed();
        let left = self.expires_at().saturating_sub(began);
        tracing::warn!(lease = %self.info.lease, %error, left_ms = left.as_millis() as u64, "renewal failed");
    }
}
