//! A data directory that the test itself holds, with the reference stores behind a real port. Commands find it through
//! the lock, as they find a server.

use anabranch_engine::DirectoryLock;
use anabranch_model::laws::reference::{ReferenceBlobs, SimpleQueues};
use anabranch_server::{Host, Stores};
use std::sync::Arc;

use super::{Data, Ran, run, run_with_input};

/// Who holds the directory.
pub struct Reference {
    pub data: Data,
    pub queues: SimpleQueues,
    pub host: Host,
    _lock: DirectoryLock,
    /// Dropped last: the port lives in it.
    _runtime: tokio::runtime::Runtime,
}

impl Reference {
    pub fn start() -> Self {
        let data = Data::new();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (queues, blobs) = (SimpleQueues::new(), ReferenceBlobs::new());
        let stores = Stores::default().with_queues(Arc::new(queues.clone())).with_blobs(Arc::new(blobs));
        let host = runtime.block_on(Host::start(stores)).unwrap();
        let lock = DirectoryLock::acquire(&data.path(), "anabranch up").unwrap();
        lock.announce(host.address(), host.address()).unwrap();
        Reference { data, queues, host, _lock: lock, _runtime: runtime }
    }

    /// `anabranch queue …` on this directory.
    #[track_caller]
    pub fn queue(&self, arguments: &[&str]) -> Ran {
        run(self.data.command_on("queue", arguments))
    }

    #[track_caller]
    pub fn send_lines(&self, arguments: &[&str], lines: &str) -> Ran {
        run_with_input(self.data.command_on("queue", [&["send"], arguments].concat()), lines.as_bytes())
    }

    /// `anabranch blob …` on this directory.
    #[track_caller]
    pub fn blob(&self, arguments: &[&str]) -> Ran {
        run(self.data.command_on("blob", arguments))
    }
}
