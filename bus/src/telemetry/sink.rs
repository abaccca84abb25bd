//! The sink of the telemetry bot: the events of a submission go to one place of the stream, one behind the other.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_producer::{Lost, NewRun, Outcome as Told, Producer, Why};
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, join, join_all};
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

/// How long the caller of a write does it itself; what takes longer is given to a task. Far below the time that a call may
/// take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Runs that nobody asks about any more are forgotten when there are this many.
const SLOW_MAX: usize = 10_000;

/// Writes the events that come of one message as one run.
///
/// A run goes on when its caller loses patience, and a caller that comes again joins it: a submission of ten thousand events
/// may take longer than a call may, and begun anew each time it would never end.
pub struct StreamRuns {
    producer: Producer,
    tally: Arc<Tally>,
    /// Those that a task writes, by the message that their events come of.
    slow: Mutex<HashMap<String, Slow>>,
}

/// What becomes of submissions that are written together.
type Together = Shared<BoxFuture<'static, Arc<Vec<Outcome>>>>;

/// One submission among those that are written with it.
#[derive(Clone)]
struct Slow {
    together: Together,
    number: usize,
}

impl Slow {
    async fn outcome(self) -> Outcome {
        let outcomes = self.together.await;
        outcomes.get(self.number).cloned().unwrap_or_else(|| broke_off("nobody knows why"))
    }
}

impl StreamRuns {
    /// Into the stream of a producer.
    pub fn new(producer: Producer) -> Self {
        StreamRuns { producer, tally: Arc::default(), slow: Mutex::default() }
    }

    /// What it has done so far.
    pub fn tally(&self) -> Arc<Tally> {
        self.tally.clone()
    }

    /// Writes submissions, and says of each what became of it.
    async fn begin(&self, submissions: &[&[Event]]) -> Vec<Outcome> {
        if submissions.is_empty() {
            return Vec::new();
        }
        let runs = submissions.iter().map(|events| self.run_of(events)).collect();
        let mut writing = write(self.producer.clone(), self.tally.clone(), runs).boxed();
        if let Ok(outcomes) = tokio::time::timeout(PATIENCE, &mut writing).await {
            return outcomes;
        }
        let count = submissions.len();
        let ended = tokio::spawn(writing).map(move |ended| {
            Arc::new(ended.unwrap_or_else(|error| vec![broke_off(&error.to_string()); count]))
        });
        let together = ended.boxed().shared();
        self.remember(submissions, &together);
        let outcomes = together.await;
        self.forget(submissions);
        outcomes.to_vec()
    }

    fn run_of(&self, events: &[Event]) -> NewRun {
        NewRun {
            place: self.producer.place(),
            key: events.first().map(|event| event.key.clone()).unwrap_or_default(),
            payloads: events.iter().map(|event| event.data.clone()).collect(),
        }
    }

    fn remember(&self, submissions: &[&[Event]], together: &Together) {
        let mut slow = self.slow.lock();
        if slow.len() >= SLOW_MAX {
            slow.retain(|_, run| run.together.peek().is_none());
        }
        for (number, origin) in submissions.iter().filter_map(|events| origin(events)).enumerate() {
            slow.insert(origin, Slow { together: together.clone(), number });
        }
    }

    fn forget(&self, submissions: &[&[Event]]) {
        let mut slow = self.slow.lock();
        for origin in submissions.iter().filter_map(|events| origin(events)) {
            slow.remove(&origin);
        }
    }

    /// Of each submission the task that writes it already.
    fn joined(&self, submissions: &[&[Event]]) -> Vec<Option<Slow>> {
        let slow = self.slow.lock();
        if slow.is_empty() {
            return vec![None; submissions.len()];
        }
        submissions
            .iter()
            .map(|events| origin(events).and_then(|origin| slow.get(&origin).cloned()))
            .collect()
    }
}

/// What the events of a submission come of.
fn origin(events: &[Event]) -> Option<String> {
    events.first().map(|event| event.origin.to_string())
}

fn broke_off(why: &str) -> Outcome {
    Outcome::Failed(format!("a run broke off: {why}"))
}

/// Writes submissions. All events of one fare alike: what is only partly there is written again from the first on.
async fn write(producer: Producer, tally: Arc<Tally>, runs: Vec<NewRun>) -> Vec<Outcome> {
    let told = producer.send_runs(runs).await;
    let (mut submissions, mut events, mut repeated) = (0, 0, 0);
    let outcome = |told: Vec<Told>| {
        let outcome = told.iter().find_map(|told| told.as_ref().err()).map_or(Outcome::Done, outcome_of);
        if outcome == Outcome::Done {
            submissions += 1;
            events += told.len() as u64;
            repeated += told.iter().filter(|told| is_repeated(told)).count() as u64;
        } else {
            tally.again.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    };
    let outcomes = told.into_iter().map(outcome).collect();
    tally.submissions.fetch_add(submissions, Ordering::Relaxed);
    tally.events.fetch_add(events, Ordering::Relaxed);
    metrics::counter!("anabranch_telemetry_events_total").increment(events);
    metrics::counter!("anabranch_telemetry_repeated_total").increment(repeated);
    outcomes
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
        let submissions: Vec<&[Event]> = events.chunk_by(|one, other| one.origin == other.origin).collect();
        let joined = self.joined(&submissions);
        let with = |is_slow: bool| {
            let both = submissions.iter().zip(&joined).filter(move |(_, slow)| slow.is_some() == is_slow);
            both.map(|(events, _)| *events).collect::<Vec<_>>()
        };
        let fresh = with(false);
        let slow = join_all(joined.iter().flatten().cloned().map(Slow::outcome));
        let (begun, ended) = join(self.begin(&fresh), slow).await;
        self.forget(&with(true));
        let (mut begun, mut ended) = (begun.into_iter(), ended.into_iter());
        let each = submissions.iter().zip(&joined).map(|(events, slow)| {
            let outcome = if slow.is_some() { ended.next() } else { begun.next() };
            (events.len(), outcome.unwrap_or_else(|| broke_off("nobody knows why")))
        });
        each.flat_map(|(count, outcome)| std::iter::repeat_n(outcome, count)).collect()
    }

    fn takes_many(&self) -> bool {
        self.producer.shares_appends()
    }
}
