//! The laws of tables, through the client, the control API and a real port: with the reference behind it, whose clock can
//! be moved, and with the engine of a real server on a real disk, which is killed and started again.

mod harness;

mod reference {
    use std::sync::Arc;

    use anabranch_model::TableStore;
    use anabranch_model::laws::reference::ReferenceTables;
    use anabranch_model::laws::table::TableFixture;
    use anabranch_server::Stores;

    use super::harness::laws::Hosted;

    async fn fixture() -> TableFixture {
        let store = ReferenceTables::new();
        let (host, remote) = Hosted::start(Stores::default().with_tables(Arc::new(store.clone()))).await;
        store.fixture(remote).with_crash(move || {
            let crash = host.clone().crash();
            async move { crash.await as Arc<dyn TableStore> }
        })
    }

    anabranch_model::table_laws!(fixture());
}

mod engine {
    use std::sync::Arc;
    use std::time::Duration;

    use anabranch_model::TableStore;
    use anabranch_model::laws::table::TableFixture;

    use super::harness::laws::Killed;

    /// How long a law waits before it looks again: the upkeep runs in the server.
    const UPKEEP: Duration = Duration::from_millis(20);

    async fn fixture() -> TableFixture {
        let (server, store) = Killed::start();
        let upkeep = || async {
            let _ = tokio::time::timeout(UPKEEP, std::future::pending::<()>()).await;
        };
        TableFixture::new(store).with_upkeep(upkeep).with_crash(move || {
            let crash = server.clone().crash();
            async move { crash.await as Arc<dyn TableStore> }
        })
    }

    anabranch_model::table_laws!(fixture());
}
