//! What an implementation hands to the laws: a store, and the strings by which time and accidents are pulled.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::blob::BlobStore;

pub(super) type Store = Arc<dyn BlobStore>;
pub(super) type Turn = Box<dyn Fn(Duration) + Send + Sync>;
pub(super) type Crash = Box<dyn Fn() -> BoxFuture<'static, Store> + Send + Sync>;
pub(super) type Spawn = Box<dyn Fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send + Sync>;

/// A store for one law. Everything beyond the store is optional; the more there is, the more of the laws can be put to
/// the test.
pub struct BlobFixture {
    pub(super) store: Store,
    pub(super) prefix: String,
    pub(super) advance: Option<Turn>,
    pub(super) crash: Option<Crash>,
    pub(super) spawn: Spawn,
    pub(super) times_are_near: bool,
    /// Dropped last: the store may live in it.
    pub(super) kept: Vec<Box<dyn Any + Send + Sync>>,
}

impl BlobFixture {
    /// A store whose clock cannot be reached and which cannot be made to crash.
    pub fn new(store: Arc<dyn BlobStore>) -> Self {
        BlobFixture {
            store,
            prefix: "law".to_string(),
            advance: None,
            crash: None,
            // Without a runtime the tasks of a law take turns inside the law itself.
            spawn: Box::new(|task| task),
            times_are_near: false,
            kept: Vec::new(),
        }
    }

    /// What names of buckets begin with, instead of `law`. A bucket that is left over from an earlier run is deleted.
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How to move the clock of the store forward. Nobody else moves it: without a call it stands still, or it runs
    /// as clocks do.
    pub fn with_advance(mut self, advance: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        self.advance = Some(Box::new(advance));
        self
    }

    /// How to end the store without warning and to open what is left of it. The law has let go of the store before;
    /// calls that had not returned by then were dropped. With it, each law needs a store of its own.
    pub fn with_crash<F>(mut self, crash: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Arc<dyn BlobStore>> + Send + 'static,
    {
        self.crash = Some(Box::new(move || Box::pin(crash())));
        self
    }

    /// How to start a task. The future that it returns ends with the task, and panics if the task did. `blob_laws!`
    /// brings tokio's.
    pub fn with_spawn(
        mut self,
        spawn: impl Fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        self.spawn = Box::new(spawn);
        self
    }

    /// For a store on a service that does not say in its answer to a put when that was: the time there is near the one
    /// that a look shows, and not compared with it.
    pub fn with_times_that_are_near(mut self) -> Self {
        self.times_are_near = true;
        self
    }

    /// Something to keep until the law has been decided, for instance the folder that the store lives in.
    pub fn keeping(mut self, thing: impl Any + Send + Sync) -> Self {
        self.kept.push(Box::new(thing));
        self
    }
}

impl fmt::Debug for BlobFixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobFixture")
            .field("advance", &self.advance.is_some())
            .field("crash", &self.crash.is_some())
            .finish_non_exhaustive()
    }
}
