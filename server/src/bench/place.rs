//! The folder of a bench: made beside the default data directory, and removed whatever becomes of the bench.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A folder that is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    root: PathBuf,
}

impl Place {
    /// Makes a folder of its own in `parent`, or where data lives by default.
    pub(crate) fn make(parent: Option<&Path>) -> Result<Place, Failure> {
        let parent = parent.unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(|error| Failure::io("make the folder", parent, &error))?;
        let parent = parent.canonicalize().map_err(|error| Failure::io("find", parent, &error))?;
        let root = parent.join(format!("anabranch-bench-{}", std::process::id()));
        std::fs::create_dir(&root).map_err(|error| Failure::io("make the folder", &root, &error))?;
        Ok(Place { root })
    }

    /// The folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A folder in it.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.root.join(name);
        std::fs::create_dir_all(&path).map_err(|error| Failure::io("make the folder", &path, &error))?;
        Ok(path)
    }

    /// Removes a folder in it, to make room for the next part.
    pub(crate) fn clear(&self, name: &str) {
        remove(&self.root.join(name));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        remove(&self.root);
    }
}

/// An engine that is on its way out may still add a file while this removes the others.
fn remove(path: &Path) {
    for _ in 0..5 {
        if std::fs::remove_dir_all(path).is_ok() || !path.exists() {
            return;
        }
    }
    crate::output::note(format!("{} could not be removed", path.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_behind() {
        let parent = tempfile::tempdir().unwrap();
        let place = Place::make(Some(parent.path())).unwrap();
        let folder = place.folder("engine").unwrap();
        std::fs::write(folder.join("file"), b"bytes").unwrap();
        drop(place);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
