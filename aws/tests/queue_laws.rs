//! The laws of queues, on servers of SQS's protocol that we did not write.

mod peer;

use std::time::Duration;

use anabranch_aws::Queues;
use anabranch_model::laws::queue;
use anabranch_model::queue::{QueueCounts, ReceiveOptions};
use anabranch_model::{NewMessage, QueueName, QueueOptions, QueueStore, Timestamp};
use peer::Peer;
use peer::gaps::queues::{FAUXQS, MINISTACK, MOTO, NOWHERE};
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

#[tokio::test]
async fn queues_are_described_but_for_their_age() {
    let moto = Peer::moto().await;
    let queues = Queues::new(&moto.connect().await);
    let queue = QueueName::new("described").expect("a name");
    let options = QueueOptions { visibility: Duration::from_secs(500), ..QueueOptions::default() };
    queues.create_queue(&queue, options.clone()).await.unwrap();
    let send = |body: &'static str| queues.send(&queue, vec![NewMessage::new(body)]);
    send("hidden").await.unwrap();
    assert_eq!(queues.receive(&queue, ReceiveOptions::all()).await.unwrap().len(), 1);
    send("visible").await.unwrap();
    send("visible too").await.unwrap();
    let delayed = NewMessage::new("delayed").after(Duration::from_secs(60));
    queues.send(&queue, vec![delayed]).await.unwrap();
    let summary = queues.queue(&queue).await.unwrap();
    assert_eq!((&summary.name, &summary.options), (&queue, &options));
    assert_eq!(summary.counts, QueueCounts { visible: 2, in_flight: 1, delayed: 1 });
    assert_eq!(summary.oldest_age, None);
    assert!(summary.created_at > Timestamp::EPOCH && summary.changed_at >= summary.created_at, "{summary:?}");
}

#[test]
fn every_law_holds_on_some_server() {
    let laws = queue::all().iter().map(|law| law.name);
    suite::every_law_holds_somewhere(laws, &[MOTO, FAUXQS, MINISTACK], NOWHERE);
}
