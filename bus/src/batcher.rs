//! Gathers the events of a shard into batches, for sinks that like many at once.
//!
//! ```text
//!   process ──▶ a short queue ──▶ gathering ──▶ full, old, of another day, or where it ended before ──▶ sink ──▶ acknowledged
//! ```
//!
//! What must hold: a batch that was begun in an earlier life ends where it ended then, so that it is written over and not
//! beside what is there. Events are acknowledged when their batch is durable, in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::Acknowledgement;
use anabranch_model::SequenceNumber;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::event::{Event, Origin};
use crate::line::Line;
use crate::metrics::{self, Stage};
use crate::pause::{pause, stopped};
use crate::sink::{Earlier, Outcome};

/// Events on their way to the batcher, beyond those that it has.
const AHEAD: usize = 1_024;
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
    /// This long after its first event.
    pub age: Duration,
}

/// An event that waits, and what acknowledges it. Of the parts of a record the last one carries the acknowledgement.
struct Waiting {
    event: Event,
    acknowledgement: Option<Acknowledgement>,
    since: Duration,
}

enum Input {
    Event(Box<Waiting>),
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
            replays: true,
            end: End::Unknown,
            stop,
        };
        Batcher { input, task: tokio::spawn(gathering.run(events)), line }
    }

    /// Takes the parts of a record, in order; there is at least one.
    pub(crate) async fn take(&self, parts: Vec<Event>, acknowledgement: Acknowledgement) {
        let (since, count) = (self.line.clock.elapsed(), parts.len());
        let mut acknowledgement = Some(acknowledgement);
        for (place, event) in parts.into_iter().enumerate() {
            let acknowledgement = if place + 1 == count { acknowledgement.take() } else { None };
            let waiting = Box::new(Waiting { event, acknowledgement, since });
            // If the task is gone, the acknowledgement is dropped with the event, and it comes again.
            let _ = self.input.send(Input::Event(waiting)).await;
        }
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
    /// With this number.
    With(SequenceNumber),
    /// Before this number.
    Before(SequenceNumber),
    /// There is none to gather: events up to this number are durable.
    Held(SequenceNumber),
}

struct Gathering {
    line: Arc<Line>,
    limits: BatchLimits,
    events: VecDeque<Waiting>,
    bytes: usize,
    /// Whether batches of an earlier life may still be met.
    replays: bool,
    end: End,
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
                Some(Input::Event(waiting)) => self.add(*waiting).await,
                Some(Input::Flush(done)) => {
                    match self.end {
                        // Half of a batch under another name would be a duplicate of the whole. Its events come again.
                        End::With(_) => self.events.clear(),
                        _ => self.write().await,
                    }
                    let _ = done.send(());
                }
                None => return,
            }
        }
    }

    /// How long to wait for more; none if there is nothing to wait with.
    fn due(&self, stopping: bool) -> Option<Duration> {
        let first = self.events.front()?;
        let patience = match self.end {
            End::With(_) => self.limits.age + REPLAY_PATIENCE,
            _ if stopping => Duration::ZERO,
            _ => self.limits.age,
        };
        Some((first.since + patience).saturating_sub(self.line.clock.elapsed()))
    }

    async fn add(&mut self, waiting: Waiting) {
        let sequence = sequence(&waiting.event);
        if self.begins_anew(&waiting.event, sequence) {
            self.write().await;
        }
        if self.events.is_empty() && !self.holds(sequence) {
            self.end = self.ask(&waiting.event).await;
        }
        if self.holds(sequence) {
            self.conclude(vec![waiting], vec![Outcome::Done]);
            return;
        }
        self.bytes += waiting.event.data.len();
        let whole = waiting.acknowledgement.is_some();
        self.events.push_back(waiting);
        let complete = match self.end {
            End::With(end) => whole && sequence.is_some_and(|sequence| sequence >= end),
            _ => self.events.len() >= self.limits.records || self.bytes >= self.limits.bytes,
        };
        if complete {
            self.write().await;
        }
    }

    /// Whether an event cannot lie in the batch that is being gathered.
    fn begins_anew(&self, event: &Event, sequence: Option<SequenceNumber>) -> bool {
        let Some(first) = self.events.front() else { return false };
        match (self.end, sequence) {
            (End::With(end), Some(sequence)) => sequence > end,
            (End::Before(start), Some(sequence)) if sequence >= start => true,
            _ => !self.line.sink.belong_together(&first.event, event),
        }
    }

    /// Whether an event lies in a durable batch that began before it.
    fn holds(&self, sequence: Option<SequenceNumber>) -> bool {
        matches!((self.end, sequence), (End::Held(end), Some(sequence)) if sequence <= end)
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

    async fn write(&mut self) {
        let batch: Vec<Waiting> = std::mem::take(&mut self.events).into();
        let bytes = std::mem::take(&mut self.bytes);
        self.end = End::Unknown;
        if batch.is_empty() {
            return;
        }
        let now = self.line.clock.elapsed();
        for waiting in &batch {
            metrics::stage(&self.line.bot, Stage::Batch, now.saturating_sub(waiting.since));
        }
        let events = batch.iter().map(|waiting| waiting.event.clone()).collect();
        let outcomes = self.line.write(events).await;
        metrics::batch(&self.line.bot, batch.len(), bytes);
        self.conclude(batch, outcomes);
    }

    fn conclude(&self, batch: Vec<Waiting>, outcomes: Vec<Outcome>) {
        for (waiting, outcome) in batch.into_iter().zip(outcomes) {
            let Some(acknowledgement) = waiting.acknowledgement else { continue };
            self.line.ended(&outcome, waiting.event.at);
            match outcome {
                Outcome::Done => acknowledgement.done(),
                Outcome::Failed(why) | Outcome::Refused(why) | Outcome::Unavailable(why) => {
                    acknowledgement.failed(why);
                }
            }
        }
    }
}

fn sequence(event: &Event) -> Option<SequenceNumber> {
    match &event.origin {
        Origin::Shard { sequence, .. } => Some(*sequence),
        Origin::Queue { .. } => None,
    }
}

/// Waits so long, or for ever.
async fn until(due: Option<Duration>) {
    match due {
        Some(due) => pause(due).await,
        None => std::future::pending().await,
    }
}
