//! The data directory: its format, which a future version can tell, and its lock, which names who holds it.
//!
//! | file | what it is |
//! |---|---|
//! | `FORMAT` | version and segment size, twice, each line with its checksum |
//! | `LOCK` | held by the process that has the directory open; says which one, and where it listens |
//! | `state.redb` | the materialised state |
//! | `catalogue` | streams and shards a second time |
//! | `ballast` | room that a full disk gives up |
//! | `journal/` | the segments |

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anabranch_model::{Disk, Error, Open, Result};

use crate::state::io_error;

const FORMAT_FILE: &str = "FORMAT";
const FORMAT_FILE_NEW: &str = "FORMAT.new";
/// The version that this program writes.
pub const FORMAT_VERSION: u32 = 1;

/// What the `FORMAT` file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Size of every segment.
    pub segment_bytes: u64,
}

impl Format {
    /// Reads the format; `None` in a directory where nothing was finished yet.
    pub fn read(disk: &dyn Disk) -> Result<Option<Format>> {
        let file = match disk.open(FORMAT_FILE, Open::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error(error)),
        };
        let mut bytes = vec![0; file.len().map_err(io_error)?.min(4096) as usize];
        file.read_exact_at(0, &mut bytes).map_err(io_error)?;
        // One flipped bit leaves one of the two lines whole, even if it turns the end of the first into something else.
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let lines =
            bytes.split(|byte| *byte == b'\n').chain([first.trim_ascii_end(), second.trim_ascii_end()]);
        lines.into_iter().find_map(|line| parse(line).transpose()).transpose()?.map_or_else(
            || {
                Err(Error::Corrupt(
                    "the file `FORMAT` of the data directory is damaged: put it back from a backup, or copy the one of \
                     another directory of the same version"
                        .into(),
                ))
            },
            |format| Ok(Some(format)),
        )
    }

    /// Writes the format as the last step of making a directory. Its name is durable once the root is synced.
    pub fn write(self, disk: &dyn Disk) -> Result<()> {
        let line = format!("anabranch format {FORMAT_VERSION} segment_bytes {}", self.segment_bytes);
        let text = format!("{line} checksum {:08x}\n", crc32fast::hash(line.as_bytes())).repeat(2);
        let file = disk.open(FORMAT_FILE_NEW, Open::CreateIfMissing).map_err(io_error)?;
        file.set_len(0).map_err(io_error)?;
        file.write_all_at(0, &[IoSlice::new(text.as_bytes())]).map_err(io_error)?;
        file.sync().map_err(io_error)?;
        disk.rename(FORMAT_FILE_NEW, FORMAT_FILE).map_err(io_error)
    }
}

/// `Ok(None)` for a line that is not whole, an error for one from the future.
fn parse(line: &[u8]) -> Result<Option<Format>> {
    let Some((text, checksum)) =
        std::str::from_utf8(line).ok().and_then(|line| line.split_once(" checksum "))
    else {
        return Ok(None);
    };
    if u32::from_str_radix(checksum, 16) != Ok(crc32fast::hash(text.as_bytes())) {
        return Ok(None);
    }
    let words: Vec<&str> = text.split(' ').collect();
    match words[..] {
        ["anabranch", "format", version, "segment_bytes", bytes] if version == FORMAT_VERSION.to_string() => {
            Ok(bytes.parse().ok().map(|segment_bytes| Format { segment_bytes }))
        }
        ["anabranch", "format", version, ..] => Err(Error::Invalid(format!(
            "the data directory has format {version}, and this program knows format {FORMAT_VERSION} only: use the \
             version of anabranch that wrote it, or another directory"
        ))),
        _ => Ok(None),
    }
}

/// Who holds a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// What it was started as.
    pub command: String,
    /// Where it answers, once it does.
    pub listen: Option<SocketAddr>,
    /// Where its monitor answers, once it does.
    pub monitor: Option<SocketAddr>,
}

/// Why a directory cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it open.
    #[error("another process has the directory open: pid {} ({})", .0.pid, .0.command)]
    Held(Holder),
    /// The lock cannot be made.
    #[error("{path}: {error}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
}

/// The directory is ours while this lives. The kernel lets go of it even if the process is killed.
#[derive(Debug)]
pub struct DirectoryLock {
    file: File,
    command: String,
}

/// The file that the lock is on.
pub const LOCK_FILE: &str = "LOCK";

impl DirectoryLock {
    /// Takes the lock of a directory, making the directory if it does not exist.
    pub fn acquire(folder: &Path, command: &str) -> std::result::Result<DirectoryLock, LockError> {
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |error| LockError::Io { path, error }
        };
        std::fs::create_dir_all(folder).map_err(fail(folder))?;
        let path = folder.join(LOCK_FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(fail(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held(read_holder(&mut file))),
            Err(TryLockError::Error(error)) => return Err(fail(&path)(error)),
        }
        let lock = DirectoryLock { file, command: command.to_owned() };
        lock.write(None, None).map_err(fail(&path))?;
        Ok(lock)
    }

    /// Says where the holder answers.
    pub fn announce(&self, listen: SocketAddr, monitor: SocketAddr) -> io::Result<()> {
        self.write(Some(listen), Some(monitor))
    }

    fn write(&self, listen: Option<SocketAddr>, monitor: Option<SocketAddr>) -> io::Result<()> {
        let mut text = format!("pid {}\ncommand {}\n", std::process::id(), self.command);
        listen.iter().for_each(|address| text.push_str(&format!("listen {address}\n")));
        monitor.iter().for_each(|address| text.push_str(&format!("monitor {address}\n")));
        let mut file = &self.file;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(text.as_bytes())
    }
}

/// Nobody opens the directory while this lives, and nothing is written to it.
#[derive(Debug)]
pub struct SharedLock {
    _file: Option<File>,
}

impl SharedLock {
    /// Takes the lock of a directory that is only read.
    pub fn acquire(folder: &Path) -> std::result::Result<SharedLock, LockError> {
        let path = folder.join(LOCK_FILE);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            // A copy that was made by other means may have none.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SharedLock { _file: None }),
            Err(error) => return Err(LockError::Io { path, error }),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(SharedLock { _file: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(LockError::Held(read_holder(&mut file))),
            Err(TryLockError::Error(error)) => Err(LockError::Io { path, error }),
        }
    }
}

/// What the lock file says. It is read while its holder may be writing it, so anything may be missing.
fn read_holder(file: &mut File) -> Holder {
    let mut text = String::new();
    let _ = file.take(4096).read_to_string(&mut text);
    let value = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned)
    };
    Holder {
        pid: value("pid").and_then(|pid| pid.parse().ok()).unwrap_or(0),
        command: value("command").unwrap_or_else(|| "unknown".into()),
        listen: value("listen").and_then(|address| address.parse().ok()),
        monitor: value("monitor").and_then(|address| address.parse().ok()),
    }
}
