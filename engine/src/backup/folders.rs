//! Backups and restores between folders of the file system: which are refused, and what a failed one leaves behind.
//!
//! What must hold: a folder that had something in it is not touched; what is removed after a failure was made here.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use anabranch_model::{Disk, Error, Result};

use super::copy::{Watch, target_error};
use super::{Contents, restore};
pub use crate::directory::LOCK_FILE;
use crate::directory::{DirectoryLock, LockError, SharedLock};
use crate::engine::{Engine, Options};
use crate::system::{SystemClock, SystemDisk};

/// Names in a data directory.
const MADE_FILES: [&str; 6] = ["FORMAT", "FORMAT.new", "state.redb", "catalogue", "ballast", LOCK_FILE];
const MADE_FOLDERS: [&str; 2] = ["journal", "blobs"];

/// Backs an engine on the folder `data` up to the folder `target`, which must not exist or be empty.
pub fn backup_folder(engine: &Engine, data: &Path, target: &Path, watch: Watch<'_>) -> Result<Contents> {
    if !target.is_absolute() {
        return Err(Error::Invalid("the target of a backup has to be an absolute path".into()));
    }
    refuse_inside(target, data)?;
    let made = Made::folder(target, "anabranch backup")?;
    let contents = engine.backup(&made.disk, watch)?;
    made.keep()?;
    Ok(contents)
}

/// Restores the folder `backup` to the folder `data`, which must not exist or be empty, and opens it to see that it is
/// sound.
pub fn restore_folder(backup: &Path, data: &Path, watch: Watch<'_>) -> Result<Contents> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Error::Invalid(format!("there is no backup at {}", backup.display())),
        _ => Error::Invalid(format!("the backup at {} cannot be read: {error}", backup.display())),
    };
    if !fs::metadata(backup).map_err(unreadable)?.is_dir() {
        return Err(Error::Invalid(format!("there is no backup at {}: it is a file", backup.display())));
    }
    refuse_inside(data, backup)?;
    let _backup_lock = SharedLock::acquire(backup).map_err(|error| match error {
        LockError::Held(_) => Error::Invalid(format!("{error}: back it up first, and restore that")),
        LockError::Io { error, .. } => unreadable(error),
    })?;
    let made = Made::folder(data, "anabranch restore")?;
    let bytes = restore(&SystemDisk::read_only(backup), &made.disk, watch)?;
    let engine = Engine::open(made.disk.clone(), Arc::new(SystemClock::new()), Options::default())?;
    let checked = match engine.status().stopped {
        Some(reason) => Err(Error::Corrupt(format!("the backup is damaged: {reason}"))),
        None => engine.contents(),
    };
    let closed = engine.close_here();
    let contents = checked?;
    closed?;
    made.keep()?;
    Ok(Contents { bytes, ..contents })
}

/// A folder that was empty, and is so again unless it is kept.
struct Made {
    folder: PathBuf,
    disk: Arc<dyn Disk>,
    /// The part of its path that was there before.
    present: PathBuf,
    kept: bool,
    _lock: DirectoryLock,
}

impl Made {
    fn folder(folder: &Path, command: &str) -> Result<Made> {
        let folder = &std::path::absolute(folder).map_err(target_error)?;
        let present = folder.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(folder).to_owned();
        if present == *folder {
            refuse_more_than(0, folder)?;
        }
        let lock = DirectoryLock::acquire(folder, command).map_err(|error| match error {
            LockError::Io { error, .. } => target_error(error),
            held => Error::Invalid(format!("{}: {held}", folder.display())),
        })?;
        // Whoever held the lock until now may have filled it.
        refuse_more_than(1, folder)?;
        let disk = Arc::new(SystemDisk::open(folder).map_err(target_error)?);
        Ok(Made { folder: folder.to_owned(), disk, present, kept: false, _lock: lock })
    }

    /// Makes the name of the folder itself durable.
    fn keep(mut self) -> Result<()> {
        for parent in self.folder.ancestors().skip(1).take_while(|parent| parent.starts_with(&self.present)) {
            File::open(parent).and_then(|parent| parent.sync_all()).map_err(target_error)?;
        }
        self.kept = true;
        Ok(())
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // `FORMAT` goes first: what cannot be removed after it is no data directory.
        let mut removed: Vec<io::Result<()>> =
            MADE_FILES.iter().map(|name| fs::remove_file(self.folder.join(name))).collect();
        removed.extend(MADE_FOLDERS.iter().map(|name| fs::remove_dir_all(self.folder.join(name))));
        if self.present != self.folder {
            removed.push(fs::remove_dir(&self.folder));
        }
        for error in removed.into_iter().filter_map(io::Result::err) {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(%error, folder = %self.folder.display(), "what a failed copy left cannot be removed");
            }
        }
    }
}

/// Refuses a folder with more than so many names in it.
fn refuse_more_than(count: usize, folder: &Path) -> Result<()> {
    match fs::read_dir(folder).map(Iterator::count) {
        Ok(found) if found <= count => Ok(()),
        Ok(_) => Err(Error::Invalid(format!(
            "{} is not empty: choose a directory that is, or that does not exist",
            folder.display()
        ))),
        Err(error) => Err(Error::Invalid(format!("{} cannot be used: {error}", folder.display()))),
    }
}

/// Refuses a folder that is another one or lies in it, whatever links lead there.
fn refuse_inside(folder: &Path, other: &Path) -> Result<()> {
    let (resolved, outer) = (resolve(folder)?, resolve(other)?);
    if resolved.starts_with(&outer) {
        return Err(Error::Invalid(format!(
            "{} lies in {}: choose another place",
            folder.display(),
            other.display()
        )));
    }
    Ok(())
}

/// The real path of a folder, of which the end may not exist yet.
fn resolve(folder: &Path) -> Result<PathBuf> {
    let unusable =
        |why: &dyn std::fmt::Display| Error::Invalid(format!("{} cannot be used: {why}", folder.display()));
    let absolute = std::path::absolute(folder).map_err(|error| unusable(&error))?;
    for existing in absolute.ancestors() {
        match fs::canonicalize(existing) {
            Ok(mut real) => {
                for part in absolute.strip_prefix(existing).unwrap_or(Path::new("")).components() {
                    match part {
                        Component::Normal(name) => real.push(name),
                        _ => return Err(unusable(&"it goes up from a directory that does not exist")),
                    }
                }
                return Ok(real);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unusable(&error)),
        }
    }
    Err(unusable(&"it has no beginning"))
}
