//! The committer: turns whatever arrived during the last sync into one write and one sync.
//!
//! One thread writes, and another shows what was written while the disk is busy with the next write, unless that is quickly
//! done. What must hold: [`Committer::write`] and [`Committer::show`] are each called by one thread at a time; groups are
//! shown in the order in which they were written, and only what a successful sync covers.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_model::Error;
use tokio::sync::oneshot;

use super::frame::{Kind, Label};
use super::segments::Segments;
use super::sequencer::{Pending, Sequencer};

/// Bytes of one write, about: a longer one would only make the first callers wait for the last.
const WRITE_BYTES_MAX: u64 = 4 << 20;

/// Frames that are shown before those who wait for them are answered. With more, the first of a group would wait for
/// the last; with fewer, each is a lock taken and given back.
const SHOWN_MAX: usize = 8;

/// Frames of a group that is shown at once, and callers where not all of the frames are light.
const SHOWN_AT_ONCE_FRAMES_MAX: usize = 64;
const SHOWN_AT_ONCE_CALLERS_MAX: usize = 8;

/// A frame that is durable.
pub struct Durable<E> {
    /// Where it stands.
    pub position: u64,
    /// Header, payload and padding.
    pub bytes: Vec<u8>,
    /// Where the journal goes on behind it.
    pub next: u64,
    /// What was to happen once it is durable.
    pub effect: Option<E>,
}

/// Makes durable frames visible.
pub trait Publish<E>: Send + Sync {
    /// Called with a few frames of one write in their order, and the position behind them.
    fn publish(&self, frames: Vec<Durable<E>>, end: u64);

    /// Whether this takes next to no time to show.
    fn is_light(effect: &E) -> bool;
}

/// Frames of one write that are durable, and who waits for them.
pub struct Group<E> {
    frames: Vec<Durable<E>>,
    waiting: Vec<Waiter>,
}

impl<E> Group<E> {
    /// How many calls it completes.
    pub fn callers(&self) -> usize {
        self.waiting.len()
    }
}

/// Writes the queue of the [`Sequencer`] to the [`Segments`].
pub struct Committer<E, P> {
    sequencer: Arc<Sequencer<E>>,
    segments: Arc<Segments>,
    publisher: Arc<P>,
    epoch: u32,
    durable: AtomicU64,
}

impl<E, P: Publish<E>> Committer<E, P> {
    /// A committer for the frames of one epoch; everything before `durable` is on the disk.
    pub fn new(
        sequencer: Arc<Sequencer<E>>,
        segments: Arc<Segments>,
        publisher: Arc<P>,
        epoch: u32,
        durable: u64,
    ) -> Self {
        Committer { sequencer, segments, publisher, epoch, durable: AtomicU64::new(durable) }
    }

    /// Everything before this position is on the disk.
    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Writes and shows what has arrived; false if nothing had.
    pub fn commit(&self) -> bool {
        let written = self.write();
        let any = written.is_some();
        written.into_iter().for_each(|group| self.show(group));
        any
    }

    /// Whether a group is shown in less time than it takes to wake a thread.
    pub fn is_shown_at_once(&self, group: &Group<E>) -> bool {
        let is_light = |frame: &Durable<E>| frame.effect.as_ref().is_none_or(P::is_light);
        group.frames.len() <= SHOWN_AT_ONCE_FRAMES_MAX
            && (group.callers() <= SHOWN_AT_ONCE_CALLERS_MAX || group.frames.iter().all(is_light))
    }

    /// Makes a durable group visible, and answers those who wait for it as soon as what they wait for is.
    pub fn show(&self, group: Group<E>) {
        let (mut frames, mut waiting) = (group.frames.into_iter(), group.waiting.into_iter().peekable());
        loop {
            let shown: Vec<Durable<E>> = frames.by_ref().take(SHOWN_MAX).collect();
            let Some(end) = shown.last().map(|frame| frame.next) else { return };
            self.publisher.publish(shown, end);
            acknowledge(std::iter::from_fn(|| waiting.next_if(|waiter| waiter.position < end)), &Ok(()));
        }
    }

    /// Writes what has arrived; `None` if nothing had. The group has to be shown.
    pub fn write(&self) -> Option<Group<E>> {
        let group = self.sequencer.take(WRITE_BYTES_MAX);
        let first = group.first()?;
        let (start, mut waiting) = (first.position, Vec::with_capacity(group.len()));
        let frames = self.seal(group, &mut waiting);
        match self.make_durable(start, &frames) {
            Ok(end) => {
                self.durable.store(end, Ordering::Release);
                Some(Group { frames, waiting })
            }
            Err(error) => {
                // Nothing is known about the bytes of a failed write or sync. Whoever opens the directory again
                // finds out what is there; this process acknowledges nothing any more.
                let reason = format!("writing the journal failed: {error}; open the directory again");
                tracing::error!(%error, position = start, "the journal stops");
                self.sequencer.stop(&reason);
                acknowledge(waiting, &Err(Error::Stopped(reason)));
                Some(Group { frames: Vec::new(), waiting: Vec::new() })
            }
        }
    }

    fn seal(&self, group: Vec<Pending<E>>, waiting: &mut Vec<Waiter>) -> Vec<Durable<E>> {
        let durable = self.durable();
        group
            .into_iter()
            .map(|pending| {
                let (position, _permit) = (pending.position, pending.permit);
                waiting.extend(pending.done.map(|done| Waiter { position, done, _permit }));
                let next = match *pending.draft.label() {
                    Label { kind: Kind::End, origin: Some(start), .. } => start,
                    _ => pending.position + pending.draft.bytes(),
                };
                let bytes = pending.draft.seal(self.epoch, pending.position, durable, pending.last_state);
                Durable { position: pending.position, bytes, next, effect: pending.effect }
            })
            .collect()
    }

    /// The line that makes a record durable is in here: it returns when the disk has the bytes.
    fn make_durable(&self, start: u64, frames: &[Durable<E>]) -> std::io::Result<u64> {
        let segment = self.segments.holding(start).expect("a segment stays while the journal writes to it");
        let parts: Vec<IoSlice<'_>> = frames.iter().map(|frame| IoSlice::new(&frame.bytes)).collect();
        segment.file.write_durably_at(self.segments.offset(start), &parts)?;
        let last = frames.last().expect("a group is never empty");
        metrics::counter!("anabranch_journal_syncs_total").increment(1);
        metrics::counter!("anabranch_journal_written_bytes_total")
            .increment(last.position + last.bytes.len() as u64 - start);
        Ok(last.next)
    }
}

/// Who waits for a frame, with the memory that is free once it is written.
struct Waiter {
    /// The frame.
    position: u64,
    done: oneshot::Sender<Result<(), Error>>,
    _permit: Option<tokio::sync::OwnedSemaphorePermit>,
}

fn acknowledge(waiting: impl IntoIterator<Item = Waiter>, outcome: &Result<(), Error>) {
    for waiter in waiting {
        // A caller that went away does not want to know.
        let _ = waiter.done.send(outcome.clone());
    }
}
