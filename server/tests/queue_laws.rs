//! The laws of queues, through the client, the control API and a real port: with the reference behind it, whose clock can
//! be moved, and with the engine of a real server on a real disk, which is killed and started again.

mod harness;

use std::time::Duration;

/// How long a call takes to arrive on a busy machine.
const ARRIVAL: Duration = Duration::from_millis(150);

async fn settle() {
    let _ = tokio::time::timeout(ARRIVAL, std::future::pending::<()>()).await;
}

mod reference {
    use std::sync::Arc;

    use anabranch_model::QueueStore;
    use anabranch_model::laws::queue::QueueFixture;
    use anabranch_model::laws::reference::SimpleQueues;
    use anabranch_server::Stores;

    use super::harness::laws::Hosted;

    async fn fixture() -> QueueFixture {
        let store = SimpleQueues::with_in_flight_max(250);
        let (host, remote) = Hosted::start(Stores::default().with_queues(Arc::new(store.clone()))).await;
        store.fixture(remote).with_settle(super::settle).with_crash(move || {
            let crash = host.clone().crash();
            async move { crash.await as Arc<dyn QueueStore> }
        })
    }

    anabranch_model::queue_laws!(fixture());
}

mod engine {
    use std::sync::Arc;

    use anabranch_model::QueueStore;
    use anabranch_model::laws::queue::QueueFixture;

    use super::harness::laws::Killed;

    async fn fixture() -> QueueFixture {
        let (server, store) = Killed::start();
        QueueFixture::new(store).with_settle(super::settle).with_crash(move || {
            let crash = server.clone().crash();
            async move { crash.await as Arc<dyn QueueStore> }
        })
    }

    anabranch_model::queue_laws!(fixture());
}
