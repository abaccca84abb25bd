//! The laws of blobs, on servers of S3's protocol that we did not write.

mod peer;

use std::sync::Arc;

use anabranch_aws::Blobs;
use anabranch_model::laws::blob::{self, BlobFixture};
use anabranch_model::{BlobStore, Error};
use peer::Peer;
use peer::suite::{self, Case, Skipped};

/// SeaweedFS verifies signatures and keeps blobs in folders.
const SEAWEEDFS: Skipped = &[
    ("a_second_put_replaces_the_first", "an `Expires` that is no date is refused"),
    ("properties_come_back_as_they_were", "an `Expires` that is no date is refused"),
    ("odd_keys_are_keys", "`.` and `..` are refused"),
    ("a_key_may_begin_another", "a key that begins another one with a slash is a folder"),
    ("keys_have_their_limit", "a piece between slashes is a file name, and has its limit"),
    ("keys_are_listed_in_the_order_of_bytes", "a key with a zero byte is refused"),
    ("listings_combine_prefix_delimiter_and_pages", "a key that begins another one with a slash is a folder"),
    ("listings_start_behind_any_key", "a key that begins another one with a slash is a folder"),
    ("listings_outlive_deleted_keys", "a key that begins another one with a slash is a folder"),
    ("entries_show_what_head_shows", "a key that begins another one with a slash is a folder"),
    ("bad_copies_are_refused", "a copy to a bucket that does not exist fails inside"),
    ("a_replaced_part_counts", "a part that was replaced is still listed"),
    ("checksums_of_joined_parts_are_remembered", "the checksums of parts are demanded, but not listed"),
    ("unknown_names_are_refused", "a put to a bucket that does not exist makes it"),
];

const MOTO: Skipped = &[
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
];

const MINISTACK: Skipped = &[
    ("copies_obey_conditions", "the condition of the target is ignored"),
    ("checksums_of_joined_bodies_are_remembered", "every checksum of an upload is one of its parts"),
];

fn cases(blobs: &Blobs, prefix: &str) -> Vec<Case> {
    let case = |law: &'static blob::BlobLaw| {
        let fixture =
            BlobFixture::new(Arc::new(blobs.clone())).with_prefix(prefix).with_spawn(suite::spawned);
        (law.name, law.check(fixture))
    };
    blob::all().iter().map(case).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_seaweedfs() {
    let seaweedfs = Peer::seaweedfs().await;
    let blobs = Blobs::new(&seaweedfs.connect().await).expect("an endpoint");
    // Most of its time it waits for a lock, a second at a time.
    suite::hold(cases(&blobs, "weed"), SEAWEEDFS, 8).await;
    // It looks at signatures, so ours are right.
    let stranger = Blobs::new(&seaweedfs.connect_with_a_wrong_secret().await).expect("an endpoint");
    let refused = stranger.buckets(None, 10).await;
    assert!(matches!(refused, Err(Error::Unauthenticated(_))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_moto() {
    let moto = Peer::moto().await;
    let blobs = Blobs::new(&moto.connect().await).expect("an endpoint");
    suite::hold(cases(&blobs, "moto"), MOTO, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_ministack() {
    let ministack = Peer::ministack().await;
    let blobs = Blobs::new(&ministack.connect().await).expect("an endpoint");
    suite::hold(cases(&blobs, "mini"), MINISTACK, 4).await;
}

#[test]
fn every_law_holds_on_some_server() {
    let laws = blob::all().iter().map(|law| law.name);
    suite::every_law_holds_somewhere(laws, &[SEAWEEDFS, MOTO, MINISTACK], &[]);
}
