//! The real disk and the real clock.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anabranch_model::{Clock, Disk, DiskFile, Open, Timestamp};

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct SystemDisk {
    root: PathBuf,
    writable: bool,
}

impl SystemDisk {
    /// Opens a folder, making it if it does not exist.
    pub fn open(root: &Path) -> io::Result<SystemDisk> {
        fs::create_dir_all(root)?;
        Ok(SystemDisk { root: root.to_owned(), writable: true })
    }

    /// A folder that is only read; it may be on a disk that cannot be written to.
    pub fn read_only(root: &Path) -> SystemDisk {
        SystemDisk { root: root.to_owned(), writable: false }
    }

    fn path(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }
}

impl Disk for SystemDisk {
    fn open(&self, path: &str, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(self.writable);
        match how {
            Open::Existing => &mut options,
            Open::CreateNew => options.create_new(true),
            Open::CreateIfMissing => options.create(true).truncate(false),
        };
        Ok(Arc::new(SystemFile(options.open(self.path(path))?)))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(folder))? {
            // A name that is not UTF-8 is none of ours.
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn create_folder(&self, folder: &str) -> io::Result<()> {
        match fs::create_dir(self.path(folder)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.path(path))
    }

    fn sync_directory(&self, folder: &str) -> io::Result<()> {
        File::open(self.path(folder))?.sync_all()
    }
}

struct SystemFile(File);

/// Parts of one system call; the kernel takes no more.
const PARTS_MAX: usize = 1024;

impl DiskFile for SystemFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    #[cfg(target_os = "linux")]
    fn read_cached_at(&self, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<bool> {
        use rustix::io::{Errno, ReadWriteFlags, preadv2};
        while !buffer.is_empty() {
            let mut parts = [io::IoSliceMut::new(buffer)];
            match preadv2(&self.0, &mut parts, offset, ReadWriteFlags::NOWAIT) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
                Err(Errno::INTR) => {}
                // Not in the cache, or a file system that cannot tell.
                Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    fn write_all_at(&self, mut offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()> {
        for chunk in parts.chunks(PARTS_MAX) {
            let mut left: Vec<IoSlice<'_>> = chunk.iter().map(|part| IoSlice::new(part)).collect();
            let mut left = &mut left[..];
            while !left.is_empty() {
                let written = match rustix::io::pwritev(&self.0, left, offset) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => written,
                    Err(rustix::io::Errno::INTR) => continue,
                    Err(error) => return Err(error.into()),
                };
                offset += written as u64;
                IoSlice::advance_slices(&mut left, written);
            }
        }
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn begin_sync(&self, offset: u64, bytes: u64) {
        use std::os::fd::AsRawFd;
        let (Ok(offset), Ok(bytes)) = (offset.try_into(), bytes.try_into()) else { return };
        // What cannot be begun is left to the sync, which also tells what failed.
        #[allow(unsafe_code, reason = "the call reads no memory of ours, and the file is open while it runs")]
        let _ =
            unsafe { libc::sync_file_range(self.0.as_raw_fd(), offset, bytes, libc::SYNC_FILE_RANGE_WRITE) };
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let present = self.len()?;
        if length <= present {
            return Ok(());
        }
        match reserve(&self.0, present, length) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => self.fill_with_zeros(present, length),
            other => other,
        }
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        full_sync(&self.0)
    }
}

impl SystemFile {
    /// Reserves room on file systems that cannot do it in another way.
    fn fill_with_zeros(&self, from: u64, to: u64) -> io::Result<()> {
        let zeros = vec![0; 1 << 20];
        let mut at = from;
        while at < to {
            let bytes = zeros.len().min((to - at) as usize);
            self.0.write_all_at(&zeros[..bytes], at)?;
            at += bytes as u64;
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn reserve(file: &File, present: u64, length: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    fallocate(file, FallocateFlags::empty(), present, length - present).map_err(|error| match error {
        rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS => io::ErrorKind::Unsupported.into(),
        error => error.into(),
    })
}

#[cfg(target_os = "macos")]
fn reserve(_file: &File, _present: u64, _length: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!(
    "Anabranch runs on Linux and macOS: it knows how to make data durable there, and nowhere else"
);

#[cfg(target_os = "linux")]
fn full_sync(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// On macOS `fsync` leaves data in the drive's cache; the standard library asks for the full sync.
#[cfg(target_os = "macos")]
fn full_sync(file: &File) -> io::Result<()> {
    file.sync_all()
}

/// The clocks of the machine.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that counts elapsed time from now.
    #[allow(clippy::disallowed_methods, reason = "this is the place where time enters")]
    pub fn new() -> SystemClock {
        SystemClock { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the place where time enters")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}
