//! What waits for its delivery, as far as this run of the server knows.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::SequenceNumber;
use parking_lot::Mutex;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use super::definition::Definition;
use crate::making::Settled;

/// What is remembered. After a start everything is due once, because nobody knows what waits.
#[derive(Default)]
pub(crate) struct State {
    waiting: Mutex<HashMap<String, Waiting>>,
    /// Whether nothing is left that was begun before the start.
    pub(crate) settled: Settled,
    /// Each is held by whoever makes, delivers or deletes the delivery stream, so that nothing is delivered twice at the same
    /// time.
    delivering: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// Each is shared by those who put records, and held by whoever deletes the delivery stream while it delivers the last of
    /// them.
    putting: Mutex<HashMap<String, Arc<RwLock<()>>>>,
    /// Up to where damage was told.
    told: Mutex<HashMap<String, SequenceNumber>>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    bytes: u64,
    /// When the oldest record has waited long enough (time of the stopwatch); none while nothing waits.
    due: Option<Duration>,
}

impl State {
    /// Keeps others from delivering this one.
    pub(super) async fn delivering(&self, name: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut delivering = self.delivering.lock();
            // Nobody has those that only this map knows.
            delivering.retain(|_, lock| Arc::strong_count(lock) > 1);
            delivering.entry(name.to_owned()).or_default().clone()
        };
        lock.lock_owned().await
    }

    /// Keeps the delivery stream from being deleted while records are put.
    pub(super) async fn putting(&self, name: &str) -> OwnedRwLockReadGuard<()> {
        self.door(name).read_owned().await
    }

    /// Waits for those who put records, and lets nobody else put any.
    pub(super) async fn closed(&self, name: &str) -> OwnedRwLockWriteGuard<()> {
        self.door(name).write_owned().await
    }

    fn door(&self, name: &str) -> Arc<RwLock<()>> {
        let mut putting = self.putting.lock();
        match putting.get(name) {
            Some(door) => door.clone(),
            None => putting.entry(name.to_owned()).or_default().clone(),
        }
    }

    /// Notes that damage was met up to a number; false if it was before.
    pub(super) fn tell_damage(&self, name: &str, resume_at: SequenceNumber) -> bool {
        let mut told = self.told.lock();
        let before = told.get(name).copied();
        let new = before.is_none_or(|before| before < resume_at);
        if new {
            told.insert(name.to_owned(), resume_at);
        }
        new
    }

    /// Records were taken.
    pub(super) fn add(&self, definition: &Definition, bytes: u64, now: Duration) {
        let mut waiting = self.waiting.lock();
        let interval = Duration::from_secs(definition.interval_seconds);
        match waiting.get_mut(&definition.name) {
            Some(waiting) => {
                waiting.bytes += bytes;
                waiting.due.get_or_insert(now + interval);
            }
            // What waits since before this run is not known, so it is looked at now.
            None => {
                waiting.insert(definition.name.clone(), Waiting { bytes, due: Some(now) });
            }
        }
    }

    /// Whether it is time for a delivery.
    pub(super) fn is_due(&self, definition: &Definition, now: Duration) -> bool {
        let waiting = self.waiting.lock();
        waiting.get(&definition.name).is_none_or(|waiting| {
            waiting.bytes >= definition.size_mib << 20 || waiting.due.is_some_and(|due| due <= now)
        })
    }

    /// A delivery begins: what comes from now on waits anew.
    pub(super) fn begin(&self, name: &str) {
        self.waiting.lock().insert(name.to_owned(), Waiting { bytes: 0, due: None });
    }

    /// Something still waits, and is to be looked at then.
    pub(super) fn postpone(&self, name: &str, due: Duration) {
        let mut waiting = self.waiting.lock();
        let waiting = waiting.entry(name.to_owned()).or_insert(Waiting { bytes: 0, due: None });
        (waiting.bytes, waiting.due) = (0, Some(due));
    }

    /// The delivery stream is gone.
    pub(super) fn forget(&self, name: &str) {
        self.waiting.lock().remove(name);
        self.putting.lock().remove(name);
        self.told.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::super::definition::tests::definition;
    use super::*;

    #[tokio::test]
    async fn one_delivery_does_not_hold_up_another() {
        use futures_util::FutureExt as _;
        let state = State::default();
        let one = state.delivering("one").await;
        let other = state.delivering("other").now_or_never().expect("it is another one");
        assert!(state.delivering("one").now_or_never().is_none());
        drop((one, other));
        drop(state.delivering("one").now_or_never().expect("nobody has it"));
        assert!(state.delivering.lock().len() <= 1, "locks that nobody has are forgotten");
    }

    #[tokio::test]
    async fn whoever_deletes_waits_for_those_who_put_and_keeps_others_out() {
        use futures_util::FutureExt as _;
        let state = State::default();
        let (one, other) = (state.putting("a").await, state.putting("a").now_or_never());
        assert!(other.is_some(), "puts do not hold up each other");
        assert!(state.closed("a").now_or_never().is_none(), "somebody puts");
        drop((one, other));
        let closed = state.closed("a").now_or_never().expect("nobody puts");
        assert!(state.putting("a").now_or_never().is_none(), "it is being deleted");
        assert!(state.putting("b").now_or_never().is_some(), "it is another one");
        drop(closed);
        state.forget("a");
        state.forget("b");
        assert!(state.putting.lock().is_empty());
    }

    #[test]
    fn damage_is_told_once() {
        let (state, number) = (State::default(), |number| SequenceNumber::from_u128(number));
        assert!(state.tell_damage("a", number(7)) && state.tell_damage("b", number(7)));
        assert!(!state.tell_damage("a", number(7)) && !state.tell_damage("a", number(5)));
        assert!(state.tell_damage("a", number(9)));
        state.forget("a");
        assert!(state.tell_damage("a", number(7)), "it is a younger one of its name");
    }

    #[test]
    fn deliveries_are_due_by_size_or_by_age() {
        let definition = definition("d");
        let (state, second) = (State::default(), Duration::from_secs);
        assert!(state.is_due(&definition, second(0)), "nobody knows what waits since before the start");
        state.begin("d");
        assert!(!state.is_due(&definition, second(1_000)), "nothing waits");
        state.add(&definition, 100, second(1_000));
        state.add(&definition, 100, second(1_030));
        assert!(!state.is_due(&definition, second(1_059)));
        assert!(state.is_due(&definition, second(1_060)));
        state.begin("d");
        state.add(&definition, 1 << 20, second(2_000));
        assert!(state.is_due(&definition, second(2_000)));
        state.postpone("d", second(2_010));
        assert!(!state.is_due(&definition, second(2_009)) && state.is_due(&definition, second(2_010)));
    }
}
