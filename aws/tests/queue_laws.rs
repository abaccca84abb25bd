//! The laws of queues, on servers of SQS's protocol that we did not write.

mod peer;

use anabranch_aws::Queues;
use anabranch_model::laws::queue;
use peer::Peer;
use peer::gaps::queues::{FAUXQS, LOCALSTACK, MINISTACK, MOTO, NOWHERE};
use peer::suite::{self, queue_cases};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_moto() {
    let moto = Peer::moto().await;
    let queues = Queues::new(&moto.connect().await).purging_at_once();
    suite::hold(queue_cases(&queues, "moto"), MOTO, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_fauxqs() {
    let fauxqs = Peer::fauxqs().await;
    let queues = Queues::new(&fauxqs.connect().await).purging_at_once();
    suite::hold(queue_cases(&queues, "faux"), FAUXQS, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_ministack() {
    let ministack = Peer::ministack().await;
    let queues = Queues::new(&ministack.connect().await).purging_at_once();
    suite::hold(queue_cases(&queues, "mini"), MINISTACK, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_localstack() {
    let localstack = Peer::localstack().await;
    let queues = Queues::new(&localstack.connect().await).purging_at_once();
    suite::hold_beside(&[FAUXQS, MINISTACK], queue_cases(&queues, "stack"), LOCALSTACK, 8).await;
}

#[test]
fn every_law_holds_on_some_server() {
    let laws = queue::all().iter().map(|law| law.name);
    suite::every_law_holds_somewhere(laws, &[MOTO, FAUXQS, MINISTACK, LOCALSTACK], NOWHERE);
}
