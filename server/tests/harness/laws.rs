//! What the laws run against: a real server that is killed, or a host of other stores that is stopped.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use anabranch_server::{Host, Remote, Stores};

use super::{Data, Server};

/// A server of its own data directory.
pub struct Killed {
    data: Data,
    server: Mutex<Option<Server>>,
}

impl Killed {
    pub fn start() -> (Arc<Self>, Arc<Remote>) {
        let data = Data::new();
        let server = data.serve();
        Killed::of(data, server)
    }

    /// A server whose shards take no more in a second than those of Kinesis.
    pub fn start_limited() -> (Arc<Self>, Arc<Remote>) {
        let data = Data::new();
        let config = data.path().with_file_name("limits.toml");
        std::fs::write(&config, "shard_limits = true\n").unwrap();
        let server = Server::start(&data.path(), &["--config", config.to_str().unwrap()]);
        Killed::of(data, server)
    }

    fn of(data: Data, server: Server) -> (Arc<Self>, Arc<Remote>) {
        let remote = Arc::new(Remote::new(server.listen));
        (Arc::new(Killed { data, server: Mutex::new(Some(server)) }), remote)
    }

    /// Ends the server without warning and starts the next one.
    pub async fn crash(self: Arc<Self>) -> Arc<Remote> {
        Arc::new(Remote::new(self.restart()))
    }

    /// The same for whoever asks the server in another way, and has to know where the next one listens.
    pub fn restart(&self) -> SocketAddr {
        let mut running = self.server.lock().unwrap();
        running.take().unwrap().kill();
        running.insert(self.data.serve()).listen
    }

    /// Where the server listens.
    pub fn listen(&self) -> SocketAddr {
        self.server.lock().unwrap().as_ref().unwrap().listen
    }
}

/// A host in this process.
pub struct Hosted {
    stores: Stores,
    host: tokio::sync::Mutex<Host>,
}

impl Hosted {
    pub async fn start(stores: Stores) -> (Arc<Self>, Arc<Remote>) {
        let host = Host::start(stores.clone()).await.unwrap();
        let remote = Arc::new(Remote::new(host.address()));
        (Arc::new(Hosted { stores, host: tokio::sync::Mutex::new(host) }), remote)
    }

    /// The stores stay, but no call of before the crash reaches them after it.
    pub async fn crash(self: Arc<Self>) -> Arc<Remote> {
        let next = Host::start(self.stores.clone()).await.unwrap();
        let remote = Arc::new(Remote::new(next.address()));
        let last = std::mem::replace(&mut *self.host.lock().await, next);
        last.stop().await;
        remote
    }
}
