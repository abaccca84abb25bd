//! The laws of queues, on servers of SQS's protocol that we did not write.

mod peer;

use std::sync::Arc;
use std::time::Duration;

use anabranch_aws::Queues;
use anabranch_model::laws::queue::{self, QueueFixture, QueueLaw};
use anabranch_model::queue::{QueueCounts, ReceiveOptions};
use anabranch_model::{NewMessage, QueueName, QueueOptions, QueueStore, Timestamp};
use peer::Peer;
use peer::suite::{self, Case, Skipped};

const MOTO: Skipped = &[
    (
        "an_old_receipt_does_not_disturb_the_new_one",
        "every receipt that a message ever had is as good as the last",
    ),
    ("late_receipts_are_refused_in_fifo_queues", "a receipt never expires"),
    ("only_messages_in_flight_can_be_hidden", "what is visible can be hidden"),
    ("purging_leaves_nothing", "receipts of what was purged are unknown"),
    ("groups_keep_their_order", "a message that is recognised by its body has no sequence number"),
    ("duplicates_are_not_received", "a duplicate is acknowledged with an identifier of its own"),
    ("equal_bodies_are_duplicates", "a duplicate is acknowledged with an identifier of its own"),
    ("duplicates_are_looked_for_in_their_scope", "duplicates are looked for in the whole queue only"),
    ("a_receive_can_be_repeated", "attempts are ignored"),
    ("messages_received_too_often_are_moved", "a dead letter does not name its source"),
    ("fifo_dead_letters_make_way", "a dead letter keeps its deduplication id"),
    ("messages_stay_without_a_dead_letter_queue", "messages go to a dead-letter queue that was deleted"),
    ("dead_letters_go_back_to_their_sources", NO_MOVES),
    ("dead_letters_go_where_they_are_told", NO_MOVES),
    ("bad_moves_are_refused", NO_MOVES),
    ("queues_are_described", NO_AGE),
    ("bad_queues_are_refused", "whose dead letters a queue takes is forgotten"),
];

const FAUXQS: Skipped = &[
    ("messages_come_back_as_they_were", "the group of a message in a standard queue is lost"),
    ("an_old_receipt_does_not_disturb_the_new_one", "an old receipt is said never to have been given"),
    ("late_receipts_are_refused_in_fifo_queues", "a receipt never expires"),
    (
        "only_messages_in_flight_can_be_hidden",
        "the receipt of what is visible is said never to have been given",
    ),
    ("foreign_receipts_are_refused", "deleting with a receipt that it never gave succeeds"),
    ("duplicates_are_not_received", "a receive gives one message of a group"),
    ("equal_bodies_are_duplicates", "a receive gives one message of a group"),
    ("a_receive_can_be_repeated", "a receive gives one message of a group"),
    ("duplicates_are_looked_for_in_their_scope", "duplicates are looked for in the whole queue only"),
    ("messages_received_too_often_are_moved", "the receive that moves a message counts as one"),
    ("fifo_dead_letters_make_way", "a dead letter keeps its deduplication id"),
    ("dead_letters_go_back_to_their_sources", NO_MOVES),
    ("dead_letters_go_where_they_are_told", NO_MOVES),
    ("bad_moves_are_refused", NO_MOVES),
    ("queues_are_described", NO_AGE),
    ("bad_queues_are_refused", "whose dead letters a queue takes is not known"),
];

const MINISTACK: Skipped = &[
    ("deleted_messages_never_come_back", "the receipt of what was deleted is said never to have been given"),
    ("purging_leaves_nothing", "the receipt of what was purged is said never to have been given"),
    ("an_old_receipt_does_not_disturb_the_new_one", "an old receipt is said never to have been given"),
    ("late_receipts_are_refused_in_fifo_queues", "a receipt never expires"),
    ("only_messages_in_flight_can_be_hidden", "what is visible can be hidden"),
    ("a_receive_can_be_repeated", "attempts are ignored"),
    ("fifo_dead_letters_make_way", "a dead letter keeps its deduplication id"),
    ("dead_letters_go_back_to_their_sources", NO_MOVES),
    ("dead_letters_go_where_they_are_told", NO_MOVES),
    ("bad_moves_are_refused", NO_MOVES),
    ("queues_are_described", NO_AGE),
];

/// What no server can show. `queue_failures.rs` looks at what is asked of SQS and made of its answers instead.
const NOWHERE: Skipped = &[
    ("an_old_receipt_does_not_disturb_the_new_one", "no server knows that a receipt has been good once"),
    ("late_receipts_are_refused_in_fifo_queues", "on no server a receipt expires"),
    ("only_messages_in_flight_can_be_hidden", "no server says that a message is not in flight"),
    ("a_receive_can_be_repeated", "every server ignores attempts, or gives one message of a group"),
    ("fifo_dead_letters_make_way", "on every server a dead letter keeps its deduplication id"),
    ("dead_letters_go_back_to_their_sources", NO_MOVES),
    ("dead_letters_go_where_they_are_told", NO_MOVES),
    ("bad_moves_are_refused", NO_MOVES),
    ("queues_are_described", NO_AGE),
];

const NO_MOVES: &str = "moves are not known";
/// The rest of the law holds: see `queues_are_described_but_for_their_age`.
const NO_AGE: &str = "SQS itself does not say how old the oldest message is";

fn cases(queues: &Queues, prefix: &str) -> Vec<Case> {
    let case = |law: &'static QueueLaw| {
        let fixture =
            QueueFixture::new(Arc::new(queues.clone())).with_prefix(prefix).with_spawn(suite::spawned);
        (law.name, law.check(fixture))
    };
    queue::all().iter().map(case).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_moto() {
    let moto = Peer::moto().await;
    let queues = Queues::new(&moto.connect().await).purging_at_once();
    suite::hold(cases(&queues, "moto"), MOTO, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_fauxqs() {
    let fauxqs = Peer::fauxqs().await;
    let queues = Queues::new(&fauxqs.connect().await).purging_at_once();
    suite::hold(cases(&queues, "faux"), FAUXQS, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_ministack() {
    let ministack = Peer::ministack().await;
    let queues = Queues::new(&ministack.connect().await).purging_at_once();
    suite::hold(cases(&queues, "mini"), MINISTACK, 4).await;
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
