//! The order of the journal: gives each frame its position and keeps it until the committer takes it.
//!
//! What must hold: positions are given in the order of the queue; once a frame has a position, only a stop of the
//! whole journal keeps it from becoming durable. Room is therefore found before a position is given: a full disk
//! refuses here, and nowhere behind.
//!
//! The lock is held for a push, never for I/O. Callers may hold the lock of their own stream around it, never the
//! other way round.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_model::Error;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};

use super::frame::{Draft, HEADER_BYTES, Kind, Label};

/// Who asks for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Writes that need new room; refused when only the reserve is left.
    Normal,
    /// Writes that must come before others can give room back, such as receives; they may use half of the reserve.
    Freeing,
    /// Writes that give room back, such as deletes and trimming; they may use the reserve, and are taken even while the
    /// journal is drained.
    Upkeep,
}

/// Why there is no turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The next segment is being prepared: wait for [`Sequencer::prepared`] and ask again.
    NotReady,
    /// The next segment could not be prepared for want of space.
    Full,
    /// The journal takes no more frames.
    Stopped(String),
}

/// What a caller waits for.
pub type Done = oneshot::Receiver<Result<(), Error>>;

/// A frame that has its position and waits for the disk.
pub struct Pending<E> {
    /// Where it will stand.
    pub position: u64,
    /// The last state frame before it.
    pub last_state: u64,
    /// Its contents.
    pub draft: Draft,
    /// What happens once it is durable; `None` for the journal's own frames.
    pub effect: Option<E>,
    /// Who waits for it.
    pub done: Option<oneshot::Sender<Result<(), Error>>>,
    /// The memory it occupies, given back when it is written.
    pub permit: Option<OwnedSemaphorePermit>,
}

struct Inner<E> {
    next: u64,
    segment_end: u64,
    last_state: u64,
    ready: VecDeque<u64>,
    /// Segments that a refused caller needs to be ready.
    wanted: usize,
    full: bool,
    queue: VecDeque<Pending<E>>,
    /// Calls whose frames are in the queue.
    callers: usize,
    /// Bytes of those frames.
    bytes: u64,
    stopped: Option<String>,
    draining: bool,
}

/// Gives positions and holds what the committer has not taken yet.
pub struct Sequencer<E> {
    segment_bytes: u64,
    inner: Mutex<Inner<E>>,
    arrived: Condvar,
    /// What `Inner::callers` and `Inner::bytes` were last, for those who only want to look.
    callers: AtomicUsize,
    bytes: AtomicU64,
    /// Told when a segment was prepared, or could not be.
    pub prepared: Notify,
    upkeep_due: Mutex<bool>,
    upkeep_due_changed: Condvar,
}

/// How long a journal that is drained waits at most before it looks whether that is over.
const DRAINING_WAIT: Duration = Duration::from_millis(1);

/// Room for an [`Kind::End`] frame is kept in every segment.
const END_BYTES: u64 = HEADER_BYTES as u64;

impl<E> Sequencer<E> {
    /// Goes on at `next`, which lies in the segment that ends at the next multiple of `segment_bytes`.
    pub fn new(segment_bytes: u64, next: u64, last_state: u64) -> Sequencer<E> {
        let segment_end = (next / segment_bytes + 1) * segment_bytes;
        Sequencer {
            segment_bytes,
            inner: Mutex::new(Inner {
                next,
                segment_end,
                last_state,
                ready: VecDeque::new(),
                wanted: 0,
                full: false,
                queue: VecDeque::new(),
                callers: 0,
                bytes: 0,
                stopped: None,
                draining: false,
            }),
            arrived: Condvar::new(),
            callers: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            prepared: Notify::new(),
            upkeep_due: Mutex::new(false),
            upkeep_due_changed: Condvar::new(),
        }
    }

    /// Largest frame that fits into a segment.
    pub fn frame_bytes_max(&self) -> u64 {
        self.segment_bytes - END_BYTES
    }

    /// Takes a turn for frames of these sizes. While it is held nobody else gets a position.
    pub fn turn(&self, sizes: impl Iterator<Item = u64>, urgency: Urgency) -> Result<Turn<'_, E>, Refusal> {
        let mut inner = self.inner.lock();
        if let Some(reason) = &inner.stopped {
            return Err(Refusal::Stopped(reason.clone()));
        }
        if inner.draining && urgency != Urgency::Upkeep {
            return Err(Refusal::Stopped("it is shutting down".into()));
        }
        let (needed, room) = self.segments_needed(&inner, sizes);
        let reserve = match urgency {
            Urgency::Normal => usize::from(needed > 0),
            // The rest is for those who really give room back.
            Urgency::Freeing => usize::from(room < self.segment_bytes / 2),
            Urgency::Upkeep => 0,
        };
        if needed + reserve > inner.ready.len() {
            inner.wanted = needed + reserve;
            let refusal = if inner.full { Refusal::Full } else { Refusal::NotReady };
            drop(inner);
            self.wake_upkeep();
            return Err(refusal);
        }
        inner.wanted = 0;
        Ok(Turn { sequencer: self, inner })
    }

    /// How many more segments frames of these sizes need, and the room that is left in the last of them.
    fn segments_needed(&self, inner: &Inner<E>, sizes: impl Iterator<Item = u64>) -> (usize, u64) {
        let (mut room, mut needed) = (inner.segment_end - inner.next - END_BYTES, 0);
        for size in sizes {
            if size > room {
                needed += 1;
                room = self.segment_bytes - END_BYTES;
            }
            room -= size;
        }
        (needed, room)
    }

    /// How many more segments should be prepared: one stands in reserve, and one more is wanted as soon as the active
    /// one is half used.
    pub fn segments_missing(&self) -> usize {
        let inner = self.inner.lock();
        let half_used = inner.segment_end - inner.next < self.segment_bytes / 2;
        let target = inner.wanted.max(if half_used { 2 } else { 1 });
        target.saturating_sub(inner.ready.len())
    }

    /// Whether a segment stands in reserve.
    pub fn has_reserve(&self) -> bool {
        !self.inner.lock().ready.is_empty()
    }

    /// Adds a prepared segment.
    pub fn add_ready(&self, number: u64) {
        let mut inner = self.inner.lock();
        inner.ready.push_back(number);
        drop(inner);
        self.prepared.notify_waiters();
    }

    /// Takes a prepared segment back, the reserve if need be.
    pub fn give_up_ready(&self) -> Option<u64> {
        self.inner.lock().ready.pop_back()
    }

    /// Says whether the last segment could not be prepared for want of space.
    pub fn set_full(&self, full: bool) {
        self.inner.lock().full = full;
        if full {
            self.prepared.notify_waiters();
        }
    }

    /// Whether the disk had no room for the last segment.
    pub fn is_full(&self) -> bool {
        self.inner.lock().full
    }

    /// Wakes whoever stands in [`Sequencer::wait_upkeep_due`].
    pub fn wake_upkeep(&self) {
        *self.upkeep_due.lock() = true;
        self.upkeep_due_changed.notify_all();
    }

    /// Waits until a segment is wanted or somebody asks for upkeep, or the time is over.
    pub fn wait_upkeep_due(&self, at_most: Duration) {
        let mut due = self.upkeep_due.lock();
        if !*due {
            self.upkeep_due_changed.wait_for(&mut due, at_most);
        }
        *due = false;
    }

    /// Waits until a call has frames here, the journal stops, or the time is over.
    pub fn wait_arrival(&self, at_most: Duration) {
        let mut inner = self.inner.lock();
        // Whoever drains may wait for a checkpoint, and then for this thread.
        let at_most = if inner.draining { at_most.min(DRAINING_WAIT) } else { at_most };
        if inner.callers == 0 && inner.stopped.is_none() {
            self.arrived.wait_for(&mut inner, at_most);
        }
    }

    /// Takes frames for one write: consecutive, in one segment, about `bytes_max` in total.
    pub fn take(&self, bytes_max: u64) -> Vec<Pending<E>> {
        let mut inner = self.inner.lock();
        let Some(first) = inner.queue.front() else { return Vec::new() };
        let segment = first.position / self.segment_bytes;
        let mut total = 0;
        let count = inner
            .queue
            .iter()
            .take_while(|pending| {
                let fits = pending.position / self.segment_bytes == segment && total < bytes_max;
                total += pending.draft.bytes();
                fits
            })
            .count();
        let group: Vec<Pending<E>> = inner.queue.drain(..count).collect();
        inner.callers -= group.iter().filter(|pending| pending.done.is_some()).count();
        inner.bytes -= group.iter().map(|pending| pending.draft.bytes()).sum::<u64>();
        self.note(&inner);
        group
    }

    fn note(&self, inner: &Inner<E>) {
        self.callers.store(inner.callers, Ordering::Relaxed);
        self.bytes.store(inner.bytes, Ordering::Relaxed);
    }

    /// How many calls wait for their frames. It is a hint: it may be old when it is looked at.
    pub fn callers(&self) -> usize {
        self.callers.load(Ordering::Relaxed)
    }

    /// How many bytes their frames have; a hint as well.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many frames wait.
    pub fn waiting(&self) -> usize {
        self.inner.lock().queue.len()
    }

    /// Wakes the committer and the upkeep, so that they notice a shutdown.
    pub fn wake(&self) {
        self.arrived.notify_all();
        self.wake_upkeep();
    }

    /// Refuses new frames except those of upkeep; what is queued is still written.
    pub fn drain(&self) {
        self.inner.lock().draining = true;
        self.arrived.notify_all();
        self.prepared.notify_waiters();
    }

    /// Ends the journal: what is queued fails, and so does every later call.
    pub fn stop(&self, reason: &str) {
        let mut inner = self.inner.lock();
        let reason = inner.stopped.get_or_insert_with(|| reason.to_owned()).clone();
        (inner.callers, inner.bytes) = (0, 0);
        let orphans = std::mem::take(&mut inner.queue);
        drop(inner);
        for pending in orphans {
            if let Some(done) = pending.done {
                let _ = done.send(Err(Error::Stopped(reason.clone())));
            }
        }
        self.arrived.notify_all();
        self.prepared.notify_waiters();
        self.wake_upkeep();
    }

    /// Why the journal takes no more frames, if it does not.
    pub fn stopped(&self) -> Option<String> {
        self.inner.lock().stopped.clone()
    }
}

/// The right to give positions, and the promise that they fit.
pub struct Turn<'a, E> {
    sequencer: &'a Sequencer<E>,
    inner: MutexGuard<'a, Inner<E>>,
}

impl<E> Turn<'_, E> {
    /// Queues a frame; `effect` learns the position it got.
    pub fn push(&mut self, draft: Draft, effect: impl FnOnce(u64) -> Option<E>) -> u64 {
        if draft.bytes() + END_BYTES > self.inner.segment_end - self.inner.next {
            self.roll();
        }
        let position = self.inner.next;
        let effect = effect(position);
        self.enqueue(draft, effect);
        position
    }

    /// Hands the frames over. The receiver hears when the last of them, and so all, are durable and visible.
    pub fn finish(mut self, permit: Option<OwnedSemaphorePermit>) -> Done {
        let (done, receiver) = oneshot::channel();
        if let Some(last) = self.inner.queue.back_mut() {
            last.done = Some(done);
            last.permit = permit;
        }
        self.inner.callers += 1;
        let callers = self.inner.callers;
        self.sequencer.note(&self.inner);
        drop(self.inner);
        // The others find a committer that is awake.
        if callers == 1 {
            self.sequencer.arrived.notify_one();
        }
        receiver
    }

    fn roll(&mut self) {
        let number = self.inner.ready.pop_front().expect("the turn was given because a segment is ready");
        let start = number * self.sequencer.segment_bytes;
        let mut end = Draft::new(Label::bare(Kind::End), 0, |_| {});
        end.set_origin(start);
        self.enqueue(end, None);
        self.inner.next = start;
        self.inner.segment_end = start + self.sequencer.segment_bytes;
        self.sequencer.wake_upkeep();
    }

    fn enqueue(&mut self, draft: Draft, effect: Option<E>) {
        let (position, last_state) = (self.inner.next, self.inner.last_state);
        if draft.label().kind.is_state() {
            self.inner.last_state = position;
        }
        self.inner.next += draft.bytes();
        self.inner.bytes += draft.bytes();
        self.inner.queue.push_back(Pending { position, last_state, draft, effect, done: None, permit: None });
    }
}
