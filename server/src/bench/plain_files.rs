//! The limit of blobs: files that are made, written, synced and renamed into their place, with a sync of the folder.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anabranch_engine::SystemClock;
use anabranch_model::Clock;
use bytes::Bytes;

use super::blocking;
use super::tasks::Done;
use crate::failure::Failure;

/// Files in a folder, all with the same bytes.
#[derive(Clone)]
pub(crate) struct PlainFiles {
    folder: PathBuf,
    bytes: Bytes,
}

impl PlainFiles {
    /// Files in a folder that exists.
    pub(crate) fn new(folder: PathBuf, bytes: Bytes) -> PlainFiles {
        PlainFiles { folder, bytes }
    }

    /// Makes files from so many threads until the first has made `steps` or the time is over.
    pub(crate) async fn put(&self, threads: usize, steps: usize, at_most: Duration) -> Result<Done, Failure> {
        let files = self.clone();
        let done = blocking(move || files.race(threads, steps, at_most)).await?;
        done.map_err(|error| Failure::io("write to", &self.folder, &error))
    }

    /// Removes all files.
    pub(crate) async fn clear(&self) -> Result<(), Failure> {
        let folder = self.folder.clone();
        let removed = blocking(move || remove_files(&folder)).await?;
        removed.map_err(|error| Failure::io("empty", &self.folder, &error))
    }

    fn race(&self, threads: usize, steps: usize, at_most: Duration) -> io::Result<Done> {
        let clock = SystemClock::new();
        let (stop, start) = (AtomicBool::new(false), Barrier::new(threads + 1));
        let write = |thread: usize| {
            start.wait();
            let deadline = clock.elapsed() + at_most;
            let mut done = 0;
            for number in 0..steps {
                if stop.load(Ordering::Relaxed) || clock.elapsed() > deadline {
                    break;
                }
                self.write(&format!("{thread}-{number}"))?;
                done += 1;
            }
            stop.store(true, Ordering::Relaxed);
            io::Result::Ok(done)
        };
        thread::scope(|scope| {
            let write = &write;
            let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || write(thread))).collect();
            start.wait();
            let begun = clock.elapsed();
            let mut steps = 0;
            for thread in running {
                steps += thread.join().map_err(|_| io::Error::other("a thread ended early"))??;
            }
            Ok(Done { steps, elapsed: clock.elapsed() - begun })
        })
    }

    fn write(&self, name: &str) -> io::Result<()> {
        let (new, place) = (self.folder.join(format!("{name}.new")), self.folder.join(name));
        let mut file = File::create_new(&new)?;
        file.write_all(&self.bytes)?;
        file.sync_all()?;
        std::fs::rename(new, place)?;
        File::open(&self.folder)?.sync_all()
    }
}

fn remove_files(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        std::fs::remove_file(entry?.path())?;
    }
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_take_their_place_whole() {
        let folder = tempfile::tempdir().unwrap();
        let files = PlainFiles::new(folder.path().to_owned(), Bytes::from_static(b"body"));
        let done = files.put(2, 3, Duration::from_secs(60)).await.unwrap();
        assert!((3..=6).contains(&done.steps), "{done:?}");
        let names = || std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        assert_eq!(names().count() as u64, done.steps);
        assert!(names().all(|path| path.extension().is_none() && std::fs::read(path).unwrap() == b"body"));
        files.clear().await.unwrap();
        assert_eq!(names().count(), 0);
    }
}
