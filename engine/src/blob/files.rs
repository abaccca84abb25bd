//! The files of bodies: their names, who holds them, and when they go.
//!
//! ```text
//!   new ──▶ written and synced ──▶ owned: a row says so ──▶ doomed: the row is gone ──▶ removed, when nobody
//!    └──────────┴──▶ given up: removed at once                                              reads it any more
//! ```
//!
//! What must hold: an id is given once, for ever. It begins with the epoch of the opening that gave it, so a file of an
//! earlier epoch that no row owns is nobody's, and a file of this epoch is always known here.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_model::{Disk, DiskFile, Error, Open, Result};
use parking_lot::{Condvar, Mutex};

use super::layout::FilePart;
use crate::state::io_error;

/// The folder of all bodies.
pub const FOLDER: &str = "blobs";
/// Folders in it, named by a byte. Their number is fixed, so that none has to be removed.
pub const FOLDERS: u16 = 256;
/// Files that follow each other in one folder have so many bits of their numbers to themselves: those that are made at
/// the same time share a folder, and so its sync.
const NEIGHBOUR_BITS: u32 = 12;
/// Bits of an id that count within an epoch.
const NUMBER_BITS: u32 = 40;

/// All files of bodies.
pub struct Files {
    disk: Arc<dyn Disk>,
    next: AtomicU64,
    known: Mutex<Known>,
    made: Mutex<Made>,
    syncs: Mutex<HashMap<u8, FolderSync>>,
    synced: Condvar,
}

/// Files that are more than a name and a row.
#[derive(Default)]
struct Known {
    /// How many readers each has.
    held: HashMap<u64, usize>,
    /// Those that no row owns any more.
    doomed: BTreeSet<u64>,
    /// How many hold all files.
    all_held: usize,
}

/// Folders whose names this process has made durable.
#[derive(Default)]
struct Made {
    root: bool,
    folders: BTreeSet<u8>,
}

/// Syncs of one folder, counted.
#[derive(Default)]
struct FolderSync {
    begun: u64,
    /// The last one that succeeded.
    done: u64,
    /// The last one that failed.
    failed: u64,
    running: bool,
}

/// The epoch that gave an id.
pub fn epoch_of(id: u64) -> u64 {
    id >> NUMBER_BITS
}

/// The folder that the file of an id is in.
pub fn folder_of(id: u64) -> u8 {
    // Every opening begins with another folder: short lives would all fill the first one.
    ((id >> NEIGHBOUR_BITS) ^ epoch_of(id)) as u8
}

/// The path of a folder.
pub fn folder_path(folder: u8) -> String {
    format!("{FOLDER}/{folder:02x}")
}

/// The path of the file of an id.
pub fn path_of(id: u64) -> String {
    format!("{}/{id:016x}", folder_path(folder_of(id)))
}

/// The id whose file has this name. A name that is no id is none of ours.
pub fn id_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name, 16).ok().filter(|id| format!("{id:016x}") == name)
}

impl Files {
    /// The files on a disk.
    pub fn new(disk: Arc<dyn Disk>) -> Files {
        Files {
            disk,
            next: AtomicU64::new(0),
            known: Mutex::default(),
            made: Mutex::default(),
            syncs: Mutex::default(),
            synced: Condvar::new(),
        }
    }

    /// An id that was never given before.
    fn next_id(&self, epoch: u32) -> Result<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >> NUMBER_BITS != 0 || u64::from(epoch) >> (64 - NUMBER_BITS) != 0 {
            return Err(Error::LimitExceeded("no more names for files of bodies are left".into()));
        }
        Ok(u64::from(epoch) << NUMBER_BITS | number)
    }

    /// Makes the file of an id.
    fn create(&self, id: u64) -> io::Result<Arc<dyn DiskFile>> {
        self.make_folder(folder_of(id))?;
        self.disk.open(&path_of(id), Open::CreateNew)
    }

    /// Opens the file of an id.
    pub fn open(&self, id: u64) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(&path_of(id), Open::Existing)
    }

    fn make_folder(&self, folder: u8) -> io::Result<()> {
        let mut made = self.made.lock();
        if !made.root {
            self.disk.create_folder(FOLDER)?;
            self.disk.sync_directory("")?;
            made.root = true;
        }
        if !made.folders.contains(&folder) {
            self.disk.create_folder(&folder_path(folder))?;
            self.disk.sync_directory(FOLDER)?;
            made.folders.insert(folder);
        }
        Ok(())
    }

    /// The next sync of a folder to begin: it makes every name durable that is there by now.
    fn next_sync(&self, folder: u8) -> u64 {
        self.syncs.lock().entry(folder).or_default().begun + 1
    }

    /// Returns when this sync of a folder, or a later one, has succeeded. Who comes while an earlier one runs waits, and
    /// all who wait share the next.
    fn sync_folder(&self, folder: u8, wanted: u64) -> io::Result<()> {
        let mut syncs = self.syncs.lock();
        loop {
            let sync = syncs.entry(folder).or_default();
            // Nothing is known any more about the names that a failed sync was to cover.
            if sync.failed >= wanted {
                return Err(io::Error::other("a sync of the folder that holds a new body failed"));
            }
            if sync.done >= wanted {
                return Ok(());
            }
            if sync.running {
                self.synced.wait(&mut syncs);
                continue;
            }
            sync.running = true;
            sync.begun += 1;
            let mine = sync.begun;
            drop(syncs);
            let outcome = self.disk.sync_directory(&folder_path(folder));
            metrics::counter!("anabranch_blob_folder_syncs_total").increment(1);
            syncs = self.syncs.lock();
            let sync = syncs.entry(folder).or_default();
            sync.running = false;
            match outcome {
                Ok(()) => sync.done = mine,
                Err(_) => sync.failed = mine,
            }
            self.synced.notify_all();
            return outcome;
        }
    }

    /// Keeps files from being removed. Whoever does this looks afterwards whether a row still owns them.
    pub fn hold(self: &Arc<Self>, files: &[FilePart]) -> Hold {
        let ids: Vec<u64> = files.iter().map(|file| file.id).collect();
        let mut known = self.known.lock();
        ids.iter().for_each(|id| *known.held.entry(*id).or_default() += 1);
        Hold { files: self.clone(), ids }
    }

    /// Keeps every file from being removed that a row owns.
    pub fn hold_all(self: &Arc<Self>) -> HeldAll {
        self.known.lock().all_held += 1;
        HeldAll(self.clone())
    }

    /// No row owns these files any more.
    pub fn doom(&self, ids: impl IntoIterator<Item = u64>) {
        self.known.lock().doomed.extend(ids);
    }

    /// Removes up to `limit` doomed files that nobody reads. Returns false if more can be removed now.
    pub fn remove_doomed(&self, limit: usize) -> bool {
        let ids: Vec<u64> = {
            let mut known = self.known.lock();
            if known.all_held > 0 {
                return true;
            }
            let free = known.doomed.iter().filter(|id| !known.held.contains_key(id));
            let free: Vec<u64> = free.take(limit).copied().collect();
            free.iter().for_each(|id| {
                known.doomed.remove(id);
            });
            free
        };
        let removed = ids.iter().filter(|id| self.remove(**id)).count();
        removed < limit
    }

    /// Removes a file that nobody owns or reads; if that fails, a later upkeep tries again.
    fn remove(&self, id: u64) -> bool {
        match self.disk.remove(&path_of(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, id, "the file of a body cannot be removed now");
                self.doom([id]);
                false
            }
            _ => {
                metrics::counter!("anabranch_blob_files_removed_total").increment(1);
                true
            }
        }
    }

    /// Doomed files that are not removed yet.
    pub fn doomed(&self) -> usize {
        self.known.lock().doomed.len()
    }

    /// The folders that there are.
    pub fn folders(&self) -> io::Result<Vec<u8>> {
        let names = self.list(FOLDER)?;
        Ok(names.iter().filter_map(|name| u8::from_str_radix(name, 16).ok()).collect())
    }

    /// The ids of all files in one folder. A name that is no id is none of ours.
    pub fn in_folder(&self, folder: u8) -> io::Result<Vec<u64>> {
        let names = self.list(&folder_path(folder))?;
        let ids = names.iter().filter_map(|name| {
            let id = u64::from_str_radix(name, 16).ok()?;
            (format!("{id:016x}") == *name && folder_of(id) == folder).then_some(id)
        });
        Ok(ids.collect())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        match self.disk.list(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other,
        }
    }
}

/// Files that stay as long as this does.
pub struct Hold {
    files: Arc<Files>,
    ids: Vec<u64>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut known = self.files.known.lock();
        for id in &self.ids {
            if let Some(readers) = known.held.get_mut(id) {
                *readers -= 1;
                if *readers == 0 {
                    known.held.remove(id);
                }
            }
        }
    }
}

/// All files stay as long as this does.
pub struct HeldAll(Arc<Files>);

impl Drop for HeldAll {
    fn drop(&mut self) {
        self.0.known.lock().all_held -= 1;
    }
}

/// A file that no row owns yet. It goes when this is dropped, unless it is kept.
pub struct NewFile {
    files: Arc<Files>,
    id: u64,
    /// The sync of its folder that makes its name durable.
    named_by: u64,
    kept: bool,
}

impl NewFile {
    /// Makes a file under a new name. One that exists all the same, in a directory that was put together from several,
    /// is not ours to write to.
    pub fn create(files: &Arc<Files>, epoch: u32) -> Result<(NewFile, Arc<dyn DiskFile>)> {
        loop {
            let id = files.next_id(epoch)?;
            match files.create(id) {
                Ok(handle) => {
                    let named_by = files.next_sync(folder_of(id));
                    return Ok((NewFile { files: files.clone(), id, named_by, kept: false }, handle));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io_error(error)),
            }
        }
    }

    /// Its id.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Makes its name durable. A sync of the folder that somebody else began since the file was made has done that.
    pub fn sync_name(&self) -> io::Result<()> {
        self.files.sync_folder(folder_of(self.id), self.named_by)
    }

    /// A frame that makes a row its owner has its place in the journal: whether the frame will be durable is not known
    /// here, so the file stays, and the next opening looks whether a row owns it.
    pub fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.kept {
            self.files.remove(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_sim::SimDisk;

    #[test]
    fn ids_are_given_once_and_name_their_epoch() {
        let files = Files::new(Arc::new(SimDisk::new()));
        let ids: Vec<u64> = (0..3).map(|_| files.next_id(5).expect("an id")).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(ids.iter().all(|id| epoch_of(*id) == 5));
        assert!(files.next_id(1 << 24).is_err());
        assert_eq!(path_of(5 << NUMBER_BITS | 3), "blobs/05/0000050000000003");
    }

    #[test]
    fn a_file_that_exists_is_not_written_to() {
        let disk = SimDisk::new();
        let files = Arc::new(Files::new(Arc::new(disk.clone())));
        disk.create_folder("blobs").expect("made");
        disk.create_folder("blobs/05").expect("made");
        let foreign = path_of(5 << NUMBER_BITS);
        drop(disk.open(&foreign, Open::CreateNew).expect("made"));
        let (file, _) = NewFile::create(&files, 5).expect("made");
        assert_eq!(file.id(), 5 << NUMBER_BITS | 1);
        drop(file);
        assert_eq!(disk.paths(), [foreign], "a file that was given up is gone, and no other");
    }

    #[test]
    fn a_doomed_file_waits_for_its_readers() {
        let disk = SimDisk::new();
        let files = Arc::new(Files::new(Arc::new(disk.clone())));
        let id = files.next_id(1).expect("an id");
        drop(files.create(id).expect("made"));
        let hold = files.hold(&[FilePart { id, bytes: 1 }]);
        let twice = files.hold(&[FilePart { id, bytes: 1 }]);
        files.doom([id]);
        for hold in [hold, twice] {
            files.remove_doomed(10);
            assert_eq!((disk.paths().len(), files.doomed()), (1, 1));
            drop(hold);
        }
        files.remove_doomed(10);
        assert_eq!((disk.paths().len(), files.doomed()), (0, 0));
    }

    #[test]
    fn nothing_is_removed_while_all_files_are_held() {
        let disk = SimDisk::new();
        let files = Arc::new(Files::new(Arc::new(disk.clone())));
        let id = files.next_id(1).expect("an id");
        drop(files.create(id).expect("made"));
        let held = [files.hold_all(), files.hold_all()];
        files.doom([id]);
        for all in held {
            assert!(files.remove_doomed(10), "nothing can be removed now");
            assert_eq!((disk.paths().len(), files.doomed()), (1, 1));
            drop(all);
        }
        files.remove_doomed(10);
        assert_eq!((disk.paths().len(), files.doomed()), (0, 0));
    }

    #[test]
    fn a_failed_sync_of_a_folder_is_nobodys_success() {
        let disk = SimDisk::new();
        let files = Arc::new(Files::new(Arc::new(disk.clone())));
        let [first, second] = [(), ()].map(|()| NewFile::create(&files, 0).expect("made").0);
        disk.fail_syncs(anabranch_sim::Fault::next("blobs/00"));
        assert!(first.sync_name().is_err());
        let (later, _) = NewFile::create(&files, 0).expect("made");
        let before = disk.syncs().len();
        assert!(later.sync_name().is_ok(), "it was not there when the sync failed");
        assert_eq!(disk.syncs().len(), before + 1);
        assert!(first.sync_name().is_err() && second.sync_name().is_err(), "nothing is known about these");
    }

    #[test]
    fn files_that_are_made_at_the_same_time_share_the_sync_of_their_folder() {
        let disk = SimDisk::new();
        let files = Arc::new(Files::new(Arc::new(disk.clone())));
        let made: Vec<NewFile> = (0..8).map(|_| NewFile::create(&files, 0).expect("made").0).collect();
        let before = disk.syncs().len();
        made.iter().for_each(|file| file.sync_name().expect("synced"));
        assert_eq!(disk.syncs().len(), before + 1, "one for all that were there when it began");
        let (later, _) = NewFile::create(&files, 0).expect("made");
        later.sync_name().expect("synced");
        assert_eq!(disk.syncs().len(), before + 2, "it was made behind the first one");
    }

    #[test]
    fn a_file_that_is_made_while_its_folder_is_synced_waits_for_the_next_sync() {
        let disk = SimDisk::new();
        let files = Arc::new(Files::new(Arc::new(disk.clone())));
        let (first, _) = NewFile::create(&files, 0).expect("made");
        let wanted = files.next_sync(0);
        files.syncs.lock().entry(0).or_default().begun += 1;
        let (second, _) = NewFile::create(&files, 0).expect("made");
        files.syncs.lock().entry(0).or_default().done = wanted;
        let before = disk.syncs().len();
        first.sync_name().expect("synced");
        assert_eq!(disk.syncs().len(), before);
        second.sync_name().expect("synced");
        assert_eq!(disk.syncs().len(), before + 1);
    }
}
