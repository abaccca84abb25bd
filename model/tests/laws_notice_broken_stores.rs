//! The laws of streams can be broken: for each of them there is a store with one fault that it notices.

use anabranch_model::laws::stream;
use broken_store::{BrokenStore, Fault};
use court::{Noticed, verdict};

mod broken_store;
mod court;

#[rustfmt::skip]
const NOTICED: Noticed<Fault> = &[
    (Fault::DropsLastOfAppend, &["nothing_is_skipped", "nothing_is_lost_while_shards_split_and_merge"]),
    (Fault::ReversesAppends, &["appends_keep_their_order", "writers_of_one_shard_keep_their_order"]),
    (Fault::ReversesResults, &["results_stand_in_the_order_of_records"]),
    (Fault::CutsPayloads, &[
        "records_come_back_as_they_were",
        "an_append_of_the_most_records_is_stored",
        "the_largest_append_is_stored",
    ]),
    (Fault::RoutesToFirstShard, &["records_go_where_their_key_belongs"]),
    (Fault::NumbersPerStream, &["numbers_are_given_once", "an_old_position_shows_no_younger_record"]),
    (Fault::FailsWholeAppend, &["a_bad_record_fails_alone"]),
    (Fault::SwapsRecords, &["records_keep_their_order"]),
    (Fault::ShowsLastRecordLate, &["acknowledged_records_are_visible"]),
    (Fault::IgnoresLimits, &["a_read_keeps_its_limits"]),
    (Fault::ResumesTooFar, &["a_batch_is_resumed_where_it_ended", "nothing_is_skipped"]),
    (Fault::AfterIsAt, &["at_and_after_find_their_record"]),
    (Fault::LatestReturnsOld, &["latest_returns_only_what_comes_later", "latest_holds_while_others_write"]),
    (Fault::LatestStaysLatest, &["a_resolved_position_stays_resolved"]),
    (Fault::AlwaysCaughtUp, &["behind_is_zero_only_at_the_end"]),
    (Fault::ArrivalIsTimeOfDay, &["arrival_never_decreases"]),
    (Fault::AtTimestampIsHorizon, &["at_timestamp_starts_with_the_first_arrival"]),
    (Fault::FutureIsAwaited, &["at_timestamp_in_the_future_is_latest"]),
    (Fault::KeepsForever, &[
        "retention_removes_what_is_old",
        "shortened_retention_removes_what_is_older",
        "children_outlive_their_trimmed_parents",
    ]),
    (Fault::ForgetsEarly, &["retention_keeps_what_is_young"]),
    (Fault::TrimmedIsLatest, &["a_trimmed_position_goes_on_at_the_horizon"]),
    (Fault::NeverEnds, &["a_split_shard_ends_with_its_children", "merged_shards_end_with_their_child"]),
    (Fault::EndsWhenCaughtUp, &["an_open_shard_never_ends"]),
    (Fault::ListsBackwards, &["parents_are_listed_before_children", "streams_are_listed_by_name"]),
    (Fault::PagesSkip, &["pages_of_shards_join_to_the_listing"]),
    (Fault::HidesShard, &["open_ranges_are_a_partition"]),
    (Fault::MisstatesBounds, &["numbers_of_parents_are_smaller"]),
    (Fault::ReturnsParentAsChild, &["shard_ids_are_given_once"]),
    (Fault::FollowRepeats, &[
        "following_sees_what_reading_sees",
        "followers_do_not_disturb_each_other",
        "nothing_is_lost_while_shards_split_and_merge",
    ]),
    (Fault::FollowsFromHorizon, &["following_starts_anywhere", "following_latest_sees_only_what_comes_later"]),
    (Fault::FollowStopsSilently, &["following_ends_with_the_shard", "following_a_deleted_stream_fails"]),
    (Fault::MiscountsShards, &["streams_are_described"]),
    (Fault::DeletesNothing, &["a_deleted_stream_is_gone"]),
    (Fault::SwallowsErrors, &[
        "bad_appends_are_refused",
        "bad_splits_are_refused",
        "bad_merges_are_refused",
        "bad_streams_are_refused",
        "unknown_names_are_refused",
    ]),
    (Fault::LosesLastChange, &[
        "acknowledged_records_survive_a_crash",
        "shards_survive_a_crash",
        "streams_survive_a_crash",
        "numbers_are_not_given_again_after_a_crash",
    ]),
    (Fault::StoresBehindRefused, &["a_refused_record_takes_its_run_along"]),
    (Fault::TearsLastAppend, &["a_crash_leaves_no_hole_in_a_run"]),
];

#[tokio::test]
async fn every_fault_is_noticed() {
    court::faults_are_noticed(NOTICED, stream::named, BrokenStore::fixture).await;
}

#[test]
fn every_law_notices_a_fault() {
    court::laws_notice_faults(NOTICED, stream::all());
}

/// The wrapper itself keeps the laws: a fault that a law does not look at leaves it in peace.
#[tokio::test]
async fn innocent_stores_are_acquitted() {
    for name in [
        "records_keep_their_order",
        "bad_splits_are_refused",
        "streams_survive_a_crash",
        "a_refused_record_takes_its_run_along",
        "a_crash_leaves_no_hole_in_a_run",
    ] {
        assert_eq!(verdict(stream::named(name), BrokenStore::fixture(Fault::AlwaysCaughtUp)).await, Ok(()));
    }
}
