//! How much waits in front of the telemetry bot, counted in records of its stream, for whoever decides how wide that has to be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_model::{QueueName, QueueStore};
use anabranch_producer::scaler::{Depth, Waiting};

/// What came of messages so far.
#[derive(Debug, Default)]
pub struct Yield {
    messages: AtomicU64,
    events: AtomicU64,
}

impl Yield {
    /// Counts a message and its events, of which there may be none.
    pub(super) fn add(&self, events: usize) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.events.fetch_add(events as u64, Ordering::Relaxed);
    }

    /// Events of a message on average; one as long as nothing is known.
    pub fn average(&self) -> f64 {
        match self.messages.load(Ordering::Relaxed) {
            0 => 1.0,
            messages => self.events.load(Ordering::Relaxed) as f64 / messages as f64,
        }
    }
}

/// The messages of a queue that nobody has in hand, as events that will come of them.
pub fn waiting(
    queues: Arc<dyn QueueStore>,
    queue: QueueName,
    yielded: Arc<Yield>,
    period: Duration,
) -> Waiting {
    let place = queue.to_string();
    let look = move || {
        let (queues, queue, yielded) = (queues.clone(), queue.clone(), yielded.clone());
        let look = async move {
            let items = queues.queue(&queue).await?.counts.visible;
            Ok(Depth { items, records_each: yielded.average() })
        };
        Box::pin(look) as _
    };
    Waiting { place, period, look: Box::new(look) }
}
