//! The laws of tables can be broken: for each of them there is a store with one fault that it notices.

use anabranch_model::laws::table;
use broken_tables::{BrokenTables, Fault};
use court::{Noticed, verdict};

mod broken_tables;
mod court;

#[rustfmt::skip]
const NOTICED: Noticed<Fault> = &[
    (Fault::MiscountsItems, &["tables_are_described"]),
    (Fault::ListsBackwards, &["tables_are_listed_by_name"]),
    (Fault::DeletesNoTable, &["a_deleted_table_is_gone"]),
    (Fault::DropsNulls, &["items_come_back_as_they_were"]),
    (Fault::MergesPuts, &["a_put_replaces_the_whole_item"]),
    (Fault::DeletesNothing, &["a_deleted_item_is_gone", "a_condition_decides_about_a_write"]),
    (Fault::FoldsKeys, &["keys_tell_items_apart"]),
    (Fault::ShowsWholeItems, &["reads_show_the_wanted_parts", "a_scan_shows_every_item_once"]),
    (Fault::CutsLongTexts, &["the_largest_item_is_stored"]),
    (Fault::ReturnsNothing, &["writes_return_what_was_asked_for"]),
    (Fault::IgnoresConditions, &[
        "a_condition_decides_about_a_write",
        "counters_of_many_writers_are_exact",
        "one_of_many_conditional_writes_wins",
    ]),
    (Fault::HidesFailedItem, &["a_failed_condition_shows_the_item"]),
    (Fault::ForgetsNegation, &["conditions_compare_as_they_should"]),
    (Fault::UpdatesOneByOne, &["updates_see_the_item_as_it_was"]),
    (Fault::UpdatesTopOnly, &["updates_reach_into_lists_and_maps"]),
    (Fault::AddsTwice, &["updates_add_to_numbers_and_sets", "counters_of_many_writers_are_exact"]),
    (Fault::RemovalsMakeItems, &["an_update_that_only_removes_makes_no_item"]),
    (Fault::UpdatesMakeNothing, &["an_update_makes_an_item"]),
    (Fault::SortsByText, &["a_query_is_in_the_order_of_range_values"]),
    (Fault::IgnoresRange, &["a_query_covers_its_key_condition"]),
    (Fault::PagesSkip, &["pages_join_in_both_directions", "a_scan_shows_every_item_once", "pages_of_an_index_join"]),
    (Fault::IgnoresLimits, &["a_page_keeps_its_limits"]),
    (Fault::CountsReturnedOnly, &["a_filter_counts_what_it_looked_at"]),
    (Fault::EverySegmentIsAll, &["segments_hold_every_item_once"]),
    (Fault::IgnoresIndexes, &[
        "an_index_is_added_and_dropped",
        "an_index_holds_what_has_its_key",
        "an_index_shows_its_projection",
        "a_local_index_orders_within_a_hash_value",
        "a_local_index_finds_whole_items",
        "pages_of_an_index_join",
    ]),
    (Fault::AnswersBackwards, &["a_batch_of_reads_answers_in_order"]),
    (Fault::BatchesWithoutEnd, &["a_batch_of_reads_leaves_the_rest"]),
    (Fault::DropsLastWrite, &["a_batch_writes_and_deletes", "a_transaction_happens_as_a_whole"]),
    (Fault::HalfTransactions, &["a_cancelled_transaction_changes_nothing", "readers_see_whole_transactions"]),
    (Fault::ForgetsTokens, &["a_token_makes_a_transaction_happen_once", "tokens_survive_a_crash"]),
    (Fault::KeepsTokens, &["a_token_is_forgotten"]),
    (Fault::LosesOldImages, &["changes_show_what_the_view_asks_for"]),
    (Fault::RepeatsChanges, &[
        "what_makes_no_difference_is_not_written_down",
        "a_random_walk_agrees_with_the_reference",
    ]),
    (Fault::ChangesNeverEnd, &["changes_end_when_they_are_turned_off"]),
    (Fault::FollowsTwice, &["following_changes_sees_each_once"]),
    (Fault::FollowsBackwards, &["following_changes_sees_each_once"]),
    (Fault::NeverEndsFollowing, &["following_changes_sees_each_once"]),
    (Fault::KeepsChanges, &["changes_are_kept_for_a_day"]),
    (Fault::TrimsEarly, &["changes_are_kept_for_a_day"]),
    (Fault::ForgetsEndedStreams, &["the_streams_of_a_table_are_listed"]),
    (Fault::ListsYoungestFirst, &["the_streams_of_a_table_are_listed"]),
    (Fault::NeverExpires, &["expired_items_are_removed", "a_key_may_be_the_time_of_expiry"]),
    (Fault::ExpiresEarly, &["items_live_until_their_time"]),
    (Fault::SwallowsErrors, &[
        "bad_tables_are_refused",
        "bad_reads_are_refused",
        "a_segment_starts_within_itself",
        "bad_batches_are_refused",
        "bad_transactions_are_refused",
        "unknown_names_are_refused",
        "bad_keys_are_refused",
        "bad_items_are_refused",
        "bad_updates_are_refused",
        "bad_conditions_are_refused",
    ]),
    (Fault::LosesLastChange, &["acknowledged_writes_survive_a_crash", "tables_survive_a_crash"]),
    (Fault::LosesChangesInCrash, &["indexes_and_changes_survive_with_their_table"]),
];

#[tokio::test]
async fn every_fault_is_noticed() {
    court::faults_are_noticed(NOTICED, table::named, BrokenTables::fixture).await;
}

#[test]
fn every_law_notices_a_fault() {
    court::laws_notice_faults(NOTICED, table::all());
}

/// The wrapper itself keeps the laws, and what a law waits for may come at once.
#[tokio::test]
async fn innocent_stores_are_acquitted() {
    for law in table::all() {
        assert_eq!(verdict(law, BrokenTables::fixture(Fault::ClaimsToLag)).await, Ok(()));
    }
}
