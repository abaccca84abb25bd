//! What is done with a queue: messages are sent, received and deleted, or only sent.

use std::time::Duration;

use anabranch_engine::Engine;
use anabranch_model::queue::ReceiveOptions;
use anabranch_model::{NewMessage, QueueName, QueueStore, Receipt, limits};
use bytes::Bytes;

use super::tasks::{self, Done, Task};
use super::writers::{RECORD_BYTES, incompressible};
use crate::failure::Failure;

/// Tasks, each with one call in flight.
pub(crate) const TASKS: usize = 64;
/// Bodies of each task, used again and again: few enough to stay in the processor's cache.
const BODIES: usize = 64;
/// How long a receive waits. Whoever receives has sent before, so there is always a message.
const WAIT: Duration = Duration::from_secs(5);

/// Bodies of its own for each task, so that no two share a reference count.
pub(crate) fn bodies(task: usize) -> Vec<Bytes> {
    (0..BODIES).map(|number| incompressible((task * BODIES + number) as u64, RECORD_BYTES).into()).collect()
}

/// Sends, receives and deletes so many messages a step, or only sends them.
struct Cycle {
    engine: Engine,
    queue: QueueName,
    bodies: Vec<Bytes>,
    messages: usize,
    takes: bool,
}

impl Task for Cycle {
    async fn step(&mut self, number: usize) -> Result<(), Failure> {
        let body = |index: usize| self.bodies[(number * self.messages + index) % BODIES].clone();
        let messages = (0..self.messages).map(|index| NewMessage::new(body(index))).collect();
        for sent in self.engine.send(&self.queue, messages).await? {
            sent?;
        }
        let mut left = if self.takes { self.messages } else { 0 };
        while left > 0 {
            left -= self.take(left).await?;
        }
        Ok(())
    }
}

impl Cycle {
    /// Receives and deletes up to so many messages, and at least one.
    async fn take(&self, messages_max: usize) -> Result<usize, Failure> {
        let options = ReceiveOptions { messages_max, wait: Some(WAIT), ..ReceiveOptions::default() };
        let received = self.engine.receive(&self.queue, options).await?;
        if received.is_empty() {
            return Err(Failure::new("bench", "a message that was sent is not received", "report this"));
        }
        let receipts: Vec<Receipt> = received.into_iter().map(|message| message.receipt).collect();
        let taken = receipts.len();
        for deleted in self.engine.delete(&self.queue, receipts).await? {
            deleted?;
        }
        Ok(taken)
    }
}

fn cycles(engine: &Engine, queue: &QueueName, messages: usize, takes: bool) -> Vec<Cycle> {
    let cycle =
        |task| Cycle { engine: engine.clone(), queue: queue.clone(), bodies: bodies(task), messages, takes };
    (0..TASKS).map(cycle).collect()
}

/// A round: every task sends one message, receives one and deletes it, again and again.
pub(crate) async fn cycle(
    engine: &Engine,
    queue: &QueueName,
    steps: usize,
    at_most: Duration,
) -> Result<Done, Failure> {
    tasks::race(cycles(engine, queue, 1, true), steps, at_most).await
}

/// Sends, receives and deletes at least so many messages, in the largest batches. Returns how many.
pub(crate) async fn wear(engine: &Engine, queue: &QueueName, messages: usize) -> Result<u64, Failure> {
    in_batches(engine, queue, messages, true).await
}

/// Sends at least so many messages, in the largest batches. Returns how many.
pub(crate) async fn fill(engine: &Engine, queue: &QueueName, messages: usize) -> Result<u64, Failure> {
    in_batches(engine, queue, messages, false).await
}

async fn in_batches(
    engine: &Engine,
    queue: &QueueName,
    messages: usize,
    takes: bool,
) -> Result<u64, Failure> {
    let each = limits::MESSAGE_BATCH_MAX;
    let steps = messages.div_ceil(TASKS * each);
    Ok(tasks::finish(cycles(engine, queue, each, takes), steps).await?.steps * each as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::subject::Subject;
    use anabranch_model::QueueOptions;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_cycle_leaves_as_many_messages_as_there_were() {
        let folder = tempfile::tempdir().unwrap();
        let subject = Subject::open(folder.path(), 1).await.unwrap();
        let (engine, queue) = (subject.engine(), QueueName::new("q").unwrap());
        engine.create_queue(&queue, QueueOptions::default()).await.unwrap();
        let visible = async || engine.queue(&queue).await.unwrap().counts.visible;

        assert_eq!(wear(engine, &queue, 1).await.unwrap(), 640);
        assert_eq!(visible().await, 0);
        assert_eq!(fill(engine, &queue, 641).await.unwrap(), 1_280);
        assert_eq!(visible().await, 1_280);
        let done = cycle(engine, &queue, 2, Duration::from_secs(60)).await.unwrap();
        assert!((2..=128).contains(&done.steps), "{done:?}");
        assert_eq!(visible().await, 1_280);
        subject.close().await.unwrap();
    }
}
