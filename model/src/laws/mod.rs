//! The laws of [`StreamStore`](crate::StreamStore) as tests, one function a law, for every implementation to run.
//!
//! An implementation names a future that makes a [`Fixture`], and gets one test a law:
//!
//! ```ignore
//! async fn fixture() -> Fixture {
//!     Fixture::new(Arc::new(MyStore::open().await))
//! }
//!
//! anabranch_model::stream_laws!(fixture());
//! ```
//!
//! The user's own dev-dependency on tokio needs `macros`, `rt-multi-thread` and `time`. Whoever has another runtime
//! walks through [`all`] instead. A law makes its own streams, so laws may share a store; those about crashes
//! need one of their own.
//!
//! Tables have laws of their own in [`table`]; [`reference`](mod@reference) holds stores to compare others with.
//!
//! The laws look at a store from outside only: through the port, and through what the [`Fixture`] offers to do to
//! time and to the store. A law that a fixture cannot put to the test says so on standard error and passes.

pub mod admin;
pub mod blob;
pub mod queue;
pub mod reference;
pub mod table;

mod fixture;
mod trial;
mod written;

mod concurrency;
mod crash;
mod following;
mod lineage;
mod reading;
mod refusals;
mod resuming;
mod runs;
mod streams;
mod time;
mod writing;

use std::fmt;

use futures_util::future::BoxFuture;

pub use fixture::Fixture;
use trial::Trial;

/// Something that every store does.
#[derive(Clone, Copy)]
pub struct Law {
    /// The law in words, with underscores.
    pub name: &'static str,
    check: fn(Trial) -> BoxFuture<'static, ()>,
}

impl Law {
    /// Puts a store to the test. The future panics if the law does not hold, and says what was seen.
    pub fn check(&self, fixture: Fixture) -> BoxFuture<'static, ()> {
        (self.check)(Trial::new(self.name, fixture))
    }

    /// The law with this name.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn named(name: &str) -> &'static Law {
        let found = all().iter().find(|law| law.name == name);
        found.unwrap_or_else(|| panic!("there is no law `{name}`"))
    }
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Makes the table of laws and the macro that turns it into tests from one list, so that no law can be forgotten.
/// The dollar sign comes in as an argument because a macro that writes a macro cannot spell it.
macro_rules! laws {
    ($dollar:tt $($module:ident: $($law:ident),+;)+) => {
        /// Every law.
        pub fn all() -> &'static [Law] {
            &[$($(Law { name: stringify!($law), check: |trial| Box::pin($module::$law(trial)) }),+),+]
        }

        /// Makes one `#[tokio::test]` a law. The argument is an expression for a future that makes a
        /// [`Fixture`](crate::laws::Fixture); it is evaluated once a test.
        #[macro_export]
        macro_rules! stream_laws {
            ($dollar fixture:expr) => {
                $($(
                    #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $law() {
                        let fixture: $crate::laws::Fixture = $dollar fixture.await;
                        // Real tasks, so that calls of different writers overlap wherever they can.
                        let fixture = fixture.with_spawn(|task| {
                            let task = ::tokio::spawn(task);
                            ::std::boxed::Box::pin(async move {
                                if let Err(error) = task.await {
                                    ::std::panic::resume_unwind(error.into_panic());
                                }
                            })
                        });
                        let check = $crate::laws::Law::named(stringify!($law)).check(fixture);
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
    reading:
        records_come_back_as_they_were,
        records_keep_their_order,
        nothing_is_skipped,
        a_read_keeps_its_limits,
        behind_is_zero_only_at_the_end;
    resuming:
        at_and_after_find_their_record,
        a_batch_is_resumed_where_it_ended,
        latest_returns_only_what_comes_later,
        a_resolved_position_stays_resolved;
    time:
        arrival_never_decreases,
        at_timestamp_starts_with_the_first_arrival,
        at_timestamp_in_the_future_is_latest,
        retention_removes_what_is_old,
        retention_keeps_what_is_young,
        shortened_retention_removes_what_is_older,
        a_trimmed_position_goes_on_at_the_horizon,
        children_outlive_their_trimmed_parents;
    lineage:
        a_split_shard_ends_with_its_children,
        merged_shards_end_with_their_child,
        an_open_shard_never_ends,
        parents_are_listed_before_children,
        numbers_of_parents_are_smaller,
        pages_of_shards_join_to_the_listing,
        shard_ids_are_given_once;
    following:
        following_sees_what_reading_sees,
        following_starts_anywhere,
        following_latest_sees_only_what_comes_later,
        following_ends_with_the_shard,
        followers_do_not_disturb_each_other,
        following_a_deleted_stream_fails;
    writing:
        acknowledged_records_are_visible,
        records_go_where_their_key_belongs,
        appends_keep_their_order,
        results_stand_in_the_order_of_records,
        open_ranges_are_a_partition,
        numbers_are_given_once,
        an_append_of_the_most_records_is_stored,
        the_largest_append_is_stored;
    streams:
        streams_are_described,
        streams_are_listed_by_name,
        a_deleted_stream_is_gone,
        an_old_position_shows_no_younger_record;
    refusals:
        a_bad_record_fails_alone,
        bad_appends_are_refused,
        bad_splits_are_refused,
        bad_merges_are_refused,
        bad_streams_are_refused,
        unknown_names_are_refused;
    concurrency:
        writers_of_one_shard_keep_their_order,
        latest_holds_while_others_write,
        nothing_is_lost_while_shards_split_and_merge;
    crash:
        acknowledged_records_survive_a_crash,
        shards_survive_a_crash,
        streams_survive_a_crash,
        numbers_are_not_given_again_after_a_crash;
    runs:
        a_refused_record_takes_its_run_along,
        a_crash_leaves_no_hole_in_a_run;
}
