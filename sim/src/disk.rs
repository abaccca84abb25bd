//! The disk that a test hands to the engine, crashes, fills and damages.

use std::fmt;
use std::io;
use std::sync::Arc;

use anabranch_model::{Disk, DiskFile, Open};
use parking_lot::{Mutex, MutexGuard};

use crate::content::Content;
use crate::crash::{CrashPoint, CrashPoints};
use crate::entries::{Entries, Inode};
use crate::faults::Fault;
use crate::file::SimFile;
use crate::live::Live;
use crate::operation::{Operation, SyncEvent};

/// A disk in memory that remembers every operation. Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    live: Arc<Mutex<Live>>,
}

impl SimDisk {
    /// An empty disk without a limit.
    pub fn new() -> Self {
        SimDisk::settled(Entries::new(), Vec::new())
    }

    pub(crate) fn settled(entries: Entries, contents: Vec<(Inode, Content)>) -> Self {
        SimDisk { live: Arc::new(Mutex::new(Live::settled(entries, contents))) }
    }

    fn powered(&self) -> io::Result<MutexGuard<'_, Live>> {
        let live = self.live.lock();
        live.check_power()?;
        Ok(live)
    }
}

/// Crashes.
impl SimDisk {
    /// How many operations were done: every call that changed names or contents, and every sync. Calls that
    /// change nothing (opening what exists, allocating what is allocated) are not counted.
    pub fn operations(&self) -> usize {
        self.live.lock().history.len()
    }

    /// A new disk that a power loss right after the first `operation` operations could leave. What is lost
    /// follows from the seed; the same pair gives the same disk. Faults and capacity are not taken over, and
    /// the new disk starts with an empty log on which everything is durable.
    ///
    /// # Panics
    /// If fewer operations were done.
    pub fn crash_at(&self, operation: usize, seed: u64) -> SimDisk {
        self.crash_point(operation).image(seed)
    }

    /// The moment right after the first `operation` operations, for more than one disk of it.
    ///
    /// # Panics
    /// If fewer operations were done.
    pub fn crash_point(&self, operation: usize) -> CrashPoint {
        // The lock is held for the replay only; what survives is chosen without it.
        let durable = self.live.lock().history.durable_after(operation);
        CrashPoint::new(operation, durable)
    }

    /// Every moment from before the first operation to after the last one so far.
    pub fn crash_points(&self) -> CrashPoints {
        let mut live = self.live.lock();
        let (start, end) = (live.history.durable_after(0), live.history.len());
        CrashPoints::new(self.clone(), start, end)
    }

    /// The operation with this index in words, for the message of a failed test.
    pub fn describe(&self, operation: usize) -> String {
        self.logged(operation).map_or_else(|| "no operation".to_owned(), |operation| operation.to_string())
    }

    pub(crate) fn logged(&self, operation: usize) -> Option<Operation> {
        self.live.lock().history.operation(operation).cloned()
    }
}

/// Faults.
impl SimDisk {
    /// Limits the sum of the lengths of all files. Growth beyond it fails with `StorageFull`; a write that does
    /// has written what fits. Room comes back once a file has neither name nor handle.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.live.lock().capacity = bytes;
    }

    /// Makes syncs of files and folders fail. What a failed sync of a file covered may or may not survive a
    /// crash, and a later sync does not help; entries may still be made durable by a later one.
    pub fn fail_syncs(&self, fault: Fault) {
        self.live.lock().faults.syncs.push(fault);
    }

    /// Makes writes, allocations and changes of length fail. A write that fails may have written its beginning.
    pub fn fail_writes(&self, fault: Fault) {
        self.live.lock().faults.writes.push(fault);
    }

    /// Makes reads fail.
    pub fn fail_reads(&self, fault: Fault) {
        self.live.lock().faults.reads.push(fault);
    }

    /// Makes matching syncs return `Ok` and do nothing, as if the call had been forgotten. They keep their
    /// places in the log. `ignore` must not call the disk.
    pub fn ignore_syncs(&self, ignore: impl Fn(&SyncEvent) -> bool + Send + Sync + 'static) {
        self.live.lock().faults.ignored_syncs.push(Box::new(ignore));
    }

    /// Takes back all failing and ignored calls. The capacity stays.
    pub fn clear_faults(&self) {
        self.live.lock().faults = Default::default();
    }

    /// Turns over one bit of a file, durably, as a decaying medium does.
    pub fn flip_bit(&self, path: &str, offset: u64, bit: u8) -> io::Result<()> {
        let mut live = self.live.lock();
        let inode = live.find(path)?;
        live.flip_bit(inode, offset, bit)
    }

    /// Switches the power off: from now on every call fails. [`SimDisk::crash_at`] and the other calls of the
    /// test itself still work.
    pub fn halt(&self) {
        self.live.lock().halted = true;
    }
}

/// What a test asks about a disk.
impl SimDisk {
    /// Every sync that was asked for so far, those included that failed or were ignored.
    pub fn syncs(&self) -> Vec<SyncEvent> {
        self.live.lock().syncs.clone()
    }

    /// The paths of all files, in order.
    pub fn paths(&self) -> Vec<String> {
        self.live.lock().paths()
    }

    /// The length of a file.
    pub fn file_len(&self, path: &str) -> io::Result<u64> {
        let live = self.live.lock();
        Ok(live.len(live.find(path)?))
    }

    /// All bytes of a file, past any planted fault.
    pub fn contents(&self, path: &str) -> io::Result<Vec<u8>> {
        let content = {
            let live = self.live.lock();
            live.content(live.find(path)?)
        };
        let mut bytes = vec![0; content.len() as usize];
        content.read(0, &mut bytes);
        Ok(bytes)
    }
}

impl Default for SimDisk {
    fn default() -> Self {
        SimDisk::new()
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let live = self.live.lock();
        f.debug_struct("SimDisk")
            .field("operations", &live.history.len())
            .field("paths", &live.paths())
            .finish()
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &str, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        let mut live = self.powered()?;
        let found = live.find(path);
        let inode = match (found, how) {
            (Ok(_), Open::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Ok(inode), Open::Existing | Open::CreateIfMissing) => inode,
            (Err(error), Open::CreateNew | Open::CreateIfMissing)
                if error.kind() == io::ErrorKind::NotFound =>
            {
                live.create(path)?
            }
            (Err(error), _) => return Err(error),
        };
        Ok(Arc::new(SimFile::open(&self.live, &mut live, inode)))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.powered()?.list(folder)
    }

    fn create_folder(&self, folder: &str) -> io::Result<()> {
        self.powered()?.create_folder(folder)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.powered()?.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.powered()?.remove(path)
    }

    fn sync_directory(&self, folder: &str) -> io::Result<()> {
        self.powered()?.sync_directory(folder)
    }
}
