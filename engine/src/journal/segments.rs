//! The files of the journal: made with their room reserved, used once from front to back, and recycled.
//!
//! ```text
//!   (file made or taken from the dead) ──prepare──▶ ready ──first frame──▶ active ──End──▶ sealed
//!                 ▲                                                                          │
//!                 └───────────────────────────── dead ◀──checkpoint without live frames──────┘
//! ```
//!
//! A position is `number × segment size + offset`. A recycled file gets a larger number, so its old frames name
//! positions that are no longer theirs. The name and the rename are durable before the first frame is written.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_model::{Disk, DiskFile, Open};
use parking_lot::{Mutex, RwLock};

use super::frame::HEADER_BYTES;

/// The folder of the segments.
pub const FOLDER: &str = "journal";
const SUFFIX: &str = ".segment";
/// Dead segments that are kept for recycling; more than these are removed.
const DEAD_KEPT_MAX: usize = 8;

/// One file of the journal.
pub struct Segment {
    /// Its place in the order of segments.
    pub number: u64,
    /// The open file.
    pub file: Arc<dyn DiskFile>,
    live: AtomicU64,
    /// How much of it is messages, as far as this opening knows.
    messages: AtomicU64,
}

impl Segment {
    /// Bytes that a shard or a row still refers to.
    pub fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    /// Counts bytes as live.
    pub fn add_live(&self, bytes: u64) {
        self.live.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes as dead.
    pub fn remove_live(&self, bytes: u64) {
        let before = self.live.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "segment {} counts fewer live bytes than none", self.number);
    }
}

impl Segment {
    /// Live bytes of messages that this opening has counted.
    pub fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// Counts bytes of messages as live.
    pub fn add_messages(&self, bytes: u64) {
        self.add_live(bytes);
        self.messages.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes of messages no longer. That they are dead is counted with [`Segment::remove_live`].
    pub fn forget_messages(&self, bytes: u64) {
        let less = |messages: u64| Some(messages.saturating_sub(bytes));
        let _ = self.messages.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// All files of the journal.
pub struct Segments {
    disk: Arc<dyn Disk>,
    /// Size of every file.
    pub bytes: u64,
    used: RwLock<BTreeMap<u64, Arc<Segment>>>,
    dead: Mutex<Vec<String>>,
    next_number: AtomicU64,
}

impl Segments {
    /// Opens the files that are there; each counts as used until [`Segments::retire`].
    pub fn open(disk: Arc<dyn Disk>, bytes: u64) -> io::Result<Segments> {
        let mut used = BTreeMap::new();
        for name in disk.list(FOLDER)? {
            let Some(number) = number_of(&name) else { continue };
            let file = disk.open(&format!("{FOLDER}/{name}"), Open::Existing)?;
            used.insert(
                number,
                Arc::new(Segment { number, file, live: AtomicU64::new(0), messages: AtomicU64::new(0) }),
            );
        }
        let next_number = used.keys().next_back().map_or(1, |last| last + 1);
        Ok(Segments {
            disk,
            bytes,
            used: RwLock::new(used),
            dead: Mutex::new(Vec::new()),
            next_number: AtomicU64::new(next_number),
        })
    }

    /// Whether any file was ever written to: the first frame of a segment stands at its beginning.
    pub fn any_written(&self) -> io::Result<bool> {
        for segment in self.all() {
            let mut start = vec![0; HEADER_BYTES.min(segment.file.len()? as usize)];
            segment.file.read_exact_at(0, &mut start)?;
            if start.iter().any(|byte| *byte != 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The segment that holds a position, unless it was retired.
    pub fn holding(&self, position: u64) -> Option<Arc<Segment>> {
        self.used.read().get(&(position / self.bytes)).cloned()
    }

    /// The offset of a position within its segment.
    pub fn offset(&self, position: u64) -> u64 {
        position % self.bytes
    }

    /// The first position of a segment.
    pub fn start_of(&self, number: u64) -> u64 {
        number * self.bytes
    }

    /// All segments in order.
    pub fn all(&self) -> Vec<Arc<Segment>> {
        self.used.read().values().cloned().collect()
    }

    /// Writes bytes of one segment again that may be in the page cache only, and syncs them.
    pub fn write_again(&self, range: Range<u64>) -> io::Result<()> {
        let Some(segment) = self.holding(range.start).filter(|_| !range.is_empty()) else { return Ok(()) };
        let mut bytes = vec![0; (range.end - range.start) as usize];
        segment.file.read_exact_at(self.offset(range.start), &mut bytes)?;
        segment.file.write_all_at(self.offset(range.start), &[IoSlice::new(&bytes)])?;
        segment.file.sync()
    }

    /// Makes a segment that is ready for its first frame. Fails with `StorageFull` when there is no room.
    pub fn prepare(&self) -> io::Result<Arc<Segment>> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let path = path_of(number);
        let recycled = self.dead.lock().pop();
        let file = match recycled {
            Some(dead) => self.recycle(dead, &path)?,
            None => self.disk.open(&path, Open::CreateNew)?,
        };
        // Synced, so that the room is there after a crash too, and a segment that is shorter was cut by somebody.
        if let Err(error) = file.allocate(self.bytes).and_then(|()| file.sync()) {
            // A half-made file must not take the room that it could not get.
            drop(file);
            self.disk.remove(&path)?;
            return Err(error);
        }
        if let Err(error) = self.disk.sync_directory(FOLDER) {
            // The next attempt gives it another name and syncs that.
            self.dead.lock().push(path);
            return Err(error);
        }
        let segment =
            Arc::new(Segment { number, file, live: AtomicU64::new(0), messages: AtomicU64::new(0) });
        self.used.write().insert(number, segment.clone());
        Ok(segment)
    }

    fn recycle(&self, dead: String, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        if let Err(error) = self.disk.rename(&dead, path) {
            self.dead.lock().push(dead);
            return Err(error);
        }
        self.disk.open(path, Open::Existing)
    }

    /// Takes a segment out of use. Its file is recycled, unless enough are kept, or it lacks room because a crash came
    /// before its first sync: then it is removed. Returns false if a reader holds it, and it should be tried again.
    pub fn retire(&self, number: u64) -> io::Result<bool> {
        let mut used = self.used.write();
        let Some(segment) = used.get(&number) else { return Ok(true) };
        if Arc::strong_count(segment) > 1 {
            return Ok(false);
        }
        let whole = segment.file.len()? >= self.bytes;
        used.remove(&number);
        drop(used);
        let path = path_of(number);
        let mut dead = self.dead.lock();
        if whole && dead.len() < DEAD_KEPT_MAX {
            dead.push(path);
        } else {
            drop(dead);
            self.disk.remove(&path)?;
        }
        Ok(true)
    }

    /// Gives the room of one dead segment back to the file system. Returns false if there is none.
    pub fn release_dead(&self) -> io::Result<bool> {
        let Some(path) = self.dead.lock().pop() else { return Ok(false) };
        self.disk.remove(&path)?;
        Ok(true)
    }

    /// Gives the room of a segment that was prepared and not used back to the file system.
    pub fn discard(&self, number: u64) -> io::Result<()> {
        self.used.write().remove(&number);
        self.disk.remove(&path_of(number))
    }

    /// Segments that are kept for recycling.
    pub fn dead_count(&self) -> usize {
        self.dead.lock().len()
    }
}

/// The file of a segment.
pub fn path_of(number: u64) -> String {
    format!("{FOLDER}/{number:016x}{SUFFIX}")
}

/// The number of a segment, if its file has this name.
pub fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}
