//! One of several that receive messages and take them through the line.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{DeadLetters, FailurePolicy, Finally};
use anabranch_model::limits::MESSAGE_BATCH_MAX;
use anabranch_model::queue::{Attribute, AttributeValue, ReceiveOptions};
use anabranch_model::{Message, NextMove, Receipt, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value as Json, json};
use tokio::sync::{SemaphorePermit, watch};

use super::Queue;
use super::room::Room;
use crate::event::Event;
use crate::line::Line;
use crate::pause::{pause, stopped};
use crate::sink::Outcome;

/// Pauses while the queue does not answer: the longest first one, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How often a deletion is tried. What is not deleted comes again.
const DELETE_ATTEMPTS: u32 = 5;
/// Deletions under way at most, each of what was done with at once.
const DELETIONS_MAX: usize = 4;
/// How long what is under way may take when the bot stops.
const DRAIN_MAX: Duration = Duration::from_secs(20);

/// One of several that receive and process at the same time.
pub(super) struct Receiver {
    pub(super) queue: Queue,
    pub(super) line: Arc<Line>,
    pub(super) failure: FailurePolicy,
    pub(super) room: Room,
    /// Receives that are made side by side at most.
    pub(super) together: usize,
}

/// What several receives brought.
struct Received<'a> {
    messages: Vec<Message>,
    hidden: Hidden<'a>,
    /// The memory that is theirs.
    _room: Option<SemaphorePermit<'a>>,
}

/// What keeps messages hidden, for each receive.
type Hidden<'a> = FuturesUnordered<BoxFuture<'a, Infallible>>;

impl Receiver {
    /// Receives and processes until the bot is stopped, and what is under way then has some time to end.
    pub(super) async fn run(&self, stop: watch::Receiver<bool>) {
        let mut late = stop.clone();
        tokio::select! {
            biased;
            () = self.run_until(stop) => {}
            () = async { stopped(&mut late).await; pause(DRAIN_MAX).await } => {
                tracing::warn!(bot = %self.line.bot, "messages were not done with in time; they come again");
            }
        }
    }

    async fn run_until(&self, mut stop: watch::Receiver<bool>) {
        let (mut failures, mut wanted, mut deletions) = (0, 1, FuturesUnordered::new());
        loop {
            let receives = self.room.receives(wanted, self.queue.batch);
            let room = tokio::select! {
                biased;
                () = stopped(&mut stop) => break,
                room = beside(self.room.take(receives * self.queue.batch), &mut deletions) => room,
            };
            // A single receive may wait for long, and is broken off. Several wait for nothing, and what they have brought
            // would be hidden from others for nothing.
            let received = tokio::select! {
                biased;
                () = stopped(&mut stop), if receives == 1 => break,
                received = beside(self.receive(receives, room), &mut deletions) => received,
            };
            match received {
                Ok(received) => {
                    failures = 0;
                    // A receive that came back short has seen all there was.
                    let full = received.messages.len() == receives * self.queue.batch;
                    wanted = if full { self.together } else { 1 };
                    let done = beside(self.work(received), &mut deletions).await;
                    if !done.is_empty() {
                        deletions.push(self.delete_hidden(done));
                    }
                    if deletions.len() > DELETIONS_MAX {
                        deletions.next().await;
                    }
                }
                Err(error) => {
                    (failures, wanted) = (failures + 1, 1);
                    if failures == 1 {
                        tracing::warn!(bot = %self.line.bot, queue = %self.queue.name, %error, "the queue does not answer; trying on");
                    }
                    let wait = pause(self.line.dice.pause(failures, PAUSE_FIRST, PAUSE_MAX));
                    tokio::select! {
                        biased;
                        () = stopped(&mut stop) => break,
                        () = beside(wait, &mut deletions) => {}
                    }
                }
            }
        }
        while deletions.next().await.is_some() {}
    }

    /// What so many receives bring. A single one waits for messages; several are made where there were many, and whoever had
    /// waited for the last of them would hold up the others. What a store lends is given back at once: a sink may take its
    /// time, and others read from the same store.
    async fn receive<'a>(
        &'a self,
        receives: usize,
        mut room: Option<SemaphorePermit<'a>>,
    ) -> Result<Received<'a>> {
        let options = ReceiveOptions {
            messages_max: self.queue.batch,
            wait: Some(if receives == 1 { self.queue.wait } else { Duration::ZERO }),
            visibility: Some(self.queue.visibility),
            attempt: None,
        };
        let call = |_| async {
            let mut messages = self.queue.queues.receive(&self.queue.name, options.clone()).await?;
            messages.iter_mut().for_each(|message| message.body = Bytes::copy_from_slice(&message.body));
            Ok(messages)
        };
        let mut calls: FuturesUnordered<_> = (0..receives).map(call).collect();
        let mut messages: Vec<Message> = Vec::with_capacity(receives * self.queue.batch);
        let (mut hidden, mut failed) = (Hidden::new(), None);
        // What one has brought stays hidden while another takes its time.
        while let Some(received) = beside(calls.next(), &mut hidden).await {
            match received {
                Ok(received) => {
                    if !received.is_empty() {
                        hidden.push(self.keep_hidden(receipts(&received)).boxed());
                    }
                    messages.extend(received);
                }
                Err(error) => failed = Some(error),
            }
        }
        // What was received is worked on, whatever became of the others.
        if let Some(error) = failed.filter(|_| messages.is_empty()) {
            return Err(error);
        }
        if let Some(room) = &mut room {
            self.room.fit(room, &messages);
        }
        Ok(Received { messages, hidden, _room: room })
    }

    /// Processes messages and settles each, while they are kept hidden. Returns what is to be deleted.
    async fn work(&self, received: Received<'_>) -> Vec<Receipt> {
        let Received { messages, mut hidden, _room } = received;
        let Some(oldest) = messages.iter().map(|message| message.sent_at).min() else { return Vec::new() };
        self.line.meter.behind(self.line.clock.now().since(oldest));
        let settled = async {
            let events = messages.iter().map(|message| Event::of_message(&self.queue.name, message));
            let outcomes = self.line.process(events.collect()).await;
            self.settle(&messages, outcomes).await
        };
        beside(settled, &mut hidden).await
    }

    /// Hides messages for longer until nobody wants it any more.
    async fn keep_hidden(&self, receipts: Vec<Receipt>) -> Infallible {
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
                    if self.give_up(message, &why, to).await {
                        done.push(message.receipt.clone());
                    }
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
        let calls = receipts.chunks(MESSAGE_BATCH_MAX).map(|receipts| self.delete(receipts.to_vec()));
        let deleted = join_all(calls);
        tokio::select! {
            biased;
            _ = deleted => {}
            never = self.keep_hidden(receipts) => match never {},
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

    /// Writes a dead letter, for as long as it takes: the message must not be deleted without it. Returns whether it is
    /// written; if the place does not take it, the message comes again when its time is over.
    async fn give_up(&self, message: &Message, why: &str, to: &DeadLetters) -> bool {
        let (id, name) = (message.id.as_str().as_bytes(), format!("{}/{}", self.queue.name, message.id));
        let (letter, mut attempts) = (self.letter(message, why), 0);
        while let Err(error) = to.send(Bytes::copy_from_slice(id), &name, letter.clone()).await {
            attempts += 1;
            tracing::error!(bot = %self.line.bot, message = %message.id, %error, attempts, "a dead letter cannot be written");
            if error.next_move() == NextMove::FixCall {
                return false;
            }
            pause(self.line.dice.pause(attempts, PAUSE_FIRST, PAUSE_MAX)).await;
        }
        self.line.meter.dead_letter();
        tracing::error!(bot = %self.line.bot, message = %message.id, why, receives = message.receive_count, "dead letter");
        true
    }

    /// A message in full, with where it comes from, what went wrong, and how often it was tried.
    fn letter(&self, message: &Message, why: &str) -> String {
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
        document.to_string()
    }
}

/// What a future comes to, while others are carried on as well. They go first: what is to be deleted and what is to be
/// received then reach a store together.
async fn beside<T, O: Future>(one: impl Future<Output = T>, others: &mut FuturesUnordered<O>) -> T {
    let mut one = pin!(one);
    loop {
        tokio::select! {
            biased;
            Some(_) = others.next() => {}
            value = &mut one => return value,
        }
    }
}

fn receipts(messages: &[Message]) -> Vec<Receipt> {
    messages.iter().map(|message| message.receipt.clone()).collect()
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
