//! What is between a write and its sync: the disk has the next group already, and nobody has seen it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anabranch_engine::{Engine, Options, SystemClock, SystemDisk};
use anabranch_model::{
    Disk, DiskFile, NewRecord, Open, Position, ReadLimit, ShardSource, StreamName, StreamOptions, StreamStore,
};
use parking_lot::{Condvar, Mutex};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Holds up the syncs of the thread that commits.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Syncs that may pass; without a number all do.
    passes: Option<usize>,
    /// Whether one stands here.
    stands: bool,
}

impl Gate {
    fn set(&self, passes: Option<usize>) {
        self.state.lock().passes = passes;
        self.changed.notify_all();
    }

    /// Waits until the committer stands here.
    fn wait_for_committer(&self) {
        let mut state = self.state.lock();
        let waited = self.changed.wait_while_for(&mut state, |state| !state.stands, PATIENCE);
        assert!(!waited.timed_out(), "the committer syncs nothing");
    }

    fn pass(&self) {
        if std::thread::current().name() != Some("journal") {
            return;
        }
        let mut state = self.state.lock();
        state.stands = true;
        self.changed.notify_all();
        self.changed.wait_while_for(&mut state, |state| state.passes == Some(0), PATIENCE);
        state.stands = false;
        state.passes = state.passes.map(|passes| passes.saturating_sub(1));
    }
}

struct GatedDisk(SystemDisk, Arc<Gate>);

struct GatedFile(Arc<dyn DiskFile>, Arc<Gate>);

impl Disk for GatedDisk {
    fn open(&self, path: &str, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(GatedFile(self.0.open(path, how)?, self.1.clone())))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.0.list(folder)
    }

    fn create_folder(&self, folder: &str) -> io::Result<()> {
        self.0.create_folder(folder)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.0.remove(path)
    }

    fn sync_directory(&self, folder: &str) -> io::Result<()> {
        self.0.sync_directory(folder)
    }
}

impl DiskFile for GatedFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, buffer)
    }

    fn write_all_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()> {
        self.0.write_all_at(offset, parts)
    }

    fn begin_sync(&self, offset: u64, bytes: u64) {
        self.0.begin_sync(offset, bytes);
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.0.allocate(length)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.1.pass();
        self.0.sync()
    }
}

/// Lets a future go as far as it can.
async fn waits(future: &mut (impl Future + Unpin)) -> bool {
    std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context).is_pending())).await
}

/// The payloads of the only shard, as a reader sees them.
async fn seen(engine: &Engine, stream: &StreamName) -> Vec<Vec<u8>> {
    let shard = engine.shards(stream, None, 1).await.expect("shards").entries[0].id.clone();
    let limit = ReadLimit { records: 100, bytes: 1 << 20 };
    let batch = engine.read(stream, &shard, Position::TrimHorizon, limit).await.expect("a read");
    batch.records.iter().map(|record| record.data.to_vec()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_answered_while_the_next_one_is_not_durable_yet() {
    let folder = tempfile::tempdir().expect("a folder");
    let gate = Arc::new(Gate::default());
    let disk = GatedDisk(SystemDisk::open(folder.path()).expect("the folder"), gate.clone());
    let engine =
        Engine::open(Arc::new(disk), Arc::new(SystemClock::new()), Options::default()).expect("it opens");
    let stream = StreamName::new("stream").expect("a name");
    engine
        .create_stream(&stream, StreamOptions { shards: 1, ..StreamOptions::default() })
        .await
        .expect("create");
    let append = |data: &'static str| {
        let (engine, stream) = (engine.clone(), stream.clone());
        async move { engine.append(&stream, vec![NewRecord::new("key", data)]).await.expect("an append") }
    };

    gate.set(Some(0));
    let first = tokio::spawn(append("first"));
    gate.wait_for_committer();
    let mut second = Box::pin(append("second"));
    assert!(waits(&mut second).await, "it waits for the disk");
    assert!(seen(&engine, &stream).await.is_empty(), "what is written and not durable is not shown");

    gate.set(Some(1));
    let answered = tokio::time::timeout(PATIENCE, first).await.expect("it does not wait for the next sync");
    assert!(answered.expect("no panic").iter().all(Result::is_ok));
    gate.wait_for_committer();
    assert!(waits(&mut second).await, "its own sync has not returned");
    assert_eq!(seen(&engine, &stream).await, [b"first"]);

    gate.set(None);
    assert!(second.await.iter().all(Result::is_ok));
    assert_eq!(seen(&engine, &stream).await, [&b"first"[..], b"second"]);
    engine.close().await.expect("it closes");
}
