//! The laws of streams, on servers of Kinesis's protocol that we did not write.

mod peer;

use std::sync::Arc;

use anabranch_aws::Streams;
use anabranch_model::laws::{self, Fixture};
use peer::Peer;
use peer::suite::{self, Case, Skipped};

const MOTO: Skipped = &[];

const KINESIS_MOCK: Skipped = &[];

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
    suite::hold(cases(&Streams::new(&moto.connect().await), "moto"), MOTO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_kinesis_mock() {
    let mock = Peer::kinesis_mock().await;
    suite::hold(cases(&Streams::new(&mock.connect().await), "mock"), KINESIS_MOCK).await;
}

#[test]
fn every_law_holds_on_some_server() {
    suite::every_law_holds_somewhere(laws::all().iter().map(|law| law.name), &[MOTO, KINESIS_MOCK]);
}
