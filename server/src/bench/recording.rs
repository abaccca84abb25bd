//! A disk that notes what the engine writes: of its journal the sizes, and the time that each write and sync took; of its
//! state how much it is.
//!
//! What must hold: noting costs next to nothing beside a write and a sync, that is, two looks at the clock and a push
//! under a lock that nobody else wants.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_engine::SystemClock;
use anabranch_model::{Clock, Disk, DiskFile, Open};

/// What the files of the journal have in common.
const JOURNAL: &str = "journal/";
/// The file that checkpoints write to.
const STATE: &str = "state.redb";

/// One write to the journal and the sync behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Write {
    /// Bytes written.
    pub(crate) bytes: u64,
    /// How long the write took.
    pub(crate) write: Duration,
    /// How long the sync took.
    pub(crate) sync: Duration,
}

/// What was written since somebody looked last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    /// The writes in their order.
    pub(crate) writes: Vec<Write>,
    /// Bytes that went to segments which were made new and not recycled.
    pub(crate) fresh_bytes: u64,
    /// Bytes that checkpoints wrote to the state.
    pub(crate) state_bytes: u64,
    /// Syncs of the state.
    pub(crate) state_syncs: u64,
}

impl Recorded {
    /// The sizes of the writes.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        self.writes.iter().map(|write| write.bytes as usize).collect()
    }

    /// Bytes of all writes.
    pub(crate) fn bytes(&self) -> u64 {
        self.writes.iter().map(|write| write.bytes).sum()
    }

    /// Time inside writes and inside syncs.
    pub(crate) fn busy(&self) -> (Duration, Duration) {
        (self.writes.iter().map(|write| write.write).sum(), self.writes.iter().map(|write| write.sync).sum())
    }
}

/// The notes.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    clock: SystemClock,
    writes: Mutex<Vec<Write>>,
    fresh_bytes: AtomicU64,
    state_bytes: AtomicU64,
    state_syncs: AtomicU64,
}

impl Recorder {
    /// Takes the notes and begins with an empty page.
    pub(crate) fn take(&self) -> Recorded {
        let writes = std::mem::replace(&mut *self.writes(), Vec::with_capacity(1 << 16));
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Recorded {
            writes,
            fresh_bytes: take(&self.fresh_bytes),
            state_bytes: take(&self.state_bytes),
            state_syncs: take(&self.state_syncs),
        }
    }

    fn writes(&self) -> MutexGuard<'_, Vec<Write>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A disk with a [`Recorder`].
pub(crate) struct RecordingDisk {
    disk: Arc<dyn Disk>,
    recorder: Arc<Recorder>,
}

impl RecordingDisk {
    /// Watches a disk.
    pub(crate) fn new(disk: Arc<dyn Disk>, recorder: Arc<Recorder>) -> RecordingDisk {
        RecordingDisk { disk, recorder }
    }
}

impl Disk for RecordingDisk {
    fn open(&self, path: &str, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(path, how)?;
        let kind = match how {
            _ if path == STATE => Kind::State,
            _ if !path.starts_with(JOURNAL) => return Ok(file),
            Open::CreateNew => Kind::FreshSegment,
            _ => Kind::Segment,
        };
        Ok(Arc::new(RecordingFile { file, recorder: self.recorder.clone(), kind }))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }

    fn create_folder(&self, folder: &str) -> io::Result<()> {
        self.disk.create_folder(folder)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_directory(&self, folder: &str) -> io::Result<()> {
        self.disk.sync_directory(folder)
    }
}

struct RecordingFile {
    file: Arc<dyn DiskFile>,
    recorder: Arc<Recorder>,
    kind: Kind,
}

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Segment,
    /// Made new: its blocks were never written.
    FreshSegment,
    State,
}

impl DiskFile for RecordingFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(offset, buffer)
    }

    fn read_cached_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        self.file.read_cached_at(offset, buffer)
    }

    fn write_all_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let start = self.recorder.clock.elapsed();
        self.file.write_all_at(offset, parts)?;
        let write = self.recorder.clock.elapsed().saturating_sub(start);
        self.note(Write { bytes, write, sync: Duration::ZERO });
        Ok(())
    }

    fn begin_sync(&self, offset: u64, bytes: u64) {
        self.file.begin_sync(offset, bytes);
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.file.allocate(length)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        let start = self.recorder.clock.elapsed();
        self.file.sync()?;
        let sync = self.recorder.clock.elapsed().saturating_sub(start);
        if self.kind == Kind::State {
            self.recorder.state_syncs.fetch_add(1, Ordering::Relaxed);
        } else if let Some(last) = self.recorder.writes().last_mut() {
            last.sync += sync;
        }
        Ok(())
    }
}

impl RecordingFile {
    fn note(&self, write: Write) {
        let count = match self.kind {
            Kind::Segment => None,
            Kind::FreshSegment => Some(&self.recorder.fresh_bytes),
            Kind::State => Some(&self.recorder.state_bytes),
        };
        if let Some(count) = count {
            count.fetch_add(write.bytes, Ordering::Relaxed);
        }
        if self.kind != Kind::State {
            self.recorder.writes().push(write);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_engine::SystemDisk;

    #[test]
    fn writes_to_the_journal_are_noted_and_those_to_the_state_counted() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Arc::new(Recorder::default());
        let disk = RecordingDisk::new(Arc::new(SystemDisk::open(folder.path()).unwrap()), recorder.clone());
        disk.create_folder("journal").unwrap();
        let parts = [IoSlice::new(b"seven b"), IoSlice::new(b"and more")];
        let segment = disk.open("journal/1.segment", Open::CreateNew).unwrap();
        segment.write_all_at(0, &parts).unwrap();
        segment.sync().unwrap();
        let state = disk.open("state.redb", Open::CreateNew).unwrap();
        state.write_all_at(0, &parts).unwrap();
        state.sync().unwrap();
        disk.open("catalogue", Open::CreateNew).unwrap().write_all_at(0, &parts).unwrap();
        let recycled = disk.open("journal/1.segment", Open::Existing).unwrap();
        recycled.write_all_at(0, &parts[..1]).unwrap();

        let recorded = recorder.take();
        assert_eq!(recorded.sizes(), [15, 7]);
        assert_eq!((recorded.bytes(), recorded.fresh_bytes), (22, 15));
        assert_eq!((recorded.state_bytes, recorded.state_syncs), (15, 1));
        assert!(recorder.take().writes.is_empty());
    }
}
