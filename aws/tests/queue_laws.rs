//! The laws of queues, on servers of SQS's protocol that we did not write.

mod peer;

use std::sync::Arc;

use anabranch_aws::Queues;
use anabranch_model::laws::queue::{self, QueueFixture, QueueLaw};
use peer::Peer;
use peer::suite::{self, Case, Skipped};

const MOTO: Skipped = &[];

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
