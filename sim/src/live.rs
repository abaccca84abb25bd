//! The disk as a running program sees it: names, contents, room and faults, all behind one lock.
//!
//! Must hold: every change of names or contents has its operation in the history, so that a replay of the
//! whole log ends in the state that is held here.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::content::Content;
use crate::durable::Durable;
use crate::entries::{Entries, EntryChange, Inode, Path, parent};
use crate::faults::{Faults, failure, strikes};
use crate::history::History;
use crate::operation::{Change, Operation, SyncEvent, SyncKind, SyncOutcome};
use crate::rng::Rng;

const FILE_BYTES_MAX: u64 = 64 << 30;

/// A disk that is switched on.
pub(crate) struct Live {
    entries: Entries,
    files: BTreeMap<Inode, LiveFile>,
    next_inode: Inode,
    pub(crate) history: History,
    pub(crate) faults: Faults,
    pub(crate) syncs: Vec<SyncEvent>,
    pub(crate) capacity: Option<u64>,
    pub(crate) halted: bool,
}

struct LiveFile {
    content: Content,
    /// The path, or the last one if the file was removed.
    path: Path,
    named: bool,
    handles: usize,
}

impl Live {
    /// A disk on which everything is durable.
    pub(crate) fn settled(entries: Entries, contents: Vec<(Inode, Content)>) -> Self {
        let contents: BTreeMap<Inode, Content> = contents.into_iter().collect();
        let file = |(path, inode): (&Path, &Inode)| {
            let content = contents.get(inode).cloned().unwrap_or_default();
            (*inode, LiveFile { content, path: path.clone(), named: true, handles: 0 })
        };
        Live {
            files: entries.files.iter().map(file).collect(),
            next_inode: entries.files.values().max().map_or(0, |last| last + 1),
            history: History::new(Durable::settled(entries.clone(), contents)),
            entries,
            faults: Faults::default(),
            syncs: Vec::new(),
            capacity: None,
            halted: false,
        }
    }

    /// Fails if the power is off.
    pub(crate) fn check_power(&self) -> io::Result<()> {
        if self.halted {
            return Err(io::Error::other("the power of the simulated disk is off"));
        }
        Ok(())
    }

    // Names.

    /// The file behind a path.
    pub(crate) fn find(&self, path: &str) -> io::Result<Inode> {
        if self.entries.folders.contains(path) {
            return Err(error(io::ErrorKind::IsADirectory, path));
        }
        self.entries.files.get(path).copied().ok_or_else(|| error(io::ErrorKind::NotFound, path))
    }

    /// Fails unless `folder` is a folder.
    pub(crate) fn check_folder(&self, folder: &str) -> io::Result<()> {
        if self.entries.folders.contains(folder) {
            return Ok(());
        }
        let is_file = self.entries.files.contains_key(folder);
        Err(error(if is_file { io::ErrorKind::NotADirectory } else { io::ErrorKind::NotFound }, folder))
    }

    /// Every file with its path, in the order of the paths.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.entries.files.keys().map(|path| path.to_string()).collect()
    }

    /// The names directly inside a folder.
    pub(crate) fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.check_folder(folder)?;
        Ok(self.entries.names_in(folder))
    }

    /// Creates an empty file at a path that is free.
    pub(crate) fn create(&mut self, path: &str) -> io::Result<Inode> {
        check_path(path)?;
        self.check_folder(parent(path))?;
        let (path, inode) = (Path::from(path), self.next_inode);
        self.next_inode += 1;
        let file = LiveFile { content: Content::default(), path: path.clone(), named: true, handles: 0 };
        self.files.insert(inode, file);
        self.change_entry(EntryChange::Create { path, inode });
        Ok(inode)
    }

    /// Creates a folder, if it is not there.
    pub(crate) fn create_folder(&mut self, folder: &str) -> io::Result<()> {
        if self.entries.folders.contains(folder) {
            return Ok(());
        }
        check_path(folder)?;
        self.check_folder(parent(folder))?;
        if self.entries.files.contains_key(folder) {
            return Err(error(io::ErrorKind::AlreadyExists, folder));
        }
        self.change_entry(EntryChange::CreateFolder { path: Path::from(folder) });
        Ok(())
    }

    /// Renames a file over whatever file has the new name.
    pub(crate) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let inode = self.find(from)?;
        check_path(to)?;
        self.check_folder(parent(to))?;
        if self.entries.folders.contains(to) {
            return Err(error(io::ErrorKind::IsADirectory, to));
        }
        if from == to {
            return Ok(());
        }
        let replaced = self.entries.files.get(to).copied();
        let to = Path::from(to);
        self.change_entry(EntryChange::Rename { from: Path::from(from), to: to.clone(), inode });
        if let Some(file) = self.files.get_mut(&inode) {
            file.path = to;
        }
        if let Some(replaced) = replaced {
            self.unname(replaced);
        }
        Ok(())
    }

    /// Removes a file; its bytes stay as long as a handle does.
    pub(crate) fn remove(&mut self, path: &str) -> io::Result<()> {
        let inode = self.find(path)?;
        self.change_entry(EntryChange::Remove { path: Path::from(path), inode });
        self.unname(inode);
        Ok(())
    }

    fn change_entry(&mut self, change: EntryChange) {
        self.entries.apply(&change);
        self.history.push(Operation::Entry(change));
    }

    fn unname(&mut self, inode: Inode) {
        if let Some(file) = self.files.get_mut(&inode) {
            file.named = false;
        }
        self.forget_if_unreachable(inode);
    }

    // Handles.

    /// Counts one more handle of a file.
    pub(crate) fn take_handle(&mut self, inode: Inode) {
        self.file_mut(inode).handles += 1;
    }

    /// Counts one handle less, and frees the room of a file that nothing leads to any more.
    pub(crate) fn drop_handle(&mut self, inode: Inode) {
        self.file_mut(inode).handles -= 1;
        self.forget_if_unreachable(inode);
    }

    fn forget_if_unreachable(&mut self, inode: Inode) {
        if self.files.get(&inode).is_some_and(|file| !file.named && file.handles == 0) {
            self.files.remove(&inode);
        }
    }

    fn file(&self, inode: Inode) -> &LiveFile {
        self.files.get(&inode).expect("a file stays as long as it has a name or a handle")
    }

    fn file_mut(&mut self, inode: Inode) -> &mut LiveFile {
        self.files.get_mut(&inode).expect("a file stays as long as it has a name or a handle")
    }

    // Contents.

    /// Length of a file in bytes.
    pub(crate) fn len(&self, inode: Inode) -> u64 {
        self.file(inode).content.len()
    }

    /// The contents of a file, to read from without the lock.
    pub(crate) fn content(&self, inode: Inode) -> Content {
        self.file(inode).content.clone()
    }

    /// The contents of a file, unless a fault strikes.
    pub(crate) fn readable(&mut self, inode: Inode) -> io::Result<Content> {
        let path = self.file(inode).path.clone();
        if strikes(&mut self.faults.reads, &path) {
            return Err(failure("read", &path));
        }
        Ok(self.content(inode))
    }

    /// Writes `data`. A write that fails may have written its beginning, as on a real disk.
    pub(crate) fn write(&mut self, inode: Inode, offset: u64, data: Vec<u8>) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let end = check_end(offset.checked_add(data.len() as u64))?;
        let path = self.file(inode).path.clone();
        if strikes(&mut self.faults.writes, &path) {
            // How much was written follows from the place in the log, so that a run replays.
            let written = Rng::new(self.history.len() as u64).below(data.len() as u64);
            self.write_beginning(inode, offset, &data, written);
            return Err(failure("write", &path));
        }
        let fitting = (self.len(inode) + self.room()).saturating_sub(offset);
        if fitting < data.len() as u64 && self.grows(inode, end) {
            self.write_beginning(inode, offset, &data, fitting);
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.change_file(inode, Change::Write { offset, data: Arc::new(data) });
        Ok(())
    }

    fn write_beginning(&mut self, inode: Inode, offset: u64, data: &[u8], count: u64) {
        if count > 0 {
            self.change_file(
                inode,
                Change::Write { offset, data: Arc::new(data[..count as usize].to_vec()) },
            );
        }
    }

    /// Reserves room up to `length`.
    pub(crate) fn allocate(&mut self, inode: Inode, length: u64) -> io::Result<()> {
        self.check_growth(inode, length)?;
        if self.grows(inode, length) {
            self.change_file(inode, Change::Allocate { length });
        }
        Ok(())
    }

    /// Cuts or extends a file.
    pub(crate) fn set_len(&mut self, inode: Inode, length: u64) -> io::Result<()> {
        self.check_growth(inode, length)?;
        if length != self.len(inode) {
            self.change_file(inode, Change::SetLen { length });
        }
        Ok(())
    }

    /// Turns over one bit on the medium.
    pub(crate) fn flip_bit(&mut self, inode: Inode, offset: u64, bit: u8) -> io::Result<()> {
        let file = self.file_mut(inode);
        if offset >= file.content.len() || bit > 7 {
            return Err(error(io::ErrorKind::InvalidInput, &file.path));
        }
        file.content.flip_bit(offset, bit);
        let path = file.path.clone();
        self.history.push(Operation::FlipBit { inode, path, offset, bit });
        Ok(())
    }

    fn change_file(&mut self, inode: Inode, change: Change) {
        let file = self.file_mut(inode);
        change.apply(&mut file.content);
        let path = file.path.clone();
        self.history.push(Operation::File { inode, path, change });
    }

    fn grows(&self, inode: Inode, length: u64) -> bool {
        length > self.len(inode)
    }

    fn check_growth(&mut self, inode: Inode, length: u64) -> io::Result<()> {
        check_end(Some(length))?;
        let path = self.file(inode).path.clone();
        if strikes(&mut self.faults.writes, &path) {
            return Err(failure("change of length", &path));
        }
        if length.saturating_sub(self.len(inode)) > self.room() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    /// Bytes by which files may still grow. A file takes as much room as it is long, written or not.
    fn room(&self) -> u64 {
        let Some(capacity) = self.capacity else {
            // Half the range, so that sums with lengths do not overflow.
            return u64::MAX / 2;
        };
        let used = self.files.values().map(|file| file.content.len()).sum();
        capacity.saturating_sub(used)
    }

    // Syncs.

    /// Makes a file durable.
    pub(crate) fn sync_file(&mut self, inode: Inode) -> io::Result<()> {
        let path = self.file(inode).path.clone();
        let outcome = self.meet_sync(SyncKind::File, &path);
        self.history.push(Operation::SyncFile { inode, path: path.clone(), outcome });
        sync_result(outcome, &path)
    }

    /// Makes the entries of a folder durable.
    pub(crate) fn sync_directory(&mut self, folder: &str) -> io::Result<()> {
        self.check_folder(folder)?;
        let outcome = self.meet_sync(SyncKind::Directory, folder);
        self.history.push(Operation::SyncDirectory { folder: Path::from(folder), outcome });
        sync_result(outcome, folder)
    }

    fn meet_sync(&mut self, kind: SyncKind, path: &str) -> SyncOutcome {
        let event = SyncEvent { kind, path: path.to_owned() };
        let outcome = if strikes(&mut self.faults.syncs, path) {
            SyncOutcome::Failed
        } else if self.faults.ignored_syncs.iter().any(|ignore| ignore(&event)) {
            SyncOutcome::Ignored
        } else {
            SyncOutcome::Done
        };
        self.syncs.push(event);
        outcome
    }
}

fn sync_result(outcome: SyncOutcome, path: &str) -> io::Result<()> {
    match outcome {
        SyncOutcome::Done | SyncOutcome::Ignored => Ok(()),
        SyncOutcome::Failed => Err(failure("sync", path)),
    }
}

/// A path has names between single slashes, and none that leads upwards.
fn check_path(path: &str) -> io::Result<()> {
    if path.split('/').any(|name| name.is_empty() || name == "." || name == "..") {
        return Err(error(io::ErrorKind::InvalidInput, path));
    }
    Ok(())
}

/// Refuses what no test means to do: the table of pages would fill the memory of the machine.
fn check_end(end: Option<u64>) -> io::Result<u64> {
    end.filter(|end| *end <= FILE_BYTES_MAX).ok_or_else(|| io::ErrorKind::FileTooLarge.into())
}

fn error(kind: io::ErrorKind, path: &str) -> io::Error {
    io::Error::new(kind, format!("{path}: {kind}"))
}
