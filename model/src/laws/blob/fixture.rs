//! What only stores of blobs are asked for.

use crate::blob::BlobStore;
use crate::laws::Fixture;

/// A store of blobs for one law.
pub type BlobFixture = Fixture<dyn BlobStore>;

impl BlobFixture {
    /// For a store on a service that does not say in its answer to a put when that was: the time there is near the one
    /// that a look shows, and not compared with it.
    pub fn with_times_that_are_near(mut self) -> Self {
        self.means.times_are_near = true;
        self
    }
}
