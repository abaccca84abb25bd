//! What an implementation hands to the laws: a store, and the strings by which time and accidents are pulled.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::stream::StreamStore;

pub(super) type Store = Arc<dyn StreamStore>;
pub(super) type Turn = Box<dyn Fn(Duration) + Send + Sync>;
pub(super) type Upkeep = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;
pub(super) type Crash = Box<dyn Fn() -> BoxFuture<'static, Store> + Send + Sync>;
pub(super) type Limited = Box<dyn Fn() -> BoxFuture<'static, Store> + Send + Sync>;
pub(super) type Spawn = Box<dyn Fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send + Sync>;

/// A store for one law, without limits per second. Everything beyond the store is optional; the more there is, the
/// more of the laws can be put to the test.
pub struct Fixture {
    pub(super) store: Store,
    pub(super) prefix: String,
    pub(super) advance: Option<Turn>,
    pub(super) turn_back: Option<Turn>,
    pub(super) upkeep: Option<Upkeep>,
    pub(super) crash: Option<Crash>,
    pub(super) limited: Option<Limited>,
    pub(super) spawn: Spawn,
    /// Dropped last: the store may live in it.
    pub(super) kept: Vec<Box<dyn Any + Send + Sync>>,
}

impl Fixture {
    /// A store whose clock cannot be reached and which cannot be made to crash.
    pub fn new(store: Arc<dyn StreamStore>) -> Self {
        Fixture {
            store,
            prefix: "law".to_string(),
            advance: None,
            turn_back: None,
            upkeep: None,
            crash: None,
            limited: None,
            // Without a runtime the tasks of a law take turns inside the law itself.
            spawn: Box::new(|task| task),
            kept: Vec::new(),
        }
    }

    /// What names of streams begin with, instead of `law`. A stream that is left over from an earlier run is deleted.
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

    /// How to make the time of day jump back, as [`Clock::now`](crate::Clock::now) may.
    pub fn with_turn_back(mut self, turn_back: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        self.turn_back = Some(Box::new(turn_back));
        self
    }

    /// What a store does from time to time, as far as retention is concerned. It is called after time was moved.
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
        F: Future<Output = Arc<dyn StreamStore>> + Send + 'static,
    {
        self.crash = Some(Box::new(move || Box::pin(crash())));
        self
    }

    /// How to open a store of the same kind that refuses what is more than a shard may take in a second
    /// ([`limits`](crate::limits)), for the law about refusals. It is a store of its own.
    pub fn with_limits<F>(mut self, limited: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Arc<dyn StreamStore>> + Send + 'static,
    {
        self.limited = Some(Box::new(move || Box::pin(limited())));
        self
    }

    /// How to start a task. The future that it returns ends with the task, and panics if the task did. `stream_laws!`
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

impl fmt::Debug for Fixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixture")
            .field("advance", &self.advance.is_some())
            .field("turn_back", &self.turn_back.is_some())
            .field("upkeep", &self.upkeep.is_some())
            .field("crash", &self.crash.is_some())
            .field("limits", &self.limited.is_some())
            .finish_non_exhaustive()
    }
}
