//! The laws of tables, through the client, the control API and a real port: with the reference behind it, whose clock can
//! be moved, and with the engine of a real server on a real disk, which is killed and started again.

mod harness;

mod reference {
    use std::sync::Arc;

    use anabranch_model::laws::reference::ReferenceTables;
    use anabranch_model::laws::table::TableFixture;
    use anabranch_server::{Host, Remote, Stores};

    async fn fixture() -> TableFixture {
        let store = ReferenceTables::new();
        let stores = Stores::default().with_tables(Arc::new(store.clone()));
        let host = Host::start(stores).await.expect("a free port");
        let remote = Arc::new(Remote::new(host.address()));
        store.fixture(remote).keeping(host)
    }

    anabranch_model::table_laws!(fixture());
}

mod engine {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use anabranch_model::TableStore;
    use anabranch_model::laws::table::TableFixture;
    use anabranch_server::Remote;

    use super::harness::{Data, Server};

    /// How long a law waits before it looks again: the upkeep runs in the server.
    const UPKEEP: Duration = Duration::from_millis(20);

    async fn fixture() -> TableFixture {
        let data = Arc::new(Data::new());
        let server = data.serve();
        let store: Arc<dyn TableStore> = Arc::new(Remote::new(server.listen));
        let running: Arc<Mutex<Option<Server>>> = Arc::new(Mutex::new(Some(server)));
        let held = running.clone();
        let crash = move || {
            let (data, running) = (data.clone(), running.clone());
            async move {
                let mut running = running.lock().expect("nobody panics while holding it");
                running.take().expect("a server runs").kill();
                let server = data.serve();
                let store: Arc<dyn TableStore> = Arc::new(Remote::new(server.listen));
                *running = Some(server);
                store
            }
        };
        let upkeep = || async {
            let _ = tokio::time::timeout(UPKEEP, std::future::pending::<()>()).await;
        };
        TableFixture::new(store).with_upkeep(upkeep).with_crash(crash).keeping(held)
    }

    anabranch_model::table_laws!(fixture());
}
