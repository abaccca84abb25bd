//! The laws of streams, through the client, the control API and a real server, on a real disk.
//! A crash is a server that is killed and started again.

mod harness;

use std::sync::{Arc, Mutex};

use anabranch_model::StreamStore;
use anabranch_model::laws::Fixture;
use anabranch_server::Remote;
use harness::{Data, Server};

async fn fixture() -> Fixture {
    let data = Arc::new(Data::new());
    let server = data.serve();
    let store: Arc<dyn StreamStore> = Arc::new(Remote::new(server.listen));
    let running: Arc<Mutex<Option<Server>>> = Arc::new(Mutex::new(Some(server)));
    let held = running.clone();
    let crash = move || {
        let (data, running) = (data.clone(), running.clone());
        async move {
            let mut running = running.lock().expect("nobody panics while holding it");
            running.take().expect("a server runs").kill();
            let server = data.serve();
            let store: Arc<dyn StreamStore> = Arc::new(Remote::new(server.listen));
            *running = Some(server);
            store
        }
    };
    Fixture::new(store).with_crash(crash).keeping(held)
}

anabranch_model::stream_laws!(fixture());
