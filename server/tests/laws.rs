//! The laws of streams, through the client, the control API and a real server, on a real disk.
//! A crash is a server that is killed and started again.

mod harness;

use anabranch_model::StreamStore;
use anabranch_model::laws::stream::StreamFixture;
use harness::laws::Killed;
use std::sync::{Arc, Mutex};

async fn fixture() -> StreamFixture {
    let (server, store) = Killed::start();
    let strict = Mutex::new(Vec::new());
    StreamFixture::new(store)
        .with_limits(move || {
            let (server, limited) = Killed::start_limited();
            // It runs until the law is decided.
            strict.lock().expect("no other holder").push(server);
            async move { limited as Arc<dyn StreamStore> }
        })
        .with_crash(move || {
            let crash = server.clone().crash();
            async move { crash.await as Arc<dyn StreamStore> }
        })
}

anabranch_model::stream_laws!(fixture());
