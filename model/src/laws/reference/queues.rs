//! Queues that are simple enough to be right.

use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;

use super::queue::{Held, Queue};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::laws::queue::QueueFixture;
use crate::limits;
use crate::queue::{
    Message, MoveId, MoveStatus, MoveSummary, NewMessage, QueueName, QueueOptions, QueueStore, QueueSummary,
    Receipt, ReceiveOptions, Sent, check_batch, check_rate, check_send,
};
use crate::stream::Page;

/// A handle; clones are the same store. Its clock stands still until a fixture moves it.
#[derive(Clone)]
pub struct SimpleQueues {
    state: Arc<Mutex<SimpleQueuesState>>,
    /// Receivers that wait. They look again after every change and whenever time moves.
    waiting: Arc<Mutex<Vec<Waker>>>,
    now_ms: Arc<AtomicU64>,
    in_flight_max: usize,
}

/// Everything that a store remembers.
#[derive(Clone, Debug, Default)]
pub struct SimpleQueuesState {
    queues: BTreeMap<QueueName, Queue>,
    pub(super) moves: Vec<MoveSummary>,
    /// The last number that was given, to a message, a queue or a move.
    numbers: u64,
}

impl Default for SimpleQueues {
    fn default() -> Self {
        SimpleQueues::new()
    }
}

impl fmt::Debug for SimpleQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimpleQueues").finish_non_exhaustive()
    }
}

impl SimpleQueues {
    /// A store without queues, which lets as many messages be in flight as the limits of the model say.
    pub fn new() -> Self {
        SimpleQueues::with_in_flight_max(limits::IN_FLIGHT_MAX)
    }

    /// A store without queues in which each can have `in_flight_max` messages in flight.
    pub fn with_in_flight_max(in_flight_max: usize) -> Self {
        SimpleQueues {
            state: Arc::default(),
            waiting: Arc::default(),
            now_ms: Arc::new(AtomicU64::new(1_700_000_000_000)),
            in_flight_max,
        }
    }

    /// Everything that a law may want to do to `store`, which is this one or a wrapper around it.
    pub fn fixture(&self, store: Arc<dyn QueueStore>) -> QueueFixture {
        let (turned, survivor) = (self.clone(), store.clone());
        QueueFixture::new(store)
            .with_advance(move |by| turned.advance(by))
            .with_upkeep(|| async {})
            .with_crash(move || std::future::ready(survivor.clone()))
            .with_in_flight_max(self.in_flight_max)
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.now_ms.fetch_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
        self.changed();
    }

    /// Everything that this store remembers.
    pub fn state(&self) -> SimpleQueuesState {
        self.locked().clone()
    }

    /// Puts `state` in the place of everything that this store remembers.
    pub fn set_state(&self, state: SimpleQueuesState) {
        *self.locked() = state;
        self.changed();
    }

    fn locked(&self) -> MutexGuard<'_, SimpleQueuesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_ms.load(Ordering::SeqCst))
    }

    /// The state as it is now: what is too old is gone, and moves are where they should be.
    fn current(&self) -> (MutexGuard<'_, SimpleQueuesState>, Timestamp) {
        let (mut state, now) = (self.locked(), self.now());
        state.queues.values_mut().for_each(|queue| queue.forget(now));
        state.go_on_moving(now);
        (state, now)
    }

    /// Lets receivers that wait look again.
    fn changed(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl SimpleQueuesState {
    pub(super) fn queue(&self, name: &QueueName) -> Result<&Queue> {
        self.queues.get(name).ok_or_else(|| Error::QueueNotFound(name.clone()))
    }

    pub(super) fn queue_mut(&mut self, name: &QueueName) -> Result<&mut Queue> {
        self.queues.get_mut(name).ok_or_else(|| Error::QueueNotFound(name.clone()))
    }

    pub(super) fn fresh_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Whether a queue of this name may have these options beside the queues that there are.
    fn check_options(&self, name: &QueueName, options: &QueueOptions) -> Result<()> {
        options.check(name)?;
        let Some(policy) = &options.redrive else { return Ok(()) };
        let target = self.queue(&policy.dead_letters)?;
        if target.options.redrive_allow.allows(name) {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "dead letters of `{name}` cannot go to `{}`: it does not allow them",
            target.name
        )))
    }

    /// Gives what there is, and says whether a message became a dead letter on the way.
    fn take(
        &mut self,
        name: &QueueName,
        options: &ReceiveOptions,
        in_flight_max: usize,
        now: Timestamp,
    ) -> Result<(Vec<Message>, bool)> {
        let queue = self.queue_mut(name)?;
        if let Some(again) = queue.repeat(options, now) {
            return Ok((again, false));
        }
        let room = in_flight_max.saturating_sub(queue.in_flight(now));
        if room == 0 && !queue.options.fifo {
            return Err(Error::InFlightLimit { queue: name.clone(), limit: in_flight_max });
        }
        let buried = self.bury(name, now)?;
        let queue = self.queue_mut(name)?;
        let mut places = queue.available(now);
        places.truncate(options.messages_max.min(room));
        Ok((queue.give(&places, options, now), buried))
    }

    /// Moves what was received too often and would be given now.
    fn bury(&mut self, name: &QueueName, now: Timestamp) -> Result<bool> {
        let queue = self.queue(name)?;
        let target = queue.options.redrive.as_ref().map(|policy| policy.dead_letters.clone());
        let elsewhere = |target: &QueueName| target != name && self.queues.contains_key(target);
        let Some(target) = target.filter(elsewhere) else { return Ok(false) };
        let dead: Vec<u64> = queue.available(now).into_iter().filter(|place| queue.is_dead(*place)).collect();
        for place in &dead {
            let Some(held) = self.queue_mut(name)?.messages.remove(place) else { continue };
            let number = self.fresh_number();
            let to = self.queue_mut(&target)?;
            let fifo = to.options.fifo;
            let buried = Held {
                source: Some(name.clone()),
                due: now,
                sent_at: if fifo { now } else { held.sent_at },
                deduplication: fifo.then(|| held.id.to_string()),
                receives_before: held.receives_before + held.receives,
                receives: 0,
                ..held
            };
            to.messages.insert(number, buried);
        }
        Ok(!dead.is_empty())
    }
}

#[async_trait]
impl QueueStore for SimpleQueues {
    async fn create_queue(&self, queue: &QueueName, options: QueueOptions) -> Result<()> {
        let (mut state, now) = self.current();
        if state.queues.contains_key(queue) {
            return Err(Error::QueueExists(queue.clone()));
        }
        state.check_options(queue, &options)?;
        if state.queues.len() >= limits::QUEUES_MAX {
            return Err(Error::LimitExceeded(format!("there are {} queues already", limits::QUEUES_MAX)));
        }
        let born = state.fresh_number();
        state.queues.insert(queue.clone(), Queue::new(queue.clone(), born, options, now));
        Ok(())
    }

    async fn delete_queue(&self, queue: &QueueName) -> Result<()> {
        let (mut state, _) = self.current();
        let removed = state.queues.remove(queue);
        state.moves.retain(|moving| moving.from != *queue);
        drop(state);
        self.changed();
        removed.map(drop).ok_or_else(|| Error::QueueNotFound(queue.clone()))
    }

    async fn queues(
        &self,
        after: Option<&QueueName>,
        limit: usize,
        prefix: &str,
    ) -> Result<Page<QueueSummary>> {
        let (state, now) = self.current();
        let limit = limit.clamp(1, limits::PAGE_ENTRIES_MAX);
        let listed = state.queues.values().filter(|queue| {
            after.is_none_or(|after| queue.name > *after) && queue.name.as_str().starts_with(prefix)
        });
        let mut entries: Vec<_> = listed.take(limit + 1).map(|queue| queue.summary(now)).collect();
        let more = entries.len() > limit;
        entries.truncate(limit);
        Ok(Page { entries, more })
    }

    async fn queue(&self, queue: &QueueName) -> Result<QueueSummary> {
        let (state, now) = self.current();
        Ok(state.queue(queue)?.summary(now))
    }

    async fn set_options(&self, queue: &QueueName, options: QueueOptions) -> Result<()> {
        let (mut state, now) = self.current();
        state.queue(queue)?;
        state.check_options(queue, &options)?;
        let found = state.queue_mut(queue)?;
        found.options = options;
        found.changed_at = now;
        Ok(())
    }

    async fn send(&self, queue: &QueueName, messages: Vec<NewMessage>) -> Result<Vec<Result<Sent>>> {
        let (mut state, now) = self.current();
        state.queue(queue)?;
        check_send(&messages)?;
        let mut results = Vec::new();
        for message in messages {
            let place = state.fresh_number();
            results.push(state.queue_mut(queue)?.send(message, place, now));
        }
        drop(state);
        self.changed();
        Ok(results)
    }

    async fn receive(&self, queue: &QueueName, options: ReceiveOptions) -> Result<Vec<Message>> {
        let (born, until) = {
            let (state, now) = self.current();
            let found = state.queue(queue)?;
            options.check(&found.options)?;
            (found.born, now.plus(options.wait.unwrap_or(found.options.receive_wait)))
        };
        poll_fn(|context| {
            // Before it looks, so that no change in between goes unnoticed.
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(context.waker().clone());
            let (mut state, now) = self.current();
            if state.queue(queue).is_ok_and(|found| found.born != born) {
                return Poll::Ready(Err(Error::QueueNotFound(queue.clone())));
            }
            let (messages, buried) = match state.take(queue, &options, self.in_flight_max, now) {
                Ok(taken) => taken,
                Err(error) => return Poll::Ready(Err(error)),
            };
            drop(state);
            if buried {
                self.changed();
            }
            if messages.is_empty() && now < until { Poll::Pending } else { Poll::Ready(Ok(messages)) }
        })
        .await
    }

    async fn delete(&self, queue: &QueueName, receipts: Vec<Receipt>) -> Result<Vec<Result<()>>> {
        let (mut state, now) = self.current();
        let found = state.queue_mut(queue)?;
        check_batch(receipts.len())?;
        let results = receipts.iter().map(|receipt| found.delete(receipt, now)).collect();
        drop(state);
        // A deleted message may have held up its group.
        self.changed();
        Ok(results)
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> Result<Vec<Result<()>>> {
        let (mut state, now) = self.current();
        let found = state.queue_mut(queue)?;
        check_batch(changes.len())?;
        let results = changes.iter().map(|(receipt, time)| found.hide(receipt, *time, now)).collect();
        drop(state);
        self.changed();
        Ok(results)
    }

    async fn purge(&self, queue: &QueueName) -> Result<()> {
        self.current().0.queue_mut(queue)?.purge();
        Ok(())
    }

    async fn start_move(
        &self,
        from: &QueueName,
        to: Option<&QueueName>,
        messages_per_second: Option<u32>,
    ) -> Result<MoveId> {
        let (mut state, now) = self.current();
        let source = state.queue(from)?;
        let to_move = source.available(now).len() as u64;
        check_rate(messages_per_second)?;
        if let Some(to) = to {
            state.queue(to)?;
        }
        let is_target =
            |queue: &Queue| queue.options.redrive.as_ref().is_some_and(|r| r.dead_letters == *from);
        if to.is_some_and(|to| to == from || to.is_fifo() != from.is_fifo())
            || !state.queues.values().any(is_target)
        {
            return Err(Error::Invalid(format!(
                "messages of `{from}` cannot be moved: it must be a dead-letter queue, and the target another queue of its kind"
            )));
        }
        if state.moves.iter().any(|moving| moving.from == *from && moving.status == MoveStatus::Running) {
            return Err(Error::MoveRunning(from.clone()));
        }
        let id = MoveId::new(&format!("move-{}", state.fresh_number()))?;
        state.moves.push(MoveSummary {
            id: id.clone(),
            from: from.clone(),
            to: to.cloned(),
            messages_per_second,
            status: MoveStatus::Running,
            moved: 0,
            to_move,
            started_at: now,
        });
        state.go_on_moving(now);
        drop(state);
        self.changed();
        Ok(id)
    }

    async fn moves(&self, from: &QueueName) -> Result<Vec<MoveSummary>> {
        let (state, _) = self.current();
        state.queue(from)?;
        let moves = state.moves.iter().rev().filter(|moving| moving.from == *from);
        Ok(moves.take(limits::MOVES_REMEMBERED_MAX).cloned().collect())
    }

    async fn cancel_move(&self, id: &MoveId) -> Result<u64> {
        let (mut state, _) = self.current();
        let running = |moving: &&mut MoveSummary| moving.id == *id && moving.status == MoveStatus::Running;
        let moving = state.moves.iter_mut().find(running).ok_or_else(|| Error::MoveNotRunning(id.clone()))?;
        moving.status = MoveStatus::Cancelled;
        Ok(moving.moved)
    }
}
