//! The laws of blobs can be broken: for each of them there is a store with one fault that it notices.

use anabranch_model::laws::blob;
use broken_blobs::{BrokenBlobs, Fault};
use court::{Noticed, verdict};

mod broken_blobs;
mod court;

#[rustfmt::skip]
const NOTICED: Noticed<Fault> = &[
    (Fault::CutsBodies, &["bodies_come_back_as_they_were"]),
    (Fault::TakesFirstPieceOnly, &["pieces_of_a_body_do_not_matter"]),
    (Fault::TagsCountPuts, &["etags_are_md5_where_asked_for", "etags_follow_from_the_bytes"]),
    (Fault::ForgetsProperties, &["properties_come_back_as_they_were"]),
    (Fault::KeepsOldProperties, &["a_second_put_replaces_the_first"]),
    (Fault::TimesAreOfTheFirstPut, &["a_blob_shows_when_it_was_put"]),
    (Fault::RangesEndEarly, &["ranges_return_their_bytes"]),
    (Fault::PartsAreWhole, &["parts_can_be_read_one_by_one"]),
    (Fault::BadRangesAreWhole, &["ranges_outside_are_refused"]),
    (Fault::ReadersSeeOverwrites, &["a_reader_keeps_a_replaced_body", "a_reader_keeps_a_deleted_body"]),
    (Fault::IgnoresReadConditions, &["read_conditions_are_decided", "copies_obey_conditions"]),
    (Fault::IgnoresWriteConditions, &[
        "write_conditions_are_decided",
        "conditional_deletes_are_decided",
        "copies_obey_conditions",
        "completions_obey_conditions",
        "one_of_many_puts_to_an_absent_key_wins",
    ]),
    (Fault::DecidesConditionsEarly, &[
        "one_of_many_puts_to_an_absent_key_wins",
        "one_of_many_matching_puts_wins",
    ]),
    (Fault::NormalisesKeys, &["odd_keys_are_keys"]),
    (Fault::IgnoresCase, &["odd_keys_are_keys"]),
    (Fault::CutsKeys, &["keys_have_their_limit"]),
    (Fault::SlashIsAFolder, &["a_key_may_begin_another", "odd_keys_are_keys"]),
    (Fault::DeletesWhatBeginsAlike, &["a_key_may_begin_another"]),
    (Fault::ListsByUtf16, &["keys_are_listed_in_the_order_of_bytes"]),
    (Fault::IgnoresDelimiters, &["listings_combine_prefix_delimiter_and_pages"]),
    (Fault::StartsAtTheFirstKey, &["listings_start_behind_any_key", "listings_outlive_deleted_keys"]),
    (Fault::IgnoresLimits, &["listings_combine_prefix_delimiter_and_pages"]),
    (Fault::PagesSkip, &[
        "listings_outlive_deleted_keys",
        "parts_are_listed_in_pages",
        "uploads_are_listed_in_pages",
        "buckets_are_listed_by_name",
    ]),
    (Fault::FirstPageIsLast, &["a_page_of_keys_has_its_limit"]),
    (Fault::ListsWrongSizes, &["entries_show_what_head_shows"]),
    (Fault::CopiesAreEmpty, &["a_copy_is_a_blob_of_its_own"]),
    (Fault::CopiesDropProperties, &["a_copy_keeps_or_changes_properties"]),
    (Fault::CopiesOntoThemselves, &["bad_copies_are_refused"]),
    (Fault::ForgetsChecksums, &[
        "checksums_are_remembered",
        "checksums_of_joined_bodies_are_remembered",
        "checksums_of_joined_parts_are_remembered",
    ]),
    (Fault::TakesDamagedBodies, &["a_damaged_body_leaves_nothing", "a_damaged_part_leaves_nothing"]),
    (Fault::TakesBrokenBodies, &["a_broken_body_leaves_nothing", "a_damaged_part_leaves_nothing"]),
    (Fault::ShowsHalfPuts, &[
        "a_dropped_put_leaves_nothing",
        "a_broken_body_leaves_nothing",
        "readers_see_whole_blobs_while_others_write",
    ]),
    (Fault::HidesReplacedBlobs, &["listings_hold_while_others_write"]),
    (Fault::KeepsHalfPutsInACrash, &["unacknowledged_blobs_are_absent_or_whole"]),
    (Fault::JoinsFirstPartOnly, &["parts_are_joined_by_number", "the_last_part_number_is_ten_thousand"]),
    (Fault::FirstPartCounts, &["a_replaced_part_counts"]),
    (Fault::PartsAreBlobs, &["parts_are_no_blob"]),
    (Fault::UploadsShareAKey, &["uploads_of_one_key_are_apart", "uploads_are_listed_in_pages"]),
    (Fault::AbortsNothing, &["an_aborted_upload_is_gone"]),
    (Fault::NumbersWrapAround, &["the_last_part_number_is_ten_thousand"]),
    (Fault::CompletedUploadsStay, &["a_completed_upload_is_a_blob_and_gone"]),
    (Fault::TakesAnyCompletion, &["bad_completions_are_refused"]),
    (Fault::DeletesNothing, &["a_deleted_blob_is_gone"]),
    (Fault::DeletesFirstOnly, &["many_are_deleted_at_once"]),
    (Fault::TakesAnyNumberOfKeys, &["bad_deletions_are_refused"]),
    (Fault::MakesBucketsAgain, &["a_bucket_with_blobs_stays"]),
    (Fault::DeletesFullBuckets, &["a_bucket_with_blobs_stays"]),
    (Fault::UploadsOutliveBuckets, &["a_deleted_bucket_is_gone"]),
    (Fault::BucketsShareKeys, &["buckets_are_apart"]),
    (Fault::MistakesTheUnknown, &["unknown_names_are_refused"]),
    (Fault::TakesBadProperties, &["bad_properties_are_refused"]),
    (Fault::TakesLargeBodies, &["bodies_too_large_are_refused"]),
    (Fault::LosesLastChange, &[
        "acknowledged_blobs_survive_a_crash",
        "deletions_survive_a_crash",
        "uploads_survive_a_crash",
        "buckets_survive_a_crash",
    ]),
];

#[tokio::test]
async fn every_fault_is_noticed() {
    court::faults_are_noticed(NOTICED, blob::named, BrokenBlobs::fixture).await;
}

#[test]
fn every_law_notices_a_fault() {
    court::laws_notice_faults(NOTICED, blob::all());
}

/// The wrapper itself keeps the laws: a fault that a law does not look at leaves it in peace.
#[tokio::test]
async fn innocent_stores_are_acquitted() {
    for name in ["bodies_come_back_as_they_were", "parts_are_joined_by_number", "uploads_survive_a_crash"] {
        assert_eq!(verdict(blob::named(name), BrokenBlobs::fixture(Fault::MakesBucketsAgain)).await, Ok(()));
    }
}
