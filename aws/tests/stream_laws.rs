//! The laws of streams, on servers of Kinesis's protocol that we did not write.

mod peer;

use std::sync::Arc;
use std::time::Duration;

use anabranch_aws::Streams;
use anabranch_model::laws::{self, Fixture};
use peer::Peer;
use peer::suite::{self, Case, Skipped};

/// moto gives the numbers 1, 2, 3 in every shard, moves the records of a closed shard to its children, and never says
/// that a shard has ended.
const MOTO: Skipped = &[
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
    ("latest_holds_while_others_write", "two that write at once get the same number, and one record is lost"),
    ("numbers_of_parents_are_smaller", "every shard counts from 1"),
    ("numbers_are_given_once", "every shard counts from 1"),
    ("an_old_position_shows_no_younger_record", "every shard counts from 1"),
    (
        "records_go_where_their_key_belongs",
        "the last key of a shard belongs to none, and the put fails inside",
    ),
    ("bad_splits_are_refused", "a split at the last key is refused"),
    ("pages_of_shards_join_to_the_listing", "the shard to start behind is ignored"),
    ("the_largest_append_is_stored", "the limits of a put are those of before 2025: 5 MB"),
];

const KINESIS_MOCK: Skipped = &[
    ("at_and_after_find_their_record", "a number that no record has is refused"),
    ("records_go_where_their_key_belongs", "the ranges of new shards are one key off"),
    ("numbers_of_parents_are_smaller", "every closed shard ends at the same small number"),
    ("numbers_are_given_once", "streams that are made in the same second share their numbers"),
    (
        "an_old_position_shows_no_younger_record",
        "streams that are made in the same second share their numbers",
    ),
    ("the_largest_append_is_stored", "a put of 10 MiB is not answered within 15 seconds"),
];

const KINESALITE: Skipped = &[
    ("at_and_after_find_their_record", "a number that no record has is refused"),
    (
        "latest_returns_only_what_comes_later",
        "an iterator for a moment that no record came after is not always given",
    ),
    (
        "a_resolved_position_stays_resolved",
        "an iterator for a moment that no record came after is not always given",
    ),
    ("an_open_shard_never_ends", "an iterator for a moment that no record came after is not always given"),
    (
        "at_timestamp_starts_with_the_first_arrival",
        "an iterator for a moment that no record came after is not always given",
    ),
    ("retention_keeps_what_is_young", "the longest retention is that of before 2020: seven days"),
    ("a_split_shard_ends_with_its_children", "a closed shard without records never ends"),
    ("pages_of_shards_join_to_the_listing", "the size of a page is ignored"),
    ("numbers_are_given_once", "streams that are made in the same second share their numbers; see below"),
    (
        "an_old_position_shows_no_younger_record",
        "streams that are made in the same second share their numbers; see below",
    ),
    ("bad_splits_are_refused", "a split at the last key is refused"),
    ("the_largest_append_is_stored", "the limits of a put are those of before 2025: 1 MiB a record"),
];

/// What no server can show.
const NOWHERE: Skipped = &[(
    "the_largest_append_is_stored",
    "no server knows the limits of 2025; `failures.rs` looks at what is sent",
)];

/// Following on kinesis-mock with a registered consumer.
const FAN_OUT: Skipped = &[
    ("following_ends_with_the_shard", "a subscription does not end with its shard"),
    ("following_a_deleted_stream_fails", "a subscription goes on with empty events when its stream is gone"),
];

fn cases(streams: &Streams, prefix: &str) -> Vec<Case> {
    let case = |law: &'static laws::Law| {
        let fixture = Fixture::new(Arc::new(streams.clone())).with_prefix(prefix).with_spawn(suite::spawned);
        (law.name, law.check(fixture))
    };
    laws::all().iter().map(case).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_moto() {
    let moto = Peer::moto().await;
    suite::hold(cases(&Streams::new(&moto.connect().await), "moto"), MOTO, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_kinesis_mock() {
    let mock = Peer::kinesis_mock().await;
    suite::hold(cases(&Streams::new(&mock.connect().await), "mock"), KINESIS_MOCK, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_kinesalite() {
    let kinesalite = Peer::kinesalite(Duration::from_millis(20)).await;
    suite::hold(cases(&Streams::new(&kinesalite.connect().await), "lite"), KINESALITE, 4).await;
}

/// The laws that need streams which are not made in the same second.
const ONCE: [&str; 2] = ["numbers_are_given_once", "an_old_position_shows_no_younger_record"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_given_once_where_streams_take_their_time() {
    let kinesalite = Peer::kinesalite(Duration::from_millis(1_100)).await;
    let mut cases = cases(&Streams::new(&kinesalite.connect().await), "slow");
    cases.retain(|(name, _)| ONCE.contains(name));
    assert_eq!(cases.len(), ONCE.len(), "a law has another name");
    suite::hold(cases, &[], 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_with_fan_out_on_kinesis_mock() {
    let mock = Peer::kinesis_mock().await;
    let streams = Streams::new(&mock.connect().await).with_fan_out("laws").expect("a name");
    let mut cases = cases(&streams, "fan");
    cases.retain(|(name, _)| name.starts_with("follow"));
    suite::hold(cases, FAN_OUT, 4).await;
}

#[test]
fn every_law_holds_on_some_server() {
    let laws = laws::all().iter().map(|law| law.name).filter(|law| !ONCE.contains(law));
    suite::every_law_holds_somewhere(laws, &[MOTO, KINESIS_MOCK, KINESALITE], NOWHERE);
}
