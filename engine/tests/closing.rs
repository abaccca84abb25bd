//! Shutting down while the engine's own threads are at work.

mod crash;

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_engine::{Drive, Engine, Options};
use anabranch_model::limits::RETENTION_MAX;
use anabranch_model::{Disk, DiskFile, NewRecord, Open, StreamOptions, StreamStore};
use anabranch_sim::{SimClock, SimDisk};
use crash::run::{START, name, options};
use crash::world::World;

/// A disk that notices when two threads write to the journal at once.
#[derive(Clone)]
struct WatchedDisk {
    disk: SimDisk,
    writers: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

struct WatchedFile {
    disk: WatchedDisk,
    file: Arc<dyn DiskFile>,
}

impl WatchedDisk {
    fn new() -> WatchedDisk {
        WatchedDisk { disk: SimDisk::new(), writers: Arc::default(), most: Arc::default() }
    }
}

impl Disk for WatchedDisk {
    fn open(&self, path: &str, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(path, how)?;
        if !path.starts_with("journal/") {
            return Ok(file);
        }
        Ok(Arc::new(WatchedFile { disk: self.clone(), file }))
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

impl DiskFile for WatchedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(offset, buffer)
    }

    fn write_all_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let writers = self.disk.writers.fetch_add(1, Ordering::SeqCst) + 1;
        self.disk.most.fetch_max(writers, Ordering::SeqCst);
        // Slow enough for another thread to come by.
        (0..200).for_each(|_| std::thread::yield_now());
        let outcome = self.file.write_all_at(offset, parts);
        self.disk.writers.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.file.allocate(length)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_amid_cleaning_hangs_nowhere_and_leaves_one_writer() {
    for round in 0..40usize {
        let (disk, clock) = (WatchedDisk::new(), SimClock::new(START));
        let options = Options { drive: Drive::Threads, ..options() };
        let engine =
            Engine::open(Arc::new(disk.clone()), Arc::new(clock.clone()), options).expect("it opens");
        let stream = StreamOptions { shards: 1, retention: RETENTION_MAX };
        for stream_name in ["kept", "doomed"] {
            engine.create_stream(&name(stream_name), stream).await.expect("create");
        }
        let mut kept = 0;
        for _ in 0..20 {
            for (stream_name, bytes) in [("kept", 300), ("doomed", 2_000)] {
                let record = NewRecord::new("key", vec![round as u8; bytes]);
                engine.append(&name(stream_name), vec![record]).await.expect("append");
            }
            kept += 1;
        }
        engine.delete_stream(&name("doomed")).await.expect("delete");
        // The upkeep has segments to clean from here on; each round shuts down at another moment of that.
        for _ in 0..round {
            let record = NewRecord::new("key", vec![round as u8; 900]);
            engine.append(&name("kept"), vec![record]).await.expect("append");
            kept += 1;
        }
        let closed = tokio::time::timeout(Duration::from_secs(30), engine.close()).await;
        closed.expect("it shuts down in time").expect("it shuts down");
        assert_eq!(disk.most.load(Ordering::SeqCst), 1, "round {round}: one thread writes at a time");
        drop(engine);
        let engine = Engine::open(Arc::new(disk.disk.clone()), Arc::new(clock), crash::run::options())
            .expect("it opens again");
        assert!(engine.status().opened_clean, "round {round}: it was shut down");
        assert_eq!(World::read(&engine).await.expect("reading").records(), kept, "round {round}");
    }
}
