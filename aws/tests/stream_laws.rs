//! The laws of streams, on servers of Kinesis's protocol that we did not write.

mod peer;

use std::time::Duration;

use anabranch_aws::Streams;
use anabranch_model::laws::stream;
use peer::Peer;
use peer::gaps::streams::{FAN_OUT, KINESALITE, KINESIS_MOCK, MOTO};
use peer::suite::{self, stream_cases};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_moto() {
    let moto = Peer::moto().await;
    suite::hold(stream_cases(&Streams::new(&moto.connect().await), "moto"), MOTO, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_kinesis_mock() {
    let mock = Peer::kinesis_mock().await;
    let cases = stream_cases(&Streams::new(&mock.connect().await), "mock");
    suite::hold_beside(&[MOTO, KINESALITE], cases, KINESIS_MOCK, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_kinesalite() {
    let kinesalite = Peer::kinesalite(Duration::from_millis(20)).await;
    suite::hold(stream_cases(&Streams::new(&kinesalite.connect().await), "lite"), KINESALITE, 4).await;
}

/// The laws that need streams which are not made in the same second.
const ONCE: [&str; 2] = ["numbers_are_given_once", "an_old_position_shows_no_younger_record"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_given_once_where_streams_take_their_time() {
    let kinesalite = Peer::kinesalite(Duration::from_millis(1_100)).await;
    let mut cases = stream_cases(&Streams::new(&kinesalite.connect().await), "slow");
    cases.retain(|(name, _)| ONCE.contains(name));
    assert_eq!(cases.len(), ONCE.len(), "a law has another name");
    suite::hold(cases, &[], 2).await;
}

/// What only fakecloud keeps, where a stream says how large its records may be.
const ON_FAKECLOUD: [&str; 1] = ["the_largest_append_is_stored"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_do_not_keep_holds_on_fakecloud() {
    let fakecloud = Peer::fakecloud().await;
    let mut cases = stream_cases(&Streams::new(&fakecloud.connect().await), "fake");
    cases.retain(|(name, _)| ON_FAKECLOUD.contains(name));
    assert_eq!(cases.len(), ON_FAKECLOUD.len(), "a law has another name");
    suite::hold(cases, &[], 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_with_fan_out_on_kinesis_mock() {
    let mock = Peer::kinesis_mock().await;
    let streams = Streams::new(&mock.connect().await).with_fan_out("laws").expect("a name");
    let mut cases = stream_cases(&streams, "fan");
    cases.retain(|(name, _)| name.starts_with("follow"));
    suite::hold(cases, FAN_OUT, 4).await;
}

#[test]
fn every_law_holds_on_some_server() {
    let elsewhere = |law: &&str| ONCE.contains(law) || ON_FAKECLOUD.contains(law);
    let laws = stream::all().iter().map(|law| law.name).filter(|law| !elsewhere(law));
    suite::every_law_holds_somewhere(laws, &[MOTO, KINESIS_MOCK, KINESALITE]);
}
