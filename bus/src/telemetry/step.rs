//! The step of the telemetry bot: one message in, the events of its submission out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_model::{Clock, NewMessage, PartitionKey, QueueName, QueueStore};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use metrics::Counter;
use serde_json::json;

use super::explode::{Broken, Exploder};
use super::waiting::Yield;
use crate::event::Event;
use crate::step::{Refusal, Step};

/// Where a sample of broken submissions goes.
pub struct Samples {
    /// Whose queue it is.
    pub queues: Arc<dyn QueueStore>,
    /// The queue.
    pub queue: QueueName,
    /// The first of each so many broken ones is kept; one keeps all.
    pub one_in: u64,
}

/// Takes submissions apart.
pub struct Explode {
    exploder: Exploder,
    samples: Option<Samples>,
    clock: Arc<dyn Clock>,
    broken: AtomicU64,
    /// Looked up once, for submissions are many.
    submissions: Counter,
    yielded: Arc<Yield>,
}

impl Explode {
    /// The step for submissions of a schema.
    pub fn new(exploder: Exploder, samples: Option<Samples>, clock: Arc<dyn Clock>) -> Self {
        let submissions = metrics::counter!("anabranch_telemetry_submissions_total");
        Explode { exploder, samples, clock, broken: AtomicU64::new(0), submissions, yielded: Arc::default() }
    }

    /// What came of messages so far.
    pub fn yielded(&self) -> Arc<Yield> {
        self.yielded.clone()
    }

    /// Keeps a sample. The message is done with only if that succeeded, or none was due.
    async fn keep(&self, event: &Event, broken: &Broken) -> Result<(), Refusal> {
        metrics::counter!("anabranch_telemetry_broken_total", "kind" => broken.word()).increment(1);
        let number = self.broken.fetch_add(1, Ordering::Relaxed);
        let Some(samples) =
            self.samples.as_ref().filter(|samples| number.is_multiple_of(samples.one_in.max(1)))
        else {
            return Ok(());
        };
        let letter = json!({
            "origin": event.origin.to_string(),
            "kind": broken.word(),
            "error": broken.to_string(),
            "data": STANDARD.encode(&event.data),
            "at": self.clock.now().as_millis(),
        });
        let sent = samples.queues.send(&samples.queue, vec![NewMessage::new(letter.to_string())]).await;
        let sent = sent.and_then(|results| results.into_iter().next().unwrap_or_else(|| Err(no_answer())));
        match sent {
            Ok(_) => Ok(()),
            // A submission that is too long for a letter is left out of the sample.
            Err(error) if error.next_move() == anabranch_model::NextMove::FixCall => {
                tracing::warn!(origin = %event.origin, %error, "a broken submission cannot be kept");
                Ok(())
            }
            Err(error) => Err(Refusal::Failed(format!("a broken submission cannot be kept: {error}"))),
        }
    }
}

fn no_answer() -> anabranch_model::Error {
    anabranch_model::Error::Unavailable("the queue said nothing about the message".to_owned())
}

#[async_trait]
impl Step for Explode {
    fn name(&self) -> &str {
        "telemetry"
    }

    async fn apply(&self, event: Event) -> Result<Vec<Event>, Refusal> {
        match self.exploder.explode(&event.data, self.clock.now()) {
            Ok(submission) => {
                self.yielded.add(submission.events.len());
                self.submissions.increment(1);
                let Event { origin, at, attempt, .. } = event;
                let key = PartitionKey::from(submission.id);
                let made = submission.events.into_iter();
                let event = |data| Event { origin: origin.clone(), key: key.clone(), data, at, attempt };
                Ok(made.map(event).collect())
            }
            Err(broken) => {
                self.yielded.add(0);
                self.keep(&event, &broken).await?;
                tracing::debug!(origin = %event.origin, %broken, "a broken submission is dropped");
                Ok(Vec::new())
            }
        }
    }
}
