//! The laws of [`Admin`] as tests, one function a law, for every implementation to run.
//!
//! An implementation names a future that makes an [`AdminFixture`], and gets one test a law:
//!
//! ```ignore
//! async fn fixture() -> AdminFixture {
//!     AdminFixture::new(Arc::new(MyStore::open().await))
//! }
//!
//! anabranch_model::admin_laws!(fixture());
//! ```
//!
//! All that is said of the laws of streams holds here too: see [`laws`](crate::laws).

mod documents;
mod owners;

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::{Admin, Owner, QueueStore, StreamStore, TableStore};

/// A store of documents, and of what documents belong to.
pub trait Everything: Admin + StreamStore + QueueStore + TableStore {}

impl<T: Admin + StreamStore + QueueStore + TableStore> Everything for T {}

type Store = Arc<dyn Everything>;
type Crash = Box<dyn Fn() -> BoxFuture<'static, Store> + Send + Sync>;

/// A store for one law.
pub struct AdminFixture {
    store: Store,
    crash: Option<Crash>,
    /// Dropped last: the store may live in it.
    kept: Vec<Box<dyn Any + Send + Sync>>,
}

impl AdminFixture {
    /// A store which cannot be made to crash.
    pub fn new(store: Arc<dyn Everything>) -> Self {
        AdminFixture { store, crash: None, kept: Vec::new() }
    }

    /// How to end the store without warning and to open what is left of it. The law has let go of the store before.
    pub fn with_crash<F>(mut self, crash: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Arc<dyn Everything>> + Send + 'static,
    {
        self.crash = Some(Box::new(move || Box::pin(crash())));
        self
    }

    /// Something to keep until the law has been decided, for instance the folder that the store lives in.
    pub fn keeping(mut self, thing: impl Any + Send + Sync) -> Self {
        self.kept.push(Box::new(thing));
        self
    }
}

impl fmt::Debug for AdminFixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminFixture").field("crash", &self.crash.is_some()).finish_non_exhaustive()
    }
}

/// A law being put to the test.
struct Trial {
    law: &'static str,
    fixture: AdminFixture,
}

impl Trial {
    fn store(&self) -> &dyn Everything {
        &*self.fixture.store
    }

    /// Ends the store and opens what is left, if that can be done.
    async fn crash(mut self) -> Option<Trial> {
        let crash = self.fixture.crash.take()?;
        drop(self.fixture.store);
        let store = crash().await;
        let fixture = AdminFixture { store, crash: Some(crash), kept: self.fixture.kept };
        Some(Trial { law: self.law, fixture })
    }

    #[track_caller]
    fn ok<T>(&self, what: &str, result: crate::Result<T>) -> T {
        result.unwrap_or_else(|error| panic!("law `{}`: {what} failed: {error}", self.law))
    }

    #[track_caller]
    fn same<T: PartialEq + fmt::Debug>(&self, what: &str, seen: T, expected: T) {
        assert!(seen == expected, "law `{}`: {what}: {seen:?} instead of {expected:?}", self.law);
    }

    /// The names of all documents of a kind.
    async fn names(&self, owner: &Owner, kind: &str, limit: usize) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        loop {
            let after = names.last().map(String::as_str);
            let page = self.ok("listing", self.store().documents(owner, kind, after, limit).await);
            assert!(page.entries.len() <= limit.max(1), "law `{}`: a page of {limit} is too long", self.law);
            assert!(!page.more || !page.entries.is_empty(), "law `{}`: an empty page says more", self.law);
            names.extend(page.entries.into_iter().map(|document| document.name));
            if !page.more {
                return names;
            }
        }
    }
}

/// Something that every store of documents does.
#[derive(Clone, Copy)]
pub struct AdminLaw {
    /// The law in words, with underscores.
    pub name: &'static str,
    check: fn(Trial) -> BoxFuture<'static, ()>,
}

impl AdminLaw {
    /// Puts a store to the test. The future panics if the law does not hold, and says what was seen.
    pub fn check(&self, fixture: AdminFixture) -> BoxFuture<'static, ()> {
        (self.check)(Trial { law: self.name, fixture })
    }

    /// The law with this name.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn named(name: &str) -> &'static AdminLaw {
        let found = all().iter().find(|law| law.name == name);
        found.unwrap_or_else(|| panic!("there is no law `{name}`"))
    }
}

impl fmt::Debug for AdminLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Makes the table of laws and the macro that turns it into tests from one list, so that no law can be forgotten.
/// The dollar sign comes in as an argument because a macro that writes a macro cannot spell it.
macro_rules! laws {
    ($dollar:tt $($module:ident: $($law:ident),+;)+) => {
        /// Every law.
        pub fn all() -> &'static [AdminLaw] {
            &[$($(AdminLaw { name: stringify!($law), check: |trial| Box::pin($module::$law(trial)) }),+),+]
        }

        /// Makes one `#[tokio::test]` a law. The argument is an expression for a future that makes an
        /// [`AdminFixture`](crate::laws::admin::AdminFixture); it is evaluated once a test.
        #[macro_export]
        macro_rules! admin_laws {
            ($dollar fixture:expr) => {
                $($(
                    #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $law() {
                        let fixture: $crate::laws::admin::AdminFixture = $dollar fixture.await;
                        let check = $crate::laws::admin::AdminLaw::named(stringify!($law)).check(fixture);
                        let limit = ::std::time::Duration::from_secs(60);
                        if ::tokio::time::timeout(limit, check).await.is_err() {
                            panic!("law `{}`: undecided after {limit:?}", stringify!($law));
                        }
                    }
                )+)+
            };
        }
    };
}

laws! { $
    documents:
        documents_come_back_as_they_were,
        what_is_absent_is_put_once,
        documents_are_listed_by_name,
        kinds_are_apart,
        bad_documents_are_refused,
        documents_survive_a_crash;
    owners:
        owners_are_apart,
        documents_go_with_their_owner,
        documents_of_nobody_are_refused,
        documents_of_the_dead_do_not_come_back;
}
