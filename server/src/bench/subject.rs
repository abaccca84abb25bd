//! The engine under test, with a stream that is emptied before every round.
//!
//! What must hold: a measured round writes to segments that were written before, as an engine does that has been
//! running for longer than its retention. A new segment costs more to sync, because the file system has to note that
//! its blocks hold data now.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Engine, Options, Status, SystemClock, SystemDisk};
use anabranch_model::{Disk, QueueStore, ShardId, ShardSource, StreamName, StreamOptions, StreamStore};

use super::blocking;
use super::options::Bounds;
use super::recording::{Recorded, Recorder, RecordingDisk};
use super::writers::{self, Load, Payloads};
use crate::failure::Failure;

/// Passes after which every segment has been written.
const WARM_UP_PASSES_MAX: usize = 6;
/// Runs of upkeep after which a deleted stream has left nothing behind.
const UPKEEP_RUNS_MAX: usize = 50;
/// Runs of upkeep that change nothing: another will change nothing either.
const UPKEEP_RUNS_SAME: usize = 3;
/// The segment that is written to, and two that are ready.
const SEGMENTS_IDLE: usize = 3;
/// How segments are filled.
const FILL: Load = Load { writers: 8, records: 500 };

/// An engine and its stream.
pub(crate) struct Subject {
    engine: Engine,
    stream: StreamName,
    recorder: Arc<Recorder>,
    folder: PathBuf,
}

impl Subject {
    /// Opens an engine in a folder, with a stream of so many shards.
    pub(crate) async fn open(folder: &Path, shards: usize) -> Result<Subject, Failure> {
        let recorder = Arc::new(Recorder::default());
        let disk: Arc<dyn Disk> =
            Arc::new(SystemDisk::open(folder).map_err(|error| Failure::io("open", folder, &error))?);
        let disk = Arc::new(RecordingDisk::new(disk, recorder.clone()));
        let engine =
            blocking(move || Engine::open(disk, Arc::new(SystemClock::new()), Options::default())).await??;
        let subject =
            Subject { engine, stream: StreamName::new("bench")?, recorder, folder: folder.to_owned() };
        subject.create(&subject.stream, shards).await?;
        Ok(subject)
    }

    /// The engine.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Its stream.
    pub(crate) fn stream(&self) -> &StreamName {
        &self.stream
    }

    /// What was written to the journal since the last call.
    pub(crate) fn recorded(&self) -> Recorded {
        self.recorder.take()
    }

    /// The shards of the stream.
    pub(crate) async fn shards(&self) -> Result<Vec<ShardId>, Failure> {
        let page = self.engine.shards(&self.stream, None, usize::MAX).await?;
        Ok(page.entries.into_iter().map(|shard| shard.id).collect())
    }

    /// The files of the journal in their order.
    pub(crate) fn segments(&self) -> Result<Vec<PathBuf>, Failure> {
        let folder = self.folder.join("journal");
        let entries = std::fs::read_dir(&folder).map_err(|error| Failure::io("read", &folder, &error))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        Ok(paths)
    }

    /// Fills and empties the journal until a round finds only segments that were written before.
    pub(crate) async fn warm_up(&self, bounds: &Bounds, shards: usize) -> Result<(), Failure> {
        // Room for headers, and for the segments that are ready when a round begins.
        let payloads = Payloads::make(FILL, bounds.bytes() + bounds.bytes() / 8 + (128 << 20));
        for _ in 0..WARM_UP_PASSES_MAX {
            self.recorder.take();
            // However slow the disk is, all of it has to be written once.
            writers::write(&self.engine, &self.stream, &payloads, Duration::MAX / 2).await?;
            self.renew(shards).await?;
            if self.recorder.take().fresh_bytes == 0 {
                return Ok(());
            }
        }
        Err(Failure::new("bench", "the engine keeps making new segments", "report this"))
    }

    /// Deletes the stream, waits until its segments are free, and makes the stream again at the start of a segment.
    pub(crate) async fn renew(&self, shards: usize) -> Result<(), Failure> {
        self.engine.delete_stream(&self.stream).await?;
        self.fill_segment().await?;
        let messages = self.messages().await?;
        let (mut last, mut same) = (None, 0);
        for _ in 0..UPKEEP_RUNS_MAX {
            let status = self.upkeep().await?;
            let now = Some((status.journal_position, status.segments, status.live_bytes));
            same = if now == last { same + 1 } else { 0 };
            last = now;
            let free = status.live_bytes == 0 && status.segments <= SEGMENTS_IDLE;
            // Messages that wait stay where they are.
            if free || (messages > 0 && same == UPKEEP_RUNS_SAME) {
                return self.create(&self.stream, shards).await;
            }
        }
        let segments = self.engine.status().segments;
        Err(Failure::new(
            "bench",
            format!("{segments} segments of a deleted stream stay in use"),
            "report this",
        ))
    }

    /// Messages of all queues.
    async fn messages(&self) -> Result<u64, Failure> {
        let queues = self.engine.queues(None, usize::MAX, "").await?.entries;
        Ok(queues
            .iter()
            .map(|queue| queue.counts.visible + queue.counts.in_flight + queue.counts.delayed)
            .sum())
    }

    /// Fills the active segment with another stream and deletes that. Otherwise the segment holds a deleted stream and
    /// a new one, and the cleaner would move the new one out of it while it is measured.
    async fn fill_segment(&self) -> Result<(), Failure> {
        let filler = StreamName::new("filler")?;
        self.create(&filler, 1).await?;
        let active = |status: Status| status.journal_position / status.segment_bytes;
        let (before, payloads) = (active(self.engine.status()), Payloads::make(FILL, 0));
        while active(self.engine.status()) == before {
            writers::write(&self.engine, &filler, &payloads, Duration::MAX / 2).await?;
        }
        Ok(self.engine.delete_stream(&filler).await?)
    }

    /// Does all upkeep, so that none is left for somebody else's round.
    pub(crate) async fn upkeep(&self) -> Result<Status, Failure> {
        let engine = self.engine.clone();
        blocking(move || {
            engine.upkeep();
            engine.status()
        })
        .await
    }

    async fn create(&self, stream: &StreamName, shards: usize) -> Result<(), Failure> {
        let options = StreamOptions { shards, ..StreamOptions::default() };
        Ok(self.engine.create_stream(stream, options).await?)
    }

    /// Lets go of the directory in good order.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        Ok(self.engine.close().await?)
    }
}
