//! Projections: which parts of an item are wanted.

use crate::error::{Error, Result};
use crate::table::path::{Path, PathTree};
use crate::table::value::Item;

/// Paths whose values are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection(pub Vec<Path>);

impl Projection {
    /// The values at these paths.
    pub fn of<P: Into<Path>>(paths: impl IntoIterator<Item = P>) -> Self {
        Projection(paths.into_iter().map(Into::into).collect())
    }

    /// Whether a store may be asked for this: no path contains another.
    pub fn check(&self) -> Result<()> {
        if self.0.is_empty() {
            return Err(Error::Invalid("a projection has no path".to_string()));
        }
        PathTree::of(&self.0, "projections").map(drop)
    }

    /// The parts of an item that lie at the paths, in maps and lists as before; parts of one map or list come in one,
    /// and elements of a list close up. Paths that lead nowhere add nothing.
    pub fn apply(&self, item: &Item) -> Result<Item> {
        Ok(PathTree::of(&self.0, "projections")?.pick(item))
    }
}
