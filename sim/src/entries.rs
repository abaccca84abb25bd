//! The names on a disk: which folders there are, and which file each path leads to.
//!
//! A file is known by its inode, so that a rename or a removal leaves open handles and contents alone. Folders
//! are never renamed or removed, so their paths stand for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The identity of a file, whatever it is called. Never used twice on one disk or its crash images.
pub(crate) type Inode = u64;

/// A path from the root of the disk, shared by the log and the tables.
pub(crate) type Path = Arc<str>;

/// One change of names. Each is atomic: a crash shows all of it or nothing.
#[derive(Clone, Debug)]
pub(crate) enum EntryChange {
    CreateFolder { path: Path },
    Create { path: Path, inode: Inode },
    Rename { from: Path, to: Path, inode: Inode },
    Remove { path: Path, inode: Inode },
}

impl EntryChange {
    /// The folder whose sync makes this change durable. A rename between folders belongs to its target: once
    /// the new name is durable, the old one is durably gone.
    pub(crate) fn folder(&self) -> &str {
        match self {
            EntryChange::CreateFolder { path } | EntryChange::Create { path, .. } => parent(path),
            EntryChange::Rename { to, .. } => parent(to),
            EntryChange::Remove { path, .. } => parent(path),
        }
    }

    /// The file that is named or unnamed.
    pub(crate) fn inode(&self) -> Option<Inode> {
        match self {
            EntryChange::CreateFolder { .. } => None,
            EntryChange::Create { inode, .. }
            | EntryChange::Rename { inode, .. }
            | EntryChange::Remove { inode, .. } => Some(*inode),
        }
    }

    /// Whether both changes speak of the same path, so that the later one builds on the earlier.
    pub(crate) fn touches(&self, other: &EntryChange) -> bool {
        self.paths()
            .into_iter()
            .flatten()
            .any(|path| other.paths().into_iter().flatten().any(|own| own == path))
    }

    fn paths(&self) -> [Option<&Path>; 2] {
        match self {
            EntryChange::CreateFolder { path }
            | EntryChange::Create { path, .. }
            | EntryChange::Remove { path, .. } => [Some(path), None],
            EntryChange::Rename { from, to, .. } => [Some(from), Some(to)],
        }
    }
}

/// All names at one moment. The root folder has the empty path and is always there.
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    pub(crate) folders: BTreeSet<Path>,
    pub(crate) files: BTreeMap<Path, Inode>,
}

impl Entries {
    /// An empty root.
    pub(crate) fn new() -> Self {
        Entries { folders: BTreeSet::from([Path::from("")]), files: BTreeMap::new() }
    }

    /// Applies a change, also when changes before it were lost in a crash.
    pub(crate) fn apply(&mut self, change: &EntryChange) {
        match change {
            EntryChange::CreateFolder { path } => {
                self.files.remove(path);
                self.folders.insert(path.clone());
            }
            EntryChange::Create { path, inode } => {
                self.files.insert(path.clone(), *inode);
            }
            EntryChange::Rename { from, to, inode } => {
                self.files.remove(from);
                // If an earlier rename of the same file was lost, the file still has the name before that; two
                // names for one file would be a rename seen half done.
                self.files.retain(|_, named| named != inode);
                self.files.insert(to.clone(), *inode);
            }
            EntryChange::Remove { path, .. } => {
                self.files.remove(path);
            }
        }
    }

    /// Drops everything below folders that are not there: an entry is reached only through its folder.
    pub(crate) fn drop_unreachable(&mut self) {
        let mut reachable = BTreeSet::from([Path::from("")]);
        // A folder sorts behind its parent, so one pass sees parents first.
        for folder in &self.folders {
            if reachable.contains(parent(folder)) {
                reachable.insert(folder.clone());
            }
        }
        self.folders = reachable;
        let folders = &self.folders;
        self.files.retain(|path, _| folders.contains(parent(path)));
    }

    /// The names directly inside a folder.
    pub(crate) fn names_in(&self, folder: &str) -> Vec<String> {
        let folders = self.folders.iter().filter(|path| !path.is_empty());
        let inside = folders.chain(self.files.keys()).filter(|path| parent(path) == folder);
        inside.map(|path| path.rsplit('/').next().unwrap_or(path).to_owned()).collect()
    }
}

/// The folder of a path; the empty path for a name in the root.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
