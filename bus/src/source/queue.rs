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

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_consumer::{DeadLetters, FailurePolicy, Finally};
use anabranch_model::limits::{MESSAGE_BATCH_MAX, RECEIVE_WAIT_MAX, VISIBILITY_DEFAULT};
use anabranch_model::queue::{Attribute, AttributeValue, ReceiveOptions};
use anabranch_model::{Error, Message, NextMove, QueueName, QueueStore, Receipt, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::{join, join_all, maybe_done};
use serde_json::{Value as Json, json};
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::task::JoinSet;

use crate::event::Event;
use crate::line::Line;
use crate::pause::{pause, stopped};
use crate::sink::Outcome;

/// Pauses while the queue does not answer: the longest first one, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How often a deletion is tried. What is not deleted comes again.
const DELETE_ATTEMPTS: u32 = 5;
/// How long messages that are under way may take when the bot stops.
const DRAIN_MAX: Duration = Duration::from_secs(20);
/// Bodies of messages under way, in bytes: with large messages there are fewer than `in_flight`.
const BYTES_MAX: usize = 32 << 20;
/// Receives that one receiver makes side by side at most.
const RECEIVES_MAX: usize = 5;
/// Receivers at least, if so many messages may be under way: while one waits for a store, others work.
const RECEIVERS_MIN: usize = 4;
/// How large a message is taken to be before one was seen.
const BYTES_EXPECTED: usize = 4 << 10;

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

/// The memory for messages under way. Nobody knows how large the next ones are: they are taken to be as large as the last.
struct Room {
    free: Semaphore,
    expected: AtomicUsize,
}

impl Room {
    fn new() -> Self {
        Room { free: Semaphore::new(BYTES_MAX), expected: AtomicUsize::new(BYTES_EXPECTED) }
    }

    /// Waits for the memory of so many messages.
    async fn take(&self, messages: usize) -> Option<SemaphorePermit<'_>> {
        let bytes = self.expected.load(Ordering::Relaxed).saturating_mul(messages);
        self.free.acquire_many(bytes.clamp(1, BYTES_MAX) as u32).await.ok()
    }

    /// Gives back what was too much, or takes what was too little if it is there: what was received is not put back.
    fn fit<'a>(&'a self, room: &mut SemaphorePermit<'a>, messages: &[Message]) {
        let bytes: usize = messages.iter().map(|message| message.body.len()).sum();
        let held = room.num_permits();
        if let Some(more) = bytes.checked_sub(held) {
            if let Ok(more) = self.free.try_acquire_many(more.min(BYTES_MAX) as u32) {
                room.merge(more);
            }
        } else {
            drop(room.split(held - bytes));
        }
        if let Some(mean) = bytes.checked_div(messages.len()) {
            // It rises at once and falls slowly.
            let last = self.expected.load(Ordering::Relaxed);
            self.expected.store(mean.max(last - last / 8), Ordering::Relaxed);
        }
    }
}

/// One of several that receive and process at the same time.
struct Receiver {
    queue: Queue,
    line: Arc<Line>,
    failure: FailurePolicy,
    room: Room,
    /// Receives that are made side by side at most.
    together: usize,
}

/// What several receives brought.
struct Received<'a> {
    messages: Vec<Message>,
    /// The memory that is theirs.
    room: Option<SemaphorePermit<'a>>,
}

impl Receiver {
    async fn run(&self, mut stop: watch::Receiver<bool>) {
        let (mut failures, mut receives, mut done) = (0, 1, Vec::new());
        loop {
            let mut deleted = pin!(maybe_done(self.delete_hidden(std::mem::take(&mut done))));
            // Several receives wait for nothing, and what they have brought would be hidden from others for nothing. So they are not
            // broken off; but none begins once the bot stops.
            let waits = receives == 1 || *stop.borrow();
            let received = tokio::select! {
                biased;
                () = stopped(&mut stop), if waits => None,
                received = alongside(self.receive(receives), deleted.as_mut()) => Some(received),
            };
            let Some(received) = received else {
                self.drain(deleted).await;
                return;
            };
            match received {
                Ok(Received { messages, room: _room }) => {
                    failures = 0;
                    // A receive that came back short has seen all there was.
                    let full = messages.len() == receives * self.queue.batch;
                    receives = if full { self.together } else { 1 };
                    let mut work = pin!(join(self.work(messages), deleted));
                    let worked = tokio::select! {
                        biased;
                        (worked, ()) = &mut work => Some(worked),
                        () = stopped(&mut stop) => None,
                    };
                    let Some(worked) = worked else {
                        self.drain(async { self.delete_hidden(work.await.0).await }).await;
                        return;
                    };
                    done = worked;
                }
                Err(error) => {
                    (failures, receives) = (failures + 1, 1);
                    if failures == 1 {
                        tracing::warn!(bot = %self.line.bot, queue = %self.queue.name, %error, "the queue does not answer; trying on");
                    }
                    let wait = pause(self.line.dice.pause(failures, PAUSE_FIRST, PAUSE_MAX));
                    let stops = tokio::select! {
                        biased;
                        () = stopped(&mut stop) => true,
                        ((), ()) = join(wait, deleted.as_mut()) => false,
                    };
                    if stops {
                        self.drain(deleted).await;
                        return;
                    }
                }
            }
        }
    }

    /// Waits for what is under way when the bot stops.
    async fn drain(&self, work: impl Future<Output = ()>) {
        if tokio::time::timeout(DRAIN_MAX, work).await.is_err() {
            tracing::warn!(bot = %self.line.bot, "messages were not done with in time; they come again");
        }
    }

    /// What so many receives bring. A single one waits for messages; several are made where there were many, and whoever had
    /// waited for the last of them would hold up the others. What a store lends is given back at once: a sink may take its
    /// time, and others read from the same store.
    async fn receive(&self, receives: usize) -> Result<Received<'_>> {
        let mut room = self.room.take(receives * self.queue.batch).await;
        let options = ReceiveOptions {
            messages_max: self.queue.batch,
            wait: Some(if receives == 1 { self.queue.wait } else { Duration::ZERO }),
            visibility: Some(self.queue.visibility),
            attempt: None,
        };
        let calls = (0..receives).map(|_| self.queue.queues.receive(&self.queue.name, options.clone()));
        let (mut messages, mut failed) = (Vec::with_capacity(receives * self.queue.batch), None);
        for received in join_all(calls).await {
            match received {
                Ok(received) => messages.extend(received),
                Err(error) => failed = Some(error),
            }
        }
        // What was received is worked on, whatever became of the others.
        if let Some(error) = failed.filter(|_| messages.is_empty()) {
            return Err(error);
        }
        messages.iter_mut().for_each(|message| message.body = Bytes::copy_from_slice(&message.body));
        if let Some(room) = &mut room {
            self.room.fit(room, &messages);
        }
        Ok(Received { messages, room })
    }

    /// Processes messages and settles each, while they are kept hidden. Returns what is to be deleted.
    async fn work(&self, messages: Vec<Message>) -> Vec<Receipt> {
        if messages.is_empty() {
            return Vec::new();
        }
        if let Some(oldest) = messages.iter().map(|message| message.sent_at).min() {
            self.line.meter.behind(self.line.clock.now().since(oldest));
        }
        let receipts: Vec<Receipt> = messages.iter().map(|message| message.receipt.clone()).collect();
        let settled = async {
            let events = messages.iter().map(|message| Event::of_message(&self.queue.name, message));
            let outcomes = self.line.process(events.collect()).await;
            self.settle(&messages, outcomes).await
        };
        tokio::select! {
            biased;
            done = settled => done,
            never = self.keep_hidden(&receipts) => match never {},
        }
    }

    /// Hides messages for longer until nobody wants it any more.
    async fn keep_hidden(&self, receipts: &[Receipt]) -> Infallible {
        loop {
            pause(self.queue.visibility / 3).await;
            let changes = receipts.iter().map(|receipt| (receipt.clone(), self.queue.visibility)).collect();
            // A message that is done with already is not in flight; others come again if this keeps failing.
            if let Err(error) = self.change_visibility(changes).await {
                tracing::debug!(bot = %self.line.bot, %error, "messages could not be kept hidden");
            }
        }
    }

    /// Changes when messages are visible again, as many with each call as a queue takes.
    async fn change_visibility(&self, changes: Vec<(Receipt, Duration)>) -> Result<()> {
        let calls = changes
            .chunks(MESSAGE_BATCH_MAX)
            .map(|changes| self.queue.queues.change_visibility(&self.queue.name, changes.to_vec()));
        join_all(calls).await.into_iter().try_for_each(|changed| changed.map(drop))
    }

    /// Says of each message what becomes of it. Returns those that are to be deleted.
    async fn settle(&self, messages: &[Message], outcomes: Vec<Outcome>) -> Vec<Receipt> {
        let (mut done, mut again) = (Vec::new(), Vec::new());
        for (message, outcome) in messages.iter().zip(outcomes) {
            let (why, never) = match outcome {
                Outcome::Done => {
                    done.push(message.receipt.clone());
                    continue;
                }
                Outcome::Refused(why) => (why, true),
                Outcome::Failed(why) | Outcome::Unavailable(why) => (why, false),
            };
            let given_up = never || message.receive_count >= self.failure.attempts;
            match &self.failure.finally {
                Finally::DeadLetter(to) if given_up => {
                    self.give_up(message, &why, to).await;
                    done.push(message.receipt.clone());
                }
                // The queue's own redrive policy counts the receives.
                _ => again.push((message.receipt.clone(), Duration::ZERO)),
            }
        }
        if !again.is_empty()
            && let Err(error) = self.change_visibility(again).await
        {
            tracing::debug!(bot = %self.line.bot, %error, "messages come again when their time is over");
        }
        done
    }

    /// Deletes messages, as many with each call as a queue takes. They stay hidden meanwhile.
    async fn delete_hidden(&self, receipts: Vec<Receipt>) {
        if receipts.is_empty() {
            return;
        }
        let calls = receipts.chunks(MESSAGE_BATCH_MAX).map(|receipts| self.delete(receipts.to_vec()));
        tokio::select! {
            biased;
            _ = join_all(calls) => {}
            never = self.keep_hidden(&receipts) => match never {},
        }
    }

    async fn delete(&self, mut receipts: Vec<Receipt>) {
        for attempt in 1..=DELETE_ATTEMPTS {
            if receipts.is_empty() {
                return;
            }
            let results = match self.queue.queues.delete(&self.queue.name, receipts.clone()).await {
                Ok(results) => results,
                Err(error) => vec![Err(error); receipts.len()],
            };
            let mut kept = Vec::new();
            for (receipt, result) in receipts.into_iter().zip(results) {
                match result {
                    Err(error) if error.next_move() == NextMove::Retry => kept.push(receipt),
                    Err(error) => {
                        tracing::warn!(bot = %self.line.bot, %error, "a message that is done with cannot be deleted");
                    }
                    Ok(()) => {}
                }
            }
            receipts = kept;
            if !receipts.is_empty() {
                pause(self.line.dice.pause(attempt, PAUSE_FIRST, PAUSE_MAX)).await;
            }
        }
        if !receipts.is_empty() {
            tracing::warn!(bot = %self.line.bot, messages = receipts.len(), "messages that are done with come again");
        }
    }

    /// Writes a dead letter, for as long as it takes: the message must not be deleted without it.
    async fn give_up(&self, message: &Message, why: &str, to: &DeadLetters) {
        let letter = self.letter(message, why);
        let name = format!("{}/{}", self.queue.name, message.id);
        let mut attempts = 0;
        while let Err(error) =
            to.send(Bytes::copy_from_slice(message.id.as_str().as_bytes()), &name, letter.clone()).await
        {
            attempts += 1;
            tracing::error!(bot = %self.line.bot, %error, attempts, "a dead letter cannot be written");
            pause(self.line.dice.pause(attempts, PAUSE_FIRST, PAUSE_MAX)).await;
        }
        self.line.meter.dead_letter();
        tracing::error!(bot = %self.line.bot, message = %message.id, why, receives = message.receive_count, "dead letter");
    }

    /// A message in full, with where it comes from, what went wrong, and how often it was tried.
    fn letter(&self, message: &Message, why: &str) -> Bytes {
        let document = json!({
            "application": self.line.bot,
            "queue": self.queue.name.as_str(),
            "messageId": message.id.as_str(),
            "sentAt": message.sent_at.as_millis(),
            "group": message.group,
            "attributes": attributes(message),
            "data": STANDARD.encode(&message.body),
            "error": why,
            "attempts": message.receive_count,
            "givenUpAt": self.line.clock.now().as_millis(),
        });
        document.to_string().into()
    }
}

/// What one comes to, while the other is carried on as well.
async fn alongside<T>(one: impl Future<Output = T>, other: impl Future<Output = ()>) -> T {
    let mut one = pin!(one);
    tokio::select! {
        biased;
        value = &mut one => value,
        () = other => one.await,
    }
}

fn attributes(message: &Message) -> Json {
    let shown = message.attributes.iter().map(|(name, Attribute { kind, value })| {
        let value = match value {
            AttributeValue::Text(text) => json!({ "kind": kind, "text": text }),
            AttributeValue::Binary(bytes) => json!({ "kind": kind, "base64": STANDARD.encode(bytes) }),
        };
        (name.clone(), value)
    });
    Json::Object(shown.collect())
}
