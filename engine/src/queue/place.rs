//! A message in its queue: found, added, moved in time, taken out. The rows of a message change here and nowhere else.

use anabranch_model::queue::MessageId;
use anabranch_model::{Result, Timestamp};
use bytes::Bytes;

use super::counts::Shown;
use super::frame::Frame;
use super::keys::{self, Place};
use super::options::millis;
use super::stored::{Body, Head, Standing, State, Waiting, corrupt};

/// A message without its body.
#[derive(Clone, Debug)]
pub struct Message {
    /// Which one.
    pub place: Place,
    /// Where it stands, and its group in a queue that keeps an order.
    pub state: State,
    /// Whether a row of the order of visibility names it.
    pub listed: bool,
}

impl Message {
    /// One that nobody has received.
    pub fn new(place: Place, head: Head) -> Message {
        let state = State { standing: Standing::new(head.due), group: None };
        Message { place, state, listed: head.listed }
    }

    /// One that has a state.
    pub fn standing(place: Place, row: &[u8]) -> Result<Message> {
        Ok(Message { place, state: State::decode(row)?, listed: true })
    }

    /// How it counts.
    pub fn shown(&self) -> Shown {
        Shown { due: self.state.standing.due, received: self.state.standing.receives > 0 }
    }
}

impl Frame<'_> {
    /// A message that was received before, or lies in a queue that keeps an order. What is too old is gone.
    pub fn find(&self, place: Place) -> Result<Option<Message>> {
        let Some(row) = self.get(&keys::state(self.held.number, &place))? else { return Ok(None) };
        let message = Message::standing(place, &row)?;
        Ok((!self.is_old(&place)).then_some(message))
    }

    /// Whether the retention of the queue is over for a message.
    pub fn is_old(&self, place: &Place) -> bool {
        self.now.saturating_sub(place.sent_at) >= millis(self.held.options.retention)
    }

    /// The message of a row of the order of visibility, or of one that [`Frame::next_waiting`] made up for a message that
    /// has none.
    pub fn waiting(&self, key: &[u8], row: &[u8]) -> Result<Message> {
        let (due, position, index) = keys::waiting_parts(key).ok_or_else(|| corrupt("a waiting message"))?;
        if row.is_empty() {
            return Ok(Message::new(Place { sent_at: due, position, index }, Head { due, listed: false }));
        }
        let waiting = Waiting::decode(row)?;
        let place = Place { sent_at: waiting.sent_at, position, index };
        if !waiting.received && waiting.group.is_none() {
            return Ok(Message::new(place, Head { due, listed: true }));
        }
        self.standing(place)
    }

    fn standing(&self, place: Place) -> Result<Message> {
        let row = self.get(&keys::state(self.held.number, &place))?;
        Message::standing(place, &row.ok_or_else(|| corrupt("the state of a message"))?)
    }

    /// The body of a message.
    pub fn body(&self, place: &Place) -> Result<Body> {
        let row = self.get(&keys::body(self.held.number, place))?;
        Body::decode(&row.ok_or_else(|| corrupt("a message"))?)
    }

    /// What a message is called.
    pub fn id_of(&self, place: &Place) -> Result<MessageId> {
        id(&self.body(place)?, place)
    }

    /// Messages of a group in order, from a key of [`keys::group`] on.
    pub fn of_group(&self, group: &str, from: &Bytes, limit: usize) -> Result<Vec<Message>> {
        let end = keys::group_end(self.held.number, group);
        self.scan(from, &end, limit)?
            .into_iter()
            .map(|(key, row)| {
                let parts = keys::placed(&key).zip(row.as_ref().try_into().ok().map(u64::from_le_bytes));
                let ((position, index), sent_at) = parts.ok_or_else(|| corrupt("a group"))?;
                self.standing(Place { sent_at, position, index })
            })
            .collect()
    }

    /// Adds a message and returns its index in the frame.
    pub fn add(&mut self, body: &Body, sent_at: u64) -> Result<u16> {
        let (number, index, due) = (self.held.number, self.added, body.due);
        let listed = self.fifo() || due != sent_at;
        self.added += 1;
        let row = body.encode(listed);
        self.bytes += row.len();
        self.put_placed(keys::body_prefix(number, sent_at), index, row);
        self.count(None, Some(Shown { due, received: false }));
        let group = body.group.as_ref().filter(|_| self.fifo());
        let waiting = Waiting { sent_at, received: false, group: group.cloned() };
        if let Some(group) = group {
            let state = State { standing: Standing::new(due), group: Some(group.clone()) };
            self.put_placed(keys::state_prefix(number, sent_at), index, state.encode());
            let prefix = keys::group_prefix(number, group);
            let end = keys::group_end(number, group);
            let first = self.scan(&prefix.clone().into(), &end, 1)?.is_empty();
            self.put_placed(prefix, index, sent_at.to_le_bytes().to_vec());
            if !first || !self.begun.insert(group.clone()) {
                return Ok(index);
            }
        }
        if listed {
            self.put_placed(keys::waiting_prefix(number, due), index, waiting.encode());
        }
        Ok(index)
    }

    /// Moves a message in time.
    pub fn change(&mut self, message: &Message, mut standing: Standing) -> Result<Standing> {
        let number = self.held.number;
        let (place, before) = (message.place, message.state.standing);
        standing.change = before.change + 1;
        let state = State { standing, group: message.state.group.clone() };
        let after = Message { place, state, listed: true };
        match &message.state.group {
            Some(group) => self.touch(group)?,
            None => {
                self.remove_waiting(message);
                self.put_waiting(&after);
            }
        }
        let key = keys::state(number, &place);
        let row = after.state.encode();
        // In a standard queue the first change of a message makes this row.
        if before.change == 0 && message.state.group.is_none() {
            self.put_fresh(key, row);
        } else {
            self.put(key, row);
        }
        self.count(Some(message.shown()), Some(after.shown()));
        Ok(standing)
    }

    fn put_waiting(&mut self, message: &Message) {
        let Standing { due, change, receives, .. } = message.state.standing;
        let key = keys::waiting(self.held.number, due, &message.place, change);
        let group = message.state.group.clone();
        let waiting = Waiting { sent_at: message.place.sent_at, received: receives > 0, group };
        self.put_fresh(key, waiting.encode());
    }

    fn remove_waiting(&mut self, message: &Message) {
        if message.listed {
            self.remove(self.waiting_key(message));
        }
    }

    /// Takes a message out of the queue.
    pub fn take_out(&mut self, message: &Message) -> Result<()> {
        let (number, place) = (self.held.number, message.place);
        match &message.state.group {
            Some(group) => {
                self.touch(group)?;
                self.remove(keys::group(number, group, &place));
            }
            None => self.remove_waiting(message),
        }
        if message.state.group.is_some() || message.state.standing.change > 0 {
            self.remove(keys::state(number, &place));
        }
        self.remove(keys::body(number, &place));
        self.count(Some(message.shown()), None);
        Ok(())
    }

    /// Remembers the row of the first message of a group before the group changes.
    fn touch(&mut self, group: &str) -> Result<()> {
        if !self.touched.contains_key(group) {
            let first = self.first(group)?.map(|message| self.waiting_key(&message));
            self.touched.insert(group.to_owned(), first);
        }
        Ok(())
    }

    fn first(&self, group: &str) -> Result<Option<Message>> {
        let from = keys::group_prefix(self.held.number, group).into();
        Ok(self.of_group(group, &from, 1)?.pop())
    }

    fn waiting_key(&self, message: &Message) -> Bytes {
        let Standing { due, change, .. } = message.state.standing;
        keys::waiting(self.held.number, due, &message.place, change)
    }

    /// Lets the first message of each group that changed stand for its group.
    pub fn lead_groups(&mut self) -> Result<()> {
        for (group, before) in std::mem::take(&mut self.touched) {
            let first = self.first(&group)?;
            let after = first.as_ref().map(|message| self.waiting_key(message));
            if before == after {
                continue;
            }
            before.into_iter().for_each(|key| self.remove(key));
            first.iter().for_each(|message| self.put_waiting(message));
        }
        Ok(())
    }
}

/// What a message is called.
pub fn id(body: &Body, place: &Place) -> Result<MessageId> {
    body.id.map_or(*place, Place::from_u128).id()
}

/// A time of a row.
pub fn timestamp(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}
