//! The engine: the parts, the threads that drive them, and the ports.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use anabranch_model::limits::{IN_FLIGHT_MAX, PAGE_ENTRIES_MAX};
use anabranch_model::{
    Appended, Batch, Capabilities, Clock, Disk, Error, Follow, HashKey, NewRecord, Page, Position, ReadLimit,
    Result, SequenceNumber, Shard as ShardView, ShardId, ShardSource, StreamName, StreamOptions, StreamStore,
    StreamSummary, Timestamp,
};
use async_trait::async_trait;
use parking_lot::Mutex;

use crate::core::Core;
use crate::journal::committer::Group;
use crate::journal::sequencer::Done;
use crate::journal::{Committer, Draft, Kind, Label, Urgency};
use crate::opening;
use crate::status::Status;
use crate::stream::catalogue::{Effect, Stream};
use crate::table::Changes;
use crate::upkeep::Upkeep;

/// How an engine is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The byte budget for everything that grows with load.
    pub memory_bytes: u64,
    /// Whether the limits of Kinesis apply to each shard.
    pub shard_limits: bool,
    /// Size of the segments of a new directory. An existing one keeps what it has.
    pub segment_bytes: u64,
    /// Who drives the engine.
    pub drive: Drive,
    /// Most messages of a queue that are received and not deleted.
    pub in_flight_max: usize,
}

/// Who drives the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// Three threads of its own: one writes, one shows what is written, one does the upkeep.
    Threads,
    /// The caller, through [`Engine::commit`] and [`Engine::upkeep`], so that a run can be repeated step by step.
    Caller,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory_bytes: 64 << 20,
            shard_limits: false,
            segment_bytes: 64 << 20,
            drive: Drive::Threads,
            in_flight_max: IN_FLIGHT_MAX,
        }
    }
}

/// The smallest segment: an operation on the largest catalogue has to fit, except in tests that make them tiny.
pub const SEGMENT_BYTES_MIN: u64 = 16 << 10;

/// How long an idle thread waits before it looks around.
const IDLE_WAIT: Duration = Duration::from_secs(1);

/// Groups that are written and wait to be shown at most.
const GROUPS_MAX: usize = 2;

/// How long the committer waits at most for calls to arrive together.
const LINGER_MAX: Duration = Duration::from_millis(1);

/// Bytes that are worth a write whoever else may come: to move them takes about as long as the rest of a sync.
const LINGER_BYTES_MAX: u64 = 256 << 10;

/// One caller in so many is forgotten with each commit that does not see it.
const CALLERS_FORGOTTEN: usize = 16;

/// How often it gives way in that time at most. A clock that a test holds still never says that the time is over.
const LINGER_YIELDS_MAX: usize = 4_096;

/// The embedded engine. Clones share it.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
    _last: Arc<StopWithLast>,
}

/// Ends the threads when the last clone of an engine goes without [`Engine::close`], as if the process were killed, and
/// waits for them: whoever opens the directory next must not meet a checkpoint that is still under way.
struct StopWithLast(Arc<Inner>);

impl Drop for StopWithLast {
    fn drop(&mut self) {
        self.0.upkeep_ends.store(true, Ordering::Release);
        self.0.journal_ends.store(true, Ordering::Release);
        self.0.core.sequencer.stop("the engine was dropped");
        self.0.core.queues.wake();
        let Threads { journal, show, upkeep } = std::mem::take(&mut *self.0.threads.lock());
        for thread in [journal, show, upkeep].into_iter().flatten() {
            let _ = thread.join();
        }
        self.0.core.state.shut();
    }
}

struct Inner {
    core: Arc<Core>,
    changes: Changes,
    committer: Committer<Effect, Core>,
    upkeep: Upkeep,
    drive: Drive,
    /// Tells the upkeep to end. It may still have frames on their way then.
    upkeep_ends: AtomicBool,
    /// Tells the journal to end once it has written what waits.
    journal_ends: AtomicBool,
    /// Callers whose frames are written and not shown yet.
    unanswered: AtomicUsize,
    /// Groups that the thread that shows has not shown yet.
    unshown: AtomicUsize,
    threads: Mutex<Threads>,
    clean: bool,
}

#[derive(Default)]
struct Threads {
    journal: Option<JoinHandle<()>>,
    show: Option<JoinHandle<()>>,
    upkeep: Option<JoinHandle<()>>,
}

impl Engine {
    /// Opens a directory: recovers what is there, and begins a new epoch. It waits for the disk. Where state is lost that nothing can
    /// give back, it opens for reading only, changes nothing, and [`Status::stopped`] says why.
    pub fn open(disk: Arc<dyn Disk>, clock: Arc<dyn Clock>, options: Options) -> Result<Engine> {
        if options.segment_bytes < SEGMENT_BYTES_MIN || !options.segment_bytes.is_multiple_of(4096) {
            let text = format!("segments have at least {SEGMENT_BYTES_MIN} bytes and are a multiple of 4096");
            return Err(Error::Invalid(text));
        }
        let opening::Opened { mut core, covered, checkpoint, clean } = opening::open(disk, clock, &options)?;
        core.epoch += 1;
        let core = Arc::new(core);
        let durable = core.published.lock().position;
        let committer =
            Committer::new(core.sequencer.clone(), core.segments.clone(), core.clone(), core.epoch, durable);
        let upkeep = Upkeep::new(core.clone(), covered, checkpoint);
        let inner = Arc::new(Inner {
            changes: Changes(core.clone()),
            core,
            committer,
            upkeep,
            drive: options.drive,
            upkeep_ends: AtomicBool::new(false),
            journal_ends: AtomicBool::new(false),
            unanswered: AtomicUsize::new(0),
            unshown: AtomicUsize::new(0),
            threads: Mutex::default(),
            clean,
        });
        inner.begin_epoch()?;
        if options.drive == Drive::Threads {
            inner
                .start_threads()
                .map_err(|error| Error::Stopped(format!("a thread cannot be started: {error}")))?;
        }
        Ok(Engine { _last: Arc::new(StopWithLast(inner.clone())), inner })
    }

    /// Shuts down: refuses new writes, writes what waits, stores a checkpoint, and lets go of the files.
    pub async fn close(&self) -> Result<()> {
        let inner = self.inner.clone();
        match tokio::task::spawn_blocking(move || inner.close()).await {
            Ok(result) => result,
            Err(error) => Err(Error::Stopped(format!("shutting down failed: {error}"))),
        }
    }

    /// The shared parts, for the ports that stand in files of their own.
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }

    /// The shared parts for a call that reads rows.
    pub(crate) fn rows_core(&self) -> Result<&Arc<Core>> {
        self.core().check_rows().map(|()| self.core())
    }

    /// The shared parts for a call that writes rows.
    pub(crate) fn writing_core(&self) -> Result<&Arc<Core>> {
        self.core().check_writable().map(|()| self.core())
    }

    /// The upkeep, for whoever needs it to stand still.
    pub(crate) fn upkeep_part(&self) -> &Upkeep {
        &self.inner.upkeep
    }

    /// Shuts down as [`Engine::close`] does, on this thread.
    pub(crate) fn close_here(&self) -> Result<()> {
        self.inner.close()
    }

    /// The streams of changes, as a source.
    pub(crate) fn change_source(&self) -> &Changes {
        &self.inner.changes
    }

    /// Plain numbers about the engine.
    pub fn status(&self) -> Status {
        Status::of(&self.inner.core, &self.inner.upkeep, self.inner.clean)
    }

    /// Writes what waits; false if nothing did. For [`Drive::Caller`].
    pub fn commit(&self) -> bool {
        self.inner.committer.commit()
    }

    /// Trims, stores a checkpoint, retires and cleans, whether due or not. For [`Drive::Caller`] and tests.
    pub fn upkeep(&self) {
        self.inner.upkeep.all(&mut |done| self.inner.settle(done));
    }

    /// Makes segments ready. For [`Drive::Caller`].
    pub fn prepare(&self) {
        self.inner.upkeep.prepare();
    }
}

impl Inner {
    /// The first frame of the epoch is synced alone: from then on nothing of an older epoch can rejoin.
    fn begin_epoch(&self) -> Result<()> {
        if self.core.read_only.is_some() {
            return Ok(());
        }
        self.upkeep.prepare();
        let opened = Draft::new(Label::bare(Kind::Opened), 0, |_| {});
        let mut turn = match self.core.sequencer.turn(std::iter::once(opened.bytes()), Urgency::Upkeep) {
            Ok(turn) => turn,
            Err(_) => return Err(Error::DiskFull),
        };
        turn.push(opened, |_| None);
        let mut done = turn.finish(None);
        while self.committer.commit() {}
        done.try_recv().unwrap_or_else(|_| Err(Error::Stopped("the first frame was not written".into())))
    }

    fn start_threads(self: &Arc<Self>) -> std::io::Result<()> {
        let mut threads = self.threads.lock();
        let spawn = |name: &str, work: Box<dyn FnOnce(&Inner) + Send>| {
            let inner = self.clone();
            std::thread::Builder::new().name(name.into()).spawn(move || {
                // Without this thread whoever waits would wait for ever.
                if catch_unwind(AssertUnwindSafe(|| work(&inner))).is_err() {
                    inner.core.sequencer.stop("a thread of the engine panicked; open the directory again");
                }
            })
        };
        let (written, to_show) = mpsc::sync_channel(GROUPS_MAX);
        threads.show = Some(spawn("show", Box::new(move |inner| inner.show_loop(&to_show)))?);
        threads.journal = Some(spawn("journal", Box::new(move |inner| inner.write_loop(&written)))?);
        threads.upkeep = Some(spawn("upkeep", Box::new(Inner::upkeep_loop))?);
        Ok(())
    }

    fn write_loop(&self, to_show: &SyncSender<Group<Effect>>) {
        let (clock, sequencer) = (&self.core.clock, &self.core.sequencer);
        let (mut callers, mut took) = (0_usize, Duration::ZERO);
        let mut durable: Option<Group<Effect>> = None;
        while durable.is_some() || !self.journal_ends.load(Ordering::Acquire) || sequencer.waiting() > 0 {
            // Some are on their way back and nobody sees them. Who was seen lately is taken to be still there.
            let seen = self.unanswered.load(Ordering::Relaxed) + sequencer.callers();
            callers = seen.max(callers - callers.div_ceil(CALLERS_FORGOTTEN));
            let half = callers.div_ceil(2);

            // Where nearly half of them are here, the disk has its next write before the others hear of the last one.
            let mut start = clock.elapsed();
            let mut begun = if self.are_here(callers * 3 / 8) { self.committer.begin() } else { None };
            if let Some(group) = durable.take()
                && !self.pass_on(group, to_show)
            {
                return sequencer.stop("what is written cannot be shown; open the directory again");
            }
            if begun.is_none() {
                self.linger(half, (took / 2).min(LINGER_MAX));
                start = clock.elapsed();
                begun = self.committer.begin();
            }
            let Some(begun) = begun else {
                // Nothing will be written any more.
                if sequencer.stopped().is_some() {
                    return;
                }
                sequencer.wait_arrival(IDLE_WAIT);
                continue;
            };
            let group = self.committer.finish(begun);
            took = clock.elapsed().saturating_sub(start);
            self.unanswered.fetch_add(group.callers(), Ordering::Relaxed);
            durable = Some(group);
        }
    }

    /// Shows a group, or lets the other thread do it; false if that is gone. Some groups are shown before it would be awake; it
    /// has nothing of its own then, so the order is kept.
    fn pass_on(&self, group: Group<Effect>, to_show: &SyncSender<Group<Effect>>) -> bool {
        if self.committer.is_shown_at_once(&group) && self.unshown.load(Ordering::Acquire) == 0 {
            self.show(group);
            return true;
        }
        self.unshown.fetch_add(1, Ordering::Relaxed);
        to_show.send(group).is_ok()
    }

    fn show_loop(&self, written: &Receiver<Group<Effect>>) {
        for group in written {
            self.show(group);
            self.unshown.fetch_sub(1, Ordering::Release);
        }
    }

    fn show(&self, group: Group<Effect>) {
        let answered = group.callers();
        self.committer.show(group);
        self.unanswered.fetch_sub(answered, Ordering::Relaxed);
    }

    /// Waits until half of the callers are here: those that were answered just now often come back at once. One half
    /// then works while the disk does the other half's write, instead of all waiting for all.
    ///
    /// It yields instead of sleeping. To wake a thread takes a good part of the time that a sync does, and whoever is
    /// woken on an idle processor waits for that processor too.
    fn linger(&self, half: usize, at_most: Duration) {
        let clock = &self.core.clock;
        let until = clock.elapsed() + at_most;
        for _ in 0..LINGER_YIELDS_MAX {
            if self.are_here(half) || clock.elapsed() >= until {
                break;
            }
            std::thread::yield_now();
        }
    }

    /// Whether so many callers wait for the disk, or it has enough to do with their bytes.
    fn are_here(&self, callers: usize) -> bool {
        let sequencer = &self.core.sequencer;
        sequencer.callers() >= callers || sequencer.bytes() >= LINGER_BYTES_MAX
    }

    fn upkeep_loop(&self) {
        while !self.upkeep_ends.load(Ordering::Acquire) {
            self.upkeep.tick(&mut |done| self.settle(done));
            self.core.sequencer.wait_upkeep_due(IDLE_WAIT);
        }
    }

    /// Waits until frames are durable, whoever commits them.
    fn settle(&self, mut done: Done) {
        match self.drive {
            Drive::Caller => {
                while self.committer.commit() {}
                let _ = done.try_recv();
            }
            Drive::Threads => {
                let _ = done.blocking_recv();
            }
        }
    }

    fn close(&self) -> Result<()> {
        self.core.sequencer.drain();
        let Threads { journal, show, upkeep } = std::mem::take(&mut *self.threads.lock());
        // The upkeep first: it may wait for frames that the journal has to write. What is written is shown at the end.
        let ends = [(&self.upkeep_ends, upkeep), (&self.journal_ends, journal), (&self.journal_ends, show)];
        for (ends, thread) in ends {
            ends.store(true, Ordering::Release);
            self.core.sequencer.wake();
            if let Some(thread) = thread {
                let _ = thread.join();
            }
        }
        while self.committer.commit() {}
        if self.core.read_only.is_some() {
            return Ok(());
        }
        if let Some(reason) = self.core.sequencer.stopped() {
            return Err(Error::Stopped(reason));
        }
        let stored = self.upkeep.last();
        self.core.sequencer.stop("it was shut down");
        self.core.queues.wake();
        if stored {
            Ok(())
        } else {
            Err(Error::Stopped("the last checkpoint failed; the journal has everything".into()))
        }
    }
}

#[async_trait]
impl ShardSource for Engine {
    fn capabilities(&self) -> Capabilities {
        Capabilities { hash_ranges: true, at_timestamp: true, push: true, lends: true }
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<ShardView>> {
        let found = self.inner.core.catalogue.stream(stream)?;
        let after = match after {
            None => 0,
            Some(id) => match id.number().and_then(|number| u32::try_from(number).ok()) {
                Some(number) => number + 1,
                None => return Err(Error::ShardNotFound(stream.clone(), id.clone())),
            },
        };
        let view = found.visible.read();
        let mut behind = view.shards.range(after..);
        let limit = limit.clamp(1, PAGE_ENTRIES_MAX);
        let entries = behind.by_ref().take(limit).map(|(_, shard)| shard.view()).collect();
        Ok(Page { entries, more: behind.next().is_some() })
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        self.inner.core.read(stream, shard, from, limit).await
    }

    async fn settle(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Position> {
        self.inner.core.settle(stream, shard, from).await
    }

    async fn trimmed(&self, stream: &StreamName, shard: &ShardId) -> Result<Option<SequenceNumber>> {
        self.inner.core.trimmed(stream, shard)
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        self.inner.core.follow(stream, shard, from)
    }
}

#[async_trait]
impl StreamStore for Engine {
    async fn create_stream(&self, stream: &StreamName, options: StreamOptions) -> Result<()> {
        self.inner.core.create_stream(stream, options).await
    }

    async fn delete_stream(&self, stream: &StreamName) -> Result<()> {
        self.inner.core.delete_stream(stream).await
    }

    async fn streams(&self, after: Option<&StreamName>, limit: usize) -> Result<Page<StreamSummary>> {
        let (streams, more) = self.inner.core.catalogue.streams(after, limit.clamp(1, PAGE_ENTRIES_MAX));
        Ok(Page { entries: streams.iter().map(|stream| summary(stream)).collect(), more })
    }

    async fn stream(&self, stream: &StreamName) -> Result<StreamSummary> {
        self.inner.core.catalogue.stream(stream).map(|stream| summary(&stream))
    }

    async fn set_retention(&self, stream: &StreamName, retention: Duration) -> Result<()> {
        self.inner.core.set_retention(stream, retention).await
    }

    /// Records of one call for one shard are in one frame, or in several that follow each other.
    fn keeps_runs(&self) -> bool {
        true
    }

    async fn append(
        &self,
        stream: &StreamName,
        records: Vec<NewRecord>,
    ) -> Result<Vec<std::result::Result<Appended, Error>>> {
        self.inner.core.append(stream, &records).await
    }

    async fn append_kept(
        &self,
        stream: &StreamName,
        records: &[NewRecord],
    ) -> Result<Vec<std::result::Result<Appended, Error>>> {
        self.inner.core.append(stream, records).await
    }

    async fn split(&self, stream: &StreamName, shard: &ShardId, at: HashKey) -> Result<[ShardId; 2]> {
        self.inner.core.split(stream, shard, at).await
    }

    async fn merge(&self, stream: &StreamName, shard: &ShardId, neighbour: &ShardId) -> Result<ShardId> {
        self.inner.core.merge(stream, shard, neighbour).await
    }
}

fn summary(stream: &Stream) -> StreamSummary {
    let view = stream.visible.read();
    let closed_shards = view.shards.values().filter(|shard| shard.log().closed.is_some()).count();
    StreamSummary {
        name: stream.name.clone(),
        created_at: Timestamp::from_millis(stream.created_at),
        retention: Duration::from_millis(view.retention_ms),
        open_shards: view.shards.len() - closed_shards,
        closed_shards,
        active: true,
    }
}
