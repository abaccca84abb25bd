//! What servers get wrong: the laws that a server does not keep, and why.

/// Streams.
pub mod streams {
    use crate::peer::suite::Skipped;

    /// moto gives the numbers 1, 2, 3 in every shard, moves the records of a closed shard to its children, and never says
    /// that a shard has ended.
    pub const MOTO: Skipped = &[
        ("a_batch_is_resumed_where_it_ended", "a closed shard never ends"),
        ("latest_returns_only_what_comes_later", "a closed shard never ends"),
        ("a_split_shard_ends_with_its_children", "a closed shard never ends"),
        ("merged_shards_end_with_their_child", "a closed shard never ends"),
        ("following_ends_with_the_shard", "a closed shard never ends"),
        ("nothing_is_lost_while_shards_split_and_merge", "a closed shard never ends"),
        (
            "writers_of_one_shard_keep_their_order",
            "two that write at once get the same number, and one record is lost",
        ),
        (
            "latest_holds_while_others_write",
            "two that write at once get the same number, and one record is lost",
        ),
        ("numbers_of_parents_are_smaller", "every shard counts from 1"),
        ("numbers_are_given_once", "every shard counts from 1"),
        ("an_old_position_shows_no_younger_record", "every shard counts from 1"),
        (
            "records_go_where_their_key_belongs",
            "the last key of a shard belongs to none, and the put fails inside",
        ),
        ("pages_of_shards_join_to_the_listing", "the shard to start behind is ignored"),
        ("the_largest_append_is_stored", "the limits of a put are those of before 2025: 5 MB"),
    ];

    pub const KINESIS_MOCK: Skipped = &[
        ("at_and_after_find_their_record", "a number that no record has is refused"),
        ("records_go_where_their_key_belongs", "the ranges of new shards are one key off"),
        ("numbers_of_parents_are_smaller", "every closed shard ends at the same small number"),
        ("numbers_are_given_once", "streams that are made in the same second share their numbers"),
        (
            "an_old_position_shows_no_younger_record",
            "streams that are made in the same second share their numbers",
        ),
        (
            "an_append_of_the_most_records_is_stored",
            "a character of a key that takes two of UTF-16 counts as two",
        ),
        (
            "the_largest_append_is_stored",
            "a record of 10 MiB is stored, but counts for more than an answer may have, and reading it fails inside",
        ),
    ];

    pub const KINESALITE: Skipped = &[
        ("at_and_after_find_their_record", "a number that no record has is refused"),
        (
            "latest_returns_only_what_comes_later",
            "an iterator for a moment that no record came after is not always given",
        ),
        (
            "a_resolved_position_stays_resolved",
            "an iterator for a moment that no record came after is not always given",
        ),
        (
            "an_open_shard_never_ends",
            "an iterator for a moment that no record came after is not always given",
        ),
        (
            "at_timestamp_starts_with_the_first_arrival",
            "an iterator for a moment that no record came after is not always given",
        ),
        ("retention_keeps_what_is_young", "the longest retention is that of before 2020: seven days"),
        ("a_split_shard_ends_with_its_children", "a closed shard without records never ends"),
        ("pages_of_shards_join_to_the_listing", "the size of a page is ignored"),
        (
            "numbers_are_given_once",
            "streams that are made in the same second share their numbers; see `stream_laws.rs`",
        ),
        (
            "an_old_position_shows_no_younger_record",
            "streams that are made in the same second share their numbers; see `stream_laws.rs`",
        ),
        (
            "an_append_of_the_most_records_is_stored",
            "a character of a key that takes two of UTF-16 counts as two",
        ),
        ("the_largest_append_is_stored", "the limits of a put are those of before 2025: 1 MiB a record"),
    ];

    /// Following on kinesis-mock with a registered consumer.
    pub const FAN_OUT: Skipped = &[
        ("following_ends_with_the_shard", "a subscription does not end with its shard"),
        (
            "following_a_deleted_stream_fails",
            "a subscription goes on with empty events when its stream is gone",
        ),
    ];
}

/// Queues.
pub mod queues {
    use crate::peer::suite::Skipped;

    const NO_TRACES: &str = "the trace of a message that may come with others is lost";

    pub const MOTO: Skipped = &[
        ("traces_come_back", NO_TRACES),
        (
            "an_old_receipt_does_not_disturb_the_new_one",
            "every receipt that a message ever had is as good as the last",
        ),
        ("old_receipts_show_nothing", "every receipt that a message ever had is as good as the last"),
        ("receivers_share_without_doubles", "two that receive at once may get the same message"),
        ("late_receipts_are_refused_in_fifo_queues", "a receipt never expires"),
        ("old_receipts_are_refused_in_fifo_queues", "a receipt never expires"),
        (
            "deleted_messages_cannot_be_hidden",
            "the receipt of what was deleted is said never to have been given",
        ),
        ("only_messages_in_flight_can_be_hidden", "what is visible can be hidden"),
        ("purging_leaves_nothing", "receipts of what was purged are unknown"),
        ("groups_keep_their_order", "a message that is recognised by its body has no sequence number"),
        ("duplicates_are_not_received", "a duplicate is acknowledged with an identifier of its own"),
        ("equal_bodies_are_duplicates", "a duplicate is acknowledged with an identifier of its own"),
        ("duplicates_are_looked_for_in_their_scope", "duplicates are looked for in the whole queue only"),
        ("a_receive_can_be_repeated", "attempts are ignored"),
        ("messages_received_too_often_are_moved", "a dead letter does not name its source"),
        ("the_identifier_of_a_dead_letter_tells_duplicates", "a dead letter keeps its deduplication id"),
        ("messages_stay_without_a_dead_letter_queue", "messages go to a dead-letter queue that was deleted"),
        ("dead_letters_go_back_to_their_sources", NO_MOVES),
        ("dead_letters_go_where_they_are_told", NO_MOVES),
        ("moved_messages_are_new", NO_MOVES),
        ("moves_without_a_source_fail", NO_MOVES),
        ("bad_moves_are_refused", NO_MOVES),
        ("bad_queues_are_refused", "whose dead letters a queue takes is forgotten"),
    ];

    pub const FAUXQS: Skipped = &[
        ("traces_come_back", NO_TRACES),
        ("messages_come_back_as_they_were", "the group of a message in a standard queue is lost"),
        ("an_old_receipt_does_not_disturb_the_new_one", "an old receipt is said never to have been given"),
        ("late_receipts_are_refused_in_fifo_queues", "a receipt never expires"),
        ("old_receipts_are_refused_in_fifo_queues", "a receipt never expires"),
        (
            "deleted_messages_cannot_be_hidden",
            "the receipt of what was deleted is said never to have been given",
        ),
        (
            "only_messages_in_flight_can_be_hidden",
            "the receipt of what is visible is said never to have been given",
        ),
        (
            "late_receipts_hide_in_standard_queues",
            "the receipt of what is visible is said never to have been given",
        ),
        ("foreign_receipts_are_refused", "deleting with a receipt that it never gave succeeds"),
        ("duplicates_are_not_received", "a receive gives one message of a group"),
        ("equal_bodies_are_duplicates", "a receive gives one message of a group"),
        ("a_receive_can_be_repeated", "a receive gives one message of a group"),
        ("duplicates_are_looked_for_in_their_scope", "duplicates are looked for in the whole queue only"),
        ("messages_received_too_often_are_moved", "the receive that moves a message counts as one"),
        ("the_identifier_of_a_dead_letter_tells_duplicates", "a dead letter keeps its deduplication id"),
        ("dead_letters_go_back_to_their_sources", NO_MOVES),
        ("dead_letters_go_where_they_are_told", NO_MOVES),
        ("moved_messages_are_new", NO_MOVES),
        ("moves_without_a_source_fail", NO_MOVES),
        ("bad_moves_are_refused", NO_MOVES),
        ("bad_queues_are_refused", "whose dead letters a queue takes is not known"),
    ];

    pub const MINISTACK: Skipped = &[
        ("traces_come_back", NO_TRACES),
        (
            "deleted_messages_never_come_back",
            "the receipt of what was deleted is said never to have been given",
        ),
        ("purging_leaves_nothing", "the receipt of what was purged is said never to have been given"),
        ("an_old_receipt_does_not_disturb_the_new_one", "an old receipt is said never to have been given"),
        ("late_receipts_are_refused_in_fifo_queues", "a receipt never expires"),
        ("old_receipts_are_refused_in_fifo_queues", "a receipt never expires"),
        (
            "deleted_messages_cannot_be_hidden",
            "the receipt of what was deleted is said never to have been given",
        ),
        ("only_messages_in_flight_can_be_hidden", "what is visible can be hidden"),
        ("late_receipts_hide_in_standard_queues", "an old receipt is said never to have been given"),
        ("a_receive_can_be_repeated", "attempts are ignored"),
        ("the_identifier_of_a_dead_letter_tells_duplicates", "a dead letter keeps its deduplication id"),
        ("dead_letters_go_back_to_their_sources", NO_MOVES),
        ("dead_letters_go_where_they_are_told", NO_MOVES),
        ("moved_messages_are_new", NO_MOVES),
        ("moves_without_a_source_fail", NO_MOVES),
        ("bad_moves_are_refused", NO_MOVES),
    ];

    /// LocalStack knows moves.
    pub const LOCALSTACK: Skipped = &[
        ("old_receipts_are_refused_in_fifo_queues", "every receipt is good while its message is in flight"),
        ("only_messages_in_flight_can_be_hidden", "what is visible is said to have been hidden"),
        ("late_receipts_hide_in_standard_queues", "what is visible is said to have been hidden"),
        ("foreign_receipts_are_refused", "a receipt of an earlier queue of the same name is good"),
        ("duplicates_are_not_received", "a duplicate is acknowledged with a sequence number of its own"),
        ("equal_bodies_are_duplicates", "a duplicate is acknowledged with a sequence number of its own"),
        ("duplicates_are_looked_for_in_their_scope", "a group knows its last message only"),
        ("a_receive_can_be_repeated", "attempts are ignored"),
        ("the_identifier_of_a_dead_letter_tells_duplicates", "a dead letter keeps its deduplication id"),
        ("messages_stay_without_a_dead_letter_queue", "a receive fails when the dead-letter queue is gone"),
        ("moved_messages_are_new", "a message that was moved keeps its count of receives"),
    ];

    /// local-aws-sqs knows moves, and when receipts of FIFO queues expire.
    pub const LOCAL_AWS_SQS: Skipped = &[
        (
            "only_messages_in_flight_can_be_hidden",
            "what is shown at once stays in flight to the end of the millisecond",
        ),
        ("late_receipts_are_refused_in_fifo_queues", IN_FLIGHT_COUNTS_TWICE),
        ("late_receipts_hide_in_standard_queues", IN_FLIGHT_COUNTS_TWICE),
        (
            "deleted_messages_cannot_be_hidden",
            "the receipt of what was deleted is said never to have been given",
        ),
        ("foreign_receipts_are_refused", "a receipt of an earlier queue of the same name is good"),
        ("duplicates_are_not_received", "duplicates of what was deleted are not recognised"),
        ("a_receive_can_be_repeated", "attempts are ignored"),
        ("messages_received_too_often_are_moved", "showing a message counts as a receive"),
        ("the_identifier_of_a_dead_letter_tells_duplicates", "a dead letter keeps its deduplication id"),
        ("messages_stay_without_a_dead_letter_queue", "without a dead-letter queue messages are lost"),
        ("dead_letters_go_back_to_their_sources", IN_FLIGHT_COUNTS_TWICE),
        ("moves_without_a_source_fail", "the messages that a move fails at are hidden for half a minute"),
    ];

    /// rustack tells duplicates of dead letters as SQS does. A queue of it has messages of 256 KiB at most.
    pub const RUSTACK: Skipped = &[
        ("traces_come_back", NO_TRACES),
        ("messages_come_back_as_they_were", "a message of a standard queue cannot have a group"),
        ("late_receipts_are_refused_in_fifo_queues", "a receipt that expired is taken, and does nothing"),
        ("old_receipts_are_refused_in_fifo_queues", "a receipt that expired is taken, and does nothing"),
        ("late_receipts_hide_in_standard_queues", "what is visible is said not to be in flight"),
        ("foreign_receipts_are_refused", "a queue of messages of 1 MiB is refused"),
        ("duplicates_are_not_received", "a receive gives one message of a group"),
        ("equal_bodies_are_duplicates", "a receive gives one message of a group"),
        ("a_receive_can_be_repeated", "a receive gives one message of a group"),
        ("messages_received_too_often_are_moved", "a dead letter counts its receives anew"),
        (
            "messages_stay_without_a_dead_letter_queue",
            "messages are held back when the dead-letter queue is gone",
        ),
        ("dead_letters_go_back_to_their_sources", NO_MOVES),
        ("dead_letters_go_where_they_are_told", NO_MOVES),
        ("moved_messages_are_new", NO_MOVES),
        ("moves_without_a_source_fail", NO_MOVES),
        ("bad_moves_are_refused", NO_MOVES),
        ("bad_queues_are_refused", "a queue of messages of 1 MiB is refused"),
    ];

    const NO_MOVES: &str = "moves are not known";
    const IN_FLIGHT_COUNTS_TWICE: &str = "what is in flight counts as visible too";
}

/// Tables.
pub mod tables {
    use crate::peer::suite::Skipped;

    /// Its threads run into one another: nothing stands between a condition and its write, or between the parts of a
    /// transaction.
    pub const MOTO: Skipped = &[
        ("reads_show_the_wanted_parts", "a name inside a path of a projection counts as unused"),
        ("the_largest_item_is_stored", "400 KiB are too large"),
        ("conditions_compare_as_they_should", "two paths that lead nowhere do not differ"),
        ("updates_reach_into_lists_and_maps", "elements behind the end of a list are not put in order"),
        ("an_update_makes_an_item", "an update without an expression fails inside"),
        ("an_update_that_only_removes_makes_no_item", "an update that only removes makes an item"),
        ("a_local_index_orders_within_a_hash_value", "what a local index does not show is not looked up"),
        ("a_local_index_finds_whole_items", "what a local index does not show is not looked up"),
        ("a_cancelled_transaction_changes_nothing", "a part that cannot be done is refused without reasons"),
        ("a_token_makes_a_transaction_happen_once", "tokens are ignored"),
        ("what_makes_no_difference_is_not_written_down", "a write that leaves an item as it is has a record"),
        ("a_random_walk_agrees_with_the_reference", "a write that leaves an item as it is has a record"),
        ("changes_end_when_they_are_turned_off", "a put fails inside when changes are turned off"),
        ("following_changes_sees_each_once", "a stream that was turned off never ends"),
        ("the_streams_of_a_table_are_listed", "a put fails inside when changes are turned off"),
        ("bad_updates_are_refused", "a path that does not fit is passed over"),
        ("bad_items_are_refused", "a sum of 39 digits is not refused"),
        ("counters_of_many_writers_are_exact", "64 connections at once are too many: some are reset"),
        ("one_of_many_conditional_writes_wins", "two writers may pass one condition"),
        ("readers_see_whole_transactions", "a transaction of reads may see half of one of writes"),
        ("a_segment_starts_within_itself", "a start in another segment is not refused"),
    ];

    /// It is of early 2020: a condition that does not hold does not show its item, and a transaction has ten parts.
    pub const DYNAMODB_LOCAL: Skipped = &[
        ("items_come_back_as_they_were", "a set cannot hold an empty text"),
        ("a_failed_condition_shows_the_item", "the item is not shown"),
        ("a_random_walk_agrees_with_the_reference", "the item of a failed condition is not shown"),
        ("counters_of_many_writers_are_exact", "the item of a failed condition is not shown"),
        ("an_update_that_only_removes_makes_no_item", "an update that only removes makes an item"),
        ("a_page_keeps_its_limits", "what a filter leaves out fills no page"),
        ("a_transaction_happens_as_a_whole", "a transaction has ten parts at most"),
        ("a_cancelled_transaction_changes_nothing", "a part that cannot be done is refused without reasons"),
        ("a_segment_starts_within_itself", "a start in another segment is not refused"),
    ];

    pub const MINISTACK: Skipped = &[
        ("conditions_compare_as_they_should", "two paths that lead nowhere do not differ"),
        ("updates_reach_into_lists_and_maps", "elements behind the end of a list are not put in order"),
        ("updates_add_to_numbers_and_sets", "a sum of 38 digits is rounded"),
        ("an_update_that_only_removes_makes_no_item", "an update that only removes makes an item"),
        ("a_local_index_orders_within_a_hash_value", "what a local index does not show is not looked up"),
        ("a_local_index_finds_whole_items", "what a local index does not show is not looked up"),
        ("changes_end_when_they_are_turned_off", "a stream that was turned off is gone"),
        ("the_streams_of_a_table_are_listed", "a stream that was turned off is gone"),
        ("following_changes_sees_each_once", "what was there before comes to who asks for the latest"),
        ("a_segment_starts_within_itself", "a start in another segment is not refused"),
        ("bad_items_are_refused", "a sum of 39 digits is not refused"),
        ("bad_updates_are_refused", "a removal through nothing is not refused"),
    ];

    /// rustack makes no index of a table that is there, and no local one.
    pub const RUSTACK: Skipped = &[
        ("reads_show_the_wanted_parts", "elements of a list come in the order that they are asked for"),
        ("a_local_index_orders_within_a_hash_value", "local indexes are not known"),
        ("a_local_index_finds_whole_items", "local indexes are not known"),
        ("a_cancelled_transaction_changes_nothing", "a part that cannot be done is refused without reasons"),
        ("what_makes_no_difference_is_not_written_down", "a write that leaves an item as it is has a record"),
        ("a_random_walk_agrees_with_the_reference", "local indexes are not known"),
        ("changes_end_when_they_are_turned_off", "changes of a table that is there cannot be turned on"),
        ("the_streams_of_a_table_are_listed", "changes of a table that is there cannot be turned on"),
        ("following_changes_sees_each_once", "changes of a table that is there cannot be turned off"),
    ];
}

/// Blobs.
pub mod blobs {
    use crate::peer::suite::Skipped;

    /// SeaweedFS verifies signatures and keeps blobs in folders.
    pub const SEAWEEDFS: Skipped = &[
        ("a_second_put_replaces_the_first", "an `Expires` that is no date is refused"),
        ("properties_come_back_as_they_were", "an `Expires` that is no date is refused"),
        ("odd_keys_are_keys", "`.` and `..` are refused"),
        ("a_key_may_begin_another", "a key that begins another one with a slash is a folder"),
        ("keys_have_their_limit", "a piece between slashes is a file name, and has its limit"),
        ("keys_are_listed_in_the_order_of_bytes", "a key with a zero byte is refused"),
        (
            "listings_combine_prefix_delimiter_and_pages",
            "a key that begins another one with a slash is a folder",
        ),
        ("listings_start_behind_any_key", "a key that begins another one with a slash is a folder"),
        ("listings_outlive_deleted_keys", "a key that begins another one with a slash is a folder"),
        ("entries_show_what_head_shows", "a key that begins another one with a slash is a folder"),
        ("bad_copies_are_refused", "a copy to a bucket that does not exist fails inside"),
        ("a_replaced_part_counts", "a part that was replaced is still listed"),
        ("checksums_of_joined_parts_are_remembered", "the checksums of parts are demanded, but not listed"),
        ("unknown_names_are_refused", "a put to a bucket that does not exist makes it"),
    ];

    pub const MOTO: Skipped = &[
        ("odd_keys_are_keys", "a key with a line break finds nobody who answers"),
        ("keys_are_listed_in_the_order_of_bytes", "a key with a line break finds nobody who answers"),
        ("copies_obey_conditions", "the condition of the target is ignored"),
        ("completions_obey_conditions", "the tag that a completion must replace is ignored"),
        ("parts_are_listed_in_pages", "the number to go on from is taken for a place in the list"),
        ("unknown_names_are_refused", "the key of an upload is not looked at"),
        ("checksums_of_joined_bodies_are_remembered", "a wrong checksum of the whole is taken"),
        ("checksums_of_joined_parts_are_remembered", "the checksums of parts are not listed"),
        ("one_of_many_matching_puts_wins", "two writers may pass one condition"),
        ("one_of_many_puts_to_an_absent_key_wins", "two writers may pass one condition"),
        ("parts_can_be_read_one_by_one", "whoever asks for a part gets the whole"),
    ];

    pub const MINISTACK: Skipped = &[
        ("copies_obey_conditions", "the condition of the target is ignored"),
        ("checksums_of_joined_bodies_are_remembered", "every checksum of an upload is one of its parts"),
    ];
}
