//! The laws of queues, through the client, the control API and a real port. Behind it is the reference, whose clock can
//! be moved.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::laws::queue::QueueFixture;
use anabranch_model::laws::reference::SimpleQueues;
use anabranch_server::{Host, Remote, Stores};

/// How long a call takes to arrive on a busy machine.
const ARRIVAL: Duration = Duration::from_millis(150);

async fn fixture() -> QueueFixture {
    let store = SimpleQueues::with_in_flight_max(250);
    let host =
        Host::start(Stores::default().with_queues(Arc::new(store.clone()))).await.expect("a free port");
    let remote = Arc::new(Remote::new(host.address()));
    let settle = || async {
        let _ = tokio::time::timeout(ARRIVAL, std::future::pending::<()>()).await;
    };
    store.fixture(remote).with_settle(settle).keeping(host)
}

anabranch_model::queue_laws!(fixture());
