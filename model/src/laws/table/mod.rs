//! The laws of [`TableStore`].

mod trial;

mod batches;
mod change_streams;
mod changes;
mod concurrency;
mod conditions;
mod crash;
mod expiry;
mod indexes;
mod items;
mod queries;
mod refusals;
mod refused_writes;
mod scans;
mod tables;
mod transactions;
mod updates;
mod walk;

use crate::laws::Fixture;
use crate::table::TableStore;

/// A store of tables for one law.
pub type TableFixture = Fixture<dyn TableStore>;

laws! { $ table_laws in table of dyn TableStore:
    tables:
        tables_are_described,
        tables_are_listed_by_name,
        a_deleted_table_is_gone,
        an_index_is_added_and_dropped;
    items:
        items_come_back_as_they_were,
        a_put_replaces_the_whole_item,
        a_deleted_item_is_gone,
        keys_tell_items_apart,
        reads_show_the_wanted_parts,
        the_largest_item_is_stored,
        writes_return_what_was_asked_for;
    conditions:
        a_condition_decides_about_a_write,
        a_failed_condition_shows_the_item,
        conditions_compare_as_they_should;
    updates:
        updates_see_the_item_as_it_was,
        updates_reach_into_lists_and_maps,
        updates_add_to_numbers_and_sets,
        an_update_makes_an_item,
        an_update_that_only_removes_makes_no_item;
    queries:
        a_query_is_in_the_order_of_range_values,
        a_query_covers_its_key_condition,
        pages_join_in_both_directions,
        a_page_keeps_its_limits,
        a_filter_counts_what_it_looked_at;
    scans:
        a_scan_shows_every_item_once,
        segments_hold_every_item_once;
    indexes:
        an_index_holds_what_has_its_key,
        an_index_shows_its_projection,
        a_local_index_orders_within_a_hash_value,
        a_local_index_finds_whole_items,
        pages_of_an_index_join;
    batches:
        a_batch_of_reads_answers_in_order,
        a_batch_of_reads_leaves_the_rest,
        a_batch_writes_and_deletes;
    transactions:
        a_transaction_happens_as_a_whole,
        a_cancelled_transaction_changes_nothing,
        a_token_makes_a_transaction_happen_once,
        a_token_is_forgotten;
    changes:
        changes_show_what_the_view_asks_for,
        what_makes_no_difference_is_not_written_down,
        changes_end_when_they_are_turned_off;
    change_streams:
        following_changes_sees_each_once,
        changes_are_kept_for_a_day,
        the_streams_of_a_table_are_listed;
    expiry:
        expired_items_are_removed,
        a_key_may_be_the_time_of_expiry,
        items_live_until_their_time;
    walk:
        a_random_walk_agrees_with_the_reference;
    concurrency:
        counters_of_many_writers_are_exact,
        one_of_many_conditional_writes_wins,
        readers_see_whole_transactions;
    crash:
        acknowledged_writes_survive_a_crash,
        indexes_and_changes_survive_with_their_table,
        tables_survive_a_crash,
        tokens_survive_a_crash;
    refusals:
        bad_tables_are_refused,
        bad_reads_are_refused,
        a_segment_starts_within_itself,
        bad_batches_are_refused,
        bad_transactions_are_refused,
        unknown_names_are_refused;
    refused_writes:
        bad_keys_are_refused,
        bad_items_are_refused,
        bad_updates_are_refused,
        bad_conditions_are_refused;
}
