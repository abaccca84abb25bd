//! One law in front of one store: what the fixture can do, and saying what was seen.
//!
//! Calls that a law takes for granted panic when they fail; every message begins with the name of the law.

use std::fmt::{Debug, Display};
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::fixture::{Fixture, Means};
use crate::{Error, Result};

/// Why a law about time is not put to the test.
pub(super) const NO_CLOCK: &str = "the clock of the fixture cannot be moved";
/// Why a law about crashes is not put to the test.
pub(super) const NO_CRASH: &str = "the store of the fixture cannot be made to crash";
/// More steps than any law needs: a loop that reaches it means that the store goes round in circles.
pub(super) const STEPS_MAX: usize = 100_000;
/// Most bytes of a value that a message repeats.
const SHOWN_BYTES_MAX: usize = 1_500;
/// How much of that comes before the first difference.
const SHOWN_BYTES_BEFORE: usize = 200;

/// A law that is put to the test. Each port adds what its laws do with a store.
pub(super) struct Trial<S: ?Sized + 'static> {
    pub(super) law: &'static str,
    store: Mutex<Option<Arc<S>>>,
    names: AtomicUsize,
    pub(super) means: Means<S>,
}

/// Lets everything else run once.
pub(super) fn give_way() -> impl Future<Output = ()> + Send {
    let mut given = false;
    poll_fn(move |context| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

impl<S: ?Sized> Trial<S> {
    pub(super) fn new(law: &'static str, fixture: Fixture<S>) -> Self {
        let Fixture { store, means } = fixture;
        Trial { law, store: Mutex::new(Some(store)), names: AtomicUsize::new(0), means }
    }

    /// A number that the law has not had before, for a name.
    pub(super) fn next_number(&self) -> usize {
        self.names.fetch_add(1, Ordering::Relaxed)
    }
}

/// Saying what was seen.
impl<S: ?Sized> Trial<S> {
    #[track_caller]
    pub(super) fn fail(&self, seen: impl Display) -> ! {
        panic!("law `{}`: {seen}", self.law)
    }

    #[track_caller]
    pub(super) fn holds(&self, condition: bool, seen: impl Display) {
        if !condition {
            self.fail(seen)
        }
    }

    #[track_caller]
    pub(super) fn same<T: PartialEq + Debug>(&self, what: impl Display, seen: T, expected: T) {
        if seen != expected {
            let [seen, expected] = differing(&format!("{seen:?}"), &format!("{expected:?}"));
            self.fail(format!("{what}:\n  saw      {seen}\n  expected {expected}"))
        }
    }

    #[track_caller]
    pub(super) fn ok<T>(&self, what: impl Display, result: Result<T>) -> T {
        result.unwrap_or_else(|error| self.fail(format!("{what} failed: {error} ({error:?})")))
    }

    /// Asserts that a call was refused with an error that `fits`.
    #[track_caller]
    pub(super) fn refused<T: Debug>(
        &self,
        what: impl Display,
        result: Result<T>,
        fits: impl Fn(&Error) -> bool,
    ) {
        match result {
            Ok(value) => self.fail(format!("{what} was not refused, but gave {value:?}")),
            Err(error) => {
                self.holds(fits(&error), format!("{what} was refused with {error:?}"));
                self.holds(!error.to_string().is_empty(), format!("{what} was refused without a word"));
            }
        }
    }

    /// Says why the law cannot be put to the test here.
    pub(super) fn skip(&self, why: &str) {
        eprintln!("law `{}` was not put to the test: {why}", self.law);
    }
}

/// Two texts from shortly before their first difference on: lists of records are long and mostly alike.
pub(super) fn differing(one: &str, other: &str) -> [String; 2] {
    let alike = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    [one, other].map(|text| {
        let start = text.floor_char_boundary(alike.saturating_sub(SHOWN_BYTES_BEFORE));
        let end = text.floor_char_boundary(start + SHOWN_BYTES_MAX);
        let before = if start > 0 { "… " } else { "" };
        let behind = if end < text.len() { " …" } else { "" };
        format!("{before}{}{behind}", &text[start..end])
    })
}

/// What the fixture can do.
impl<S: ?Sized> Trial<S> {
    pub(super) fn store(&self) -> Arc<S> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).clone();
        store.unwrap_or_else(|| self.fail("the store has crashed and is not open again"))
    }

    pub(super) fn can_crash(&self) -> bool {
        self.means.crash.is_some()
    }

    /// Ends the store without warning and goes on with what is left of it.
    pub(super) async fn crash(&self) {
        let Some(crash) = &self.means.crash else { self.fail("the fixture cannot crash") };
        let last_handle = self.store.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(last_handle);
        let store = crash().await;
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(store);
    }

    pub(super) fn can_advance(&self) -> bool {
        self.means.advance.is_some()
    }

    /// Moves the clock and lets the store tidy up.
    pub(super) async fn advance(&self, duration: Duration) {
        if let Some(advance) = &self.means.advance {
            advance(duration);
        }
        self.upkeep().await;
    }

    pub(super) async fn upkeep(&self) {
        if let Some(upkeep) = &self.means.upkeep {
            upkeep().await;
        }
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
        (self.means.spawn)(Box::pin(task))
    }
}
