//! Where senders leave records and the worker fetches all of them at once.
//!
//! Waking a task for every record would cost more than the record itself. So the worker says what is worth waking for
//! before it rests: the first record if nothing waits, and a whole append if it waits for others to come anyway.
//!
//! What must hold: what is in here when the worker rests is less than it asked to be woken for; the buffer of the producer
//! bounds it.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::lane::Entry;

/// Room that is kept for the next records when the last ones were many.
const KEPT: usize = 8_192;

/// What is worth waking for: so many records, or so many bytes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wake {
    pub(crate) records: usize,
    pub(crate) bytes: usize,
}

impl Wake {
    /// The first record.
    pub(crate) const FIRST: Wake = Wake { records: 1, bytes: 1 };
    /// Nothing: the worker waits for something else.
    pub(crate) const NEVER: Wake = Wake { records: usize::MAX, bytes: usize::MAX };
}

/// Records between senders and the worker.
pub(crate) struct Intake {
    left: Mutex<Left>,
    worth_waking: Notify,
}

struct Left {
    entries: VecDeque<Entry>,
    bytes: usize,
    wake: Wake,
    closed: bool,
}

impl Left {
    /// Whether the worker is to be woken; it is, once.
    fn due(&mut self) -> bool {
        let due = self.entries.len() >= self.wake.records || self.bytes >= self.wake.bytes;
        if due {
            self.wake = Wake::NEVER;
        }
        due
    }
}

impl Intake {
    pub(crate) fn new() -> Self {
        let left = Left { entries: VecDeque::new(), bytes: 0, wake: Wake::NEVER, closed: false };
        Intake { left: Mutex::new(left), worth_waking: Notify::new() }
    }

    /// Leaves a record. Returns false if nobody fetches it any more.
    pub(crate) fn leave(&self, entry: Entry) -> bool {
        let mut left = self.left.lock();
        if left.closed {
            return false;
        }
        left.bytes += entry.size();
        left.entries.push_back(entry);
        let due = left.due();
        drop(left);
        if due {
            self.worth_waking.notify_one();
        }
        true
    }

    /// Fetches everything behind what was fetched before. An empty list is handed in for the next records to use in turn.
    pub(crate) fn fetch(&self, entries: &mut VecDeque<Entry>) {
        if entries.is_empty() {
            entries.shrink_to(KEPT);
        }
        let mut left = self.left.lock();
        if entries.is_empty() {
            std::mem::swap(&mut left.entries, entries);
        } else {
            entries.append(&mut left.entries);
        }
        left.bytes = 0;
        left.wake = Wake::NEVER;
    }

    /// Waits until there is something that is worth it.
    pub(crate) async fn rest(&self, wake: Wake) {
        let due = {
            let mut left = self.left.lock();
            left.wake = wake;
            left.due()
        };
        if !due {
            self.worth_waking.notified().await;
        }
    }

    /// Nothing is taken any more; what is here can still be fetched.
    pub(crate) fn close(&self) {
        self.left.lock().closed = true;
    }

    /// Nobody will fetch what is here: its senders learn that.
    pub(crate) fn abandon(&self) {
        let entries = {
            let mut left = self.left.lock();
            left.closed = true;
            std::mem::take(&mut left.entries)
        };
        drop(entries);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.lock().entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use anabranch_model::NewRecord;
    use tokio::sync::oneshot;

    use super::*;
    use crate::outcome::Outcome;

    fn entry(bytes: usize) -> (Entry, oneshot::Receiver<Outcome>) {
        let record = NewRecord::new("k", vec![b'x'; bytes - 1]);
        let (answer, ticket) = oneshot::channel();
        let (hash_key, deadline) = (record.hash_key(), Duration::ZERO);
        let (last_error, run, pointer) = (None, None, None);
        let (attempts, room, doubtful) = (0, 0, false);
        let entry =
            Entry { record, hash_key, deadline, attempts, room, doubtful, last_error, run, pointer, answer };
        (entry, ticket)
    }

    /// For each record that is left, whether the worker is awake behind it.
    fn woken(wake: Wake, sizes: &[usize]) -> Vec<bool> {
        let intake = Intake::new();
        let mut resting = pin!(intake.rest(wake));
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(resting.as_mut().poll(&mut context), Poll::Pending, "there is nothing yet");
        let mut awake = false;
        let mut step = |size: &usize| {
            assert!(intake.leave(entry(*size).0));
            awake = awake || resting.as_mut().poll(&mut context).is_ready();
            awake
        };
        sizes.iter().map(&mut step).collect()
    }

    #[test]
    fn the_worker_is_woken_when_it_is_worth_it() {
        assert_eq!(woken(Wake::FIRST, &[1, 1]), [true, true]);
        assert_eq!(woken(Wake { records: 3, bytes: 100 }, &[10, 10, 10, 10]), [false, false, true, true]);
        assert_eq!(woken(Wake { records: 3, bytes: 100 }, &[90, 10]), [false, true]);
        assert_eq!(woken(Wake::NEVER, &[1_000_000, 1_000_000]), [false, false]);
    }

    #[test]
    fn whoever_rests_with_enough_at_hand_does_not_rest() {
        let intake = Intake::new();
        let mut context = Context::from_waker(Waker::noop());
        assert!(intake.leave(entry(10).0) && intake.leave(entry(10).0));
        assert_eq!(pin!(intake.rest(Wake { records: 3, bytes: 21 })).poll(&mut context), Poll::Pending);
        assert_eq!(pin!(intake.rest(Wake { records: 2, bytes: 21 })).poll(&mut context), Poll::Ready(()));
        let mut entries = VecDeque::new();
        intake.fetch(&mut entries);
        assert_eq!(entries.len(), 2);
        assert!(intake.leave(entry(30).0));
        intake.fetch(&mut entries);
        let sizes: Vec<usize> = entries.iter().map(Entry::size).collect();
        assert_eq!(sizes, [10, 10, 30], "behind what was fetched before");
        // What was fetched does not count any more.
        assert_eq!(pin!(intake.rest(Wake { records: 1, bytes: 1 })).poll(&mut context), Poll::Pending);
    }

    #[test]
    fn what_is_left_is_fetched_or_its_sender_told() {
        let intake = Intake::new();
        let (first, _ticket) = entry(1);
        assert!(intake.leave(first));
        intake.close();
        assert!(!intake.leave(entry(1).0));
        let mut entries = VecDeque::new();
        intake.fetch(&mut entries);
        assert!(entries.len() == 1 && intake.is_empty());

        let intake = Intake::new();
        let (lost, mut ticket) = entry(1);
        assert!(intake.leave(lost));
        intake.abandon();
        assert!(matches!(ticket.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
        assert!(!intake.leave(entry(1).0));
    }
}
