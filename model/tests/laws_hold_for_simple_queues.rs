//! The laws of queues can be kept: a store that is obviously right passes every one of them.

use std::sync::Arc;

use anabranch_model::laws::queue::{self, QueueFixture};
use anabranch_model::laws::reference::SimpleQueues;

async fn fixture() -> QueueFixture {
    let store = SimpleQueues::with_in_flight_max(250);
    store.fixture(Arc::new(store.clone()))
}

anabranch_model::queue_laws!(fixture());

/// What an earlier run left behind does not disturb the next.
#[tokio::test]
async fn laws_run_twice_against_one_store() {
    let store = SimpleQueues::with_in_flight_max(250);
    for law in queue::all().iter().chain(queue::all()) {
        law.check(store.fixture(Arc::new(store.clone()))).await;
    }
}
