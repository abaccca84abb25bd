//! Gathers the events of a shard into batches, for sinks that like many at once.
//!
//! ```text
//!   process ──▶ a short queue ──▶ gathering ──▶ full, old, of another day, or where it ended before ──▶ sink ──▶ acknowledged
//! ```
//!
//! One batch is written while the next is gathered, and no more than that: what waits is bounded by two batches.
//!
//! What must hold: a batch that was begun in an earlier life ends where it ended then, so that it is written over and not
//! beside what is there. Batches are written one behind the other, and events acknowledged when their batch is durable.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::Acknowledgement;
use anabranch_model::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::event::{Event, Place};
use crate::line::Line;
use crate::metrics::Stage;
use crate::pause::{pause, stopped};
use crate::sink::{Earlier, Outcome};

/// Calls to the processor whose events are on their way to the batcher, beyond those that it has.
const AHEAD: usize = 2;
/// How much longer than others a batch is waited for that must end where it ended before.
const REPLAY_PATIENCE: Duration = Duration::from_secs(60);
/// Pauses while nobody says how a batch ended: the longest first one, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// When a batch is complete. Whatever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// This many events.
    pub records: usize,
    /// This many bytes.
    pub bytes: usize,
    /// This long after it was begun with its first event.
    pub age: Duration,
}

/// An event that waits, and what acknowledges it. Of the parts of a record the last one carries the acknowledgement.
pub(crate) struct Waiting {
    event: Event,
    acknowledgement: Option<Acknowledgement>,
    since: Duration,
}

impl Waiting {
    /// The parts of a record, in order; there is at least one.
    pub(crate) fn parts(
        parts: Vec<Event>,
        acknowledgement: Acknowledgement,
        since: Duration,
    ) -> impl Iterator<Item = Waiting> {
        let (count, mut acknowledgement) = (parts.len(), Some(acknowledgement));
        parts.into_iter().enumerate().map(move |(place, event)| {
            let acknowledgement = if place + 1 == count { acknowledgement.take() } else { None };
            Waiting { event, acknowledgement, since }
        })
    }

    /// The event, and what is owed when it is written.
    fn parted(self) -> (Event, Owed) {
        let owed = Owed { acknowledgement: self.acknowledgement, at: self.event.at };
        (self.event, owed)
    }
}

/// What is told about an event when it is written: whether it is, and how long that took.
struct Owed {
    acknowledgement: Option<Acknowledgement>,
    at: Timestamp,
}

enum Input {
    Events(Vec<Waiting>),
    /// Write what is there, and say when it is done.
    Flush(oneshot::Sender<()>),
}

/// The batcher of one shard. Dropping it stops it at once; what was not written comes again.
pub(crate) struct Batcher {
    input: mpsc::Sender<Input>,
    task: JoinHandle<()>,
    line: Arc<Line>,
}

impl Batcher {
    /// `stop` says that the bot stops: then nothing waits for a batch to become full.
    pub(crate) fn spawn(line: Arc<Line>, limits: BatchLimits, stop: watch::Receiver<bool>) -> Self {
        let (input, events) = mpsc::channel(AHEAD);
        let gathering = Gathering {
            line: line.clone(),
            limits,
            events: VecDeque::new(),
            bytes: 0,
            begun: Duration::ZERO,
            replays: true,
            end: End::Unknown,
            writing: JoinSet::new(),
            stop,
        };
        Batcher { input, task: tokio::spawn(gathering.run(events)), line }
    }

    /// Takes events, in order and each record with all of its parts.
    pub(crate) async fn take(&self, events: Vec<Waiting>) {
        // If the task is gone, the acknowledgements are dropped with the events, and they come again.
        let _ = self.input.send(Input::Events(events)).await;
    }

    /// Writes what is there, at most for so long.
    pub(crate) async fn flush(&self, at_most: Duration) {
        let (done, heard) = oneshot::channel();
        let flushed = async {
            if self.input.send(Input::Flush(done)).await.is_ok() {
                let _ = heard.await;
            }
        };
        if tokio::time::timeout(at_most, flushed).await.is_err() {
            tracing::warn!(bot = %self.line.bot, "a batch was not written in time; its events come again");
        }
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How the batch that is being gathered must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It is empty, or nobody was asked yet.
    Unknown,
    /// As the limits say.
    Free,
    /// At this place.
    With(Place),
    /// Before this place.
    Before(Place),
    /// There is none to gather: events up to this place are durable.
    Held(Place),
}

struct Gathering {
    line: Arc<Line>,
    limits: BatchLimits,
    events: VecDeque<Waiting>,
    bytes: usize,
    /// When the first of them was put here. What they waited before does not count: behind a slow write every event would be
    /// overdue, and each a batch of its own.
    begun: Duration,
    /// Whether batches of an earlier life may still be met.
    replays: bool,
    end: End,
    /// The batch before, on its way into the sink.
    writing: JoinSet<()>,
    stop: watch::Receiver<bool>,
}

impl Gathering {
    async fn run(mut self, mut input: mpsc::Receiver<Input>) {
        loop {
            let stopping = *self.stop.borrow();
            let due = self.due(stopping);
            if due.is_some_and(|due| due.is_zero()) {
                self.write().await;
                continue;
            }
            let mut stop = self.stop.clone();
            let next = tokio::select! {
                biased;
                next = input.recv() => next,
                () = until(due) => continue,
                () = stopped(&mut stop), if !stopping => continue,
            };
            match next {
                Some(Input::Events(events)) => {
                    for waiting in events {
                        self.add(waiting).await;
                    }
                }
                Some(Input::Flush(done)) => {
                    match self.end {
                        // Half of a batch under another name would be a duplicate of the whole. Its events come again.
                        End::With(_) => drop(self.take()),
                        _ => self.write().await,
                    }
                    self.written().await;
                    let _ = done.send(());
                }
                None => return,
            }
        }
    }

    /// How long to wait for more; none if there is nothing to wait with.
    fn due(&self, stopping: bool) -> Option<Duration> {
        // The rest of a record that is here in part is on its way already.
        self.events.front().filter(|_| self.ends_whole())?;
        let patience = match self.end {
            End::With(_) => self.limits.age + REPLAY_PATIENCE,
            _ if stopping => Duration::ZERO,
            _ => self.limits.age,
        };
        Some((self.begun + patience).saturating_sub(self.line.clock.elapsed()))
    }

    fn ends_whole(&self) -> bool {
        self.events.back().is_none_or(|last| last.acknowledgement.is_some())
    }

    async fn add(&mut self, waiting: Waiting) {
        let place = waiting.event.origin.place();
        if self.begins_anew(&waiting.event, place) {
            self.write().await;
        }
        if self.events.is_empty() && !self.holds(place) {
            self.end = self.ask(&waiting.event).await;
        }
        if self.holds(place) {
            conclude(&self.line, vec![waiting.parted().1], vec![Outcome::Done]);
            return;
        }
        if self.events.is_empty() {
            self.begun = self.line.clock.elapsed();
        }
        self.bytes += waiting.event.data.len();
        // A batch does not end in the midst of what comes of one record: it is the record that is acknowledged.
        let whole = waiting.acknowledgement.is_some();
        self.events.push_back(waiting);
        let complete = match self.end {
            End::With(end) => place.is_some_and(|place| place >= end),
            _ => self.events.len() >= self.limits.records || self.bytes >= self.limits.bytes,
        };
        if complete && whole {
            self.write().await;
        }
    }

    /// Whether an event cannot lie in the batch that is being gathered.
    fn begins_anew(&self, event: &Event, place: Option<Place>) -> bool {
        let (Some(first), Some(last)) = (self.events.front(), self.events.back()) else { return false };
        match (self.end, place) {
            _ if last.event.origin == event.origin => false,
            // One that failed comes again behind those that came after it. A batch is in order.
            _ if last.event.origin.place() > place => true,
            (End::With(end), Some(place)) => place > end,
            (End::Before(start), Some(place)) if place >= start => true,
            _ => !self.line.sink.belong_together(&first.event, event),
        }
    }

    /// Whether an event lies in a durable batch that began before it.
    fn holds(&self, place: Option<Place>) -> bool {
        matches!((self.end, place), (End::Held(end), Some(place)) if place <= end)
    }

    /// Asks the sink how the batch that begins with this event ended before.
    async fn ask(&mut self, first: &Event) -> End {
        let mut attempts = 0;
        while self.replays {
            match self.line.sink.earlier(first).await {
                Ok(None) => self.replays = false,
                Ok(Some(Earlier::EndsWith(end))) => return End::With(end),
                Ok(Some(Earlier::Holds(end))) => return End::Held(end),
                Ok(Some(Earlier::BeginsWith(start))) => return End::Before(start),
                Err(error) => {
                    attempts += 1;
                    self.line.note_available(false, &error.to_string());
                    pause(self.line.dice.pause(attempts, PAUSE_FIRST, PAUSE_MAX)).await;
                }
            }
        }
        End::Free
    }

    /// What was gathered, with its bytes. The next batch begins.
    fn take(&mut self) -> (Vec<Waiting>, usize) {
        self.end = End::Unknown;
        (std::mem::take(&mut self.events).into(), std::mem::take(&mut self.bytes))
    }

    /// Lets what was gathered be written, as soon as the batch before is.
    async fn write(&mut self) {
        let (batch, bytes) = self.take();
        if batch.is_empty() {
            return;
        }
        let now = self.line.clock.elapsed();
        for waiting in &batch {
            self.line.meter.stage(Stage::Batch, now.saturating_sub(waiting.since));
        }
        self.written().await;
        let line = self.line.clone();
        self.writing.spawn(async move {
            let (events, owed): (Vec<Event>, Vec<_>) = batch.into_iter().map(Waiting::parted).unzip();
            let outcomes = line.write(events).await;
            line.meter.batch(bytes);
            conclude(&line, owed, outcomes);
        });
    }

    /// Waits until nothing is being written.
    async fn written(&mut self) {
        // If the task broke off, it dropped the acknowledgements, and its events come again.
        while self.writing.join_next().await.is_some() {}
    }
}

fn conclude(line: &Line, owed: Vec<Owed>, outcomes: Vec<Outcome>) {
    let mut done = Vec::with_capacity(owed.len());
    for (owed, outcome) in owed.into_iter().zip(outcomes) {
        let Some(acknowledgement) = owed.acknowledgement else { continue };
        line.ended(&outcome, owed.at);
        match outcome {
            Outcome::Done => done.push(acknowledgement),
            Outcome::Failed(why) | Outcome::Refused(why) | Outcome::Unavailable(why) => {
                acknowledgement.failed(why);
            }
        }
    }
    Acknowledgement::all_done(done);
}

/// Waits so long, or for ever.
async fn until(due: Option<Duration>) {
    match due {
        Some(due) => pause(due).await,
        None => std::future::pending().await,
    }
}
