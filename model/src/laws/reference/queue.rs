//! One queue of [`SimpleQueues`](super::SimpleQueues): its messages in the order of their arrival, and what was sent
//! and received lately.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::limits::DEDUPLICATION_WINDOW;
use crate::queue::{
    DeduplicationScope, Message, MessageId, NewMessage, QueueCounts, QueueName, QueueOptions, QueueSummary,
    Receipt, ReceiptParts, ReceiveOptions, Sent, check_extension,
};
use crate::sequence::SequenceNumber;

#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub name: QueueName,
    /// Tells this queue from earlier and later ones of the same name.
    pub born: u64,
    pub options: QueueOptions,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    /// By their place.
    pub messages: BTreeMap<u64, Held>,
    /// What was sent lately, with the time, by group where that is the scope.
    duplicates: HashMap<(Option<String>, String), (Timestamp, Sent)>,
    /// What repeatable receives gave lately.
    attempts: HashMap<String, Attempt>,
}

#[derive(Clone, Debug)]
pub(super) struct Held {
    pub id: MessageId,
    pub message: NewMessage,
    pub deduplication: Option<String>,
    pub sent_at: Timestamp,
    /// From when on it is visible.
    pub due: Timestamp,
    /// Receives in this queue.
    pub receives: u32,
    /// Receives in other queues.
    pub receives_before: u32,
    pub first_received_at: Timestamp,
    pub received_at: Timestamp,
    pub source: Option<QueueName>,
}

#[derive(Clone, Debug)]
struct Attempt {
    at: Timestamp,
    visibility: Duration,
    /// Places, counts of receives and ends of hiding.
    given: Vec<(u64, u32, Timestamp)>,
}

impl Held {
    /// A message that just came.
    pub fn new(id: MessageId, message: NewMessage, deduplication: Option<String>, now: Timestamp) -> Self {
        Held {
            id,
            message,
            deduplication,
            sent_at: now,
            due: now,
            receives: 0,
            receives_before: 0,
            first_received_at: now,
            received_at: now,
            source: None,
        }
    }

    fn in_flight(&self, now: Timestamp) -> bool {
        self.receives > 0 && self.due > now
    }
}

impl Queue {
    pub fn new(name: QueueName, born: u64, options: QueueOptions, now: Timestamp) -> Self {
        Queue {
            name,
            born,
            options,
            created_at: now,
            changed_at: now,
            messages: BTreeMap::new(),
            duplicates: HashMap::new(),
            attempts: HashMap::new(),
        }
    }

    /// Removes what is too old.
    pub fn forget(&mut self, now: Timestamp) {
        let retention = self.options.retention;
        self.messages.retain(|_, held| now.since(held.sent_at) < retention);
        self.duplicates.retain(|_, (at, _)| now.since(*at) < DEDUPLICATION_WINDOW);
        self.attempts.retain(|_, attempt| now.since(attempt.at) < DEDUPLICATION_WINDOW);
    }

    pub fn summary(&self, now: Timestamp) -> QueueSummary {
        let mut counts = QueueCounts::default();
        for held in self.messages.values() {
            match held.due > now {
                false => counts.visible += 1,
                true if held.receives > 0 => counts.in_flight += 1,
                true => counts.delayed += 1,
            }
        }
        QueueSummary {
            name: self.name.clone(),
            options: self.options.clone(),
            counts,
            oldest_age: self.messages.values().map(|held| now.since(held.sent_at)).max(),
            created_at: self.created_at,
            changed_at: self.changed_at,
        }
    }

    pub fn send(&mut self, message: NewMessage, place: u64, now: Timestamp) -> Result<Sent> {
        message.check(&self.options)?;
        let deduplication = self.options.fifo.then(|| message.deduplication_id());
        let by_group = self.options.deduplication_scope == DeduplicationScope::Group;
        let scope = if by_group { message.group.clone() } else { None };
        let key = deduplication.clone().map(|id| (scope, id));
        if let Some((_, first)) = key.as_ref().and_then(|key| self.duplicates.get(key)) {
            return Ok(first.clone());
        }
        let id = MessageId::new(&format!("message-{place}"))?;
        let delay = message.delay.unwrap_or(self.options.delay);
        let sent = Sent { id: id.clone(), sequence: self.sequence(place) };
        let held = Held { due: now.plus(delay), ..Held::new(id, message, deduplication, now) };
        self.messages.insert(place, held);
        if let Some(key) = key {
            self.duplicates.insert(key, (now, sent.clone()));
        }
        Ok(sent)
    }

    fn sequence(&self, place: u64) -> Option<SequenceNumber> {
        self.options.fifo.then(|| SequenceNumber::from_u128(place.into()))
    }

    /// The places of what a receiver may be given, in order. In a FIFO queue what is hidden hides the rest of its group.
    pub fn available(&self, now: Timestamp) -> Vec<u64> {
        let (mut blocked, mut places) = (HashSet::new(), Vec::new());
        for (place, held) in &self.messages {
            let group = held.message.group.as_ref().filter(|_| self.options.fifo);
            if held.due > now {
                blocked.extend(group);
            } else if group.is_none_or(|group| !blocked.contains(group)) {
                places.push(*place);
            }
        }
        places
    }

    pub fn in_flight(&self, now: Timestamp) -> usize {
        self.messages.values().filter(|held| held.in_flight(now)).count()
    }

    /// Whether the message at `place` was received as often as it may be.
    pub fn is_dead(&self, place: u64) -> bool {
        let most = self.options.redrive.as_ref().map_or(u32::MAX, |policy| policy.receives_max);
        self.messages.get(&place).is_some_and(|held| held.receives >= most)
    }

    /// Hands out the messages at `places`.
    pub fn give(&mut self, places: &[u64], options: &ReceiveOptions, now: Timestamp) -> Vec<Message> {
        let visibility = options.visibility.unwrap_or(self.options.visibility);
        for place in places {
            let Some(held) = self.messages.get_mut(place) else { continue };
            held.receives += 1;
            held.received_at = now;
            held.due = now.plus(visibility);
            if held.receives == 1 {
                held.first_received_at = now;
            }
        }
        let given = places.iter().filter_map(|place| self.message(*place)).collect();
        if let Some(attempt) = options.attempt.clone().filter(|_| !places.is_empty()) {
            let mark = |place: &u64| self.messages.get(place).map(|held| (*place, held.receives, held.due));
            let given = places.iter().filter_map(mark).collect();
            self.attempts.insert(attempt, Attempt { at: now, visibility, given });
        }
        given
    }

    /// What an earlier receive of the same attempt gave, if all of it is still as it was given.
    pub fn repeat(&mut self, options: &ReceiveOptions, now: Timestamp) -> Option<Vec<Message>> {
        let name = options.attempt.as_ref()?;
        let mut attempt = self.attempts.remove(name)?;
        let untouched = |(place, receives, due): &(u64, u32, Timestamp)| {
            let held = self.messages.get(place);
            held.is_some_and(|held| held.in_flight(now) && held.receives == *receives && held.due == *due)
        };
        if !attempt.given.iter().all(untouched) {
            return None;
        }
        let due = now.plus(options.visibility.unwrap_or(attempt.visibility));
        for (place, _, end) in &mut attempt.given {
            *end = due;
            self.messages.get_mut(place)?.due = due;
        }
        let given = attempt.given.iter().filter_map(|(place, ..)| self.message(*place)).collect();
        self.attempts.insert(name.clone(), attempt);
        Some(given)
    }

    fn message(&self, place: u64) -> Option<Message> {
        let held = self.messages.get(&place)?;
        let parts =
            ReceiptParts { queue: self.born, receive: held.receives.into(), message: held.id.clone() };
        Some(Message {
            id: held.id.clone(),
            body: held.message.body.clone(),
            attributes: held.message.attributes.clone(),
            receipt: Receipt::from(&parts),
            receive_count: held.receives_before + held.receives,
            sent_at: held.sent_at,
            first_received_at: held.first_received_at,
            sequence: self.sequence(place),
            group: held.message.group.clone(),
            deduplication: held.deduplication.clone(),
            dead_letter_source: held.source.clone(),
            trace: held.message.trace.clone(),
        })
    }

    /// The identifier and the receive that a receipt of this queue names, and the place of the message if it is there.
    fn find(&self, receipt: &Receipt) -> Result<(ReceiptParts, Option<u64>)> {
        let parts = receipt.parts().filter(|parts| parts.queue == self.born);
        let invalid = || Error::ReceiptInvalid(self.name.clone(), receipt.clone());
        let parts = parts.ok_or_else(invalid)?;
        let place = self.messages.iter().find(|(_, held)| held.id == parts.message).map(|(place, _)| *place);
        Ok((parts, place))
    }

    /// Removes every message, and forgets what was sent.
    pub fn purge(&mut self) {
        self.messages.clear();
        self.duplicates.clear();
    }

    /// Deletes a message. An old receipt leaves the message to whoever received it since.
    pub fn delete(&mut self, receipt: &Receipt, now: Timestamp) -> Result<()> {
        let (parts, place) = self.find(receipt)?;
        let Some((place, held)) = place.and_then(|place| Some((place, self.messages.get(&place)?))) else {
            return Ok(());
        };
        let latest = parts.receive == u64::from(held.receives);
        if self.options.fifo && !(latest && held.in_flight(now)) {
            return Err(Error::ReceiptExpired(parts.message));
        }
        if latest {
            self.messages.remove(&place);
        }
        Ok(())
    }

    pub fn hide(&mut self, receipt: &Receipt, visibility: Duration, now: Timestamp) -> Result<()> {
        let (parts, place) = self.find(receipt)?;
        let held = place.and_then(|place| self.messages.get_mut(&place));
        let held = held.ok_or_else(|| Error::NotInFlight(parts.message.clone()))?;
        if parts.receive != u64::from(held.receives) {
            return Err(Error::ReceiptExpired(parts.message));
        }
        if self.options.fifo && !held.in_flight(now) {
            return Err(Error::NotInFlight(parts.message));
        }
        check_extension(held.received_at, now, visibility)?;
        held.due = now.plus(visibility);
        Ok(())
    }
}
