//! redb on our [`DiskFile`], so that the simulated disk reaches into it.

use std::fmt;
use std::io::{self, IoSlice};
use std::sync::Arc;

use anabranch_model::DiskFile;
use redb::StorageBackend;

pub(super) struct DiskBackend(Arc<dyn DiskFile>);

impl DiskBackend {
    pub(super) fn new(file: Arc<dyn DiskFile>) -> DiskBackend {
        DiskBackend(file)
    }
}

impl fmt::Debug for DiskBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DiskBackend")
    }
}

impl StorageBackend for DiskBackend {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, out)
    }

    /// Growth reserves the room, so that a full disk is noticed here and not in the middle of a commit.
    fn set_len(&self, len: u64) -> io::Result<()> {
        if len > self.0.len()? { self.0.allocate(len) } else { self.0.set_len(len) }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(offset, &[IoSlice::new(data)])
    }
}
