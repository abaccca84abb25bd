//! Upkeep: what happens behind the writers' backs so that space, memory and recovery stay bounded.
//!
//! In the order of a tick: prepare segments, trim what is past its retention, store a checkpoint, retire segments
//! without live frames, and clean one that has few.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Error, Result};
use parking_lot::Mutex;

use crate::core::Core;
use crate::journal::sequencer::Done;
use crate::state::{CatalogueCopy, Checkpoint, Covered, Outcome};

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
/// How often retention is looked at.
const TRIM_WAIT: Duration = Duration::from_secs(30);

/// What upkeep remembers between its ticks.
pub struct Upkeep {
    core: Arc<Core>,
    /// Held by whoever does upkeep: a checkpoint is not to be collected twice.
    at_work: Mutex<()>,
    memory: Mutex<Memory>,
}

struct Memory {
    covered: u64,
    /// The last change of the catalogue that its copy contains.
    copied_state: u64,
    checkpoint_at: Duration,
    trim_at: Duration,
    /// Segments with damaged frames: these cannot be moved, so the segment waits for its retention.
    damaged: HashSet<u64>,
}

impl Upkeep {
    /// Upkeep for a core whose state covers the journal up to `covered`.
    pub fn new(core: Arc<Core>, covered: u64) -> Upkeep {
        let now = core.clock.elapsed();
        // Unknown at the opening: the first checkpoint writes it.
        let memory = Memory {
            covered,
            copied_state: u64::MAX,
            checkpoint_at: now,
            trim_at: now,
            damaged: HashSet::new(),
        };
        Upkeep { core, at_work: Mutex::new(()), memory: Mutex::new(memory) }
    }

    /// The position that the state covers.
    pub fn covered(&self) -> u64 {
        self.memory.lock().covered
    }

    /// Does what is due. `settle` waits until frames are durable.
    pub fn tick(&self, settle: &mut dyn FnMut(Done)) {
        let _at_work = self.at_work.lock();
        self.prepare();
        if self.core.read_only.is_some() || self.core.sequencer.stopped().is_some() {
            return;
        }
        let now = self.core.clock.elapsed();
        if now.saturating_sub(self.memory.lock().trim_at) >= TRIM_WAIT {
            self.trim(settle);
        }
        if now.saturating_sub(self.memory.lock().checkpoint_at) >= IDLE_AFTER {
            self.release_one();
        }
        if self.checkpoint_due(now) {
            self.checkpoint();
            self.clean(settle);
            self.prepare();
        }
    }

    /// Does everything, whether due or not.
    pub fn all(&self, settle: &mut dyn FnMut(Done)) {
        let _at_work = self.at_work.lock();
        self.prepare();
        self.trim(settle);
        self.checkpoint();
        self.clean(settle);
        self.prepare();
    }

    /// Stores the last checkpoint of a shutdown. Returns false if it could not.
    pub fn last(&self) -> bool {
        let _at_work = self.at_work.lock();
        self.checkpoint()
    }

    /// Trims what is past its retention.
    fn trim(&self, settle: &mut dyn FnMut(Done)) {
        self.memory.lock().trim_at = self.core.clock.elapsed();
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

    /// Makes segments ready for the journal.
    pub fn prepare(&self) {
        for _ in 0..self.core.sequencer.segments_missing() {
            match self.core.segments.prepare() {
                Ok(segment) => self.core.sequencer.add_ready(segment.number),
                Err(error) => {
                    if !self.core.sequencer.is_full() {
                        tracing::error!(%error, "no room for the next segment: writes are refused until there is");
                    }
                    self.core.sequencer.set_full();
                    break;
                }
            }
        }
    }

    fn checkpoint_due(&self, now: Duration) -> bool {
        let published = *self.core.published.lock();
        let memory = self.memory.lock();
        published.position.saturating_sub(memory.covered)
            >= CHECKPOINT_BYTES.min(self.core.segments.bytes / 2)
            || published.uncollected >= CHECKPOINT_ENTRIES
            || (now.saturating_sub(memory.checkpoint_at) >= CHECKPOINT_WAIT && self.core.catalogue.is_dirty())
    }

    /// Stores what is visible. Returns false if it could not; nothing is lost then, the journal has it.
    fn checkpoint(&self) -> bool {
        loop {
            match self.try_checkpoint() {
                Ok(()) => return true,
                Err(Error::DiskFull) if self.make_room() => {}
                Err(error) => {
                    tracing::error!(%error, "a checkpoint failed and will be tried again");
                    metrics::counter!("anabranch_checkpoint_failures_total").increment(1);
                    return false;
                }
            }
        }
    }

    /// Gives a dead segment back to the file system when nobody writes enough to need it.
    fn release_one(&self) {
        if self.core.segments.dead_count() > DEAD_KEPT_WHEN_IDLE
            && let Err(error) = self.core.segments.release_dead()
        {
            tracing::warn!(%error, "an unused segment cannot be removed");
        }
    }

    /// Gives up a spare segment for the sake of the state: it is what lets trimming and deleting free more.
    fn make_room(&self) -> bool {
        if self.core.segments.release_dead().unwrap_or(false) {
            return true;
        }
        match self.core.sequencer.give_up_ready() {
            Some(number) => self.core.segments.discard(number).is_ok(),
            None => false,
        }
    }

    fn try_checkpoint(&self) -> Result<()> {
        let core = &self.core;
        self.memory.lock().checkpoint_at = core.clock.elapsed();
        let (checkpoint, copy, dirty) = {
            let mut published = core.published.lock();
            published.uncollected = 0;
            let dirty = core.catalogue.take_dirty();
            let covered =
                Covered { position: published.position, epoch: core.epoch, last_state: published.last_state };
            let checkpoint = Checkpoint {
                covered,
                streams: dirty.streams.iter().map(|(id, row)| (*id, row.clone())).collect(),
                shards: dirty.shards.values().map(|shard| shard.collect()).collect(),
                live: core.segments.all().iter().map(|segment| (segment.number, segment.live())).collect(),
                segment_bytes: core.segments.bytes,
            };
            let stale = self.memory.lock().copied_state != published.last_state;
            (checkpoint, stale.then(|| core.copy_catalogue(covered)), dirty)
        };
        match core.state.commit(&checkpoint) {
            Ok(outcome) => {
                dirty.shards.values().for_each(|shard| shard.stored());
                self.memory.lock().covered = checkpoint.covered.position;
                for key in &outcome.unfinished {
                    core.catalogue.mark(&dirty.shards[key]);
                }
                self.count_off(&outcome);
                // Without the copy the journal must keep what only the copy would have.
                if let Some(copy) = copy {
                    copy.write(&core.disk)?;
                    self.memory.lock().copied_state = copy.covered.last_state;
                }
                self.retire(checkpoint.covered.position);
                metrics::counter!("anabranch_checkpoints_total").increment(1);
                Ok(())
            }
            Err(error) => {
                dirty.shards.values().for_each(|shard| shard.not_stored());
                core.catalogue.put_back(dirty);
                Err(error)
            }
        }
    }

    /// Counts off what the checkpoint dropped.
    fn count_off(&self, outcome: &Outcome) {
        for segment in self.core.segments.all() {
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

    /// Rewrites the live frames of the segment that has the fewest, if these are less than half of it. The next
    /// checkpoint retires it.
    fn clean(&self, settle: &mut dyn FnMut(Done)) {
        let covered = self.covered() / self.core.segments.bytes;
        let sealed: BTreeMap<u64, u64> = {
            let memory = self.memory.lock();
            let candidate = |number: &u64| *number < covered && !memory.damaged.contains(number);
            let all = self.core.segments.all();
            all.iter().filter(|s| candidate(&s.number)).map(|s| (s.live(), s.number)).collect()
        };
        let Some((live, number)) = sealed.into_iter().next() else { return };
        if live == 0 || live >= self.core.segments.bytes / 2 {
            return;
        }
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
}

impl Core {
    /// Streams and shards as they are visible. The caller keeps others from publishing meanwhile.
    fn copy_catalogue(&self, covered: Covered) -> CatalogueCopy {
        let shards = self.catalogue.all_shards();
        CatalogueCopy {
            covered,
            streams: self.catalogue.all_rows(),
            shards: shards.iter().map(|(_, shard)| (shard.key, shard.current_row())).collect(),
        }
    }
}
