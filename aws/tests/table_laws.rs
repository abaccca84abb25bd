//! The laws of tables, on servers of DynamoDB's protocol that we did not write.

mod peer;

use std::sync::Arc;

use anabranch_aws::Tables;
use anabranch_model::laws::table::{self, TableFixture, TableLaw};
use peer::Peer;
use peer::suite::{self, Case, Skipped};

const MOTO: Skipped = &[];

const DYNAMODB_LOCAL: Skipped = &[];

/// What no server can show.
const NOWHERE: Skipped = &[];

fn cases(tables: &Tables, prefix: &str) -> Vec<Case> {
    let case = |law: &'static TableLaw| {
        let fixture = TableFixture::new(Arc::new(tables.clone())).with_prefix(prefix).with_spawn(suite::spawned);
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

#[test]
fn every_law_holds_on_some_server() {
    let laws = table::all().iter().map(|law| law.name);
    suite::every_law_holds_somewhere(laws, &[MOTO, DYNAMODB_LOCAL], NOWHERE);
}
