//! Gets records from the source, ahead of the processor and no further than there is room.
//!
//! ```text
//!   take room ──▶ poll or follow ──▶ open aggregates, drop what is processed, cut what does not fit ──▶ a short queue ──▶ pipeline
//!      ▲                                                                            │
//!      └────────────────────── waits while enough is under way ◀────────────────────┘
//! ```
//!
//! What the source only lends is copied on the way (`keep`).
//!
//! Polling asks for as many bytes as there is room for. What is pushed comes as large as it comes: a source is asked for more
//! only while there is room for a batch, and if it was larger the rest is dropped and read.

mod follow;
mod keep;
mod latest;
mod memory;
mod open;
mod payload;
mod poll;
mod trimmed;

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{
    Batch, Error, Next, NextMove, Pointer, Position, ReadLimit, Record, ShardId, ShardSource, Timestamp,
};
use tokio::sync::mpsc;

use self::follow::Following;
pub(crate) use self::latest::find_end;
pub(crate) use self::memory::{Memory, Room, Share};
use self::open::{Bounds, Opened, RECORD_COST, Rest};
use self::poll::Polling;
use self::trimmed::Reached;
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
/// How large a record is taken to be before any has come.
const RECORD_BYTES_EXPECTED: usize = 1024;

/// What comes out of a shard.
pub(crate) enum Fetched {
    Records {
        records: Vec<Received>,
        behind: Duration,
        /// Bytes as they were read, for the throughput.
        bytes: usize,
        /// The memory that they take, until they are delivered.
        room: Room,
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
    pub(crate) share: Share,
}

/// Where batches come from.
enum Batches {
    Poll(Polling),
    Follow(Following),
    /// More was pushed than there was room for: reading goes on where it was cut, and to the end before it follows again.
    CatchUp,
}

/// What is expected of the next records of the source, from those that came last.
struct Expected {
    /// Bytes of one.
    size: usize,
    /// What one costs beside its bytes.
    cost: usize,
    /// The most that one takes in all.
    largest: usize,
}

impl Fetcher {
    /// Fetches until the end of the shard, or until nobody listens.
    pub(crate) async fn run(self, from: Checkpoint, out: mpsc::Sender<Fetched>) {
        let mut position = self.position(from);
        let mut reached = Reached::by(from, self.settings.clock.elapsed());
        let mut covered = from;
        let mut batches = self.batches();
        let mut expected = Expected::default();
        let mut failures = 0;
        loop {
            self.demand().await;
            let (batch, mut room) = match batches.next(&self, position, &expected).await {
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
            reached.notice(&self, position, &batch).await;
            if position == Position::Latest {
                self.begin_with(&batch);
            }
            let Batch { records, next, behind } = batch;
            let opened = self.open(records, covered, &room);
            expected.learn(&opened);
            room.settle(opened.cost, opened.records.len());
            let next = match opened.rest {
                Some(Rest::From(sequence) | Rest::TooLarge(sequence, _)) => {
                    batches.cut();
                    let last = opened.records.last().map(Received::checkpoint);
                    covered = last.map_or(covered, |last| last.max(covered));
                    Next::At(Position::At(sequence))
                }
                None => {
                    if opened.read.0 == 0 && matches!(batches, Batches::CatchUp) {
                        batches = self.batches();
                    }
                    next
                }
            };
            if !self.hand_over(opened, behind, room, &out).await {
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

    /// Waits until the processor can have more.
    async fn demand(&self) {
        loop {
            let (changed, freed) = (self.tracker.changed.notified(), self.share.freed());
            tokio::pin!(changed, freed);
            changed.as_mut().enable();
            freed.as_mut().enable();
            if self.records_max() > 0 && self.tracker.load().1 < self.settings.in_flight_bytes {
                return;
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = freed => {}
            }
        }
    }

    /// Records that may come beside those that are fetched or under way.
    fn records_max(&self) -> usize {
        self.settings.in_flight_records.saturating_sub(self.tracker.load().0 + self.share.records())
    }

    /// How much to ask for, so that what comes fits into the room.
    fn limit(&self, room: &Room, expected: &Expected) -> ReadLimit {
        let (bytes, _) = room.bounds();
        let records = (bytes / (expected.size + expected.cost)).min(self.records_max()).max(1);
        ReadLimit { records, bytes: bytes.saturating_sub(records.saturating_mul(expected.cost)).max(1) }
    }

    fn open(&self, records: Vec<Record>, covered: Checkpoint, room: &Room) -> Opened {
        let (bytes, first) = room.bounds();
        let bounds = Bounds { bytes, first, records: self.records_max().max(1) };
        let pointed =
            |record: &Received| Pointer::decode(&record.data).map_or(0, |pointer| pointer.size as usize);
        let payload = |record: &Received| self.settings.payloads.as_ref().map_or(0, |_| pointed(record));
        open::open(records, &self.shard, covered, bounds, payload)
    }

    /// Hands records to the pipeline, whose end makes it false.
    async fn hand_over(
        &self,
        opened: Opened,
        behind: Duration,
        room: Room,
        out: &mpsc::Sender<Fetched>,
    ) -> bool {
        let Opened { mut records, read: (count, bytes), .. } = opened;
        metrics::fetched(&self.shard, count, bytes, behind);
        if records.is_empty() {
            return true;
        }
        if self.source.capabilities().lends {
            keep::keep(&mut records);
        }
        self.put_back(&mut records).await;
        self.progress.advanced();
        out.send(Fetched::Records { records, behind, bytes, room }).await.is_ok()
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
    async fn next(
        &mut self,
        fetcher: &Fetcher,
        from: Position,
        expected: &Expected,
    ) -> Result<(Batch, Room), Error> {
        match self {
            Batches::Poll(polling) => polling.next(fetcher, from, expected).await,
            Batches::Follow(following) => following.next(fetcher, from, expected).await,
            Batches::CatchUp => poll::read(fetcher, from, expected).await,
        }
    }

    /// The last batch did not fit: a source that pushes is beyond the place where reading goes on.
    fn cut(&mut self) {
        if let Batches::Follow(_) = self {
            *self = Batches::CatchUp;
        }
    }
}

impl Default for Expected {
    fn default() -> Self {
        Expected { size: RECORD_BYTES_EXPECTED, cost: RECORD_COST, largest: 0 }
    }
}

impl Expected {
    fn learn(&mut self, opened: &Opened) {
        self.largest = match opened.rest {
            Some(Rest::TooLarge(_, cost)) => cost,
            _ => opened.largest,
        };
        let (count, bytes) = opened.read;
        if let Some(size) = bytes.checked_div(count) {
            self.size = size;
            self.cost = (opened.cost.saturating_sub(bytes) / count).max(RECORD_COST);
        }
    }
}
