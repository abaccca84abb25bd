//! A bot on a queue.
//!
//! Where the sink takes many events as readily as few, a receiver makes several receives side by side as long as each of them
//! comes back full, and takes all that they brought through the line at once: a store is waited for once and not once for
//! every ten. What is done with is deleted while the next messages are received.
//!
//! ```text
//!   receive ──▶ line ──▶ done ─────────────────────────────▶ delete
//!      ▲          │  ├──▶ failed, and may be tried again ───▶ visible at once
//!      │          │  └──▶ failed often enough, or refused ──▶ dead letter ──▶ delete
//!      └──────────┴── hidden for longer, again and again, while the line works
//! ```
//!
//! What must hold: a message is deleted only when everything that comes of it is durable, or it lies in full among the dead
//! letters.

mod receiver;
mod room;

use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{FailurePolicy, Finally};
use anabranch_model::limits::{MESSAGE_BATCH_MAX, RECEIVE_WAIT_MAX, VISIBILITY_DEFAULT};
use anabranch_model::{Error, QueueName, QueueStore, Result};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::receiver::Receiver;
use self::room::Room;
use crate::line::Line;

/// Receives that one receiver makes side by side at most.
const RECEIVES_MAX: usize = 5;
/// Receivers at least, if so many messages may be under way: while one waits for a store, others work.
const RECEIVERS_MIN: usize = 4;

/// Messages that a bot reads.
pub struct Queue {
    /// Whose they are.
    pub queues: Arc<dyn QueueStore>,
    /// Their queue.
    pub name: QueueName,
    /// How many messages are received and not done with at most. They are taken in tens.
    pub in_flight: usize,
    /// How many messages one receive asks for, 1 to 10.
    pub batch: usize,
    /// How long a message is hidden from others without a sign of life.
    pub visibility: Duration,
    /// How long one receive waits for the first message.
    pub wait: Duration,
}

impl Queue {
    /// The messages of a queue, with the figures that most want.
    pub fn new(queues: Arc<dyn QueueStore>, name: QueueName) -> Self {
        Queue {
            queues,
            name,
            in_flight: 100,
            batch: MESSAGE_BATCH_MAX,
            visibility: VISIBILITY_DEFAULT,
            wait: RECEIVE_WAIT_MAX,
        }
    }

    /// Reads until the bot is stopped, and what is under way then is done with.
    pub(crate) async fn run(
        self,
        line: Arc<Line>,
        failure: FailurePolicy,
        stop: watch::Receiver<bool>,
    ) -> Result<()> {
        self.check(&failure).await?;
        let receives = self.in_flight.div_ceil(self.batch).max(1);
        let together = match line.sink.takes_many() {
            true => (receives / RECEIVERS_MIN).clamp(1, RECEIVES_MAX),
            false => 1,
        };
        let receivers = receives / together;
        let shared = Arc::new(Receiver { queue: self, line, failure, room: Room::new(), together });
        let mut tasks = JoinSet::new();
        for _ in 0..receivers {
            let (receiver, stop) = (shared.clone(), stop.clone());
            tasks.spawn(async move { receiver.run(stop).await });
        }
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                // Steps and sinks do not get this far with a panic, so it is ours. The others go on, and so does this one.
                tracing::error!(bot = %shared.line.bot, %error, "a receiver broke off; it begins anew");
                let (receiver, stop) = (shared.clone(), stop.clone());
                tasks.spawn(async move { receiver.run(stop).await });
            }
        }
        Ok(())
    }

    /// The queue is there, and a message that cannot be processed has a place to go.
    async fn check(&self, failure: &FailurePolicy) -> Result<()> {
        if !(1..=MESSAGE_BATCH_MAX).contains(&self.batch) || self.in_flight == 0 {
            return Err(Error::Invalid(format!(
                "a bot cannot take {} messages at a time and {} in all: at a time 1 to {MESSAGE_BATCH_MAX}, and at \
                 least one in all",
                self.batch, self.in_flight
            )));
        }
        let summary = self.queues.queue(&self.name).await?;
        if matches!(failure.finally, Finally::Halt) && summary.options.redrive.is_none() {
            return Err(Error::Invalid(format!(
                "queue `{}` has no dead-letter queue and the bot names no place for dead letters: a message that cannot \
                 be processed would come again for ever",
                self.name
            )));
        }
        Ok(())
    }
}
