//! What was done to a disk: the entries of its log.

use std::fmt;
use std::sync::Arc;

use crate::entries::{EntryChange, Inode, Path};

/// What a sync covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SyncKind {
    /// The bytes and the length of a file.
    File,
    /// The entries of a folder.
    Directory,
}

/// A sync that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SyncEvent {
    /// What the sync covers.
    pub kind: SyncKind,
    /// The path of the file or folder at the time of the call. A removed file has its last path.
    pub path: String,
}

/// What became of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncOutcome {
    /// It did its work.
    Done,
    /// It claimed to and did nothing.
    Ignored,
    /// It returned an error; what it covered may or may not be durable.
    Failed,
}

/// A change to the bytes or the length of a file.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// The bytes are a vector behind the pointer, so that the buffer they were gathered in is kept as it is.
    Write {
        offset: u64,
        data: Arc<Vec<u8>>,
    },
    Allocate {
        length: u64,
    },
    SetLen {
        length: u64,
    },
}

/// One line of the log. The paths are those at the time of the call; they are there for people.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Entry(EntryChange),
    File {
        inode: Inode,
        path: Path,
        change: Change,
    },
    SyncFile {
        inode: Inode,
        path: Path,
        outcome: SyncOutcome,
    },
    SyncDirectory {
        folder: Path,
        outcome: SyncOutcome,
    },
    /// Decay of the medium: durable at once.
    FlipBit {
        inode: Inode,
        path: Path,
        offset: u64,
        bit: u8,
    },
}

impl Operation {
    /// Bytes that applying this copies, at most.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Operation::File { change: Change::Write { data, .. }, .. } => data.len(),
            _ => 0,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Entry(EntryChange::CreateFolder { path }) => write!(f, "create folder {path}"),
            Operation::Entry(EntryChange::Create { path, .. }) => write!(f, "create {path}"),
            Operation::Entry(EntryChange::Rename { from, to, .. }) => write!(f, "rename {from} to {to}"),
            Operation::Entry(EntryChange::Remove { path, .. }) => write!(f, "remove {path}"),
            Operation::File { path, change: Change::Write { offset, data }, .. } => {
                write!(f, "write {path} at {offset}, {} bytes", data.len())
            }
            Operation::File { path, change: Change::Allocate { length }, .. } => {
                write!(f, "allocate {path} to {length}")
            }
            Operation::File { path, change: Change::SetLen { length }, .. } => {
                write!(f, "set length of {path} to {length}")
            }
            Operation::SyncFile { path, outcome, .. } => write!(f, "sync {path}: {outcome:?}"),
            Operation::SyncDirectory { folder, outcome } => {
                write!(f, "sync directory '{folder}': {outcome:?}")
            }
            Operation::FlipBit { path, offset, bit, .. } => write!(f, "flip bit {bit} of {path} at {offset}"),
        }
    }
}
