//! The laws of [`QueueStore`].

mod fixture;
mod trial;

mod concurrency;
mod crash;
mod dead_letters;
mod fifo;
mod queues;
mod receipts;
mod receiving;
mod time;
mod waiting;
mod walk;

pub use fixture::QueueFixture;

use crate::queue::QueueStore;

laws! { $ queue_laws in queue of dyn QueueStore:
    receiving:
        messages_come_back_as_they_were,
        traces_come_back,
        a_received_message_is_hidden,
        receives_are_counted,
        deleted_messages_never_come_back,
        a_receive_keeps_its_limit,
        results_stand_in_the_order_of_messages,
        the_largest_message_is_sent,
        purging_leaves_nothing,
        messages_in_flight_are_limited;
    time:
        visibility_is_chosen_at_the_receive,
        visibility_can_be_changed,
        hiding_has_an_end,
        delayed_messages_wait,
        retention_removes_what_is_old,
        changed_options_hold;
    receipts:
        late_receipts_delete_in_standard_queues,
        an_old_receipt_does_not_disturb_the_new_one,
        late_receipts_are_refused_in_fifo_queues,
        old_receipts_are_refused_in_fifo_queues,
        foreign_receipts_are_refused,
        late_receipts_hide_in_standard_queues,
        old_receipts_show_nothing,
        only_messages_in_flight_can_be_hidden,
        deleted_messages_cannot_be_hidden;
    waiting:
        a_receive_waits_for_a_message,
        a_receive_gives_up_when_its_wait_is_over,
        a_waiting_receive_sees_what_becomes_visible,
        deleting_the_queue_ends_the_waiting;
    fifo:
        groups_keep_their_order,
        a_message_in_flight_holds_up_its_group,
        groups_do_not_hold_each_other_up,
        duplicates_are_not_received,
        equal_bodies_are_duplicates,
        duplicates_are_recognised_for_a_while,
        duplicates_are_looked_for_in_their_scope,
        a_receive_can_be_repeated;
    dead_letters:
        messages_received_too_often_are_moved,
        dead_letters_keep_their_age,
        fifo_dead_letters_make_way,
        the_identifier_of_a_dead_letter_tells_duplicates,
        messages_stay_without_a_dead_letter_queue,
        dead_letters_go_back_to_their_sources,
        moved_messages_are_new,
        dead_letters_go_where_they_are_told,
        moves_without_a_source_fail,
        a_move_keeps_its_rate_and_can_be_cancelled,
        bad_moves_are_refused;
    queues:
        queues_are_described,
        queues_are_listed_by_name,
        a_deleted_queue_is_gone,
        a_bad_message_fails_alone,
        bad_batches_are_refused,
        bad_queues_are_refused,
        unknown_queues_are_refused;
    concurrency:
        receivers_share_without_doubles,
        receivers_keep_the_order_of_groups;
    walk:
        a_standard_queue_does_what_the_model_does,
        a_fifo_queue_does_what_the_model_does;
    crash:
        sends_and_deletes_survive_a_crash,
        messages_in_flight_survive_a_crash,
        order_and_duplicates_survive_a_crash,
        queues_survive_a_crash;
}
