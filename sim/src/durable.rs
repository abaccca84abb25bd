//! What must survive a power loss at one moment, and what may.
//!
//! [`Durable`] is driven through the log one operation at a time. It clones cheaply, because everything inside
//! is shared until it differs; [`crate::history`] keeps one every few operations.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::content::Content;
use crate::entries::{Entries, EntryChange, Inode};
use crate::operation::{Change, Operation, SyncOutcome};

/// The disk as a crash finds it.
#[derive(Clone, Debug)]
pub(crate) struct Durable {
    /// Names that are there after any crash, unless their folder is not.
    pub(crate) entries: Arc<Entries>,
    /// Changes of names since then, each of which may be there.
    pub(crate) pending: Arc<Vec<EntryChange>>,
    /// Every file that a crash could still show.
    pub(crate) files: BTreeMap<Inode, Arc<DurableFile>>,
}

/// One file as a crash finds it.
#[derive(Clone, Debug, Default)]
pub(crate) struct DurableFile {
    /// What is there after any crash.
    pub(crate) content: Content,
    /// Changes since then, oldest first.
    pub(crate) pending: Vec<Pending>,
}

/// A change that has not become part of the durable content.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) change: Change,
    pub(crate) standing: Standing,
}

/// What a crash may do to a pending change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// No sync covered it: it may be there or not, and the next sync makes it durable.
    Unsynced,
    /// A sync of it failed. It may be there or not, and no later sync changes that: a real kernel drops the
    /// error together with the dirty mark.
    Doubtful,
    /// It is durable, and waits here because it lies on top of something doubtful.
    Synced,
}

impl Durable {
    /// A disk on which everything is durable.
    pub(crate) fn settled(entries: Entries, contents: impl IntoIterator<Item = (Inode, Content)>) -> Self {
        let file = |(inode, content)| (inode, Arc::new(DurableFile { content, pending: Vec::new() }));
        Durable {
            entries: Arc::new(entries),
            pending: Arc::default(),
            files: contents.into_iter().map(file).collect(),
        }
    }

    /// Takes one more operation of the log into account.
    pub(crate) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Entry(change) => {
                if let EntryChange::Create { inode, .. } = change {
                    self.files.insert(*inode, Arc::default());
                }
                Arc::make_mut(&mut self.pending).push(change.clone());
            }
            Operation::File { inode, change, .. } => self.with_file(*inode, |file| {
                file.pending.push(Pending { change: change.clone(), standing: Standing::Unsynced });
            }),
            Operation::SyncFile { inode, outcome, .. } => match outcome {
                SyncOutcome::Done => self.with_file(*inode, DurableFile::sync),
                SyncOutcome::Ignored => {}
                SyncOutcome::Failed => self.with_file(*inode, DurableFile::fail_sync),
            },
            // A failed sync of a directory leaves its changes as they were: there or not.
            Operation::SyncDirectory { folder, outcome: SyncOutcome::Done } => self.sync_directory(folder),
            Operation::SyncDirectory { .. } => {}
            Operation::FlipBit { inode, offset, bit, .. } => {
                self.with_file(*inode, |file| file.flip_bit(*offset, *bit));
            }
        }
    }

    /// A file that no crash can show any more may still be written through an open handle; that is without
    /// effect here.
    fn with_file(&mut self, inode: Inode, act: impl FnOnce(&mut DurableFile)) {
        if let Some(file) = self.files.get_mut(&inode) {
            act(Arc::make_mut(file));
        }
    }

    fn sync_directory(&mut self, folder: &str) {
        let covered = covered_by_sync(&self.pending, folder);
        if !covered.contains(&true) {
            return;
        }
        let entries = Arc::make_mut(&mut self.entries);
        let mut left = Vec::new();
        for (change, covered) in self.pending.iter().zip(covered) {
            if covered {
                entries.apply(change);
            } else {
                left.push(change.clone());
            }
        }
        self.pending = Arc::new(left);
        self.forget_unreachable_files();
    }

    fn forget_unreachable_files(&mut self) {
        let named = self.entries.files.values().copied();
        let pending = self.pending.iter().filter_map(EntryChange::inode);
        let reachable: std::collections::BTreeSet<Inode> = named.chain(pending).collect();
        self.files.retain(|inode, _| reachable.contains(inode));
    }
}

/// Which pending changes a sync of `folder` makes durable: its own, and earlier ones of the same paths in other
/// folders, which a rename between folders brings in and without which its own would make no sense.
fn covered_by_sync(pending: &[EntryChange], folder: &str) -> Vec<bool> {
    let mut covered: Vec<bool> = pending.iter().map(|change| change.folder() == folder).collect();
    for later in (0..pending.len()).rev() {
        if covered[later] {
            for earlier in 0..later {
                covered[earlier] |= pending[earlier].touches(&pending[later]);
            }
        }
    }
    covered
}

impl DurableFile {
    fn sync(&mut self) {
        let doubtful = self.pending.iter().any(|pending| pending.standing == Standing::Doubtful);
        if doubtful {
            self.restand(Standing::Unsynced, Standing::Synced);
            return;
        }
        for pending in std::mem::take(&mut self.pending) {
            pending.change.apply(&mut self.content);
        }
    }

    fn fail_sync(&mut self) {
        self.restand(Standing::Unsynced, Standing::Doubtful);
    }

    fn restand(&mut self, from: Standing, to: Standing) {
        for pending in self.pending.iter_mut().filter(|pending| pending.standing == from) {
            pending.standing = to;
        }
    }

    /// The bit is turned over in the durable bytes and in every pending write of it, so that it is wrong
    /// whichever of them a crash leaves.
    fn flip_bit(&mut self, offset: u64, bit: u8) {
        if offset < self.content.len() {
            self.content.flip_bit(offset, bit);
        }
        for pending in &mut self.pending {
            if let Change::Write { offset: start, data } = &mut pending.change
                && let Some(index) = offset.checked_sub(*start)
                && index < data.len() as u64
            {
                Arc::make_mut(data)[index as usize] ^= 1 << bit;
            }
        }
    }
}

impl Change {
    /// Does all of this change.
    pub(crate) fn apply(&self, content: &mut Content) {
        match self {
            Change::Write { offset, data } => content.write(*offset, data),
            Change::Allocate { length } => content.grow(*length),
            Change::SetLen { length } => content.set_len(*length),
        }
    }
}
