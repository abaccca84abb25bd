//! The laws of [`BlobStore`].

mod bytes;
mod fixture;
mod trial;

mod bodies;
mod buckets;
mod checksums;
mod completing;
mod concurrency;
mod conditions;
mod copying;
mod crash;
mod deleting;
mod keys;
mod listing;
mod reading;
mod refusals;
mod uploads;

pub use fixture::BlobFixture;

use crate::blob::BlobStore;

laws! { $ blob_laws in blob of dyn BlobStore:
    bodies:
        bodies_come_back_as_they_were,
        pieces_of_a_body_do_not_matter,
        etags_are_md5_where_asked_for,
        etags_follow_from_the_bytes,
        properties_come_back_as_they_were,
        a_second_put_replaces_the_first,
        a_blob_shows_when_it_was_put;
    reading:
        ranges_return_their_bytes,
        ranges_outside_are_refused,
        a_reader_keeps_a_replaced_body,
        a_reader_keeps_a_deleted_body,
        read_conditions_are_decided;
    keys:
        odd_keys_are_keys,
        a_key_may_begin_another,
        keys_have_their_limit;
    listing:
        keys_are_listed_in_the_order_of_bytes,
        listings_combine_prefix_delimiter_and_pages,
        listings_start_behind_any_key,
        listings_outlive_deleted_keys,
        entries_show_what_head_shows,
        a_page_of_keys_has_its_limit;
    conditions:
        write_conditions_are_decided,
        one_of_many_puts_to_an_absent_key_wins,
        one_of_many_matching_puts_wins,
        conditional_deletes_are_decided;
    copying:
        a_copy_is_a_blob_of_its_own,
        a_copy_keeps_or_changes_properties,
        copies_obey_conditions,
        bad_copies_are_refused;
    checksums:
        checksums_are_remembered,
        a_damaged_body_leaves_nothing,
        a_broken_body_leaves_nothing,
        a_dropped_put_leaves_nothing,
        a_damaged_part_leaves_nothing;
    uploads:
        parts_are_joined_by_number,
        parts_can_be_read_one_by_one,
        a_replaced_part_counts,
        parts_are_no_blob,
        parts_are_listed_in_pages,
        uploads_are_listed_in_pages,
        uploads_of_one_key_are_apart,
        an_aborted_upload_is_gone,
        the_last_part_number_is_ten_thousand;
    completing:
        a_completed_upload_is_a_blob_and_gone,
        completions_obey_conditions,
        checksums_of_joined_bodies_are_remembered,
        checksums_of_joined_parts_are_remembered,
        bad_completions_are_refused;
    deleting:
        a_deleted_blob_is_gone,
        many_are_deleted_at_once,
        bad_deletions_are_refused;
    buckets:
        buckets_are_listed_by_name,
        a_bucket_with_blobs_stays,
        a_deleted_bucket_is_gone,
        buckets_are_apart;
    refusals:
        unknown_names_are_refused,
        bad_properties_are_refused,
        bodies_too_large_are_refused;
    concurrency:
        readers_see_whole_blobs_while_others_write,
        listings_hold_while_others_write;
    crash:
        acknowledged_blobs_survive_a_crash,
        unacknowledged_blobs_are_absent_or_whole,
        deletions_survive_a_crash,
        uploads_survive_a_crash,
        buckets_survive_a_crash;
}
