//! What an implementation hands to the laws of queues: a store, and the strings by which time and accidents are pulled.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::limits;
use crate::queue::QueueStore;

pub(super) type Store = Arc<dyn QueueStore>;
pub(super) type Turn = Box<dyn Fn(Duration) + Send + Sync>;
pub(super) type Upkeep = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;
pub(super) type Settle = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;
pub(super) type Crash = Box<dyn Fn() -> BoxFuture<'static, Store> + Send + Sync>;
pub(super) type Spawn = Box<dyn Fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send + Sync>;

/// A store for one law. Everything beyond the store is optional; the more there is, the more of the laws can be put to
/// the test.
pub struct QueueFixture {
    pub(super) store: Store,
    pub(super) prefix: String,
    pub(super) advance: Option<Turn>,
    pub(super) upkeep: Option<Upkeep>,
    pub(super) settle: Option<Settle>,
    pub(super) crash: Option<Crash>,
    pub(super) spawn: Spawn,
    pub(super) in_flight_max: usize,
    pub(super) tells_age: bool,
    /// Dropped last: the store may live in it.
    pub(super) kept: Vec<Box<dyn Any + Send + Sync>>,
}

impl QueueFixture {
    /// A store whose clock cannot be reached and which cannot be made to crash.
    pub fn new(store: Arc<dyn QueueStore>) -> Self {
        QueueFixture {
            store,
            prefix: "law".to_string(),
            advance: None,
            upkeep: None,
            settle: None,
            crash: None,
            // Without a runtime the tasks of a law take turns inside the law itself.
            spawn: Box::new(|task| task),
            in_flight_max: limits::IN_FLIGHT_MAX,
            tells_age: true,
            kept: Vec::new(),
        }
    }

    /// What names of queues begin with, instead of `law`. A queue that is left over from an earlier run is deleted.
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How to move the clock of the store forward. Nobody else moves it: without a call it stands still, or it runs as
    /// clocks do. Receivers that wait notice.
    pub fn with_advance(mut self, advance: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        self.advance = Some(Box::new(advance));
        self
    }

    /// What a store does from time to time, as far as retention and moves are concerned. It is called after time was
    /// moved.
    pub fn with_upkeep<F>(mut self, upkeep: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.upkeep = Some(Box::new(move || Box::pin(upkeep())));
        self
    }

    /// How to wait until calls that were begun have reached the store, where that takes longer than a few turns of the
    /// runtime: a receive that is still on its way does not notice what it should be waiting for.
    pub fn with_settle<F>(mut self, settle: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.settle = Some(Box::new(move || Box::pin(settle())));
        self
    }

    /// How to end the store without warning and to open what is left of it. The law has let go of the store before;
    /// calls that had not returned by then were dropped. With it, each law needs a store of its own.
    pub fn with_crash<F>(mut self, crash: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Arc<dyn QueueStore>> + Send + 'static,
    {
        self.crash = Some(Box::new(move || Box::pin(crash())));
        self
    }

    /// How to start a task. The future that it returns ends with the task, and panics if the task did. `queue_laws!`
    /// brings tokio's.
    pub fn with_spawn(
        mut self,
        spawn: impl Fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        self.spawn = Box::new(spawn);
        self
    }

    /// How many messages of a queue can be in flight in this store, where that is fewer than
    /// [`limits::IN_FLIGHT_MAX`], which is more than a law can try. Other laws need more than 200: they have as many in flight while others ask.
    pub fn with_in_flight_max(mut self, in_flight_max: usize) -> Self {
        self.in_flight_max = in_flight_max;
        self
    }

    /// For a store on a service that does not say how old the oldest message of a queue is.
    pub fn without_ages(mut self) -> Self {
        self.tells_age = false;
        self
    }

    /// Something to keep until the law has been decided, for instance the folder that the store lives in.
    pub fn keeping(mut self, thing: impl Any + Send + Sync) -> Self {
        self.kept.push(Box::new(thing));
        self
    }
}

impl fmt::Debug for QueueFixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueFixture")
            .field("advance", &self.advance.is_some())
            .field("upkeep", &self.upkeep.is_some())
            .field("crash", &self.crash.is_some())
            .finish_non_exhaustive()
    }
}
