//! Queues with one fault. What they wrap is right, so whatever a law notices is the fault.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_model::laws::queue::QueueFixture;
use anabranch_model::laws::reference::{SimpleQueues, SimpleQueuesState};
use anabranch_model::queue::{MoveId, MoveSummary, QueueSummary, ReceiveOptions, Sent};
use anabranch_model::{
    Error, Message, MessageId, NewMessage, Page, QueueName, QueueOptions, QueueStore, Receipt, Result, limits,
};
use async_trait::async_trait;

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Keeps the first bytes of a body.
    CutsBodies,
    /// Forgets what work a message is part of.
    LosesTraces,
    /// Does not hide what it gives.
    DoesNotHide,
    /// Hides for as long as the queue says, whatever the receive says.
    IgnoresVisibility,
    /// Says that visibility was changed, and does not change it.
    IgnoresChanges,
    /// Takes the receipt of an earlier receive for the next one.
    TakesOldReceipts,
    /// Gives ten messages, whatever the limit.
    IgnoresLimits,
    /// Gives a message once only.
    GivesOnce,
    /// Says that messages were deleted, and keeps them.
    DeletesNothing,
    /// Refuses to delete what was deleted before, or seemed to be.
    DeletesOnce,
    /// Says that a queue was purged, and keeps its messages.
    PurgesNothing,
    /// Gives the results of a send back to front.
    ReversesResults,
    /// Shows every message at once.
    IgnoresDelays,
    /// Keeps messages for as long as any queue can.
    KeepsForever,
    /// Returns from every receive at once.
    NeverWaits,
    /// Takes every message for a new one.
    ForgetsDuplicates,
    /// Takes every receive for a new one.
    IgnoresAttempts,
    /// Has no dead letters.
    NeverBuries,
    /// Says that a move was started, and does not start it.
    MovesNothing,
    /// Moves as fast as it can.
    IgnoresRates,
    /// Does not count what is in flight.
    MiscountsHidden,
    /// Lists the last name first.
    ListsBackwards,
    /// Says that a queue was deleted, and keeps it.
    KeepsQueues,
    /// Answers `Ok` to calls that it should refuse.
    SwallowsErrors,
    /// Loses the last change in a crash.
    LosesLastChange,
}

#[derive(Clone)]
pub struct BrokenQueues {
    inner: SimpleQueues,
    fault: Fault,
    sends: Arc<AtomicU64>,
    deleted: Arc<Mutex<HashSet<MessageId>>>,
    /// The state before the last change.
    before: Arc<Mutex<SimpleQueuesState>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl BrokenQueues {
    pub fn fixture(fault: Fault) -> QueueFixture {
        let inner = SimpleQueues::with_in_flight_max(250);
        let store = BrokenQueues {
            inner: inner.clone(),
            fault,
            sends: Arc::default(),
            deleted: Arc::default(),
            before: Arc::default(),
        };
        let survivor = store.clone();
        inner.fixture(Arc::new(store)).with_crash(move || {
            if fault == Fault::LosesLastChange {
                survivor.inner.set_state(lock(&survivor.before).clone());
            }
            std::future::ready(Arc::new(survivor.clone()) as Arc<dyn QueueStore>)
        })
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn before_change(&self) {
        *lock(&self.before) = self.inner.state();
    }

    /// The value of a call that was refused, if this store does not mind.
    fn swallow<T>(&self, result: Result<T>, instead: impl FnOnce() -> T) -> Result<T> {
        if self.has(Fault::SwallowsErrors) { result.or_else(|_| Ok(instead())) } else { result }
    }

    fn swallow_each<T>(
        &self,
        results: Result<Vec<Result<T>>>,
        instead: impl Fn() -> T,
    ) -> Result<Vec<Result<T>>> {
        let results = self.swallow(results, Vec::new)?;
        Ok(results.into_iter().map(|result| self.swallow(result, &instead)).collect())
    }

    fn options(&self, options: QueueOptions) -> QueueOptions {
        match self.fault {
            Fault::KeepsForever => QueueOptions { retention: limits::MESSAGE_RETENTION_MAX, ..options },
            Fault::NeverBuries => QueueOptions { redrive: None, ..options },
            _ => options,
        }
    }

    fn message(&self, queue: &QueueName, mut message: NewMessage) -> NewMessage {
        match self.fault {
            Fault::CutsBodies => message.body.truncate(3),
            Fault::LosesTraces => message.trace = None,
            Fault::IgnoresDelays if !queue.is_fifo() => message.delay = Some(Duration::ZERO),
            Fault::ForgetsDuplicates if queue.is_fifo() => {
                message.deduplication = Some(self.sends.fetch_add(1, Ordering::SeqCst).to_string());
            }
            _ => {}
        }
        message
    }
}

fn some_id() -> MessageId {
    MessageId::new("nothing").expect("allowed")
}

#[async_trait]
impl QueueStore for BrokenQueues {
    async fn create_queue(&self, queue: &QueueName, options: QueueOptions) -> Result<()> {
        self.before_change();
        let made = self.inner.create_queue(queue, self.options(options)).await;
        self.swallow(made, || ())
    }

    async fn delete_queue(&self, queue: &QueueName) -> Result<()> {
        if self.has(Fault::KeepsQueues) {
            return self.inner.queue(queue).await.map(drop);
        }
        self.before_change();
        let deleted = self.inner.delete_queue(queue).await;
        self.swallow(deleted, || ())
    }

    async fn queues(
        &self,
        after: Option<&QueueName>,
        limit: usize,
        prefix: &str,
    ) -> Result<Page<QueueSummary>> {
        let mut page = self.inner.queues(after, limit, prefix).await?;
        if self.has(Fault::ListsBackwards) {
            page.entries.reverse();
        }
        Ok(page)
    }

    async fn queue(&self, queue: &QueueName) -> Result<QueueSummary> {
        let mut summary = self.inner.queue(queue).await?;
        if self.has(Fault::MiscountsHidden) {
            summary.counts.in_flight = 0;
        }
        Ok(summary)
    }

    async fn set_options(&self, queue: &QueueName, options: QueueOptions) -> Result<()> {
        self.before_change();
        let set = self.inner.set_options(queue, self.options(options)).await;
        self.swallow(set, || ())
    }

    async fn send(&self, queue: &QueueName, messages: Vec<NewMessage>) -> Result<Vec<Result<Sent>>> {
        self.before_change();
        let messages = messages.into_iter().map(|message| self.message(queue, message)).collect();
        let sent = self.inner.send(queue, messages).await;
        let mut results = self.swallow_each(sent, || Sent { id: some_id(), sequence: None })?;
        if self.has(Fault::ReversesResults) {
            results.reverse();
        }
        Ok(results)
    }

    async fn receive(&self, queue: &QueueName, mut options: ReceiveOptions) -> Result<Vec<Message>> {
        self.before_change();
        match self.fault {
            Fault::DoesNotHide => options.visibility = Some(Duration::ZERO),
            Fault::IgnoresVisibility => options.visibility = None,
            Fault::IgnoresLimits => options.messages_max = limits::MESSAGE_BATCH_MAX,
            Fault::NeverWaits => options.wait = Some(Duration::ZERO),
            Fault::IgnoresAttempts => options.attempt = None,
            _ => {}
        }
        let received = self.inner.receive(queue, options).await;
        let mut received = self.swallow(received, Vec::new)?;
        if self.has(Fault::GivesOnce) {
            received.retain(|message| message.receive_count == 1);
        }
        Ok(received)
    }

    async fn delete(&self, queue: &QueueName, receipts: Vec<Receipt>) -> Result<Vec<Result<()>>> {
        if self.has(Fault::DeletesNothing) {
            return Ok(receipts.iter().map(|_| Ok(())).collect());
        }
        self.before_change();
        let deleted = self.inner.delete(queue, receipts.clone()).await;
        let mut results = self.swallow_each(deleted, || ())?;
        for (receipt, result) in receipts.iter().zip(&mut results) {
            let id = receipt.parts().map_or_else(some_id, |parts| parts.message);
            if self.has(Fault::DeletesOnce) && !lock(&self.deleted).insert(id.clone()) {
                *result = Err(Error::NotInFlight(id));
            }
        }
        Ok(results)
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> Result<Vec<Result<()>>> {
        if self.has(Fault::IgnoresChanges) {
            return Ok(changes.iter().map(|_| Ok(())).collect());
        }
        self.before_change();
        let changed = self.inner.change_visibility(queue, changes.clone()).await;
        let mut results = self.swallow_each(changed, || ())?;
        for ((receipt, visibility), result) in changes.iter().zip(&mut results) {
            if self.has(Fault::TakesOldReceipts)
                && matches!(result, Err(Error::ReceiptExpired(_)))
                && let Some(mut parts) = receipt.parts()
            {
                parts.receive += 1;
                let next = vec![(Receipt::from(&parts), *visibility)];
                *result = self.inner.change_visibility(queue, next).await?.remove(0);
            }
        }
        Ok(results)
    }

    async fn purge(&self, queue: &QueueName) -> Result<()> {
        self.before_change();
        if self.has(Fault::PurgesNothing) { Ok(()) } else { self.inner.purge(queue).await }
    }

    async fn start_move(
        &self,
        from: &QueueName,
        to: Option<&QueueName>,
        messages_per_second: Option<u32>,
    ) -> Result<MoveId> {
        let nothing = || MoveId::new("nothing").expect("allowed");
        if self.has(Fault::MovesNothing) {
            return Ok(nothing());
        }
        let rate = if self.has(Fault::IgnoresRates) { None } else { messages_per_second };
        let started = self.inner.start_move(from, to, rate).await;
        self.swallow(started, nothing)
    }

    async fn moves(&self, from: &QueueName) -> Result<Vec<MoveSummary>> {
        self.inner.moves(from).await
    }

    async fn cancel_move(&self, id: &MoveId) -> Result<u64> {
        let cancelled = self.inner.cancel_move(id).await;
        self.swallow(cancelled, || 0)
    }
}
