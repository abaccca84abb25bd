//! Files as a value: the engine reaches its directory only through [`Disk`], so that a simulated disk can
//! lose, reorder and tear what was not synced.
//!
//! Laws of an implementation, real or simulated:
//!
//! 1. Bytes written before a [`DiskFile::sync`] that returned `Ok` are read back after any crash, together with
//!    the length that is needed to read them.
//! 2. Bytes written and not synced may be there after a crash, or not, sector by sector, in any order.
//! 3. A write never damages bytes outside its own range.
//! 4. A created, renamed or removed entry survives a crash only once [`Disk::sync_directory`] on its folder
//!    returned `Ok`; until then the old or the new state may be found. A rename is never seen half done.
//! 5. Room that [`DiskFile::allocate`] reserved is there: writes inside it do not fail for want of space.
//! 6. After a failed sync nothing is known about the bytes it covered. Callers stop writing.
//!
//! Paths are relative to the root of the disk and use `/`.

use std::io::{self, IoSlice};
use std::sync::Arc;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// The file must exist.
    Existing,
    /// The file must not exist; it is created empty.
    CreateNew,
    /// The file is created empty if it does not exist.
    CreateIfMissing,
}

/// A folder with everything below it.
pub trait Disk: Send + Sync + 'static {
    /// Opens a file for reading and writing.
    fn open(&self, path: &str, how: Open) -> io::Result<Arc<dyn DiskFile>>;

    /// The names in a folder, in no particular order. The root is the empty path.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Creates a folder; its parent must exist. An existing folder is not an error.
    fn create_folder(&self, folder: &str) -> io::Result<()>;

    /// Renames a file, replacing the target if there is one.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Makes the entries of a folder durable. The root is the empty path.
    fn sync_directory(&self, folder: &str) -> io::Result<()>;
}

/// An open file. All methods take `&self`: positions are explicit and calls may run at the same time.
pub trait DiskFile: Send + Sync + 'static {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file holds no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buffer` from `offset`; an error of kind `UnexpectedEof` if the file ends before that.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Fills `buffer` from `offset` if that needs no wait for the disk; false if it would, or if nobody can tell.
    fn read_cached_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        let _ = (offset, buffer);
        Ok(false)
    }

    /// Writes all of `parts`, one behind the other, from `offset`.
    fn write_all_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()>;

    /// Says that a sync of bytes that were written here comes next, so that a disk can begin with them while the caller does
    /// something else. It promises nothing: only the sync does.
    fn begin_sync(&self, offset: u64, bytes: u64) {
        let _ = (offset, bytes);
    }

    /// Makes the file at least `length` bytes long with room reserved for all of them; new bytes read as zero.
    fn allocate(&self, length: u64) -> io::Result<()>;

    /// Cuts or extends the file; new bytes read as zero.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Makes written bytes durable, with the metadata that is needed to read them.
    fn sync(&self) -> io::Result<()>;
}
