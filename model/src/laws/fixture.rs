//! What an implementation hands to the laws: a store, and the strings by which time and accidents are pulled.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::limits;

pub(super) type Turn = Box<dyn Fn(Duration) + Send + Sync>;
pub(super) type Doing = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;
pub(super) type Opening<S> = Box<dyn Fn() -> BoxFuture<'static, Arc<S>> + Send + Sync>;
pub(super) type Spawn = Box<dyn Fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send + Sync>;

/// A store for one law, without limits per second. Everything beyond the store is optional; the more there is, the
/// more of the laws can be put to the test.
pub struct Fixture<S: ?Sized + 'static> {
    pub(super) store: Arc<S>,
    pub(super) means: Means<S>,
}

/// What can be done to a store, and what is to be known of it.
pub(super) struct Means<S: ?Sized + 'static> {
    pub(super) prefix: String,
    pub(super) advance: Option<Turn>,
    pub(super) turn_back: Option<Turn>,
    pub(super) upkeep: Option<Doing>,
    pub(super) settle: Option<Doing>,
    pub(super) crash: Option<Opening<S>>,
    pub(super) limited: Option<Opening<S>>,
    pub(super) spawn: Spawn,
    pub(super) in_flight_max: usize,
    pub(super) message_bytes_max: usize,
    pub(super) tells_age: bool,
    pub(super) times_are_near: bool,
    /// Dropped last: the store may live in it.
    kept: Vec<Box<dyn Any + Send + Sync>>,
}

impl<S: ?Sized> Fixture<S> {
    /// A store whose clock cannot be reached and which cannot be made to crash.
    pub fn new(store: Arc<S>) -> Self {
        let means = Means {
            prefix: "law".to_string(),
            advance: None,
            turn_back: None,
            upkeep: None,
            settle: None,
            crash: None,
            limited: None,
            // Without a runtime the tasks of a law take turns inside the law itself.
            spawn: Box::new(|task| task),
            in_flight_max: limits::IN_FLIGHT_MAX,
            message_bytes_max: limits::MESSAGE_BYTES_MAX,
            tells_age: true,
            times_are_near: false,
            kept: Vec::new(),
        };
        Fixture { store, means }
    }

    /// What names begin with, instead of `law`. What is left over from an earlier run is deleted.
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.means.prefix = prefix.into();
        self
    }

    /// How to move the clock of the store forward. Nobody else moves it: without a call it stands still, or it runs
    /// as clocks do. Whoever waits in the store notices.
    pub fn with_advance(mut self, advance: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        self.means.advance = Some(Box::new(advance));
        self
    }

    /// What a store does from time to time, as far as retention, expiry, moves and new indexes are concerned. It is called
    /// after time was moved, and again and again while a law waits for an index.
    pub fn with_upkeep<F>(mut self, upkeep: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.means.upkeep = Some(Box::new(move || Box::pin(upkeep())));
        self
    }

    /// How to end the store without warning and to open what is left of it. The law has let go of the store before;
    /// calls that had not returned by then were dropped. With it, each law needs a store of its own.
    pub fn with_crash<F>(mut self, crash: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Arc<S>> + Send + 'static,
    {
        self.means.crash = Some(Box::new(move || Box::pin(crash())));
        self
    }

    /// How to start a task. The future that it returns ends with the task, and panics if the task did. The macros that make
    /// tests of laws bring tokio's.
    pub fn with_spawn(
        mut self,
        spawn: impl Fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        self.means.spawn = Box::new(spawn);
        self
    }

    /// Something to keep until the law has been decided, for instance the folder that the store lives in.
    pub fn keeping(mut self, thing: impl Any + Send + Sync) -> Self {
        self.means.kept.push(Box::new(thing));
        self
    }
}

impl<S: ?Sized> fmt::Debug for Fixture<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixture")
            .field("advance", &self.means.advance.is_some())
            .field("turn_back", &self.means.turn_back.is_some())
            .field("upkeep", &self.means.upkeep.is_some())
            .field("crash", &self.means.crash.is_some())
            .field("limits", &self.means.limited.is_some())
            .finish_non_exhaustive()
    }
}
