//! Making queues, sending and receiving.

use std::time::Duration;

use crate::laws::trial::{self, STEPS_MAX, give_way};
use crate::queue::{
    Message, NewMessage, QueueName, QueueOptions, QueueStore, QueueSummary, Receipt, ReceiveOptions,
    RedrivePolicy, Sent,
};
use crate::{Error, Result};

pub(super) type Trial = trial::Trial<dyn QueueStore>;

/// What only the fixture of queues can do, and knows.
impl Trial {
    /// How many messages can be in flight.
    pub fn in_flight_max(&self) -> usize {
        self.means.in_flight_max
    }

    /// Whether a queue says how old its oldest message is.
    pub fn tells_age(&self) -> bool {
        self.means.tells_age
    }

    /// Gives calls that were begun time to reach the store.
    pub async fn settle(&self) {
        for _ in 0..20 {
            give_way().await;
        }
        if let Some(settle) = &self.means.settle {
            settle().await;
        }
    }
}

/// Queues and messages.
impl Trial {
    /// A name that no other law uses, with an ending for its kind.
    pub fn fresh_name(&self, fifo: bool) -> QueueName {
        let number = self.next_number();
        // Names are short, so that of the law is cut; its length makes up for what is cut off.
        let law: String = self.law.chars().take(40).collect();
        let ending = if fifo { ".fifo" } else { "" };
        let name = format!("{}-{law}-{}-{number}{ending}", self.means.prefix, self.law.len());
        self.ok("naming a queue", QueueName::new(&name))
    }

    pub async fn queue(&self) -> QueueName {
        self.queue_with(QueueOptions::default()).await
    }

    pub async fn fifo(&self) -> QueueName {
        self.queue_with(QueueOptions { deduplicates_content: true, ..QueueOptions::fifo() }).await
    }

    pub async fn queue_with(&self, options: QueueOptions) -> QueueName {
        let name = self.fresh_name(options.fifo);
        self.remove(&name).await;
        let message_bytes_max = options.message_bytes_max.min(self.means.message_bytes_max);
        let options = QueueOptions { message_bytes_max, ..options };
        self.ok("making a queue", self.store().create_queue(&name, options).await);
        name
    }

    /// Removes a queue that an earlier run may have left.
    pub async fn remove(&self, name: &QueueName) {
        match self.store().delete_queue(name).await {
            Ok(()) | Err(Error::QueueNotFound(_)) => {}
            Err(error) => self.fail(format!("deleting what an earlier run left failed: {error}")),
        }
    }

    /// A queue and the one for its dead letters.
    pub async fn with_dead_letters(&self, fifo: bool, receives_max: u32) -> [QueueName; 2] {
        let options = QueueOptions { fifo, deduplicates_content: fifo, ..QueueOptions::default() };
        let dead_letters = self.queue_with(options.clone()).await;
        let redrive = Some(RedrivePolicy { dead_letters: dead_letters.clone(), receives_max });
        [self.queue_with(QueueOptions { redrive, ..options }).await, dead_letters]
    }

    pub async fn summary(&self, queue: &QueueName) -> QueueSummary {
        self.ok("describing a queue", self.store().queue(queue).await)
    }

    /// Visible, in flight and delayed messages.
    pub async fn counts(&self, queue: &QueueName) -> [u64; 3] {
        let counts = self.summary(queue).await.counts;
        [counts.visible, counts.in_flight, counts.delayed]
    }

    /// Sends; every message must be taken.
    pub async fn send(&self, queue: &QueueName, messages: Vec<NewMessage>) -> Vec<Sent> {
        let count = messages.len();
        let results = self.ok("send", self.store().send(queue, messages).await);
        self.same("results of a send", results.len(), count);
        results.into_iter().map(|result| self.ok("sending a message", result)).collect()
    }

    pub async fn send_one(&self, queue: &QueueName, message: NewMessage) -> Sent {
        self.send(queue, vec![message]).await.swap_remove(0)
    }

    pub async fn receive_with(&self, queue: &QueueName, options: ReceiveOptions) -> Vec<Message> {
        let most = options.messages_max;
        let messages = self.ok("receive", self.store().receive(queue, options).await);
        self.holds(messages.len() <= most, format!("a receive of {most} gave {} messages", messages.len()));
        messages
    }

    /// What one receive gives, up to ten messages, without waiting.
    pub async fn receive(&self, queue: &QueueName) -> Vec<Message> {
        self.receive_with(queue, ReceiveOptions::all()).await
    }

    /// The single message that there must be to receive.
    pub async fn receive_one(&self, queue: &QueueName) -> Message {
        let mut messages = self.receive(queue).await;
        self.same("messages received", messages.len(), 1);
        messages.swap_remove(0)
    }

    /// Receives until nothing more comes, and deletes nothing.
    pub async fn drain(&self, queue: &QueueName) -> Vec<Message> {
        let mut all = Vec::new();
        for _ in 0..STEPS_MAX {
            let messages = self.receive(queue).await;
            if messages.is_empty() {
                return all;
            }
            all.extend(messages);
        }
        self.fail("receiving does not end although messages are hidden")
    }

    pub async fn delete(&self, queue: &QueueName, receipt: &Receipt) -> Result<()> {
        let results = self.ok("delete", self.store().delete(queue, vec![receipt.clone()]).await);
        self.same("results of a delete", results.len(), 1);
        results.into_iter().next().unwrap_or(Ok(()))
    }

    pub async fn hide(&self, queue: &QueueName, receipt: &Receipt, time: Duration) -> Result<()> {
        let changes = vec![(receipt.clone(), time)];
        let results = self.ok("changing visibility", self.store().change_visibility(queue, changes).await);
        self.same("results of a change of visibility", results.len(), 1);
        results.into_iter().next().unwrap_or(Ok(()))
    }

    /// Asserts that a receive gives nothing.
    pub async fn nothing(&self, when: &str, queue: &QueueName) {
        self.same(format!("messages received {when}"), bodies(&self.receive(queue).await), Vec::new());
    }
}

/// The bodies as texts, in the order of the messages.
pub(super) fn bodies(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| String::from_utf8_lossy(&message.body).into_owned()).collect()
}

/// The bodies as texts, sorted: standard queues promise no order.
pub(super) fn sorted(messages: &[Message]) -> Vec<String> {
    let mut bodies = bodies(messages);
    bodies.sort();
    bodies
}

/// Messages whose bodies are `label-0`, `label-1` and so on.
pub(super) fn some(label: &str, count: usize) -> Vec<NewMessage> {
    (0..count).map(|number| NewMessage::new(format!("{label}-{number}"))).collect()
}

/// The bodies of [`some`], sorted.
pub(super) fn some_bodies(label: &str, count: usize) -> Vec<String> {
    let mut bodies: Vec<_> = (0..count).map(|number| format!("{label}-{number}")).collect();
    bodies.sort();
    bodies
}

/// The same messages in a group.
pub(super) fn grouped(group: &str, messages: Vec<NewMessage>) -> Vec<NewMessage> {
    messages.into_iter().map(|message| message.in_group(group)).collect()
}
