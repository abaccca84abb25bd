//! What is acknowledged. Records are acknowledged in any order; what counts is how far there is no gap.
//!
//! What must hold: the watermark never passes a record that is not done, and never goes back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::Clock;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::delivery::{Outcome, Received, Seat};
use crate::lease::Checkpoint;

/// The records of one shard that are under way.
pub(crate) struct Tracker {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Something was acknowledged or has failed.
    pub(crate) changed: Notify,
}

struct State {
    slots: VecDeque<Slot>,
    /// The index of the first slot.
    first: u64,
    bytes: usize,
    watermark: Checkpoint,
    /// Since when the watermark is further than what is written down.
    unwritten_since: Option<Duration>,
    /// Deferred records that failed since somebody asked.
    failed: Vec<(u64, String)>,
    /// How many records have been acknowledged.
    done: u64,
}

struct Slot {
    record: Received,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Delivered,
    /// The acknowledgement that came with this delivery was taken.
    Deferred(u32),
    /// That acknowledgement said that it is not processed; it waits to be delivered again.
    Failed,
    Done,
}

impl Tracker {
    pub(crate) fn new(from: Checkpoint, clock: Arc<dyn Clock>) -> Arc<Self> {
        let state = State {
            slots: VecDeque::new(),
            first: 0,
            bytes: 0,
            watermark: from,
            unwritten_since: None,
            failed: Vec::new(),
            done: 0,
        };
        Arc::new(Tracker { clock, state: Mutex::new(state), changed: Notify::new() })
    }

    /// Takes records in; each is given its seat.
    pub(crate) fn admit(self: &Arc<Self>, records: &mut [Received]) {
        let mut state = self.state.lock();
        for record in records {
            let index = state.first + state.slots.len() as u64;
            record.seat = Some(Seat { tracker: self.clone(), index });
            state.bytes += record.size();
            // The slot keeps no seat, or the tracker would keep itself alive.
            let record = Received { seat: None, ..record.clone() };
            state.slots.push_back(Slot { record, stage: Stage::Delivered });
        }
    }

    /// Records and bytes that are under way.
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.slots.len(), state.bytes)
    }

    /// Nothing is delivered again: what is under way needs no payload any more, only its place.
    pub(crate) fn forget_payloads(&self) {
        let mut state = self.state.lock();
        state.bytes = 0;
        for slot in &mut state.slots {
            (slot.record.partition_key, slot.record.data) = Default::default();
        }
    }

    /// How far everything is acknowledged.
    pub(crate) fn watermark(&self) -> Checkpoint {
        self.state.lock().watermark
    }

    /// A checkpoint that was made of the watermark at a moment is written down. Returns for how long something had waited for
    /// that.
    pub(crate) fn written(&self, checkpoint: Checkpoint, at: Duration) -> Option<Duration> {
        let mut state = self.state.lock();
        let waited = state.unwritten_since.map(|since| self.clock.elapsed().saturating_sub(since));
        state.unwritten_since = (state.watermark > checkpoint).then_some(at);
        waited
    }

    /// Nothing is under way and there is nothing up to here, so everything up to here is done.
    pub(crate) fn skip_to(&self, checkpoint: Checkpoint) {
        let mut state = self.state.lock();
        if state.slots.is_empty() {
            state.reach(checkpoint, &*self.clock);
        }
    }

    /// How many records have been acknowledged so far.
    pub(crate) fn done(&self) -> u64 {
        self.state.lock().done
    }

    /// What a processor said about a record; what is left to do about it.
    pub(crate) fn conclude(&self, record: &Received, outcome: Outcome) -> Option<String> {
        let seat = record.seat.as_ref()?;
        match outcome {
            Outcome::Done => {
                self.finish(seat.index);
                None
            }
            Outcome::Failed(why) => Some(why),
            Outcome::Deferred => {
                let state = self.state.lock();
                let slot = state.slot(seat.index);
                let taken = slot.is_none_or(|slot| slot.stage != Stage::Delivered);
                (!taken).then(|| "it was deferred, but nobody took its acknowledgement".to_owned())
            }
        }
    }

    /// A record is done with, whatever became of it.
    pub(crate) fn finish(&self, index: u64) {
        let mut state = self.state.lock();
        if state.finish(index) {
            state.advance(&*self.clock);
            drop(state);
            self.changed.notify_waiters();
        }
    }

    /// Deferred records are processed: the index of each, and the attempt that its acknowledgement came with.
    fn resolve_all(&self, records: &[(u64, u32)]) {
        let mut state = self.state.lock();
        for (index, attempt) in records {
            if state.slot(*index).is_some_and(|slot| slot.stage == Stage::Deferred(*attempt)) {
                state.finish(*index);
            }
        }
        state.advance(&*self.clock);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Deferred records that have failed since the last call, with the reasons.
    pub(crate) fn take_failed(self: &Arc<Self>) -> Vec<(Received, String)> {
        let mut state = self.state.lock();
        let failed = std::mem::take(&mut state.failed);
        let again = failed.into_iter().filter_map(|(index, why)| {
            // It may have been delivered again with its batch, and may be done.
            let slot = state.slot_mut(index).filter(|slot| slot.stage == Stage::Failed)?;
            slot.stage = Stage::Delivered;
            let seat = Some(Seat { tracker: self.clone(), index });
            Some((Received { seat, ..slot.record.clone() }, why))
        });
        again.collect()
    }

    /// Whether anything is deferred, and so may still be acknowledged without the processor being called.
    pub(crate) fn has_deferred(&self) -> bool {
        self.state.lock().slots.iter().any(|slot| matches!(slot.stage, Stage::Deferred(_)))
    }

    /// Whether a record failed that was deferred.
    pub(crate) fn has_failed(&self) -> bool {
        !self.state.lock().failed.is_empty()
    }

    /// Whether a record is done with.
    pub(crate) fn is_done(&self, record: &Received) -> bool {
        let Some(seat) = &record.seat else { return false };
        let state = self.state.lock();
        seat.index < state.first || state.slot(seat.index).is_some_and(|slot| slot.stage == Stage::Done)
    }

    /// A record is about to be delivered once more.
    pub(crate) fn redeliver(&self, record: &mut Received) {
        record.attempt += 1;
        let Some(seat) = &record.seat else { return };
        if let Some(slot) = self.state.lock().slot_mut(seat.index) {
            slot.record.attempt = record.attempt;
            if slot.stage != Stage::Done {
                slot.stage = Stage::Delivered;
            }
        }
    }

    pub(crate) fn defer(self: &Arc<Self>, index: u64, attempt: u32) -> Acknowledgement {
        if let Some(slot) = self.state.lock().slot_mut(index).filter(|slot| slot.stage != Stage::Done) {
            slot.stage = Stage::Deferred(attempt);
        }
        Acknowledgement { seat: Some(Seat { tracker: self.clone(), index }), attempt }
    }

    fn resolve(&self, index: u64, attempt: u32, result: Result<(), String>) {
        let mut state = self.state.lock();
        // What belongs to an earlier delivery of the record says nothing about this one.
        let current = state.slot_mut(index).is_some_and(|slot| slot.stage == Stage::Deferred(attempt));
        match result {
            Ok(()) if current => {
                drop(state);
                self.finish(index);
            }
            Err(why) if current => {
                if let Some(slot) = state.slot_mut(index) {
                    slot.stage = Stage::Failed;
                }
                state.failed.push((index, why));
                drop(state);
                self.changed.notify_waiters();
            }
            _ => {}
        }
    }
}

impl State {
    /// False if the record was done with before.
    fn finish(&mut self, index: u64) -> bool {
        let Some(slot) = self.slot_mut(index).filter(|slot| slot.stage != Stage::Done) else { return false };
        slot.stage = Stage::Done;
        self.done += 1;
        true
    }

    /// Moves the watermark up to the first record that is not done.
    fn advance(&mut self, clock: &dyn Clock) {
        while self.slots.front().is_some_and(|slot| slot.stage == Stage::Done) {
            if let Some(slot) = self.slots.pop_front() {
                self.first += 1;
                self.bytes -= slot.record.size();
                self.reach(slot.record.checkpoint(), clock);
            }
        }
    }

    fn reach(&mut self, checkpoint: Checkpoint, clock: &dyn Clock) {
        if checkpoint > self.watermark {
            self.watermark = checkpoint;
            self.unwritten_since.get_or_insert_with(|| clock.elapsed());
        }
    }

    fn slot(&self, index: u64) -> Option<&Slot> {
        self.slots.get(usize::try_from(index.checked_sub(self.first)?).ok()?)
    }

    fn slot_mut(&mut self, index: u64) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(index.checked_sub(self.first)?).ok()?)
    }
}

/// The acknowledgement of a record that a processor keeps for later. Dropped without a word, the record has failed.
#[must_use = "dropped, it says that the record has failed"]
pub struct Acknowledgement {
    seat: Option<Seat>,
    attempt: u32,
}

impl Acknowledgement {
    pub(crate) fn of_nothing() -> Self {
        Acknowledgement { seat: None, attempt: 0 }
    }

    /// The record is processed.
    pub fn done(mut self) {
        self.resolve(Ok(()));
    }

    /// Many records are processed. Whoever waits for them is woken once, and not for each.
    pub fn all_done(acknowledgements: impl IntoIterator<Item = Acknowledgement>) {
        let (mut tracker, mut records): (Option<Arc<Tracker>>, Vec<(u64, u32)>) = (None, Vec::new());
        for mut acknowledgement in acknowledgements {
            let Some(seat) = acknowledgement.seat.take() else { continue };
            if let Some(other) = tracker.take_if(|tracker| !Arc::ptr_eq(tracker, &seat.tracker)) {
                other.resolve_all(&std::mem::take(&mut records));
            }
            records.push((seat.index, acknowledgement.attempt));
            tracker.get_or_insert(seat.tracker);
        }
        if let Some(tracker) = tracker {
            tracker.resolve_all(&records);
        }
    }

    /// The record is not processed; it is delivered again.
    pub fn failed(mut self, why: impl Into<String>) {
        self.resolve(Err(why.into()));
    }

    fn resolve(&mut self, result: Result<(), String>) {
        if let Some(seat) = self.seat.take() {
            seat.tracker.resolve(seat.index, self.attempt, result);
        }
    }
}

impl Drop for Acknowledgement {
    fn drop(&mut self) {
        self.resolve(Err("its acknowledgement was dropped".to_owned()));
    }
}

impl std::fmt::Debug for Acknowledgement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acknowledgement").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::{SequenceNumber, Timestamp};

    use super::*;

    /// A clock that shows what it is set to.
    #[derive(Default)]
    struct Set(Mutex<Duration>);

    impl Clock for Set {
        fn now(&self) -> Timestamp {
            Timestamp::EPOCH
        }

        fn elapsed(&self) -> Duration {
            *self.0.lock()
        }
    }

    fn tracker() -> Arc<Tracker> {
        Tracker::new(Checkpoint::TrimHorizon, Arc::new(Set::default()))
    }

    fn records(tracker: &Arc<Tracker>, numbers: std::ops::Range<u128>) -> Vec<Received> {
        let record = |number| Received {
            sequence: SequenceNumber::from_u128(number),
            sub_sequence: 0,
            arrival: Timestamp::EPOCH,
            partition_key: "key".into(),
            explicit_hash_key: None,
            data: "data".into(),
            attempt: 1,
            seat: None,
        };
        let mut records: Vec<_> = numbers.map(record).collect();
        tracker.admit(&mut records);
        records
    }

    /// From the acknowledgement of the first record that nobody had written down, and not of the last.
    #[test]
    fn what_waits_to_be_written_down_is_timed() {
        let clock = Arc::new(Set::default());
        let tracker = Tracker::new(Checkpoint::TrimHorizon, clock.clone());
        let records = records(&tracker, 0..4);
        let second = |second| *clock.0.lock() = Duration::from_secs(second);
        let finish = |number: usize| tracker.finish(number as u64);
        second(10);
        finish(1);
        assert_eq!(
            tracker.written(Checkpoint::TrimHorizon, Duration::from_secs(10)),
            None,
            "the first is not done"
        );
        second(20);
        finish(0);
        second(23);
        finish(2);
        // The second was written down; the third came while that was under way.
        let waited = tracker.written(records[1].checkpoint(), Duration::from_secs(22));
        assert_eq!(waited, Some(Duration::from_secs(3)));
        second(30);
        finish(3);
        let waited = tracker.written(records[3].checkpoint(), Duration::from_secs(30));
        assert_eq!(waited, Some(Duration::from_secs(8)));
        assert_eq!(tracker.written(records[3].checkpoint(), Duration::from_secs(30)), None);
    }

    #[test]
    fn many_are_acknowledged_as_each_would_be() {
        let trackers = [tracker(), tracker()];
        let [ours, theirs] = [records(&trackers[0], 0..10), records(&trackers[1], 0..3)];
        // An acknowledgement of an earlier delivery says nothing.
        let (stale, mut again) = (ours[3].defer(), ours[3].clone());
        trackers[0].redeliver(&mut again);
        // Of the first shard all others but the seventh, backwards, and in between one of another shard.
        let of_ours = ours.iter().enumerate().filter(|(number, _)| ![3, 7].contains(number));
        let mut all: Vec<_> = of_ours.map(|(_, record)| record).rev().collect();
        all.insert(4, &theirs[0]);
        let acknowledgements: Vec<_> = all.into_iter().map(Received::defer).chain([stale]).collect();
        Acknowledgement::all_done(acknowledgements);
        assert_eq!((trackers[0].done(), trackers[1].done()), (8, 1));
        assert_eq!(trackers[0].watermark(), ours[2].checkpoint());
        assert_eq!(trackers[1].watermark(), theirs[0].checkpoint());
        Acknowledgement::all_done([again.defer()]);
        assert_eq!(trackers[0].watermark(), ours[6].checkpoint(), "up to the one that nobody acknowledged");
        assert_eq!(trackers[0].load().0, 3);
    }
}
