//! What an implementation hands to the laws of tables: a store, and the strings by which time and accidents are pulled.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::laws::fixture::{Spawn, Turn, Upkeep};
use crate::table::TableStore;

pub(super) type Store = Arc<dyn TableStore>;
pub(super) type Crash = Box<dyn Fn() -> BoxFuture<'static, Store> + Send + Sync>;

/// A store for one law, without limits per second. Everything beyond the store is optional; the more there is, the
/// more of the laws can be put to the test.
pub struct TableFixture {
    pub(super) store: Store,
    pub(super) prefix: String,
    pub(super) advance: Option<Turn>,
    pub(super) upkeep: Option<Upkeep>,
    pub(super) crash: Option<Crash>,
    pub(super) spawn: Spawn,
    /// Dropped last: the store may live in it.
    pub(super) kept: Vec<Box<dyn Any + Send + Sync>>,
}

impl TableFixture {
    /// A store whose clock cannot be reached and which cannot be made to crash.
    pub fn new(store: Arc<dyn TableStore>) -> Self {
        TableFixture {
            store,
            prefix: "law".to_string(),
            advance: None,
            upkeep: None,
            crash: None,
            // Without a runtime the tasks of a law take turns inside the law itself.
            spawn: Box::new(|task| task),
            kept: Vec::new(),
        }
    }

    /// What names of tables begin with, instead of `law`. A table that is left over from an earlier run is deleted.
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

    /// What a store does from time to time, as far as expiry and new indexes are concerned. It is called after time was moved,
    /// and again and again while a law waits for an index.
    pub fn with_upkeep<F>(mut self, upkeep: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.upkeep = Some(Box::new(move || Box::pin(upkeep())));
        self
    }

    /// How to end the store without warning and to open what is left of it. The law has let go of the store before;
    /// calls that had not returned by then were dropped. With it, each law needs a store of its own.
    pub fn with_crash<F>(mut self, crash: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Arc<dyn TableStore>> + Send + 'static,
    {
        self.crash = Some(Box::new(move || Box::pin(crash())));
        self
    }

    /// How to start a task. The future that it returns ends with the task, and panics if the task did. `table_laws!`
    /// brings tokio's.
    pub fn with_spawn(
        mut self,
        spawn: impl Fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        self.spawn = Box::new(spawn);
        self
    }

    /// Something to keep until the law has been decided, for instance the folder that the store lives in.
    pub fn keeping(mut self, thing: impl Any + Send + Sync) -> Self {
        self.kept.push(Box::new(thing));
        self
    }
}

impl fmt::Debug for TableFixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableFixture")
            .field("advance", &self.advance.is_some())
            .field("upkeep", &self.upkeep.is_some())
            .field("crash", &self.crash.is_some())
            .finish_non_exhaustive()
    }
}
