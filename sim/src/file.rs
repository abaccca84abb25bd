//! An open file of a simulated disk.

use std::io::{self, IoSlice};
use std::sync::Arc;

use anabranch_model::DiskFile;
use parking_lot::{Mutex, MutexGuard};

use crate::entries::Inode;
use crate::live::Live;

/// A handle. It follows its file through renames, and keeps a removed one readable and writable.
pub(crate) struct SimFile {
    live: Arc<Mutex<Live>>,
    inode: Inode,
}

impl SimFile {
    /// Opens a file. The caller holds the lock of `live` as `locked`, so that no removal comes between.
    pub(crate) fn open(live: &Arc<Mutex<Live>>, locked: &mut Live, inode: Inode) -> Self {
        locked.take_handle(inode);
        SimFile { live: live.clone(), inode }
    }

    fn powered(&self) -> io::Result<MutexGuard<'_, Live>> {
        let live = self.live.lock();
        live.check_power()?;
        Ok(live)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.live.lock().drop_handle(self.inode);
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.powered()?.len(self.inode))
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let content = self.powered()?.readable(self.inode)?;
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > content.len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        content.read(offset, buffer);
        Ok(())
    }

    fn write_all_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> io::Result<()> {
        // The log keeps the bytes; they are gathered before the lock is taken.
        let data = joined(parts);
        self.powered()?.write(self.inode, offset, data)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.powered()?.allocate(self.inode, length)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.powered()?.set_len(self.inode, length)
    }

    fn sync(&self) -> io::Result<()> {
        self.powered()?.sync_file(self.inode)
    }
}

fn joined(parts: &[IoSlice<'_>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
    for part in parts {
        bytes.extend_from_slice(part);
    }
    bytes
}
