//! The port of queues: [`QueueStore`].

use std::time::Duration;

use async_trait::async_trait;

use super::message::{Message, NewMessage, Sent};
use super::moving::{MoveId, MoveSummary};
use super::name::{QueueName, check_visible};
use super::options::{QueueOptions, within};
use super::receipt::Receipt;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::limits;
use crate::stream::Page;

/// How messages are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveOptions {
    /// Most messages.
    pub messages_max: usize,
    /// How long to wait for the first message; what the queue says if there is none.
    pub wait: Option<Duration>,
    /// How long the messages are hidden from others; what the queue says if there is none.
    pub visibility: Option<Duration>,
    /// Makes a receive repeatable, in queues that keep an order: see [`QueueStore`], law 14.
    pub attempt: Option<String>,
}

impl Default for ReceiveOptions {
    fn default() -> Self {
        ReceiveOptions { messages_max: 1, wait: None, visibility: None, attempt: None }
    }
}

impl ReceiveOptions {
    /// As many messages as one receive can give, without waiting.
    pub fn all() -> Self {
        ReceiveOptions {
            messages_max: limits::MESSAGE_BATCH_MAX,
            wait: Some(Duration::ZERO),
            ..ReceiveOptions::default()
        }
    }

    /// Whether a queue with these options may be asked like this.
    pub fn check(&self, queue: &QueueOptions) -> Result<()> {
        if !(1..=limits::MESSAGE_BATCH_MAX).contains(&self.messages_max) {
            return Err(Error::Invalid(format!(
                "a receive of {} messages is not allowed: it must be 1 to {}",
                self.messages_max,
                limits::MESSAGE_BATCH_MAX
            )));
        }
        if let Some(wait) = self.wait {
            within("wait of a receive", wait, Duration::ZERO, limits::RECEIVE_WAIT_MAX)?;
        }
        if let Some(visibility) = self.visibility {
            check_visibility(visibility)?;
        }
        match &self.attempt {
            Some(_) if !queue.fifo => Err(Error::Invalid(
                "a receive cannot be repeated here: only queues that keep an order know attempts".to_string(),
            )),
            Some(attempt) => check_visible("attempt", attempt, limits::GROUP_CHARS_MAX),
            None => Ok(()),
        }
    }
}

/// How many messages there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Neither delayed nor in flight.
    pub visible: u64,
    /// Received, not deleted, and still hidden.
    pub in_flight: u64,
    /// Sent, and not yet to be received.
    pub delayed: u64,
}

/// A queue as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSummary {
    /// Its name.
    pub name: QueueName,
    /// How it behaves.
    pub options: QueueOptions,
    /// How many messages there are.
    pub counts: QueueCounts,
    /// How long ago the oldest message was sent; none if there is no message.
    pub oldest_age: Option<Duration>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its options were changed the last time.
    pub changed_at: Timestamp,
}

/// Whether a received message may be hidden this long.
pub fn check_visibility(visibility: Duration) -> Result<()> {
    within("visibility timeout", visibility, Duration::ZERO, limits::VISIBILITY_MAX)
}

/// Whether a message that was received at `received` may be hidden for `visibility` from `now` on.
pub fn check_extension(received: Timestamp, now: Timestamp, visibility: Duration) -> Result<()> {
    check_visibility(visibility)?;
    if now.since(received) + visibility > limits::VISIBILITY_MAX {
        return Err(Error::Invalid(format!(
            "the message cannot be hidden for {} seconds more: {} seconds after its receive it is visible again",
            visibility.as_secs_f64(),
            limits::VISIBILITY_MAX.as_secs()
        )));
    }
    Ok(())
}

/// Whether a call may have this many entries.
pub fn check_batch(entries: usize) -> Result<()> {
    if (1..=limits::MESSAGE_BATCH_MAX).contains(&entries) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "a batch of {entries} entries is not allowed: it must have 1 to {}",
        limits::MESSAGE_BATCH_MAX
    )))
}

/// Whether a store may take these messages in one send. What is wrong with a single message is the result of that
/// message ([`NewMessage::check`]) and not looked at here; a message that comes alone is bound by its own limit only.
pub fn check_send(messages: &[NewMessage]) -> Result<()> {
    check_batch(messages.len())?;
    let bytes: usize = messages.iter().map(NewMessage::size).sum();
    if messages.len() > 1 && bytes > limits::MESSAGE_BYTES_MAX {
        return Err(Error::Invalid(format!(
            "a send of {bytes} bytes is not allowed: at most {} with attributes",
            limits::MESSAGE_BYTES_MAX
        )));
    }
    Ok(())
}

/// Queues whose messages are received for a while and deleted by whoever has dealt with them.
///
/// A message is **delayed** until its delay is over, then **visible**; a receive hides it for its visibility timeout and
/// makes it **in flight**; then it is visible again, unless it was deleted. Queues are of two kinds: **standard** ones,
/// and **FIFO** ones, which keep the order of each group and recognise duplicates.
///
/// Laws (the suite `laws::queue` checks them against every implementation):
///
/// 1. **Durable before acknowledged.** What a call reports as done is so after any crash: sent messages are there,
///    deleted ones are not, a message in flight stays hidden until its time, counts of receives go on, and FIFO queues
///    keep their order and recognise duplicates.
/// 2. **At least once.** A message that was sent and neither deleted nor older than the retention is received, as it was
///    sent, under its identifier; again after every receive that does not delete it. Once deleted it never comes back.
/// 3. **One receiver at a time.** A message in flight is given to nobody else. Its `receive_count` grows by one with
///    each receive, and each receive has its own receipt.
/// 4. **Visibility.** The timeout is that of the receive, or else of the queue, and counts from the receive.
///    `change_visibility` makes it count from now; zero makes the message visible at once. A message is not hidden for
///    longer than [`limits::VISIBILITY_MAX`] after a receive.
/// 5. **Delay.** A message is not received before its own delay, or else the queue's at the time of the send, is over.
///    FIFO queues take no delays of single messages.
/// 6. **Retention.** A message older than the queue's retention is gone, in flight or not. Its age counts from its send.
/// 7. **Dead letters.** With a redrive policy, a message that was received `receives_max` times in the queue and is visible
///    again is not received once more: the next receive that would give it moves it to the dead-letter queue, where it has
///    the same identifier, body and attributes, counts its receives on, and names its source. In standard queues it
///    keeps the time of its send, which its retention counts from; in FIFO queues its age begins anew and its
///    deduplication id is its identifier. If the dead-letter queue is gone, or the queue itself, the message stays and
///    is received on.
/// 8. **Receipts.** A receipt is good for its queue only, and not for a later one of the same name
///    ([`Error::ReceiptInvalid`]). Deleting a message that is gone already succeeds.
/// 9. **Late deletes.** In a standard queue a receipt deletes its message even after its visibility is over, as long as
///    nobody has received the message again; after that `delete` with the old receipt succeeds, may leave the message, and does
///    not disturb the newer receipt. In a FIFO queue both are refused ([`Error::ReceiptExpired`]) and the message stays.
/// 10. **Late changes.** In a standard queue a receipt hides its message even when that is visible again, as long as nobody
///     has received it since. In a FIFO queue `change_visibility` of a message that is not in flight is refused
///     ([`Error::NotInFlight`]). The receipt of an earlier receive changes nothing in either ([`Error::ReceiptExpired`]), and
///     what was deleted is in flight nowhere.
/// 11. **Order.** In a FIFO queue messages of a group are received in the order of their sends. While one of them is in flight,
///     or delayed, the group gives nothing that comes behind it; one receive may give several, in order. Groups do not
///     hold each other up. `sequence` grows with every message that the queue takes.
/// 12. **Duplicates.** In a FIFO queue a message with the [deduplication id](NewMessage::deduplication_id) of one that was
///     sent less than [`limits::DEDUPLICATION_WINDOW`] ago, in the scope that the queue says, is acknowledged with the
///     identifier and number of the first and not received, even if that one was deleted. A purge forgets what was sent.
/// 13. **Waiting.** A receive returns as soon as there is a message, and otherwise empty-handed when its wait is over. A
///     message that becomes visible ends the waiting as well as one that is sent. Deleting the queue ends it with
///     [`Error::QueueNotFound`].
/// 14. **Repeating.** In a FIFO queue a receive with the `attempt` of an earlier one, less than
///     [`limits::DEDUPLICATION_WINDOW`] ago, gives the same messages under the same receipts, not counted again and hidden anew, as long
///     as all of them are in flight since then; otherwise it is a receive like any other.
/// 15. **Moving.** `start_move` sends what is visible in a dead-letter queue to where it came from, or to a given queue, as
///     new messages: new identifiers, ages and counts, same body, attributes and group. Each is at every moment in
///     one of both queues. What is in flight stays.
/// 16. **Refusals change nothing.** A call that returns an error of [`NextMove::FixCall`](crate::NextMove) had no effect; in
///     a batch each entry has its own result.
#[async_trait]
pub trait QueueStore: Send + Sync {
    /// Makes a queue. When it returns, the queue takes messages. The dead-letter queue of its options must exist
    /// ([`Error::QueueNotFound`] names it) and allow it.
    async fn create_queue(&self, queue: &QueueName, options: QueueOptions) -> Result<()>;

    /// Removes a queue and its messages. When it returns, the name is free.
    async fn delete_queue(&self, queue: &QueueName) -> Result<()>;

    /// Queues in the order of their names, those behind `after` and with names that begin with `prefix` only, whether or
    /// not `after` exists. The limit is cut to [`limits::PAGE_ENTRIES_MAX`]; zero counts as one.
    async fn queues(
        &self,
        after: Option<&QueueName>,
        limit: usize,
        prefix: &str,
    ) -> Result<Page<QueueSummary>>;

    /// One queue.
    async fn queue(&self, queue: &QueueName) -> Result<QueueSummary>;

    /// Changes how a queue behaves, all options at once; `fifo` must stay.
    async fn set_options(&self, queue: &QueueName, options: QueueOptions) -> Result<()>;

    /// Sends messages; the results are in the order of `messages`. What [`check_send`] refuses is an error of the whole
    /// call; what [`NewMessage::check`] refuses is the result of that message, and the others are sent.
    async fn send(&self, queue: &QueueName, messages: Vec<NewMessage>) -> Result<Vec<Result<Sent>>>;

    /// Takes messages and hides them from others. It waits for the first one only. A queue with
    /// [`limits::IN_FLIGHT_MAX`] messages in flight answers [`Error::InFlightLimit`] if it is standard, and with nothing
    /// if it is FIFO. Dropping it leaves messages that it would have given in flight at worst.
    async fn receive(&self, queue: &QueueName, options: ReceiveOptions) -> Result<Vec<Message>>;

    /// Deletes messages; the results are in the order of `receipts`. What [`check_batch`] refuses is an error of the
    /// whole call.
    async fn delete(&self, queue: &QueueName, receipts: Vec<Receipt>) -> Result<Vec<Result<()>>>;

    /// Hides messages in flight for so long from now on; the results are in the order of `changes`. What [`check_batch`]
    /// refuses is an error of the whole call; what [`check_extension`] refuses is the result of that change.
    async fn change_visibility(
        &self,
        queue: &QueueName,
        changes: Vec<(Receipt, Duration)>,
    ) -> Result<Vec<Result<()>>>;

    /// Deletes every message that was sent before the call, in flight and delayed ones too.
    async fn purge(&self, queue: &QueueName) -> Result<()>;

    /// Starts to move what is visible in `from`, a dead-letter queue of some queue, to `to`, or each message to where it came
    /// from, at most so many in a second. One move of a queue runs at a time ([`Error::MoveRunning`]). A message that
    /// has nowhere to go stays and makes the move fail.
    async fn start_move(
        &self,
        from: &QueueName,
        to: Option<&QueueName>,
        messages_per_second: Option<u32>,
    ) -> Result<MoveId>;

    /// The moves out of a queue, the youngest first, at most [`limits::MOVES_REMEMBERED_MAX`].
    async fn moves(&self, from: &QueueName) -> Result<Vec<MoveSummary>>;

    /// Stops a move that runs ([`Error::MoveNotRunning`] otherwise) and returns how many messages were moved.
    async fn cancel_move(&self, id: &MoveId) -> Result<u64>;
}
