//! Upkeep: what happens behind the writers' backs so that space, memory and recovery stay bounded.
//!
//! In the order of a tick: prepare segments, trim what is past its retention, remove what blobs left behind, store a
//! checkpoint, retire segments without live frames, and clean one that has few.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Error, Result};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::ballast::Ballast;
use crate::core::Core;
use crate::journal::Segment;
use crate::journal::sequencer::Done;
use crate::state::{CatalogueCopy, Checkpoint, Covered, Outcome, ShardKey};
use crate::stream::shard::Shard;

/// Journal bytes after which a checkpoint is due: what an opening after a crash has to walk.
const CHECKPOINT_BYTES: u64 = 32 << 20;
/// Index entries in memory after which a checkpoint is due.
pub const CHECKPOINT_ENTRIES: usize = 32 << 10;
/// How long a change waits for a checkpoint at most.
const CHECKPOINT_WAIT: Duration = Duration::from_secs(10);
/// Without a checkpoint for this long nobody writes much.
const IDLE_AFTER: Duration = Duration::from_secs(60);
/// Dead segments that are kept then.
const DEAD_KEPT_WHEN_IDLE: usize = 1;
/// Segments that the journal may have beyond twice what is live in it before messages are moved.
const DEAD_SHARE_SEGMENTS: u64 = 8;
/// Documents that are copied with the catalogue; more are in the state alone.
const DOCUMENTS_COPIED_BYTES_MAX: usize = 1 << 20;
/// How often retention is looked at.
const TRIM_WAIT: Duration = Duration::from_secs(30);

/// What upkeep remembers between its ticks.
pub struct Upkeep {
    core: Arc<Core>,
    ballast: Ballast,
    /// Held by whoever does upkeep: a checkpoint is not to be collected twice.
    at_work: Mutex<()>,
    /// Held by whoever prepares segments: they are ready in the order of their numbers.
    preparing: Mutex<()>,
    memory: Mutex<Memory>,
}

struct Memory {
    covered: u64,
    /// The number of the last checkpoint.
    number: u64,
    /// A checkpoint that failed. It may be in the state all the same, so it is repeated before the next is collected.
    failed: Option<Collected>,
    /// What the copy of the catalogue contains.
    copied: Option<Copied>,
    checkpoint_at: Duration,
    trim_at: Duration,
    /// Segments with damaged frames: these cannot be moved, so the segment waits for its retention.
    damaged: HashSet<u64>,
    /// Segments that messages have just gone from. The others mostly follow soon, so they are not worth a move yet.
    emptied: BTreeSet<u64>,
}

/// What a copy of the catalogue contains. Once there are rows beyond documents, that is all that it says of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Copied {
    /// The last change of the catalogue.
    last_catalogue: u64,
    beyond_documents: bool,
    /// Which change of the documents.
    documents: u64,
}

/// What changed up to one moment.
struct Collected {
    checkpoint: Checkpoint,
    copy: Option<(CatalogueCopy, Copied)>,
    shards: BTreeMap<ShardKey, Arc<Shard>>,
}

impl Upkeep {
    /// Upkeep for a core whose state covers the journal up to `covered` with its checkpoint `number`.
    pub fn new(core: Arc<Core>, covered: u64, number: u64) -> Upkeep {
        let now = core.clock.elapsed();
        // Unknown at the opening: the first checkpoint writes it.
        let memory = Memory {
            covered,
            number,
            failed: None,
            copied: None,
            checkpoint_at: now,
            trim_at: now,
            damaged: HashSet::new(),
            emptied: BTreeSet::new(),
        };
        let ballast = Ballast::new(core.disk.clone());
        Upkeep {
            core,
            ballast,
            at_work: Mutex::default(),
            preparing: Mutex::default(),
            memory: Mutex::new(memory),
        }
    }

    /// The position that the state covers.
    pub fn covered(&self) -> u64 {
        self.memory.lock().covered
    }

    /// Does what is due. `settle` waits until frames are durable.
    pub fn tick(&self, settle: &mut dyn FnMut(Done)) {
        // While a backup copies the state the journal needs segments all the same.
        let Some(_at_work) = self.at_work.try_lock() else { return self.prepare() };
        if self.is_over() {
            return;
        }
        self.prepare();
        let settle = &mut self.preparing(settle);
        let now = self.core.clock.elapsed();
        if now.saturating_sub(self.memory.lock().trim_at) >= TRIM_WAIT {
            self.trim(settle);
            self.tend(settle);
        }
        self.fill(settle);
        self.core.move_dead_letters(settle);
        if now.saturating_sub(self.memory.lock().checkpoint_at) >= IDLE_AFTER {
            self.release_one();
        }
        self.core.keep_blobs(false, settle);
        if self.checkpoint_due(now) {
            let stored = self.checkpoint();
            self.clean(settle);
            self.prepare();
            // As much has come meanwhile.
            if stored && self.core.rows.is_checkpoint_due() {
                self.core.sequencer.wake_upkeep();
            }
        }
    }

    /// Does everything, whether due or not.
    pub fn all(&self, settle: &mut dyn FnMut(Done)) {
        let _at_work = self.at_work.lock();
        if self.is_over() {
            return;
        }
        self.prepare();
        let settle = &mut self.preparing(settle);
        self.trim(settle);
        self.tend(settle);
        self.fill(settle);
        self.core.move_dead_letters(settle);
        self.core.keep_blobs(true, settle);
        self.checkpoint();
        self.clean(settle);
        self.prepare();
    }

    /// Waits for frames and makes segments ready behind them: what is written here comes to an end although it fills
    /// several, and writers do not wait for it.
    fn preparing(&self, settle: &mut dyn FnMut(Done)) -> impl FnMut(Done) {
        |done| {
            settle(done);
            self.prepare();
        }
    }

    /// Whether the directory must be left as it is.
    fn is_over(&self) -> bool {
        self.core.read_only.is_some() || self.core.sequencer.stopped().is_some()
    }

    /// Stores the last checkpoint of a shutdown. Returns false if it could not.
    pub fn last(&self) -> bool {
        let _at_work = self.at_work.lock();
        self.checkpoint()
    }

    /// Stores a checkpoint and shows the position that it covers to `look`, before any other is stored.
    pub fn at_checkpoint<T>(&self, look: impl FnOnce(u64) -> Result<T>) -> Result<T> {
        let at_work = self.at_work.lock();
        if let Some(reason) = self.core.read_only.clone().or_else(|| self.core.sequencer.stopped()) {
            return Err(Error::Stopped(reason));
        }
        if !self.checkpoint() {
            return Err(Error::Unavailable(
                "the checkpoint could not be stored: see the log, and try again".into(),
            ));
        }
        let looked = look(self.covered());
        drop(at_work);
        self.core.sequencer.wake_upkeep();
        looked
    }

    /// Trims what is past its retention.
    fn trim(&self, settle: &mut dyn FnMut(Done)) {
        self.memory.lock().trim_at = self.core.clock.elapsed();
        self.core.tidy_queues(settle);
        loop {
            match self.core.trim() {
                Ok(Some(done)) => settle(done),
                Ok(None) => return,
                Err(error) => return tracing::error!(%error, "retention cannot be applied"),
            }
            if self.core.sequencer.stopped().is_some() {
                return;
            }
        }
    }

    /// Removes what has had its time from tables.
    fn tend(&self, settle: &mut dyn FnMut(Done)) {
        let tended = self.core.expire_tables(settle).and_then(|()| self.core.trim_tables(settle));
        if let Err(error) = tended {
            tracing::error!(%error, "tables cannot be tended");
        }
    }

    /// Fills new indexes.
    fn fill(&self, settle: &mut dyn FnMut(Done)) {
        match self.core.fill_indexes(settle) {
            // There was no room in the journal; the next tick makes some.
            Ok(true) => self.core.sequencer.wake_upkeep(),
            Ok(false) => {}
            Err(error) => tracing::error!(%error, "an index cannot be filled"),
        }
    }

    /// Makes segments ready for the journal. The reserve comes first and the ballast second; only room beyond them is
    /// for everybody.
    pub fn prepare(&self) {
        let _preparing = self.preparing.lock();
        if self.is_over() {
            return;
        }
        let sequencer = &self.core.sequencer;
        let outcome = loop {
            let reserved = sequencer.has_reserve();
            if reserved && let Err(error) = self.ballast.load() {
                break Err(error);
            }
            if reserved && sequencer.segments_missing() == 0 {
                break Ok(());
            }
            match self.core.segments.prepare() {
                Ok(segment) => sequencer.add_ready(segment.number),
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = &outcome
            && !sequencer.is_full()
        {
            tracing::error!(%error, "no room for the next segment: writes are refused until there is");
        }
        sequencer.set_full(outcome.is_err());
    }

    fn checkpoint_due(&self, now: Duration) -> bool {
        let published = *self.core.published.lock();
        let memory = self.memory.lock();
        let waiting = memory.failed.is_some() || self.core.catalogue.is_dirty() || self.core.rows.is_dirty();
        published.position.saturating_sub(memory.covered)
            >= CHECKPOINT_BYTES.min(self.core.segments.bytes / 2)
            || published.uncollected >= CHECKPOINT_ENTRIES
            || self.core.rows.is_checkpoint_due()
            || (waiting && now.saturating_sub(memory.checkpoint_at) >= CHECKPOINT_WAIT)
            // Whoever waits for room waits for what this frees.
            || (waiting && self.core.sequencer.is_full())
    }

    /// Stores what is visible. Returns false if it could not; nothing is lost then, the journal has it.
    fn checkpoint(&self) -> bool {
        loop {
            match self.try_checkpoint() {
                Ok(()) => return true,
                Err(Error::DiskFull) if self.make_room() => {}
                Err(error) => {
                    self.core.rows.not_stored(&error);
                    tracing::error!(%error, "a checkpoint failed and will be tried again");
                    metrics::counter!("anabranch_checkpoint_failures_total").increment(1);
                    return false;
                }
            }
        }
    }

    /// Gives memory and a dead segment back when nobody needs them.
    fn release_one(&self) {
        self.core.budget.buffers.clear();
        if self.core.segments.dead_count() > DEAD_KEPT_WHEN_IDLE
            && let Err(error) = self.core.segments.release_dead()
        {
            tracing::warn!(%error, "an unused segment cannot be removed");
        }
    }

    /// Gives up a spare segment for the sake of the state: it is what lets trimming and deleting free more.
    fn make_room(&self) -> bool {
        if self.core.segments.release_dead().unwrap_or(false) || self.ballast.drop_it() {
            return true;
        }
        match self.core.sequencer.give_up_ready() {
            Some(number) => self.core.segments.discard(number).is_ok(),
            None => false,
        }
    }

    fn try_checkpoint(&self) -> Result<()> {
        self.memory.lock().checkpoint_at = self.core.clock.elapsed();
        let failed = self.memory.lock().failed.take();
        if let Some(failed) = failed {
            self.store(failed)?;
        }
        self.store(self.collect())
    }

    fn collect(&self) -> Collected {
        let core = &self.core;
        let mut published = core.published.lock();
        let mut memory = self.memory.lock();
        published.uncollected = 0;
        memory.number += 1;
        let dirty = core.catalogue.take_dirty();
        let covered =
            Covered { position: published.position, epoch: core.epoch, last_state: published.last_state };
        let checkpoint = Checkpoint {
            number: memory.number,
            covered,
            streams: dirty.streams.into_iter().collect(),
            shards: dirty.shards.values().map(|shard| shard.collect()).collect(),
            rows: core.rows.freeze(),
            live: core.segments.all().iter().map(|segment| (segment.number, segment.live())).collect(),
            segment_bytes: core.segments.bytes,
        };
        let beyond_documents = core.rows.any_beyond_documents();
        let documents = if beyond_documents { 0 } else { core.rows.documents_changed() };
        let copied = Copied { last_catalogue: published.last_catalogue, beyond_documents, documents };
        let stale = memory.copied != Some(copied);
        let copy = stale.then(|| (core.copy_catalogue(covered), copied));
        Collected { checkpoint, copy, shards: dirty.shards }
    }

    fn store(&self, collected: Collected) -> Result<()> {
        let core = &self.core;
        let outcome = match core.state.commit(&collected.checkpoint) {
            Ok(outcome) => outcome,
            Err(error) => {
                self.memory.lock().failed = Some(collected);
                return Err(error);
            }
        };
        let Collected { checkpoint, copy, shards } = collected;
        shards.values().for_each(|shard| shard.stored());
        self.memory.lock().covered = checkpoint.covered.position;
        core.rows.stored(outcome.unswept);
        for key in &outcome.unfinished {
            core.catalogue.mark(&shards[key]);
        }
        self.count(&outcome);
        self.memory.lock().emptied = outcome.released.into_keys().collect();
        // Without the copy the journal must keep what only the copy would have.
        if let Some((copy, copied)) = copy {
            copy.write(&core.disk)?;
            self.memory.lock().copied = Some(copied);
        }
        self.retire(checkpoint.covered.position);
        metrics::counter!("anabranch_checkpoints_total").increment(1);
        Ok(())
    }

    /// Counts what the checkpoint left in the journal, and what it dropped.
    fn count(&self, outcome: &Outcome) {
        for segment in self.core.segments.all() {
            if let Some(kept) = outcome.kept.get(&segment.number) {
                segment.add_messages(*kept);
            }
            if let Some(released) = outcome.released.get(&segment.number) {
                segment.forget_messages(*released);
            }
            if let Some(freed) = outcome.freed.get(&segment.number) {
                segment.remove_live(*freed);
            }
        }
    }

    /// Takes segments without live frames out of use.
    fn retire(&self, covered: u64) {
        let segments = &self.core.segments;
        let all = segments.all();
        let idle =
            all.iter().filter(|segment| segment.number < covered / segments.bytes && segment.live() == 0);
        let idle: Vec<u64> = idle.map(|segment| segment.number).collect();
        drop(all);
        for number in idle {
            match segments.retire(number) {
                Ok(_) => self.memory.lock().damaged.remove(&number),
                Err(error) => {
                    tracing::error!(%error, segment = number, "a segment cannot be removed");
                    false
                }
            };
        }
    }

    /// Rewrites what is live in the segment that has the least, if that is less than half of it. The next checkpoint
    /// retires it.
    fn clean(&self, settle: &mut dyn FnMut(Done)) {
        let Some(number) = self.to_clean() else { return };
        match self.core.clean(number, settle) {
            Ok(moved) => tracing::debug!(segment = number, moved, "cleaned a segment"),
            Err(Error::Corrupt(text)) => {
                tracing::warn!(
                    segment = number,
                    text,
                    "a segment with damaged frames stays until its retention"
                );
                self.memory.lock().damaged.insert(number);
            }
            Err(error) => tracing::debug!(%error, segment = number, "cleaning is put off"),
        }
    }

    /// The segment that should be cleaned.
    ///
    /// A segment with messages waits. If some of them have just gone, the others mostly follow soon; and as long as the
    /// journal is not twice what is live in it, there is no need.
    fn to_clean(&self) -> Option<u64> {
        let (covered, size) = (self.covered() / self.core.segments.bytes, self.core.segments.bytes);
        let memory = self.memory.lock();
        let sealed: Vec<_> = self.core.segments.all();
        let sealed: Vec<_> = sealed.iter().filter(|segment| segment.number < covered).collect();
        let live: u64 = sealed.iter().map(|segment| segment.live()).sum();
        let full = self.core.sequencer.is_full();
        let crowded = full || sealed.len() as u64 > 2 * live / size + DEAD_SHARE_SEGMENTS;
        let waits = |segment: &Segment| {
            let emptying = memory.emptied.contains(&segment.number) && !full;
            emptying || (segment.messages() > 0 && !crowded)
        };
        // One without live frames waits for a reader to let go of it, and there is nothing to move.
        let worth = |segment: &Segment| (1..size / 2).contains(&segment.live()) && !waits(segment);
        let candidates = sealed.into_iter().filter(|segment| !memory.damaged.contains(&segment.number));
        candidates
            .filter(|segment| worth(segment))
            .min_by_key(|segment| segment.live())
            .map(|found| found.number)
    }
}

impl Core {
    /// Documents, if they are all there is in rows.
    fn copy_documents(&self) -> Option<Vec<(Bytes, Bytes)>> {
        if self.rows.any_beyond_documents() {
            return None;
        }
        let documents = self.rows.documents(DOCUMENTS_COPIED_BYTES_MAX);
        // A copy that does not have them says so.
        documents.unwrap_or_else(|error| {
            tracing::error!(%error, "documents cannot be copied");
            None
        })
    }

    /// Streams and shards as they are visible. The caller keeps others from publishing meanwhile.
    fn copy_catalogue(&self, covered: Covered) -> CatalogueCopy {
        let shards = self.catalogue.all_shards();
        CatalogueCopy {
            covered,
            streams: self.catalogue.all_rows(),
            shards: shards.iter().map(|(_, shard)| (shard.key, shard.current_row())).collect(),
            documents: self.copy_documents(),
        }
    }
}
