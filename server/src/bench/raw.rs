//! The limit of the machine: plain files, plain calls, one thread.
//!
//! What must hold: the files have the size of the engine's segments, their room was reserved in the same way, and all of
//! it was written and synced before, as in segments that are recycled.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anabranch_engine::{SystemClock, SystemDisk};
use anabranch_model::{Clock, Disk, Open};

use tokio::sync::oneshot;

use super::writers::incompressible;
use crate::failure::Failure;

/// Bytes that one call fills.
const FILL_BYTES: usize = 1 << 20;
/// Noise that writes take their bytes from, one behind the other: as much as the writers of the engine have, and at least
/// one whole write.
const SOURCE_BYTES: usize = 8 << 20;

/// Work for the raw thread.
type Job = Box<dyn FnOnce(&mut RawSegments) + Send>;

/// The thread that all raw writes come from. It ends when this is dropped.
pub(crate) struct RawThread {
    jobs: mpsc::SyncSender<Job>,
    folder: PathBuf,
}

impl RawThread {
    /// Starts the thread on files in a folder, as many as given.
    pub(crate) async fn start(folder: &Path, count: usize, segment_bytes: u64) -> Result<RawThread, Failure> {
        let (jobs, queue) = mpsc::sync_channel::<Job>(1);
        let (made, outcome) = oneshot::channel();
        let path = folder.to_owned();
        let thread = std::thread::Builder::new().name("raw".into()).spawn(move || {
            let (segments, result) = match RawSegments::make(&path, count, segment_bytes) {
                Ok(segments) => (Some(segments), Ok(())),
                Err(error) => (None, Err(error)),
            };
            // Whoever asked for it may have been interrupted; then the queue ends at once.
            let _ = made.send(result);
            if let Some(mut segments) = segments {
                queue.into_iter().for_each(|job| job(&mut segments));
            }
        });
        thread.map_err(|error| Failure::io("start a thread for", folder, &error))?;
        let thread = RawThread { jobs, folder: folder.to_owned() };
        thread.result(outcome).await?;
        Ok(thread)
    }

    /// Runs a raw round.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut RawSegments) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let (done, outcome) = oneshot::channel();
        let job: Job = Box::new(move |segments| {
            // Whoever waited may have been interrupted.
            let _ = done.send(work(segments));
        });
        // The queue has room: rounds come one behind the other. If the thread is gone, so is the outcome.
        let _ = self.jobs.try_send(job);
        self.result(outcome).await
    }

    async fn result<T>(&self, outcome: oneshot::Receiver<io::Result<T>>) -> Result<T, Failure> {
        match outcome.await {
            Ok(result) => result.map_err(|error| Failure::io("write to", &self.folder, &error)),
            Err(_) => Err(Failure::new("bench", "the raw thread ended", "report this")),
        }
    }
}

/// Files that were written before, to be written again from front to back.
pub(crate) struct RawSegments {
    files: Vec<File>,
    segment_bytes: u64,
    file: usize,
    offset: u64,
    source: Vec<u8>,
    source_at: usize,
    clock: SystemClock,
}

impl RawSegments {
    /// Makes so many files in a folder and writes them once.
    pub(crate) fn make(folder: &Path, count: usize, segment_bytes: u64) -> io::Result<RawSegments> {
        let disk = SystemDisk::open(folder)?;
        let source = incompressible(0, SOURCE_BYTES);
        let mut files = Vec::new();
        for number in 0..count {
            let name = format!("{number}.raw");
            disk.open(&name, Open::CreateNew)?.allocate(segment_bytes)?;
            let file = File::options().read(true).write(true).open(folder.join(&name))?;
            let mut offset = 0;
            while offset < segment_bytes {
                let bytes = FILL_BYTES.min((segment_bytes - offset) as usize);
                file.write_all_at(&source[..bytes], offset)?;
                offset += bytes as u64;
            }
            file.sync_all()?;
            files.push(file);
        }
        disk.sync_directory("")?;
        let clock = SystemClock::new();
        Ok(RawSegments { files, segment_bytes, file: 0, offset: 0, source, source_at: 0, clock })
    }

    /// One write and one sync a size, one behind the other. Returns how long all took.
    pub(crate) fn replay(&mut self, sizes: &[usize]) -> io::Result<Duration> {
        let start = self.clock.elapsed();
        for bytes in sizes {
            self.write(*bytes)?;
        }
        Ok(self.clock.elapsed() - start)
    }

    /// Writes of the same size until there were `count` or the time is over. Returns how many, and how long they took.
    pub(crate) fn repeat(
        &mut self,
        bytes: usize,
        count: u64,
        at_most: Duration,
    ) -> io::Result<(u64, Duration)> {
        let start = self.clock.elapsed();
        let mut done = 0;
        while done < count && self.clock.elapsed() - start < at_most {
            self.write(bytes)?;
            done += 1;
        }
        Ok((done, self.clock.elapsed() - start))
    }

    /// One write and one sync. Returns how long both took.
    pub(crate) fn timed(&mut self, bytes: usize) -> io::Result<Duration> {
        let start = self.clock.elapsed();
        self.write(bytes)?;
        Ok(self.clock.elapsed() - start)
    }

    fn write(&mut self, bytes: usize) -> io::Result<()> {
        if self.offset + bytes as u64 > self.segment_bytes {
            (self.file, self.offset) = ((self.file + 1) % self.files.len(), 0);
        }
        if self.source_at + bytes > self.source.len() {
            self.source_at = 0;
        }
        if bytes > self.source.len() {
            let text = format!("the engine wrote {bytes} bytes at once, more than the limit is made for");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let file = &self.files[self.file];
        file.write_all_at(&self.source[self.source_at..self.source_at + bytes], self.offset)?;
        file.sync_data()?;
        self.offset += bytes as u64;
        self.source_at += bytes;
        Ok(())
    }
}

/// Reads the first `bytes` of files, as if they were one, in chunks into the same buffer, and sums each chunk. Returns
/// how long it took.
pub(crate) async fn read_and_sum(
    paths: &[PathBuf],
    bytes: u64,
    chunk_bytes: usize,
) -> Result<Duration, Failure> {
    let (done, outcome) = oneshot::channel();
    let files = paths.to_vec();
    // A thread of its own, so that a profile tells the two sides apart.
    let thread = std::thread::Builder::new().name("raw".into()).spawn(move || {
        // Whoever waited may have been interrupted.
        let _ = done.send(read_chunks(&files, bytes, chunk_bytes));
    });
    let folder = paths.first().and_then(|path| path.parent()).unwrap_or(Path::new("."));
    let failed = |error: io::Error| Failure::io("read", folder, &error);
    thread.map_err(failed)?;
    outcome.await.map_err(|_| Failure::new("bench", "the raw thread ended", "report this"))?.map_err(failed)
}

fn read_chunks(paths: &[PathBuf], bytes: u64, chunk_bytes: usize) -> io::Result<Duration> {
    let clock = SystemClock::new();
    // Not zeros: the kernel would hand out their pages while the clock runs.
    let mut buffer = vec![1; chunk_bytes];
    let (mut left, mut sums) = (bytes, 0u32);
    let start = clock.elapsed();
    for path in paths {
        if left == 0 {
            break;
        }
        let file = File::open(path)?;
        let (mut offset, end) = (0, file.metadata()?.len().min(left));
        while offset < end {
            let chunk = &mut buffer[..chunk_bytes.min((end - offset) as usize)];
            file.read_exact_at(chunk, offset)?;
            sums ^= crc32fast::hash(chunk);
            offset += chunk.len() as u64;
        }
        left -= end;
    }
    std::hint::black_box(sums);
    let elapsed = clock.elapsed() - start;
    if left > 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the files are shorter than what was read"));
    }
    Ok(elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_stay_within_the_files_that_were_made() {
        let folder = tempfile::tempdir().unwrap();
        let mut raw = RawSegments::make(folder.path(), 2, 64 << 10).unwrap();
        raw.replay(&[40 << 10, 40 << 10, 10, 60 << 10]).unwrap();
        assert_eq!((raw.file, raw.offset), (0, 60 << 10));
        let (done, _) = raw.repeat(1 << 10, 9, Duration::from_secs(60)).unwrap();
        assert_eq!((done, raw.file, raw.offset), (9, 1, 5 << 10));
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            assert_eq!(entry.unwrap().metadata().unwrap().len(), 64 << 10);
        }
    }

    #[test]
    fn reading_asks_for_bytes_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..2).map(|number| folder.path().join(number.to_string())).collect();
        paths.iter().for_each(|path| std::fs::write(path, vec![7; 3 << 20]).unwrap());
        assert!(read_chunks(&paths, 5 << 20, 1 << 20).is_ok());
        assert!(read_chunks(&paths, 7 << 20, 1 << 20).is_err());
    }
}
