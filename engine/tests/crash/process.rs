//! A process that dies while its machine lives on: what it wrote stays in the page cache, synced or not.

use std::io::{self, IoSlice};
use std::sync::Arc;

use anabranch_model::{Disk, DiskFile, Open};
use anabranch_sim::SimDisk;

/// What a process sees of a disk until the disk has seen so many operations; from then on every call fails, because
/// there is nobody to make it.
#[derive(Clone)]
pub struct MortalDisk {
    disk: SimDisk,
    dies_at: usize,
}

impl MortalDisk {
    /// The process dies after the first `dies_at` operations of the disk.
    pub fn new(disk: &SimDisk, dies_at: usize) -> MortalDisk {
        MortalDisk { disk: disk.clone(), dies_at }
    }

    fn alive(&self) -> io::Result<()> {
        if self.disk.operations() < self.dies_at {
            Ok(())
        } else {
            Err(io::Error::other("the process is dead"))
        }
    }
}

impl Disk for MortalDisk {
    fn open(&self, path: &str, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        self.alive()?;
        let file = self.disk.open(path, how)?;
        Ok(Arc::new(MortalFile { disk: self.clone(), file }))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.alive()?;
        self.disk.list(folder)
    }

    fn create_folder(&self, folder: &str) -> io::Result<()> {
        self.alive()?;
        self.disk.create_folder(folder)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.alive()?;
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.alive()?;
        self.disk.remove(path)
    }

    fn sync_directory(&self, folder: &str) -> io::Result<()> {
        self.alive()?;
        self.disk.sync_directory(folder)
    }
}

struct MortalFile {
    disk: MortalDisk,
    file: Arc<dyn DiskFile>,
}

impl DiskFile for MortalFile {
    fn len(&self) -> io::Result<u64> {
        self.disk.alive()?;
        self.file.len()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.disk.alive()?;
        self.file.read_exact_at(offset, buffer)
    }

    fn write_all_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()> {
        self.disk.alive()?;
        self.file.write_all_at(offset, parts)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.disk.alive()?;
        self.file.allocate(length)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.disk.alive()?;
        self.file.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.alive()?;
        self.file.sync()
    }
}
