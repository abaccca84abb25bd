//! The laws of queues can be broken: for each of them there is a store with one fault that it notices.

use anabranch_model::laws::queue;
use broken_queues::{BrokenQueues, Fault};
use court::{Noticed, verdict};

mod broken_queues;
mod court;

#[rustfmt::skip]
const NOTICED: Noticed<Fault> = &[
    (Fault::CutsBodies, &["messages_come_back_as_they_were", "the_largest_message_is_sent"]),
    (Fault::LosesTraces, &["traces_come_back"]),
    (Fault::DoesNotHide, &[
        "a_received_message_is_hidden",
        "a_message_in_flight_holds_up_its_group",
        "groups_do_not_hold_each_other_up",
        "receivers_share_without_doubles",
        "receivers_keep_the_order_of_groups",
        "a_standard_queue_does_what_the_model_does",
        "a_fifo_queue_does_what_the_model_does",
    ]),
    (Fault::IgnoresVisibility, &["visibility_is_chosen_at_the_receive"]),
    (Fault::IgnoresChanges, &[
        "visibility_can_be_changed",
        "late_receipts_hide_in_standard_queues",
        "only_messages_in_flight_can_be_hidden",
        "deleted_messages_cannot_be_hidden",
    ]),
    (Fault::TakesOldReceipts, &["old_receipts_show_nothing"]),
    (Fault::IgnoresLimits, &["a_receive_keeps_its_limit"]),
    (Fault::GivesOnce, &["receives_are_counted", "messages_stay_without_a_dead_letter_queue"]),
    (Fault::DeletesNothing, &[
        "deleted_messages_never_come_back",
        "late_receipts_delete_in_standard_queues",
        "groups_keep_their_order",
    ]),
    (Fault::DeletesOnce, &["an_old_receipt_does_not_disturb_the_new_one"]),
    (Fault::PurgesNothing, &["purging_leaves_nothing"]),
    (Fault::ReversesResults, &["results_stand_in_the_order_of_messages"]),
    (Fault::IgnoresDelays, &["delayed_messages_wait"]),
    (Fault::KeepsForever, &[
        "retention_removes_what_is_old",
        "changed_options_hold",
        "dead_letters_keep_their_age",
    ]),
    (Fault::NeverWaits, &[
        "a_receive_waits_for_a_message",
        "a_receive_gives_up_when_its_wait_is_over",
        "a_waiting_receive_sees_what_becomes_visible",
    ]),
    (Fault::ForgetsDuplicates, &[
        "duplicates_are_not_received",
        "equal_bodies_are_duplicates",
        "duplicates_are_recognised_for_a_while",
        "duplicates_are_looked_for_in_their_scope",
    ]),
    (Fault::IgnoresAttempts, &["a_receive_can_be_repeated"]),
    (Fault::NeverBuries, &[
        "messages_received_too_often_are_moved",
        "fifo_dead_letters_make_way",
        "the_identifier_of_a_dead_letter_tells_duplicates",
    ]),
    (Fault::MovesNothing, &[
        "dead_letters_go_back_to_their_sources",
        "moved_messages_are_new",
        "dead_letters_go_where_they_are_told",
        "moves_without_a_source_fail",
    ]),
    (Fault::IgnoresRates, &["a_move_keeps_its_rate_and_can_be_cancelled"]),
    (Fault::MiscountsHidden, &["queues_are_described"]),
    (Fault::ListsBackwards, &["queues_are_listed_by_name"]),
    (Fault::KeepsQueues, &["a_deleted_queue_is_gone"]),
    (Fault::SwallowsErrors, &[
        "messages_in_flight_are_limited",
        "hiding_has_an_end",
        "late_receipts_are_refused_in_fifo_queues",
        "old_receipts_are_refused_in_fifo_queues",
        "foreign_receipts_are_refused",
        "deleting_the_queue_ends_the_waiting",
        "bad_moves_are_refused",
        "a_bad_message_fails_alone",
        "bad_batches_are_refused",
        "bad_queues_are_refused",
        "unknown_queues_are_refused",
    ]),
    (Fault::LosesLastChange, &[
        "sends_and_deletes_survive_a_crash",
        "messages_in_flight_survive_a_crash",
        "order_and_duplicates_survive_a_crash",
        "queues_survive_a_crash",
    ]),
];

#[tokio::test]
async fn every_fault_is_noticed() {
    court::faults_are_noticed(NOTICED, queue::named, BrokenQueues::fixture).await;
}

#[test]
fn every_law_notices_a_fault() {
    court::laws_notice_faults(NOTICED, queue::all());
}

/// The wrapper itself keeps the laws: a fault that a law does not look at leaves it in peace.
#[tokio::test]
async fn innocent_stores_are_acquitted() {
    for law in queue::all().iter().filter(|law| law.name != "queues_are_listed_by_name") {
        assert_eq!(verdict(law, BrokenQueues::fixture(Fault::ListsBackwards)).await, Ok(()));
    }
}
