//! The sink of the telemetry bot: the events of a submission go to one place of the stream, one behind the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_producer::{Lost, Outcome as Told, Producer, Why};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join_all;

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

/// Writes the events that come of one message as one run.
pub struct StreamRuns {
    producer: Producer,
    tally: Arc<Tally>,
}

impl StreamRuns {
    /// Into the stream of a producer.
    pub fn new(producer: Producer) -> Self {
        StreamRuns { producer, tally: Arc::default() }
    }

    /// What it has done so far.
    pub fn tally(&self) -> Arc<Tally> {
        self.tally.clone()
    }

    /// Writes one submission. All its events fare alike: what is only partly there is written again from the first on.
    async fn run(&self, events: &[Event]) -> Vec<Outcome> {
        let place = self.producer.place();
        let payloads: Vec<Bytes> = events.iter().map(|event| event.data.clone()).collect();
        let key = events.first().map(|event| event.key.clone()).unwrap_or_default();
        let told = self.producer.send_run(&place, &key, payloads).await;
        let outcome = told.iter().find_map(|told| told.as_ref().err()).map_or(Outcome::Done, outcome_of);
        if outcome == Outcome::Done {
            self.tally.submissions.fetch_add(1, Ordering::Relaxed);
            self.tally.events.fetch_add(events.len() as u64, Ordering::Relaxed);
            let repeated = told.iter().filter(|told| is_repeated(told)).count();
            metrics::counter!("anabranch_telemetry_events_total").increment(events.len() as u64);
            metrics::counter!("anabranch_telemetry_repeated_total").increment(repeated as u64);
        } else {
            self.tally.again.fetch_add(1, Ordering::Relaxed);
        }
        vec![outcome; events.len()]
    }
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
