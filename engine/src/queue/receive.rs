//! Receiving: what is visible is hidden, and given once that is durable.
//!
//! Messages are picked under the lock of the queue and given their rows; the disk is waited for without it, so several
//! receivers have frames on their way at the same time. Bodies are read at the end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::limits::DEDUPLICATION_WINDOW;
use anabranch_model::queue::{Message as Given, QueueName, Receipt, ReceiptParts, ReceiveOptions};
use anabranch_model::{Error, Result};
use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::frame::{Frame, MOVED_BYTES_MAX, done, settled, write};
use super::held::{ATTEMPTS_MAX, Attempt, Queue};
use super::keys::{self, Place};
use super::options::millis;
use super::place::{Message, id, timestamp};
use super::send::SMALL_ROWS_BYTES;
use super::stored::{Body, Standing};
use crate::core::Core;
use crate::journal::Urgency;

/// Where dead letters go.
enum Dead {
    /// Nobody has asked.
    Unknown,
    /// There.
    To(Arc<Queue>),
    /// The queue is gone: they stay.
    Nowhere,
}

/// What a look at a queue came to.
enum Taken {
    /// Messages, under this number.
    Given(u64, Vec<(Place, Standing)>),
    /// Nothing; the next message is due at this time.
    Nothing(Option<u64>),
    /// Nothing, but rows were changed on the way: there may be more behind them.
    Changed,
    /// A dead letter has to go to this queue.
    Dead(QueueName),
}

/// What was picked.
#[derive(Default)]
pub struct Picked {
    given: Vec<(Place, Standing)>,
    more: bool,
    dead: Option<QueueName>,
}

impl Core {
    /// Takes messages. See [`QueueStore::receive`](anabranch_model::QueueStore::receive).
    pub async fn receive_messages(&self, name: &QueueName, options: ReceiveOptions) -> Result<Vec<Given>> {
        let queue = self.queues.get(name)?;
        let (until, now) = {
            let mut held = queue.lock();
            options.check(&held.options)?;
            let now = held.at(self.now_ms());
            (now.saturating_add(millis(options.wait.unwrap_or(held.options.receive_wait))), now)
        };
        let mut dead = Dead::Unknown;
        loop {
            // Before it looks, so that nothing in between goes unnoticed.
            let mut changed = pin!(queue.changed.notified());
            changed.as_mut().enable();
            let next = match self.take_messages(&queue, &options, &dead).await? {
                Taken::Given(number, given) => return self.hand_out_messages(&queue, number, given).await,
                Taken::Changed => continue,
                Taken::Dead(target) => {
                    dead = self.queues.get(&target).map_or(Dead::Nowhere, Dead::To);
                    continue;
                }
                Taken::Nothing(next) => next,
            };
            if let Some(reason) = self.sequencer.stopped() {
                return Err(Error::Stopped(reason));
            }
            let now = self.now_ms().max(now);
            if now >= until {
                return Ok(Vec::new());
            }
            let wait = next.unwrap_or(until).min(until).saturating_sub(now).max(1);
            let _ = tokio::time::timeout(Duration::from_millis(wait), changed).await;
        }
    }

    async fn take_messages(
        &self,
        queue: &Arc<Queue>,
        options: &ReceiveOptions,
        dead: &Dead,
    ) -> Result<Taken> {
        let small = SMALL_ROWS_BYTES * options.messages_max;
        let bytes = if matches!(dead, Dead::To(_)) { MOVED_BYTES_MAX } else { small };
        let mut permit = Some(self.admit_rows(bytes).await?);
        self.submit(|| {
            let (mut frame, mut target) = match dead {
                Dead::To(target) => match Frame::pair(self, queue, target) {
                    Ok((frame, target)) => (frame, Some(target)),
                    // The queue for dead letters went since.
                    Err(_) => (Frame::new(self, queue)?, None),
                },
                _ => (Frame::new(self, queue)?, None),
            };
            let stay = !matches!(dead, Dead::Unknown) && target.is_none();
            let picked = frame.pick(options, self.queues.in_flight_max, target.as_mut(), stay)?;
            if let Some(target) = picked.dead {
                return Ok((Taken::Dead(target), done()));
            }
            if frame.is_empty() {
                let next = frame.next_due(self.queues.in_flight_max)?;
                return Ok((Taken::Nothing(next), done()));
            }
            let number = frame.held.number;
            frame.wakes += usize::from(picked.more);
            // Who cannot receive cannot delete. Dead letters are written anew, and that takes room.
            let urgency = if target.is_some() { Urgency::Normal } else { Urgency::Freeing };
            let frames = std::iter::once(frame).chain(target).collect();
            let none = self.rows.accept(Vec::new());
            let (_, done) = write(self, none, frames, Vec::new(), urgency, &mut permit)?;
            let empty = picked.given.is_empty();
            Ok((if empty { Taken::Changed } else { Taken::Given(number, picked.given) }, done))
        })
        .await
    }

    /// Reads the bodies of messages that are hidden for their receiver. One that was purged since is left out, and those
    /// for which there is no memory go back. One that is damaged takes no neighbour with it: only a receive that got nothing
    /// else says so.
    async fn hand_out_messages(
        &self,
        queue: &Arc<Queue>,
        number: u64,
        given: Vec<(Place, Standing)>,
    ) -> Result<Vec<Given>> {
        let (mut messages, mut damaged) = (Vec::with_capacity(given.len()), None);
        let mut given = given.into_iter();
        while let Some((place, standing)) = given.next() {
            let row = match self.rows.get(&keys::body(number, &place)) {
                Ok(Some(row)) => row,
                Ok(None) => continue,
                Err(error @ Error::Corrupt(_)) => {
                    tracing::error!(queue = %queue.name, message = %place.id()?, %error, "a message cannot be given");
                    damaged = Some(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let permit = match self.budget.try_read(row.len()) {
                Some(permit) => permit,
                None => match self.budget.read(row.len()).await {
                    Ok(permit) => permit,
                    Err(error) => {
                        let rest = std::iter::once((place, standing)).chain(given).collect();
                        self.put_back(queue, rest).await?;
                        return if messages.is_empty() { Err(error) } else { Ok(messages) };
                    }
                },
            };
            let row = Bytes::from_owner(Lent { row, _permit: permit });
            messages.push(message(queue, place, standing, Body::decode(&row)?)?);
        }
        damaged.filter(|_| messages.is_empty()).map_or(Ok(messages), Err)
    }

    /// Puts messages back that were picked and could not be given: they are visible as before, and the receive does not
    /// count. Nobody has seen its receipts.
    async fn put_back(&self, queue: &Arc<Queue>, picked: Vec<(Place, Standing)>) -> Result<()> {
        let mut permit = Some(self.budget.write(SMALL_ROWS_BYTES * picked.len()).await);
        self.submit(|| {
            let mut frame = Frame::new(self, queue)?;
            for (place, picked) in &picked {
                let Some(message) = frame.find(*place)? else { continue };
                let is = message.state.standing;
                if (is.receives, is.due) == (picked.receives, picked.due) {
                    let back = Standing { due: frame.now, receives: is.receives.saturating_sub(1), ..is };
                    frame.change(&message, back)?;
                    frame.wakes += 1;
                }
            }
            if frame.is_empty() {
                return Ok(((), settled(self, frame, &mut permit)?));
            }
            let none = self.rows.accept(Vec::new());
            let (_, done) = write(self, none, vec![frame], Vec::new(), Urgency::Freeing, &mut permit)?;
            Ok(((), done))
        })
        .await
    }
}

/// A body that counts against the budget until its receiver lets go of it.
struct Lent {
    row: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.row
    }
}

fn message(queue: &Queue, place: Place, standing: Standing, body: Body) -> Result<Given> {
    let id = id(&body, &place)?;
    // Dead letters keep their identifiers; where a message lies now, its receipt says.
    let message = if body.id.is_some() { place.id()? } else { id.clone() };
    let parts = ReceiptParts { queue: queue.born, receive: standing.receives.into(), message };
    Ok(Given {
        id,
        receipt: Receipt::from(&parts),
        receive_count: body.receives_before + standing.receives,
        sent_at: timestamp(place.sent_at),
        first_received_at: timestamp(standing.first_received_at),
        sequence: queue.name.is_fifo().then(|| place.sequence()),
        body: body.body,
        attributes: body.attributes,
        group: body.group,
        deduplication: body.deduplication,
        dead_letter_source: body.source,
        trace: body.trace,
    })
}

impl<'a> Frame<'a> {
    /// Picks messages and hides them. What is too old goes, and what was received too often goes to `target`, or is
    /// given on if it has to `stay`.
    fn pick(
        &mut self,
        options: &ReceiveOptions,
        in_flight_max: usize,
        mut target: Option<&mut Frame<'a>>,
        stay: bool,
    ) -> Result<Picked> {
        if let Some(given) = self.repeat(options)? {
            return Ok(Picked { given, ..Picked::default() });
        }
        let in_flight = self.held.counts.at(self.now).in_flight;
        let room = in_flight_max.saturating_sub(usize::try_from(in_flight).unwrap_or(usize::MAX));
        if room == 0 && !self.fifo() {
            return Err(Error::InFlightLimit { queue: self.queue.name.clone(), limit: in_flight_max });
        }
        let most = options.messages_max.min(room);
        let end: Bytes = keys::waiting_prefix(self.held.number, self.now + 1).into();
        // One more than are wanted, so that another receiver can be told of it.
        let rows = if most == 0 { Vec::new() } else { self.next_waiting(&end, most + 1)? };
        let mut picked = Picked::default();
        let all = rows.len();
        let mut looked_at = 0;
        for (key, row) in rows {
            if picked.given.len() >= most || picked.dead.is_some() {
                break;
            }
            let first = self.waiting(&key, &row)?;
            if !self.pick_from(first, options, most, target.as_deref_mut(), stay, &mut picked)? {
                break;
            }
            looked_at += 1;
        }
        picked.more = looked_at < all || all > most;
        self.remember(options, &picked);
        Ok(picked)
    }

    /// Picks a message, and in a queue that keeps an order those of its group that come behind it. Returns false if
    /// the frame has no room for a dead letter, which stays until the next.
    fn pick_from(
        &mut self,
        first: Message,
        options: &ReceiveOptions,
        most: usize,
        mut target: Option<&mut Frame<'a>>,
        stay: bool,
        picked: &mut Picked,
    ) -> Result<bool> {
        let messages = match &first.state.group {
            Some(group) => {
                let from = keys::group(self.held.number, group, &first.place);
                self.of_group(group, &from, most)?
            }
            None => vec![first],
        };
        for message in messages {
            if message.state.standing.due > self.now || picked.given.len() >= most {
                break;
            }
            if self.is_old(&message.place) {
                self.take_out(&message)?;
            } else if let Some(dead) = self.dead_letters(&message).filter(|_| !stay) {
                let target = target.as_deref_mut().filter(|target| target.queue.name == dead);
                let Some(target) = target else {
                    picked.dead = Some(dead);
                    return Ok(true);
                };
                if target.is_large() {
                    return Ok(false);
                }
                match self.bury(&message, target) {
                    // Nobody can carry it elsewhere. It is hidden as if it were given, so that it stands in nobody's way.
                    Err(Error::Corrupt(_)) => self.give(&message, options, picked)?,
                    buried => buried?,
                }
            } else {
                self.give(&message, options, picked)?;
            }
        }
        Ok(true)
    }

    /// Where a message goes that was received as often as it may be. It lies there already if that is its own queue.
    fn dead_letters(&self, message: &Message) -> Option<QueueName> {
        let policy =
            self.held.options.redrive.as_ref().filter(|policy| policy.dead_letters != self.queue.name)?;
        (message.state.standing.receives >= policy.receives_max).then(|| policy.dead_letters.clone())
    }

    /// Hides a message for its receiver.
    fn give(&mut self, message: &Message, options: &ReceiveOptions, picked: &mut Picked) -> Result<()> {
        let visibility = options.visibility.unwrap_or(self.held.options.visibility);
        let before = message.state.standing;
        let first = if before.receives == 0 { self.now } else { before.first_received_at };
        let standing = Standing {
            due: self.now.saturating_add(millis(visibility)),
            receives: before.receives + 1,
            first_received_at: first,
            received_at: self.now,
            ..before
        };
        picked.given.push((message.place, self.change(message, standing)?));
        Ok(())
    }

    /// Remembers what a receive that can be repeated gives.
    fn remember(&mut self, options: &ReceiveOptions, picked: &Picked) {
        let Some(name) = options.attempt.clone().filter(|_| !picked.given.is_empty()) else { return };
        let visibility = options.visibility.unwrap_or(self.held.options.visibility);
        let given = picked.given.iter().map(|(place, standing)| (*place, standing.receives, standing.due));
        let given = given.collect();
        self.forget_attempts();
        if self.held.attempts.len() < ATTEMPTS_MAX {
            self.attempt = Some((name, Attempt { at: self.now, visibility, given }));
        }
    }

    /// Forgets receives that can no longer be repeated.
    pub fn forget_attempts(&mut self) {
        let now = self.now;
        let window = millis(DEDUPLICATION_WINDOW);
        self.held.attempts.retain(|_, attempt| now.saturating_sub(attempt.at) < window);
    }

    /// What an earlier receive of the same attempt gave, if all of it is still as it was given.
    fn repeat(&mut self, options: &ReceiveOptions) -> Result<Option<Vec<(Place, Standing)>>> {
        self.forget_attempts();
        let Some(name) = &options.attempt else { return Ok(None) };
        let Some(mut attempt) = self.held.attempts.get(name).cloned() else { return Ok(None) };
        let mut messages = Vec::new();
        for (place, receives, due) in &attempt.given {
            let found = self.find(*place)?;
            let standing = found.as_ref().map(|message| message.state.standing);
            if standing.is_none_or(|is| is.receives != *receives || is.due != *due || is.due <= self.now) {
                return Ok(None);
            }
            messages.extend(found);
        }
        let visibility = options.visibility.unwrap_or(attempt.visibility);
        let due = self.now.saturating_add(millis(visibility));
        let mut given = Vec::new();
        for message in &messages {
            let standing = Standing { due, ..message.state.standing };
            given.push((message.place, self.change(message, standing)?));
        }
        attempt.given.iter_mut().for_each(|(_, _, end)| *end = due);
        self.attempt = Some((name.clone(), attempt));
        Ok(Some(given))
    }

    /// When the next message is due, or the next in flight if there can be no more of them.
    fn next_due(&mut self, in_flight_max: usize) -> Result<Option<u64>> {
        if self.held.counts.in_flight() >= in_flight_max as u64 {
            return Ok(self.held.counts.next());
        }
        let first = self.next_waiting(&keys::waiting_end(self.held.number), 1)?.pop();
        Ok(first.and_then(|(key, _)| keys::waiting_parts(&key)).map(|(due, ..)| due))
    }
}
