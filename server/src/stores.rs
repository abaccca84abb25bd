//! The stores behind a server or a command, one a port. This is the one place that says who keeps what.

use std::net::SocketAddr;
use std::sync::Arc;

use anabranch_aws::{Aws, Blobs, Queues, Streams, Tables};
use anabranch_engine::Engine;
use anabranch_model::{Admin, BlobStore, Error, QueueStore, Result, StreamStore, TableStore};
use anabranch_wire::Ports;

use crate::backend::EngineArgs;
use crate::remote::Remote;

/// Stores by what they keep. Some may be missing: calls on them are refused.
#[derive(Clone, Default)]
pub struct Stores {
    streams: Option<Arc<dyn StreamStore>>,
    queues: Option<Arc<dyn QueueStore>>,
    blobs: Option<Arc<dyn BlobStore>>,
    tables: Option<Arc<dyn TableStore>>,
    admin: Option<Arc<dyn Admin>>,
}

impl Stores {
    /// What the engine keeps.
    pub(crate) fn of(engine: &Engine) -> Self {
        let engine = Arc::new(engine.clone());
        let stores = Stores::default().with_streams(engine.clone()).with_queues(engine.clone());
        stores.with_blobs(engine.clone()).with_tables(engine.clone()).with_admin(engine)
    }

    /// What the server at `address` keeps.
    pub(crate) fn at(address: SocketAddr) -> Self {
        let remote = Arc::new(Remote::new(address));
        let stores = Stores::default().with_streams(remote.clone()).with_queues(remote.clone());
        stores.with_blobs(remote.clone()).with_tables(remote)
    }

    /// What the services of AWS keep. Streams are followed by fan-out if there is a name for the consumer, and tables are
    /// paid for as the arguments say.
    pub(crate) fn on(aws: &Aws, args: &EngineArgs) -> Result<Self> {
        let streams = match args.fan_out.as_deref() {
            Some(consumer) => Streams::new(aws).with_fan_out(consumer)?,
            None => Streams::new(aws),
        };
        let tables = match args.capacity {
            Some(capacity) => Tables::new(aws).reserving(capacity.reads, capacity.writes)?,
            None => Tables::new(aws),
        };
        let stores = Stores::default().with_streams(Arc::new(streams));
        let stores = stores.with_queues(Arc::new(Queues::new(aws))).with_tables(Arc::new(tables));
        Ok(stores.with_blobs(Arc::new(Blobs::new(aws)?)))
    }

    /// These stores, with one for streams.
    pub fn with_streams(self, streams: Arc<dyn StreamStore>) -> Self {
        Stores { streams: Some(streams), ..self }
    }

    /// These stores, with one for queues.
    pub fn with_queues(self, queues: Arc<dyn QueueStore>) -> Self {
        Stores { queues: Some(queues), ..self }
    }

    /// These stores, with one for blobs.
    pub fn with_blobs(self, blobs: Arc<dyn BlobStore>) -> Self {
        Stores { blobs: Some(blobs), ..self }
    }

    /// These stores, with one for tables.
    pub fn with_tables(self, tables: Arc<dyn TableStore>) -> Self {
        Stores { tables: Some(tables), ..self }
    }

    /// These stores, with one for documents that only a server keeps.
    pub fn with_admin(self, admin: Arc<dyn Admin>) -> Self {
        Stores { admin: Some(admin), ..self }
    }

    /// What the AWS protocols are answered from; none if a store is missing.
    pub(crate) fn ports(&self) -> Option<Ports> {
        Some(Ports {
            streams: self.streams.clone()?,
            queues: self.queues.clone()?,
            tables: self.tables.clone()?,
            blobs: self.blobs.clone()?,
            admin: self.admin.clone()?,
        })
    }

    pub(crate) fn streams(&self) -> Result<&dyn StreamStore> {
        self.streams.as_deref().ok_or_else(|| missing("streams"))
    }

    pub(crate) fn queues(&self) -> Result<&dyn QueueStore> {
        self.queues.as_deref().ok_or_else(|| missing("queues"))
    }

    pub(crate) fn blobs(&self) -> Result<&dyn BlobStore> {
        self.blobs.as_deref().ok_or_else(|| missing("blobs"))
    }

    pub(crate) fn tables(&self) -> Result<&dyn TableStore> {
        self.tables.as_deref().ok_or_else(|| missing("tables"))
    }
}

/// For those who keep a store beyond a call.
impl Stores {
    pub(crate) fn shared_streams(&self) -> Result<Arc<dyn StreamStore>> {
        self.streams.clone().ok_or_else(|| missing("streams"))
    }

    pub(crate) fn shared_tables(&self) -> Result<Arc<dyn TableStore>> {
        self.tables.clone().ok_or_else(|| missing("tables"))
    }

    pub(crate) fn shared_queues(&self) -> Result<Arc<dyn QueueStore>> {
        self.queues.clone().ok_or_else(|| missing("queues"))
    }

    pub(crate) fn shared_blobs(&self) -> Result<Arc<dyn BlobStore>> {
        self.blobs.clone().ok_or_else(|| missing("blobs"))
    }
}

fn missing(what: &str) -> Error {
    Error::Invalid(format!("there are no {what} here: this build does not keep any"))
}
