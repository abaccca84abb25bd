//! The laws of queues, on servers of SQS's protocol that we did not write.

mod peer;

use std::sync::Arc;

use anabranch_aws::Queues;
use anabranch_model::laws::queue::{self, QueueFixture, QueueLaw};
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

const FAUXQS: Skipped = &[];

const MINISTACK: Skipped = &[];

const NO_MOVES: &str = "moves are not known";
const NO_AGE: &str = "SQS does not say how old the oldest message is";

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
