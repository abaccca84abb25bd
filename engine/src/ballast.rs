//! Room that is kept for the state: on a full disk it is thrown overboard, so that a checkpoint can be stored without giving
//! up the segment that deletes and trims are waiting for.
//!
//! What must hold: nothing is ever written to the file; losing it in a crash costs nothing.

use std::io;
use std::sync::Arc;

use anabranch_model::{Disk, Open};
use parking_lot::Mutex;

const FILE: &str = "ballast";
/// Enough for a copy of the largest catalogue, and for the state to grow a little.
const BYTES: u64 = 2 << 20;

/// The file.
pub struct Ballast {
    disk: Arc<dyn Disk>,
    aboard: Mutex<bool>,
}

impl Ballast {
    /// Not known to be there.
    pub fn new(disk: Arc<dyn Disk>) -> Ballast {
        Ballast { disk, aboard: Mutex::new(false) }
    }

    /// Takes it aboard, if it is not.
    pub fn load(&self) -> io::Result<()> {
        let mut aboard = self.aboard.lock();
        if !*aboard {
            let file = self.disk.open(FILE, Open::CreateIfMissing)?;
            if let Err(error) = file.allocate(BYTES) {
                // The half-made file must not take the room that it could not get.
                drop(file);
                self.disk.remove(FILE)?;
                return Err(error);
            }
            *aboard = true;
        }
        Ok(())
    }

    /// Gives its room back to the file system. Returns false if it was not there.
    pub fn drop_it(&self) -> bool {
        let mut aboard = self.aboard.lock();
        *aboard = false;
        self.disk.remove(FILE).is_ok()
    }
}
