//! The laws of [`StreamStore`].

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

pub use fixture::StreamFixture;

use crate::StreamStore;

laws! { $ stream_laws in stream of dyn StreamStore:
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
