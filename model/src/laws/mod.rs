//! The laws of the ports as tests, one function a law, for every implementation to run.
//!
//! An implementation names a future that makes a [`Fixture`], and gets one test a law:
//!
//! ```ignore
//! async fn fixture() -> StreamFixture {
//!     StreamFixture::new(Arc::new(MyStore::open().await))
//! }
//!
//! anabranch_model::stream_laws!(fixture());
//! ```
//!
//! The user's own dev-dependency on tokio needs `macros`, `rt-multi-thread` and `time`. Whoever has another runtime
//! walks through [`stream::all`] instead. A law makes its own streams, so laws may share a store; those about crashes
//! need one of their own.
//!
//! There are laws of [`stream`]s, [`queue`]s, [`table`]s, [`blob`]s and of what servers keep ([`admin`]);
//! [`reference`](mod@reference) holds stores to compare others with.
//!
//! The laws look at a store from outside only: through the port, and through what the [`Fixture`] offers to do to
//! time and to the store. A law that a fixture cannot put to the test says so on standard error and passes.

/// Makes the table of laws and the macro that turns it into tests from one list, so that no law can be forgotten.
/// The dollar sign comes in as an argument because a macro that writes a macro cannot spell it.
macro_rules! laws {
    ($dollar:tt $tests:ident in $port:ident of $store:ty: $($module:ident: $($law:ident),+;)+) => {
        /// Every law.
        pub fn all() -> &'static [$crate::laws::Law<$store>] {
            &[$($($crate::laws::Law {
                name: stringify!($law),
                check: |trial| Box::pin($module::$law(trial)),
            }),+),+]
        }

        /// The law with this name.
        ///
        /// # Panics
        ///
        /// If there is none.
        pub fn named(name: &str) -> &'static $crate::laws::Law<$store> {
            let found = all().iter().find(|law| law.name == name);
            found.unwrap_or_else(|| panic!("there is no law `{name}`"))
        }

        /// Makes one `#[tokio::test]` a law. The argument is an expression for a future that makes a
        /// [`Fixture`](crate::laws::Fixture); it is evaluated once a test.
        #[macro_export]
        macro_rules! $tests {
            ($dollar fixture:expr) => {
                $($(
                    #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $law() {
                        // Real tasks, so that calls of different callers overlap wherever they can.
                        let fixture = $dollar fixture.await.with_spawn(|task| {
                            let task = ::tokio::spawn(task);
                            ::std::boxed::Box::pin(async move {
                                if let Err(error) = task.await {
                                    ::std::panic::resume_unwind(error.into_panic());
                                }
                            })
                        });
                        let check = $crate::laws::$port::named(stringify!($law)).check(fixture);
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

pub mod admin;
pub mod blob;
pub mod queue;
pub mod reference;
pub mod stream;
pub mod table;

mod dice;
mod fixture;
mod trial;

use std::fmt;

use futures_util::future::BoxFuture;

pub use fixture::Fixture;
use trial::Trial;

/// Something that every store of a kind does.
pub struct Law<S: ?Sized + 'static> {
    /// The law in words, with underscores.
    pub name: &'static str,
    check: fn(Trial<S>) -> BoxFuture<'static, ()>,
}

impl<S: ?Sized> Law<S> {
    /// Puts a store to the test. The future panics if the law does not hold, and says what was seen.
    pub fn check(&self, fixture: Fixture<S>) -> BoxFuture<'static, ()> {
        (self.check)(Trial::new(self.name, fixture))
    }
}

impl<S: ?Sized> fmt::Debug for Law<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
