//! Copying files to another disk, piece by piece, and the order in which they become a data directory.

use std::collections::BTreeSet;
use std::io::{self, IoSlice};

use anabranch_model::{Disk, DiskFile, Error, Open, Result};

use crate::directory::Format;
use crate::state::io_error;

/// Bytes that are in memory at a time.
const PIECE_BYTES: usize = 1 << 20;

/// How far a backup or a restore is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are at their place.
    pub copied_bytes: u64,
    /// All bytes.
    pub total_bytes: u64,
}

/// Is shown the progress, and says whether to go on.
pub type Watch<'a> = &'a mut (dyn FnMut(Progress) -> bool + Send);

/// A data directory that is being made.
pub struct Copying<'a> {
    target: &'a dyn Disk,
    watch: Watch<'a>,
    progress: Progress,
    folders: BTreeSet<String>,
    buffer: Vec<u8>,
}

impl<'a> Copying<'a> {
    /// Nothing is there yet.
    pub fn new(target: &'a dyn Disk, watch: Watch<'a>) -> Copying<'a> {
        Copying {
            target,
            watch,
            progress: Progress::default(),
            folders: BTreeSet::new(),
            buffer: vec![0; PIECE_BYTES],
        }
    }

    /// Says that there is so much more to copy.
    pub fn expect(&mut self, bytes: u64) {
        self.progress.total_bytes += bytes;
    }

    /// Bytes that were copied.
    pub fn copied_bytes(&self) -> u64 {
        self.progress.copied_bytes
    }

    /// Makes a folder, once.
    pub fn folder(&mut self, folder: &str) -> Result<()> {
        if !self.folders.contains(folder) {
            self.target.create_folder(folder).map_err(target_error)?;
            self.folders.insert(folder.to_owned());
        }
        Ok(())
    }

    /// Copies the first `bytes` of a file into one that has room for `room_bytes`; what is behind them is zero.
    pub fn file(&mut self, from: &dyn DiskFile, path: &str, bytes: u64, room_bytes: u64) -> Result<()> {
        let to = self.target.open(path, Open::CreateNew).map_err(target_error)?;
        to.allocate(room_bytes).map_err(target_error)?;
        let mut at = 0;
        while at < bytes {
            let piece = (bytes - at).min(PIECE_BYTES as u64) as usize;
            from.read_exact_at(at, &mut self.buffer[..piece]).map_err(io_error)?;
            to.write_all_at(at, &[IoSlice::new(&self.buffer[..piece])]).map_err(target_error)?;
            at += piece as u64;
            self.progress.copied_bytes += piece as u64;
            if !(self.watch)(self.progress) {
                return Err(Error::Unavailable("the copy was called off before it was whole".into()));
            }
        }
        to.sync().map_err(target_error)
    }

    /// Makes every name durable, and then says that this is a data directory.
    pub fn finish(&mut self, format: Format) -> Result<()> {
        // A folder inside another comes behind it in this order, and is synced before it.
        for folder in self.folders.iter().rev() {
            self.target.sync_directory(folder).map_err(target_error)?;
        }
        self.target.sync_directory("").map_err(target_error)?;
        format.write(self.target).map_err(|error| match error {
            Error::DiskFull => target_full(),
            other => Error::Unavailable(format!("writing the target failed: {other}")),
        })?;
        self.target.sync_directory("").map_err(target_error)
    }
}

/// What to say when the target fails: it is not the disk that the engine is on.
pub fn target_error(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => target_full(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Error::Invalid(format!("the target cannot be written to: {error}"))
        }
        _ => Error::Unavailable(format!("writing the target failed: {error}; the source is as it was")),
    }
}

fn target_full() -> Error {
    Error::LimitExceeded("the target has no room for all of the copy; the source is as it was".into())
}
