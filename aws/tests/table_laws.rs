//! The laws of tables, on servers of DynamoDB's protocol that we did not write.

mod peer;

use std::sync::Arc;

use anabranch_aws::Tables;
use anabranch_model::laws::table::{self, TableFixture, TableLaw};
use peer::Peer;
use peer::suite::{self, Case, Skipped};

/// Its threads run into one another: nothing stands between a condition and its write, or between the parts of a
/// transaction.
const MOTO: Skipped = &[
    ("reads_show_the_wanted_parts", "a name inside a path of a projection counts as unused"),
    ("the_largest_item_is_stored", "400 KiB are too large"),
    ("conditions_compare_as_they_should", "two paths that lead nowhere do not differ"),
    ("updates_reach_into_lists_and_maps", "elements behind the end of a list are not put in order"),
    ("an_update_makes_an_item_unless_it_only_removes", "an update without an expression fails inside"),
    ("a_local_index_orders_within_a_hash_value", "what a local index does not show is not looked up"),
    ("an_index_is_added_and_dropped", "an item that does not fit a new index breaks a scan of it"),
    ("a_cancelled_transaction_changes_nothing", "a part that cannot be done is refused without reasons"),
    ("a_token_makes_a_transaction_happen_once", "tokens are ignored"),
    ("what_makes_no_difference_is_not_written_down", "a write that leaves an item as it is has a record"),
    ("a_random_walk_agrees_with_the_reference", "a write that leaves an item as it is has a record"),
    ("changes_end_when_they_are_turned_off", "a put fails inside when changes are turned off"),
    ("following_changes_sees_each_once", "a stream that was turned off never ends"),
    ("bad_updates_are_refused", "a path that does not fit is passed over"),
    ("bad_items_are_refused", "a sum of 39 digits is not refused"),
    ("counters_of_many_writers_are_exact", "64 connections at once are too many: some are reset"),
    ("one_of_many_conditional_writes_wins", "two writers may pass one condition"),
    ("readers_see_whole_transactions", "a transaction of reads may see half of one of writes"),
    ("bad_reads_are_refused", "a start in another segment is not refused"),
];

/// It is of early 2020: a condition that does not hold does not show its item, and a transaction has ten parts.
const DYNAMODB_LOCAL: Skipped = &[
    ("items_come_back_as_they_were", "a set cannot hold an empty text"),
    ("a_failed_condition_shows_the_item", "the item is not shown"),
    ("a_random_walk_agrees_with_the_reference", "the item of a failed condition is not shown"),
    ("counters_of_many_writers_are_exact", "the item of a failed condition is not shown"),
    ("an_update_makes_an_item_unless_it_only_removes", "an update that only removes makes an item"),
    ("a_page_keeps_its_limits", "a page ends behind the item that passes 1 MiB"),
    ("a_transaction_happens_as_a_whole", "a transaction has ten parts at most"),
    ("a_cancelled_transaction_changes_nothing", "a part that cannot be done is refused without reasons"),
    ("an_index_is_added_and_dropped", "an index that is added holds items that do not fit its key"),
    (
        "a_token_makes_a_transaction_happen_once",
        "the same transaction with its placeholders in another order counts as another one",
    ),
    ("bad_reads_are_refused", "a start in another segment is not refused"),
];

const MINISTACK: Skipped = &[
    ("conditions_compare_as_they_should", "two paths that lead nowhere do not differ"),
    ("updates_reach_into_lists_and_maps", "elements behind the end of a list are not put in order"),
    ("updates_add_to_numbers_and_sets", "a sum of 38 digits is rounded"),
    ("an_update_makes_an_item_unless_it_only_removes", "an update that only removes makes an item"),
    ("a_local_index_orders_within_a_hash_value", "what a local index does not show is not looked up"),
    ("an_index_is_added_and_dropped", "an index that is added holds items that do not fit its key"),
    ("bad_reads_are_refused", "a start in another segment is not refused"),
    ("bad_items_are_refused", "a sum of 39 digits is not refused"),
    ("bad_updates_are_refused", "a removal through nothing is not refused"),
];

/// What no server can show.
const NOWHERE: Skipped = &[
    ("an_update_makes_an_item_unless_it_only_removes", "each server keeps the other half"),
    ("an_index_is_added_and_dropped", "no server leaves out an item that does not fit a new index"),
    ("a_random_walk_agrees_with_the_reference", "what it needs at once, each server does in part"),
    (
        "bad_reads_are_refused",
        "it tells segments by the hash of the model, and DynamoDB has its own; up to there it holds on both servers",
    ),
];

fn cases(tables: &Tables, prefix: &str) -> Vec<Case> {
    let case = |law: &'static TableLaw| {
        let fixture =
            TableFixture::new(Arc::new(tables.clone())).with_prefix(prefix).with_spawn(suite::spawned);
        (law.name, law.check(fixture))
    };
    table::all().iter().map(case).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_moto() {
    let moto = Peer::moto().await;
    suite::hold(cases(&Tables::new(&moto.connect().await), "moto"), MOTO, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_dynamodb_local() {
    let local = Peer::dynamodb_local().await;
    suite::hold(cases(&Tables::new(&local.connect().await), "local"), DYNAMODB_LOCAL, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_ministack() {
    let ministack = Peer::ministack().await;
    suite::hold(cases(&Tables::new(&ministack.connect().await), "ministack"), MINISTACK, 4).await;
}

#[test]
fn every_law_holds_on_some_server() {
    let laws = table::all().iter().map(|law| law.name);
    suite::every_law_holds_somewhere(laws, &[MOTO, DYNAMODB_LOCAL, MINISTACK], NOWHERE);
}
