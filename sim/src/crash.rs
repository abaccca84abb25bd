//! Chooses what a power loss leaves, within the laws of [`anabranch_model::disk`].
//!
//! One fair coin per sector would almost never show the interesting extremes (everything lost, only the last
//! write kept), so a seed first chooses a manner of losing and then the losses. Bytes and names choose apart
//! from each other: a durable name of a file whose bytes were lost is as likely as the reverse.

use std::collections::BTreeSet;

use crate::content::Content;
use crate::disk::SimDisk;
use crate::durable::{Durable, DurableFile, Standing};
use crate::entries::{Entries, EntryChange, Inode};
use crate::operation::Change;
use crate::rng::Rng;

/// What a disk writes as a whole. Nothing smaller is torn.
const SECTOR_BYTES: u64 = 512;

/// A moment at which the power may go.
#[derive(Clone, Debug)]
pub struct CrashPoint {
    operation: usize,
    durable: Durable,
}

impl CrashPoint {
    pub(crate) fn new(operation: usize, durable: Durable) -> Self {
        CrashPoint { operation, durable }
    }

    /// How many operations were done when the power went.
    pub fn operation(&self) -> usize {
        self.operation
    }

    /// A disk that the crash could leave; another seed, another disk.
    pub fn image(&self, seed: u64) -> SimDisk {
        // The operation is part of the seed, so that a walk with one seed does not lose in one manner only.
        let mut rng = Rng::new(seed ^ Rng::new(self.operation as u64).next_u64());
        let names = NameLoss::choose(&mut rng);
        let bytes = ByteLoss::choose(&mut rng);
        self.build(names, bytes, &mut rng)
    }

    /// The disk with nothing but what must be there.
    pub fn image_without_unsynced(&self) -> SimDisk {
        self.build(NameLoss::All, ByteLoss::All, &mut Rng::new(0))
    }

    /// The disk with everything that was done, as if it had all been synced.
    pub fn image_with_unsynced(&self) -> SimDisk {
        self.build(NameLoss::Nothing, ByteLoss::Nothing, &mut Rng::new(0))
    }

    fn build(&self, names: NameLoss, bytes: ByteLoss, rng: &mut Rng) -> SimDisk {
        let entries = surviving_entries(&self.durable, names, rng);
        let named: BTreeSet<Inode> = entries.files.values().copied().collect();
        let mut contents = Vec::with_capacity(named.len());
        for (inode, file) in &self.durable.files {
            // Chance is drawn for files that vanish, too: their names then do not change what others lose.
            let mut rng = rng.fork();
            if named.contains(inode) {
                contents.push((*inode, surviving_content(file, bytes, &mut rng)));
            }
        }
        SimDisk::settled(entries, contents)
    }
}

/// Walks over every moment of a log at which the power may go, from before the first operation to after the
/// last. Cheaper than calling [`SimDisk::crash_at`] for each, because nothing is replayed twice.
#[derive(Debug)]
pub struct CrashPoints {
    disk: SimDisk,
    next: usize,
    end: usize,
    durable: Durable,
}

impl CrashPoints {
    pub(crate) fn new(disk: SimDisk, start: Durable, end: usize) -> Self {
        CrashPoints { disk, next: 0, end, durable: start }
    }
}

impl Iterator for CrashPoints {
    type Item = CrashPoint;

    fn next(&mut self) -> Option<CrashPoint> {
        if self.next > self.end {
            return None;
        }
        if self.next > 0 {
            let operation = self.disk.logged(self.next - 1)?;
            self.durable.apply(&operation);
        }
        let point = CrashPoint::new(self.next, self.durable.clone());
        self.next += 1;
        Some(point)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end + 1).saturating_sub(self.next);
        (left, Some(left))
    }
}

impl ExactSizeIterator for CrashPoints {}

/// How unsynced names are lost.
#[derive(Clone, Copy, Debug)]
enum NameLoss {
    All,
    Nothing,
    /// What a journalling file system does: the oldest changes are kept, the rest is lost.
    Newest,
    /// Each change for itself.
    Each {
        lost: f64,
    },
}

impl NameLoss {
    fn choose(rng: &mut Rng) -> Self {
        match rng.below(6) {
            0 => NameLoss::All,
            1 => NameLoss::Nothing,
            2 => NameLoss::Newest,
            3 => NameLoss::Each { lost: 0.15 },
            4 => NameLoss::Each { lost: 0.85 },
            _ => NameLoss::Each { lost: 0.5 },
        }
    }
}

fn surviving_entries(durable: &Durable, loss: NameLoss, rng: &mut Rng) -> Entries {
    let pending: &[EntryChange] = &durable.pending;
    let kept = rng.below(pending.len() as u64 + 1) as usize;
    let mut entries = Entries::clone(&durable.entries);
    for (index, change) in pending.iter().enumerate() {
        let keep = match loss {
            NameLoss::All => false,
            NameLoss::Nothing => true,
            NameLoss::Newest => index < kept,
            NameLoss::Each { lost } => !rng.chance(lost),
        };
        if keep {
            entries.apply(change);
        }
    }
    entries.drop_unreachable();
    entries
}

/// How unsynced bytes and lengths are lost.
#[derive(Clone, Copy, Debug)]
enum ByteLoss {
    All,
    Nothing,
    /// Each sector of each write for itself, and each length.
    Sectors {
        lost: f64,
    },
    /// Each write as a whole.
    Writes {
        lost: f64,
    },
    /// The oldest writes are lost, the newest are kept.
    Oldest,
    /// The oldest writes are kept, the newest are lost, and the one between them is torn.
    Newest,
    /// The file has its new length, and zeros where its bytes should be.
    Hollow,
    /// Each file in its own manner.
    Mixed,
}

impl ByteLoss {
    fn choose(rng: &mut Rng) -> Self {
        match rng.below(10) {
            0 => ByteLoss::Mixed,
            _ => ByteLoss::choose_one(rng),
        }
    }

    fn choose_one(rng: &mut Rng) -> Self {
        match rng.below(9) {
            0 => ByteLoss::All,
            1 => ByteLoss::Nothing,
            2 => ByteLoss::Sectors { lost: 0.1 },
            3 => ByteLoss::Sectors { lost: 0.5 },
            4 => ByteLoss::Writes { lost: 0.1 },
            5 => ByteLoss::Writes { lost: 0.5 },
            6 => ByteLoss::Oldest,
            7 => ByteLoss::Newest,
            _ => ByteLoss::Hollow,
        }
    }
}

/// What becomes of one pending change.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Kept,
    Lost,
    /// Some sectors of a write; for a change of length, a coin.
    Torn {
        lost: f64,
    },
    /// The length and not the bytes.
    Hollow,
}

fn surviving_content(file: &DurableFile, loss: ByteLoss, rng: &mut Rng) -> Content {
    let loss = match loss {
        ByteLoss::Mixed => ByteLoss::choose_one(rng),
        loss => loss,
    };
    let cut = rng.below(file.pending.len() as u64 + 1) as usize;
    let mut content = file.content.clone();
    for (index, pending) in file.pending.iter().enumerate() {
        let fate = match pending.standing {
            Standing::Synced => Fate::Kept,
            Standing::Unsynced | Standing::Doubtful => fate(loss, index, cut, rng),
        };
        apply_fate(&pending.change, fate, &mut content, rng);
    }
    content.clip();
    content
}

fn fate(loss: ByteLoss, index: usize, cut: usize, rng: &mut Rng) -> Fate {
    match loss {
        ByteLoss::All | ByteLoss::Mixed => Fate::Lost,
        ByteLoss::Nothing => Fate::Kept,
        ByteLoss::Sectors { lost } => Fate::Torn { lost },
        ByteLoss::Writes { lost } if rng.chance(lost) => Fate::Lost,
        ByteLoss::Writes { .. } => Fate::Kept,
        ByteLoss::Oldest if index < cut => Fate::Lost,
        ByteLoss::Oldest => Fate::Kept,
        ByteLoss::Newest if index == cut => Fate::Torn { lost: 0.5 },
        ByteLoss::Newest if index < cut => Fate::Kept,
        ByteLoss::Newest => Fate::Lost,
        ByteLoss::Hollow => Fate::Hollow,
    }
}

fn apply_fate(change: &Change, fate: Fate, content: &mut Content, rng: &mut Rng) {
    match (change, fate) {
        (_, Fate::Lost) => {}
        (_, Fate::Kept) => change.apply(content),
        (Change::Write { offset, data }, Fate::Hollow) => content.grow(offset + data.len() as u64),
        (Change::Write { offset, data }, Fate::Torn { lost }) => tear(*offset, data, lost, content, rng),
        (Change::Allocate { .. } | Change::SetLen { .. }, Fate::Hollow) => change.apply(content),
        (Change::Allocate { .. } | Change::SetLen { .. }, Fate::Torn { lost }) => {
            if !rng.chance(lost) {
                change.apply(content);
            }
        }
    }
}

/// Keeps some sectors of a write. The file grows to the end of the write, to the end of one of its sectors, or
/// not at all, whichever of its bytes are kept.
fn tear(offset: u64, data: &[u8], lost: f64, content: &mut Content, rng: &mut Rng) {
    let end = offset + data.len() as u64;
    let length = match rng.below(3) {
        0 => 0,
        1 => end,
        _ => end.min((offset / SECTOR_BYTES + 1 + rng.below(sectors(offset, end))) * SECTOR_BYTES),
    };
    // Neighbours that are both kept are copied in one piece.
    let mut kept_from = None;
    let mut at = offset;
    while at < end {
        let next = end.min((at / SECTOR_BYTES + 1) * SECTOR_BYTES);
        if rng.chance(lost) {
            if let Some(from) = kept_from.take() {
                content.place(from, &data[(from - offset) as usize..(at - offset) as usize]);
            }
        } else {
            kept_from.get_or_insert(at);
        }
        at = next;
    }
    if let Some(from) = kept_from {
        content.place(from, &data[(from - offset) as usize..]);
    }
    content.grow(length);
}

/// How many sectors a range touches.
fn sectors(offset: u64, end: u64) -> u64 {
    end.div_ceil(SECTOR_BYTES) - offset / SECTOR_BYTES
}
