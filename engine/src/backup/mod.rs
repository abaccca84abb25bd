//! Backups: a second data directory, with everything up to one position of the journal and nothing behind it.
//!
//! ```text
//!   checkpoint ─▶ copy of the state ─▶ upkeep goes on ─▶ segments and bodies ─▶ all synced ─▶ `FORMAT`
//!   └──────── upkeep stands still ───┘                 └── held, so that none goes ──┘
//! ```
//!
//! What must hold: the position is the one that the checkpoint covers, so whatever was acknowledged before the call is in
//! the copy, and streams, queues, tables and blobs show the same moment. Bytes at the position and behind it are zero in
//! the copy: a frame that was copied half would look like damage, and one that was copied whole would prove others that
//! were not. `FORMAT` comes last: without it a backup was cut short, and nobody restores it. The source is only read.
//!
//! Writers go on meanwhile. While the state is copied no checkpoint is stored, so those who write rows wait if the memory for
//! rows is used up before that.

mod copy;
mod folders;
mod restore;

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use anabranch_model::{Disk, Error, Open, Result};

use crate::blob::files::{self, HeldAll};
use crate::blob::layout;
use crate::core::Core;
use crate::directory::Format;
use crate::engine::Engine;
use crate::journal::Segment;
use crate::journal::segments;
use crate::rows::{Order, Space};
use crate::state::{self, io_error};
use copy::{Copying, target_error};
pub use copy::{Progress, Watch};
pub use folders::{backup_folder, restore_folder};
pub use restore::restore;

/// What a backup holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Bytes of all its files.
    pub bytes: u64,
    /// Streams.
    pub streams: u64,
    /// Queues.
    pub queues: u64,
    /// Tables.
    pub tables: u64,
    /// Buckets.
    pub buckets: u64,
    /// Bodies of blobs that the source has lost. Whoever reads these blobs is told, there and here.
    pub lost_bodies: u64,
}

/// The source at one position of the journal, with everything held that is still to be copied.
struct Moment {
    position: u64,
    segments: Vec<Arc<Segment>>,
    bodies: Vec<u64>,
    contents: Contents,
    _held: HeldAll,
}

impl Engine {
    /// Copies everything to an empty disk while the engine goes on. It waits for both disks, so it belongs on a thread that
    /// may. `watch` is shown how far it is, and ends it by saying false. What a failed backup leaves is no data directory.
    pub fn backup(&self, target: &Arc<dyn Disk>, watch: Watch<'_>) -> Result<Contents> {
        let core = self.core();
        if !target.list("").map_err(target_error)?.iter().all(|name| name == folders::LOCK_FILE) {
            return Err(Error::Invalid("the target of a backup has to be empty".into()));
        }
        let mut copying = Copying::new(&**target, watch);
        let mut moment = self.upkeep_part().at_checkpoint(|position| {
            let moment = Moment::at(core, position)?;
            copying.expect(moment.segments.iter().map(|segment| moment.bytes_of(core, segment)).sum());
            core.copy_state(&mut copying)?;
            Ok(moment)
        })?;
        // One that is missing is counted when it is copied.
        let length = |id: &u64| core.blobs.files.open(*id).and_then(|file| file.len()).unwrap_or(0);
        copying.expect(moment.bodies.iter().map(length).sum());
        moment.contents.lost_bodies = core.copy_held(&moment, &mut copying)?;
        copying.finish(Format { segment_bytes: core.segments.bytes })?;
        moment.contents.bytes = copying.copied_bytes();
        Ok(moment.contents)
    }

    /// What is there now, in numbers.
    fn contents(&self) -> Result<Contents> {
        self.upkeep_part().at_checkpoint(|_| count(self.core()))
    }
}

impl Moment {
    /// The caller lets no other checkpoint come.
    fn at(core: &Core, position: u64) -> Result<Moment> {
        let held = core.blobs.files.hold_all();
        let active = position / core.segments.bytes;
        let mut segments = core.segments.all();
        segments
            .retain(|segment| segment.number == active || (segment.number < active && segment.live() > 0));
        let mut bodies = Vec::new();
        stored_keys(core, &layout::files(), |key| {
            bodies.push(
                layout::read_file_key(key)
                    .map_err(|_| Error::Corrupt("the row of a file of a body makes no sense".into()))?,
            );
            Ok(())
        })?;
        Ok(Moment { position, segments, bodies, contents: count(core)?, _held: held })
    }

    /// How much of a segment lies before the position.
    fn bytes_of(&self, core: &Core, segment: &Segment) -> u64 {
        (self.position - core.segments.start_of(segment.number)).min(core.segments.bytes)
    }
}

/// Counts what the last checkpoint stored.
fn count(core: &Core) -> Result<Contents> {
    let rows = |prefix: &[u8]| {
        let mut count = 0;
        stored_keys(core, prefix, |_| {
            count += 1;
            Ok(())
        })?;
        Ok::<u64, Error>(count)
    };
    Ok(Contents {
        streams: core.state.load()?.streams.len() as u64,
        queues: rows(&[Space::Queues as u8])?,
        tables: rows(&[Space::Tables as u8])?,
        buckets: rows(&layout::buckets())?,
        ..Contents::default()
    })
}

/// Shows the keys of stored rows that begin with `prefix`.
fn stored_keys(core: &Core, prefix: &[u8], mut visit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let behind = layout::behind(prefix.to_vec());
    let bounds = (Bound::Included(prefix), Bound::Excluded(&behind[..]));
    core.state.view()?.range(bounds, Order::Forward, &mut std::iter::empty(), &mut |key, _| {
        visit(key).map(|()| ControlFlow::Continue(()))
    })
}

impl Core {
    /// Copies what only checkpoints write to.
    fn copy_state(&self, copying: &mut Copying<'_>) -> Result<()> {
        let view = self.state.view()?;
        for path in [state::FILE, state::COPY_FILE] {
            let file = self.disk.open(path, Open::Existing).map_err(io_error)?;
            let bytes = file.len().map_err(io_error)?;
            copying.expect(bytes);
            copying.file(&*file, path, bytes, bytes)?;
        }
        // Whoever opens the file again repairs it, and that may have been in the middle of the copy.
        if view.is_current() { Ok(()) } else { Err(Error::Unavailable("the state failed meanwhile".into())) }
    }

    /// Copies segments and bodies. Returns how many bodies are missing.
    fn copy_held(&self, moment: &Moment, copying: &mut Copying<'_>) -> Result<u64> {
        let running = || match self.sequencer.stopped() {
            Some(reason) => Err(Error::Stopped(reason)),
            None => Ok(()),
        };
        copying.folder(segments::FOLDER)?;
        for segment in &moment.segments {
            running()?;
            let (path, bytes) = (segments::path_of(segment.number), moment.bytes_of(self, segment));
            copying.file(&*segment.file, &path, bytes, self.segments.bytes)?;
        }
        let mut lost = 0;
        for id in &moment.bodies {
            running()?;
            let file = match self.blobs.files.open(*id) {
                Ok(file) => file,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    tracing::error!(id, "the file of a body is missing, and the backup goes without it");
                    lost += 1;
                    continue;
                }
                Err(error) => return Err(io_error(error)),
            };
            copying.folder(files::FOLDER)?;
            copying.folder(&files::folder_path(files::folder_of(*id)))?;
            let bytes = file.len().map_err(io_error)?;
            copying.file(&*file, &files::path_of(*id), bytes, bytes)?;
        }
        running()?;
        Ok(lost)
    }
}
