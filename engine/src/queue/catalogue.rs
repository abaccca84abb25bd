//! All queues by name: made, listed, changed, and loaded at the opening.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::limits::QUEUES_MAX;
use anabranch_model::queue::{QueueName, QueueOptions, QueueSummary};
use anabranch_model::{Error, Page, Result};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use super::counts::Shown;
use super::frame::Frame;
use super::held::{Accepted, Queue};
use super::keys::{self, Place};
use super::options::{MoveRow, QueueRow};
use super::place::timestamp;
use super::stored::{HEAD_BYTES, State, Waiting, corrupt};
use super::window;
use crate::core::Core;
use crate::journal::Urgency;
use crate::rows::accept::next_number_key;
use crate::rows::{Change, Order, Rows, Snapshot, Space};

/// What a row of the catalogue takes in memory, about.
pub const QUEUE_BYTES: usize = 2_048;

/// Messages that are looked at in one go when a queue is loaded.
const LOADED: usize = 4_096;

/// All queues.
pub struct Queues {
    /// In the order of the journal; those that are not durable yet are not shown.
    by_name: RwLock<BTreeMap<QueueName, Arc<Queue>>>,
    /// Held by whoever makes, changes or deletes a queue.
    pub(super) changing: Mutex<()>,
    /// Most messages of a queue that are received and not deleted.
    pub in_flight_max: usize,
}

impl Queues {
    /// No queues.
    pub fn new(in_flight_max: usize) -> Queues {
        Queues { by_name: RwLock::default(), changing: Mutex::default(), in_flight_max }
    }

    /// A queue.
    pub fn get(&self, name: &QueueName) -> Result<Arc<Queue>> {
        let found = self.by_name.read().get(name).cloned().filter(|queue| queue.is_visible());
        found.ok_or_else(|| Error::QueueNotFound(name.clone()))
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Queue>> {
        self.by_name.read().values().filter(|queue| queue.is_visible()).cloned().collect()
    }

    /// Lets receivers who wait look again.
    pub fn wake(&self) {
        self.by_name.read().values().for_each(|queue| queue.changed.notify_waiters());
    }

    pub(super) fn forget(&self, name: &QueueName) {
        self.by_name.write().remove(name);
    }

    /// Fills the catalogue from rows. Of messages only small rows are looked at.
    pub fn load(&self, rows: &Rows, now: u64) -> Result<()> {
        let snapshot = rows.snapshot()?;
        let mut found = Vec::new();
        let (from, end) = ([Space::Queues as u8], [Space::Queues as u8 + 1]);
        let bounds = (Bound::Included(&from[..]), Bound::Excluded(&end[..]));
        snapshot.range(bounds, Order::Forward, |key, row| {
            let name = std::str::from_utf8(&key[1..]).ok().and_then(|text| QueueName::new(text).ok());
            found.push((name.ok_or_else(|| corrupt("a name"))?, QueueRow::decode(row)?));
            Ok(ControlFlow::Continue(()))
        })?;
        for (name, row) in found {
            let queue = Queue::new(name.clone(), row, true);
            let mut held = queue.lock();
            held.counts.at(now);
            let (fifo, number) = (held.options.fifo, held.number);
            // Where an order is kept not every message has a row of its own in the order of visibility.
            let (from, end) = match fifo {
                true => keys::states(number),
                false => (keys::waiting_prefix(number, 0).into(), keys::waiting_end(number)),
            };
            let bounds = (Bound::Included(&from[..]), Bound::Excluded(&end[..]));
            snapshot.range(bounds, Order::Forward, |key, row| {
                held.counts.add(if fifo { shown_by_state(row)? } else { shown_by_waiting(key, row)? });
                Ok(ControlFlow::Continue(()))
            })?;
            if !fifo {
                held.load_unlisted(&snapshot)?;
            }
            let from = keys::moves(queue.born);
            let end = keys::behind(&from);
            let bounds = (Bound::Included(&from[..]), Bound::Excluded(&end[..]));
            snapshot.range(bounds, Order::Forward, |_, row| {
                held.moves.push(MoveRow::decode(row)?);
                Ok(ControlFlow::Continue(()))
            })?;
            drop(held);
            self.by_name.write().insert(name, Arc::new(queue));
        }
        Ok(())
    }
}

impl Accepted {
    /// Counts the messages that have no row in the order of visibility.
    fn load_unlisted(&mut self, snapshot: &Snapshot) -> Result<()> {
        let scan = |from: &Bytes, end: &Bytes, order: Order, limit: usize| {
            let (mut rows, bounds) = (Vec::new(), (Bound::Included(&from[..]), Bound::Excluded(&end[..])));
            snapshot.range(bounds, order, |key, row| {
                let head = &row[..row.len().min(HEAD_BYTES)];
                rows.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(head)));
                Ok(if rows.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            })?;
            Ok(rows)
        };
        let (from, end) = keys::states(self.number);
        let last = scan(&from, &end, Order::Backward, 1)?;
        self.received_to = last.first().and_then(|(key, _)| keys::place_of(key)).unwrap_or(Place::FIRST);
        let (mut first, mut from) = (None, Some(Place::FIRST));
        while let Some(place) = from {
            let forward = |from: &Bytes, end: &Bytes, limit| scan(from, end, Order::Forward, limit);
            let found = window::unlisted(self.number, place, self.received_to, LOADED, forward)?;
            first = first.or(found.places.first().copied());
            for place in &found.places {
                self.counts.add(Shown { due: place.sent_at, received: false });
            }
            from = found.to.map(Place::next);
        }
        self.unlisted_from = first.unwrap_or(Place::LAST);
        Ok(())
    }
}

fn shown_by_state(row: &[u8]) -> Result<Shown> {
    let standing = State::decode(row)?.standing;
    Ok(Shown { due: standing.due, received: standing.receives > 0 })
}

fn shown_by_waiting(key: &[u8], row: &[u8]) -> Result<Shown> {
    let (due, ..) = keys::waiting_parts(key).ok_or_else(|| corrupt("a waiting message"))?;
    Ok(Shown { due, received: Waiting::decode(row)?.received })
}

impl Core {
    /// Makes a queue.
    pub async fn create_queue(&self, name: &QueueName, options: QueueOptions) -> Result<()> {
        let mut permit = Some(self.admit_rows(QUEUE_BYTES).await?);
        self.submit(|| {
            let _changing = self.queues.changing.lock();
            if self.queues.by_name.read().contains_key(name) {
                return Err(Error::QueueExists(name.clone()).into());
            }
            self.check_queue_options(name, &options)?;
            if self.queues.by_name.read().len() >= QUEUES_MAX {
                return Err(Error::LimitExceeded(format!("there are {QUEUES_MAX} queues already")).into());
            }
            let accepting = self.rows.accept(vec![next_number_key()]);
            let (number, counted) = accepting.next_number()?;
            let now = self.now_ms();
            let options = options.clone();
            let row = QueueRow { born: number, number, created_at: now, changed_at: now, options };
            let changes = vec![counted, Change::put(keys::queue(name), row.encode())];
            let queue = Arc::new(Queue::new(name.clone(), row, false));
            let shown = queue.clone();
            let then = Box::new(move |_| shown.show());
            let written = self.write_rows(accepting, changes, Urgency::Normal, &mut permit, Some(then))?;
            self.queues.by_name.write().insert(name.clone(), queue);
            Ok(written)
        })
        .await
        .map(drop)
    }

    /// Changes how a queue behaves.
    pub async fn set_queue_options(&self, name: &QueueName, options: QueueOptions) -> Result<()> {
        let mut permit = Some(self.admit_rows(QUEUE_BYTES).await?);
        self.submit(|| {
            let _changing = self.queues.changing.lock();
            let queue = self.queues.get(name)?;
            self.check_queue_options(name, &options)?;
            let mut held = queue.lock();
            let (changed_at, options) = (held.at(self.now_ms()), options.clone());
            let row = QueueRow { changed_at, options: options.clone(), ..queue.row(&held) };
            let changes = vec![Change::put(keys::queue(name), row.encode())];
            let woken = queue.clone();
            // Messages may be too old now, or a receive may find others.
            let then = Box::new(move |_| woken.changed.notify_waiters());
            let none = self.rows.accept(Vec::new());
            let written = self.write_rows(none, changes, Urgency::Normal, &mut permit, Some(then))?;
            (held.options, held.changed_at) = (options, changed_at);
            Ok(written)
        })
        .await
        .map(drop)
    }

    /// Whether a queue of this name may have these options beside the queues that there are.
    fn check_queue_options(&self, name: &QueueName, options: &QueueOptions) -> Result<()> {
        options.check(name)?;
        let Some(policy) = &options.redrive else { return Ok(()) };
        let target = self.queues.get(&policy.dead_letters)?;
        if target.lock().options.redrive_allow.allows(name) {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "dead letters of `{name}` cannot go to `{}`: it does not allow them",
            target.name
        )))
    }

    /// One queue as a listing shows it.
    pub fn describe_queue(&self, queue: &Arc<Queue>) -> Result<QueueSummary> {
        let mut frame = Frame::new(self, queue)?;
        let now = frame.now;
        let oldest = frame.oldest()?;
        Ok(QueueSummary {
            name: queue.name.clone(),
            options: frame.held.options.clone(),
            counts: frame.held.counts.at(now),
            oldest_age: oldest.map(|place| Duration::from_millis(now.saturating_sub(place.sent_at))),
            created_at: timestamp(queue.created_at),
            changed_at: timestamp(frame.held.changed_at),
        })
    }

    /// Queues in the order of their names.
    pub fn list_queues(
        &self,
        after: Option<&QueueName>,
        limit: usize,
        prefix: &str,
    ) -> Result<Page<QueueSummary>> {
        let queues = self.queues.by_name.read();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let listed = queues.range((from, Bound::Unbounded)).map(|(_, queue)| queue);
        let listed = listed.filter(|queue| queue.is_visible() && queue.name.as_str().starts_with(prefix));
        let mut listed: Vec<_> = listed.take(limit + 1).cloned().collect();
        drop(queues);
        let more = listed.len() > limit;
        listed.truncate(limit);
        let mut entries = Vec::with_capacity(listed.len());
        for queue in &listed {
            match self.describe_queue(queue) {
                // It was deleted since.
                Err(Error::QueueNotFound(_)) => {}
                summary => entries.push(summary?),
            }
        }
        Ok(Page { entries, more })
    }
}

impl Frame<'_> {
    /// The message that was sent first.
    fn oldest(&mut self) -> Result<Option<Place>> {
        let (from, end): (Bytes, Bytes) = keys::bodies(self.held.number, &self.held.oldest);
        let first = self.scan_cut(&from, &end, 1, 0)?;
        let place = first.first().and_then(|(key, _)| keys::place_of(key));
        self.held.oldest = place.unwrap_or(Place { sent_at: self.now, position: 0, index: 0 });
        Ok(place)
    }
}
