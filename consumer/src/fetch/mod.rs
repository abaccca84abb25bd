//! Gets records from the source, ahead of the processor and no further than there is room.
//!
//! ```text
//!   source ──▶ poll or follow ──▶ open aggregates, drop what is processed ──▶ a short queue ──▶ pipeline
//!     ▲                                                                            │
//!     └──────────────── waits while enough is under way ◀──────────────────────────┘
//! ```

mod follow;
mod latest;
mod open;
mod payload;
mod poll;

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Batch, Error, Next, NextMove, Position, ShardId, ShardSource, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use self::follow::Following;
pub(crate) use self::latest::find_end;
use self::poll::Polling;
use crate::acknowledge::Tracker;
use crate::delivery::{Received, ShardInfo};
use crate::lease::Checkpoint;
use crate::lease::held::Start;
use crate::metrics;
use crate::pause::pause;
use crate::settings::{InitialPosition, Reading, Settings};
use crate::watchdog::Progress;

/// Pauses after a source that fails: the longest first one, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Permits of the memory are counted in pieces of this size.
const MEMORY_UNIT: usize = 1024;

/// What comes out of a shard.
pub(crate) enum Fetched {
    Records {
        records: Vec<Received>,
        behind: Duration,
        /// Bytes as they were read, for the throughput.
        bytes: usize,
        /// The memory that they take, until they are delivered.
        memory: Option<OwnedSemaphorePermit>,
    },
    /// The shard is read to its end, and these continue it.
    Ended(Vec<ShardId>),
    /// The shard or its stream does not exist.
    Gone(Error),
}

/// Everything that fetching needs.
pub(crate) struct Fetcher {
    pub(crate) source: Arc<dyn ShardSource>,
    pub(crate) shard: ShardInfo,
    /// The moment that `LATEST` stands for.
    pub(crate) latest_since: Option<Timestamp>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) tracker: Arc<Tracker>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) memory: Arc<Semaphore>,
}

/// Where batches come from.
enum Batches {
    Poll(Polling),
    Follow(Following),
}

impl Fetcher {
    /// Fetches until the end of the shard, or until nobody listens.
    pub(crate) async fn run(self, from: Checkpoint, out: mpsc::Sender<Fetched>) {
        let mut position = self.position(from);
        let mut covered = from;
        let mut batches = self.batches();
        let mut failures = 0;
        loop {
            self.room(&out).await;
            let batch = match batches.next(&self, position).await {
                Ok(batch) => batch,
                Err(error) => {
                    failures += 1;
                    batches = self.batches();
                    match self.recover(error, position, &mut covered, failures).await {
                        Ok(next) => position = next,
                        Err(gone) => {
                            let _ = out.send(Fetched::Gone(gone)).await;
                            return;
                        }
                    }
                    continue;
                }
            };
            failures = 0;
            self.progress.advanced();
            if position == Position::Latest {
                self.begin_with(&batch);
            }
            let next = batch.next.clone();
            if !self.hand_over(batch, covered, &out).await {
                return;
            }
            match next {
                Next::At(next) => position = next,
                Next::Ended(children) => {
                    let _ = out.send(Fetched::Ended(children)).await;
                    return;
                }
            }
        }
    }

    fn batches(&self) -> Batches {
        match self.settings.reading {
            Reading::Auto if self.source.capabilities().push => Batches::Follow(Following::default()),
            _ => Batches::Poll(Polling::default()),
        }
    }

    /// Where a checkpoint goes on. The record of the checkpoint is read again, for it may be an aggregate of which only
    /// a part is processed.
    fn position(&self, from: Checkpoint) -> Position {
        match (from, self.settings.initial) {
            (Checkpoint::At { sequence, .. }, _) => Position::At(sequence),
            (Checkpoint::Latest, _) => self.latest_since.map_or(Position::Latest, Position::AtTimestamp),
            (Checkpoint::AtTimestamp, InitialPosition::AtTimestamp(moment)) => Position::AtTimestamp(moment),
            _ => Position::TrimHorizon,
        }
    }

    /// Waits until there is room for more.
    async fn room(&self, out: &mpsc::Sender<Fetched>) {
        loop {
            let changed = self.tracker.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (records, bytes) = self.tracker.load();
            let full = records >= self.settings.in_flight_records || bytes >= self.settings.in_flight_bytes;
            if !full || out.is_closed() {
                return;
            }
            changed.await;
        }
    }

    /// Opens a batch and hands it to the pipeline, whose end makes it false.
    async fn hand_over(&self, batch: Batch, covered: Checkpoint, out: &mpsc::Sender<Fetched>) -> bool {
        let read: usize = batch.records.iter().map(|record| record.size()).sum();
        metrics::fetched(&self.shard, batch.records.len(), read, batch.behind);
        let mut records = Vec::with_capacity(batch.records.len());
        for record in batch.records {
            open::open(record, &self.shard, &mut records);
        }
        records.retain(|record| !covered.covers(record.sequence, record.sub_sequence));
        if records.is_empty() {
            return true;
        }
        let parts = self.parts(records, self.settings.in_flight_bytes);
        let alone = parts.len() == 1;
        for (mut records, bytes) in parts {
            if !alone {
                self.room(out).await;
            }
            let all = self.settings.memory_bytes.div_ceil(MEMORY_UNIT);
            let units = u32::try_from(bytes.div_ceil(MEMORY_UNIT).clamp(1, all)).unwrap_or(u32::MAX);
            // Nobody closes the semaphore; without a permit the records go on all the same.
            let memory = self.memory.clone().acquire_many_owned(units).await.ok();
            self.put_back(&mut records).await;
            self.progress.advanced();
            let bytes = if alone { read } else { bytes };
            let fetched = Fetched::Records { records, behind: batch.behind, bytes, memory };
            if out.send(fetched).await.is_err() {
                return false;
            }
        }
        true
    }

    /// The end of the shard is known from the first batch on at the latest. What lies before it is left out for good; its
    /// own records are not done before somebody has processed them.
    fn begin_with(&self, batch: &Batch) {
        let end = match (batch.records.first(), &batch.next) {
            (Some(first), _) => first.sequence.previous(),
            (None, Next::At(Position::After(sequence))) => Some(*sequence),
            (None, Next::At(Position::At(sequence))) => sequence.previous(),
            _ => None,
        };
        if let Some(sequence) = end {
            self.tracker.skip_to(Checkpoint::behind(sequence));
        }
    }

    /// Where to go on after a failure; an error if there is nothing to go on with.
    async fn recover(
        &self,
        error: Error,
        position: Position,
        covered: &mut Checkpoint,
        failures: u32,
    ) -> Result<Position, Error> {
        let shard = &self.shard.shard;
        let wait = self.settings.dice.pause(failures, PAUSE_FIRST, PAUSE_MAX);
        let (wait, next) = match &error {
            Error::ShardNotFound(..) | Error::StreamNotFound(_) => return Err(error),
            Error::Damaged { resume_at, .. } => {
                tracing::error!(%shard, %error, "records are damaged; reading goes on behind them");
                (Duration::ZERO, Position::At(*resume_at))
            }
            Error::Throttled { retry_after, .. } | Error::SlowDown { retry_after, .. } => {
                (wait.max(*retry_after), position)
            }
            _ if error.next_move() == NextMove::FixCall && self.refuses_only(position, covered).await => {
                tracing::error!(%shard, %error, "the position is refused; reading begins with the oldest record");
                (wait, Position::TrimHorizon)
            }
            _ => {
                tracing::warn!(%shard, %error, failures, "reading failed");
                (wait, position)
            }
        };
        pause(wait).await;
        Ok(next)
    }
}

impl Fetcher {
    /// Whether it is the position that is refused, and not every call. `covered` becomes what need not be delivered if
    /// reading begins with the oldest record.
    async fn refuses_only(&self, position: Position, covered: &mut Checkpoint) -> bool {
        let (before, sequence) = match position {
            Position::After(sequence) => (Some(sequence), sequence),
            Position::At(sequence) => (sequence.previous(), sequence),
            _ => return false,
        };
        let Ok(end) = latest::find_end(&self.source, &self.shard).await else { return false };
        // A stream that ends before the position is another one of the same name, and everything in it is new.
        let is_new =
            matches!(end, Some(Start::Behind(Checkpoint::At { sequence: end, .. })) if end.next() < sequence);
        *covered = match before {
            _ if is_new => Checkpoint::TrimHorizon,
            Some(before) => Checkpoint::behind(before).max(*covered),
            None => *covered,
        };
        true
    }
}

impl Batches {
    async fn next(&mut self, fetcher: &Fetcher, from: Position) -> Result<Batch, Error> {
        match self {
            Batches::Poll(polling) => polling.next(fetcher, from).await,
            Batches::Follow(following) => following.next(fetcher, from).await,
        }
    }
}

/// The permits of a memory of this many bytes.
pub(crate) fn memory(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(bytes.div_ceil(MEMORY_UNIT).min(Semaphore::MAX_PERMITS)))
}
