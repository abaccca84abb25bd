//! The committer: turns whatever arrived during the last sync into one write and one sync.
//!
//! One thread writes and syncs. Between the two the disk is at work already, and the thread shows the group before, or lets
//! another thread do it where that takes long. What must hold: [`Committer::begin`] and [`Committer::finish`] are called in
//! turn by one thread at a time, and so is [`Committer::show`]; groups are shown in the order in which they were written,
//! and only what a successful sync covers.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_model::Error;
use tokio::sync::oneshot;

use super::frame::{Kind, Label};
use super::segments::{Segment, Segments};
use super::sequencer::{Pending, Sequencer};

/// Bytes of one write, about: a longer one would only make the first callers wait for the last.
const WRITE_BYTES_MAX: u64 = 4 << 20;

/// Frames that are shown before those who wait for them are answered. With more, the first of a group would wait for
/// the last; with fewer, each is a lock taken and given back.
const SHOWN_MAX: usize = 8;

/// Frames of a group that is shown at once, and callers where not all of the frames are light.
const SHOWN_AT_ONCE_FRAMES_MAX: usize = 64;
const SHOWN_AT_ONCE_CALLERS_MAX: usize = 16;

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

/// Frames that are written and not durable yet, and who waits for them.
#[must_use = "nobody hears of it before it is finished"]
pub struct Begun<E> {
    group: Group<E>,
    /// The segment that they are in; or why they are not.
    written: std::io::Result<Arc<Segment>>,
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
        let begun = self.begin();
        let any = begun.is_some();
        begun.into_iter().for_each(|begun| self.show(self.finish(begun)));
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

    /// Writes what has arrived, and lets the disk begin with it; `None` if nothing had.
    pub fn begin(&self) -> Option<Begun<E>> {
        let pending = self.sequencer.take(WRITE_BYTES_MAX);
        let mut waiting = Vec::with_capacity(pending.len());
        let frames = self.seal(pending, &mut waiting);
        let start = frames.first()?.position;
        let written = self.write(start, &frames);
        Some(Begun { group: Group { frames, waiting }, written })
    }

    /// Waits until what was begun is durable. The group has to be shown.
    pub fn finish(&self, begun: Begun<E>) -> Group<E> {
        let Begun { group, written } = begun;
        match written.and_then(|segment| self.make_durable(&segment, &group.frames)) {
            Ok(end) => {
                self.durable.store(end, Ordering::Release);
                group
            }
            Err(error) => {
                // Nothing is known about the bytes of a failed write or sync. Whoever opens the directory again
                // finds out what is there; this process acknowledges nothing any more.
                let reason = format!("writing the journal failed: {error}; open the directory again");
                tracing::error!(%error, position = group.frames.first().map(|frame| frame.position), "the journal stops");
                self.sequencer.stop(&reason);
                acknowledge(group.waiting, &Err(Error::Stopped(reason)));
                Group { frames: Vec::new(), waiting: Vec::new() }
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

    fn write(&self, start: u64, frames: &[Durable<E>]) -> std::io::Result<Arc<Segment>> {
        let segment = self.segments.holding(start).expect("a segment stays while the journal writes to it");
        let parts: Vec<IoSlice<'_>> = frames.iter().map(|frame| IoSlice::new(&frame.bytes)).collect();
        let (offset, bytes) = (self.segments.offset(start), parts.iter().map(|part| part.len() as u64).sum());
        segment.file.write_all_at(offset, &parts)?;
        segment.file.begin_sync(offset, bytes);
        metrics::counter!("anabranch_journal_written_bytes_total").increment(bytes);
        Ok(segment)
    }

    /// The line that makes a record durable is in here: it returns when the disk has the bytes. Returns where the journal
    /// goes on.
    fn make_durable(&self, segment: &Segment, frames: &[Durable<E>]) -> std::io::Result<u64> {
        segment.file.sync()?;
        metrics::counter!("anabranch_journal_syncs_total").increment(1);
        Ok(frames.last().expect("a group is never empty").next)
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
