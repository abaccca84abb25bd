//! The laws of tables, on servers of DynamoDB's protocol that we did not write.

mod peer;

use anabranch_aws::Tables;
use anabranch_model::laws::table;
use peer::Peer;
use peer::gaps::tables::{DYNAMODB_LOCAL, MINISTACK, MOTO, RUSTACK};
use peer::suite::{self, table_cases};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_moto() {
    let moto = Peer::moto().await;
    suite::hold(table_cases(&Tables::new(&moto.connect().await), "moto"), MOTO, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_dynamodb_local() {
    let local = Peer::dynamodb_local().await;
    suite::hold(table_cases(&Tables::new(&local.connect().await), "local"), DYNAMODB_LOCAL, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_ministack() {
    let ministack = Peer::ministack().await;
    let cases = table_cases(&Tables::new(&ministack.connect().await), "ministack");
    suite::hold_beside(&[MOTO, DYNAMODB_LOCAL], cases, MINISTACK, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_rustack() {
    let rustack = Peer::rustack().await;
    let cases = table_cases(&Tables::new(&rustack.connect().await), "rust");
    suite::hold_beside(&[MOTO, DYNAMODB_LOCAL], cases, RUSTACK, 4).await;
}

/// What only dynalite keeps, which knows neither transactions nor changes.
const ON_DYNALITE: [&str; 1] = ["a_segment_starts_within_itself"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_do_not_keep_holds_on_dynalite() {
    let dynalite = Peer::dynalite().await;
    let mut cases = table_cases(&Tables::new(&dynalite.connect().await), "lite");
    cases.retain(|(name, _)| ON_DYNALITE.contains(name));
    assert_eq!(cases.len(), ON_DYNALITE.len(), "a law has another name");
    suite::hold(cases, &[], 1).await;
}

#[test]
fn every_law_holds_on_some_server() {
    let laws = table::all().iter().map(|law| law.name).filter(|law| !ON_DYNALITE.contains(law));
    suite::every_law_holds_somewhere(laws, &[MOTO, DYNAMODB_LOCAL, MINISTACK, RUSTACK]);
}
