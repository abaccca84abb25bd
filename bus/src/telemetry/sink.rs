//! The sink of the telemetry bot: the events of a submission go to one place of the stream, one behind the other.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_producer::{Lost, Outcome as Told, Producer, Why};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, join_all};
use parking_lot::Mutex;

use crate::event::Event;
use crate::sink::{Outcome, Sink};

/// What a sink has done.
#[derive(Debug, Default)]
pub struct Tally {
    /// Submissions that were stored.
    pub submissions: AtomicU64,
    /// Their events.
    pub events: AtomicU64,
    /// Submissions that had to be begun again.
    pub again: AtomicU64,
}

/// Runs that nobody asks about any more are forgotten when there are this many.
const RUNNING_MAX: usize = 10_000;

/// Writes the events that come of one message as one run.
///
/// A run goes on when its caller loses patience, and a caller that comes again joins it: a submission of ten thousand events
/// takes longer than a call may, and begun anew each time it would never end.
pub struct StreamRuns {
    producer: Producer,
    tally: Arc<Tally>,
    /// By the message that the events come of.
    running: Mutex<HashMap<String, Running>>,
}

type Running = Shared<BoxFuture<'static, Outcome>>;

impl StreamRuns {
    /// Into the stream of a producer.
    pub fn new(producer: Producer) -> Self {
        StreamRuns { producer, tally: Arc::default(), running: Mutex::default() }
    }

    /// What it has done so far.
    pub fn tally(&self) -> Arc<Tally> {
        self.tally.clone()
    }

    /// Writes one submission. All its events fare alike: what is only partly there is written again from the first on.
    async fn run(&self, events: &[Event]) -> Vec<Outcome> {
        let Some(first) = events.first() else { return Vec::new() };
        let origin = first.origin.to_string();
        let running = self.begin_or_join(&origin, events);
        let outcome = running.await;
        self.running.lock().remove(&origin);
        vec![outcome; events.len()]
    }

    fn begin_or_join(&self, origin: &str, events: &[Event]) -> Running {
        let mut running = self.running.lock();
        if let Some(running) = running.get(origin) {
            return running.clone();
        }
        if running.len() >= RUNNING_MAX {
            running.retain(|_, run| run.peek().is_none());
        }
        let key = events.first().map(|event| event.key.clone()).unwrap_or_default();
        let payloads: Vec<Bytes> = events.iter().map(|event| event.data.clone()).collect();
        let task = tokio::spawn(write(self.producer.clone(), self.tally.clone(), key, payloads));
        let ended = task
            .map(|ended| ended.unwrap_or_else(|error| Outcome::Failed(format!("a run broke off: {error}"))));
        let begun = ended.boxed().shared();
        running.insert(origin.to_owned(), begun.clone());
        begun
    }
}

/// Writes the events of one submission, one behind the other.
async fn write(producer: Producer, tally: Arc<Tally>, key: Bytes, payloads: Vec<Bytes>) -> Outcome {
    let (place, count) = (producer.place(), payloads.len() as u64);
    let told = producer.send_run(&place, &key, payloads).await;
    let outcome = told.iter().find_map(|told| told.as_ref().err()).map_or(Outcome::Done, outcome_of);
    if outcome == Outcome::Done {
        tally.submissions.fetch_add(1, Ordering::Relaxed);
        tally.events.fetch_add(count, Ordering::Relaxed);
        let repeated = told.iter().filter(|told| is_repeated(told)).count();
        metrics::counter!("anabranch_telemetry_events_total").increment(count);
        metrics::counter!("anabranch_telemetry_repeated_total").increment(repeated as u64);
    } else {
        tally.again.fetch_add(1, Ordering::Relaxed);
    }
    outcome
}

fn is_repeated(told: &Told) -> bool {
    told.as_ref().is_ok_and(|stored| stored.repeated)
}

/// The first record that was lost says what is to be done; those behind it only followed.
fn outcome_of(lost: &Lost) -> Outcome {
    match lost.why() {
        Why::Refused(error) => Outcome::of_error(error),
        Why::Expired(_) | Why::Behind | Why::Closed => Outcome::Unavailable(lost.to_string()),
    }
}

#[async_trait]
impl Sink for StreamRuns {
    async fn write(&self, events: &[Event]) -> Vec<Outcome> {
        let runs = events.chunk_by(|one, other| one.origin == other.origin).map(|run| self.run(run));
        join_all(runs).await.into_iter().flatten().collect()
    }
}
