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

    use anabranch_model::laws::queue::QueueFixture;
    use anabranch_model::laws::reference::SimpleQueues;
    use anabranch_server::{Host, Remote, Stores};

    async fn fixture() -> QueueFixture {
        let store = SimpleQueues::with_in_flight_max(250);
        let stores = Stores::default().with_queues(Arc::new(store.clone()));
        let host = Host::start(stores).await.expect("a free port");
        let remote = Arc::new(Remote::new(host.address()));
        store.fixture(remote).with_settle(super::settle).keeping(host)
    }

    anabranch_model::queue_laws!(fixture());
}

mod engine {
    use std::sync::{Arc, Mutex};

    use anabranch_model::QueueStore;
    use anabranch_model::laws::queue::QueueFixture;
    use anabranch_server::Remote;

    use super::harness::{Data, Server};

    async fn fixture() -> QueueFixture {
        let data = Arc::new(Data::new());
        let server = data.serve();
        let store: Arc<dyn QueueStore> = Arc::new(Remote::new(server.listen));
        let running: Arc<Mutex<Option<Server>>> = Arc::new(Mutex::new(Some(server)));
        let held = running.clone();
        let crash = move || {
            let (data, running) = (data.clone(), running.clone());
            async move {
                let mut running = running.lock().expect("nobody panics while holding it");
                running.take().expect("a server runs").kill();
                let server = data.serve();
                let store: Arc<dyn QueueStore> = Arc::new(Remote::new(server.listen));
                *running = Some(server);
                store
            }
        };
        QueueFixture::new(store).with_settle(super::settle).with_crash(crash).keeping(held)
    }

    anabranch_model::queue_laws!(fixture());
}
