//! Restoring: a backup is a data directory, so its files are copied as they are.

use std::io;
use std::sync::Arc;

use anabranch_model::{Disk, DiskFile, Error, Open, Result};

use super::copy::{Copying, Watch, target_error};
use super::folders::LOCK_FILE;
use crate::blob::files;
use crate::directory::Format;
use crate::journal::segments;
use crate::state::{self, io_error};

/// Copies a backup, which nobody writes to, to an empty disk. Returns how many bytes it has.
pub fn restore(backup: &dyn Disk, target: &Arc<dyn Disk>, watch: Watch<'_>) -> Result<u64> {
    let Some(format) = Format::read(backup)? else {
        return Err(Error::Invalid(
            "there is no whole backup here: the file `FORMAT` is missing, which is written last, so it was cut short or it is \
             something else"
                .into(),
        ));
    };
    if !target.list("").map_err(target_error)?.iter().all(|name| name == LOCK_FILE) {
        return Err(Error::Invalid("a backup is restored to an empty directory only".into()));
    }
    let mut copying = Copying::new(&**target, watch);
    let mut total_bytes = 0;
    each(backup, &mut |_, _, bytes| {
        total_bytes += bytes;
        Ok(())
    })?;
    copying.expect(total_bytes);
    each(backup, &mut |path, file, bytes| {
        for (at, _) in path.match_indices('/') {
            copying.folder(&path[..at])?;
        }
        copying.file(file, path, bytes, bytes)
    })?;
    copying.folder(segments::FOLDER)?;
    copying.finish(format)?;
    Ok(copying.copied_bytes())
}

/// Shows every file of a data directory but its format.
fn each(disk: &dyn Disk, visit: &mut dyn FnMut(&str, &dyn DiskFile, u64) -> Result<()>) -> Result<()> {
    let mut show = |path: &str| match disk.open(path, Open::Existing) {
        Ok(file) => visit(path, &*file, file.len().map_err(io_error)?),
        // The state can be built again, and so the opening says what is wrong.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io_error(error)),
    };
    show(state::FILE)?;
    show(state::COPY_FILE)?;
    for name in names(disk, segments::FOLDER)?.iter().filter(|name| segments::number_of(name).is_some()) {
        show(&format!("{}/{name}", segments::FOLDER))?;
    }
    for folder in 0..files::FOLDERS {
        for name in names(disk, &files::folder_path(folder as u8))? {
            if files::id_of(&name).is_some_and(|id| files::folder_of(id) == folder as u8) {
                show(&format!("{}/{name}", files::folder_path(folder as u8)))?;
            }
        }
    }
    Ok(())
}

/// The names in a folder, in order; none if there is no such folder.
fn names(disk: &dyn Disk, folder: &str) -> Result<Vec<String>> {
    match disk.list(folder) {
        Ok(mut names) => {
            names.sort();
            Ok(names)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(io_error(error)),
    }
}
