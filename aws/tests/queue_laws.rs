//! The laws of queues, on servers of SQS's protocol that we did not write.

mod peer;

use anabranch_aws::Queues;
use anabranch_model::laws::queue;
use peer::Peer;
use peer::gaps::queues::{FAUXQS, LOCAL_AWS_SQS, LOCALSTACK, MINISTACK, MOTO, RUSTACK};
use peer::suite::{self, older_queue_cases, queue_cases};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_local_aws_sqs() {
    let local = Peer::local_aws_sqs().await;
    let queues = Queues::new(&local.connect().await);
    suite::hold_beside(&[FAUXQS, LOCALSTACK], queue_cases(&queues, "local"), LOCAL_AWS_SQS, 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_rustack() {
    let rustack = Peer::rustack().await;
    let queues = Queues::new(&rustack.connect().await).purging_at_once();
    suite::hold_beside(&[FAUXQS, LOCALSTACK], older_queue_cases(&queues, "rust"), RUSTACK, 8).await;
}

/// What only fakecloud keeps, which heeds attempts. That a repeated receive hides anew is shown where a law can move the
/// clock, and so by none of these servers.
const ON_FAKECLOUD: [&str; 1] = ["a_receive_can_be_repeated"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_do_not_keep_holds_on_fakecloud() {
    let fakecloud = Peer::fakecloud().await;
    let mut cases = queue_cases(&Queues::new(&fakecloud.connect().await), "fake");
    cases.retain(|(name, _)| ON_FAKECLOUD.contains(name));
    assert_eq!(cases.len(), ON_FAKECLOUD.len(), "a law has another name");
    suite::hold(cases, &[], 1).await;
}

#[test]
fn every_law_holds_on_some_server() {
    let laws = queue::all().iter().map(|law| law.name).filter(|law| !ON_FAKECLOUD.contains(law));
    let servers = [MOTO, FAUXQS, MINISTACK, LOCALSTACK, LOCAL_AWS_SQS, RUSTACK];
    suite::every_law_holds_somewhere(laws, &servers);
}
