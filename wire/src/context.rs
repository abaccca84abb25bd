//! What an operation needs to do its work.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Admin, BlobStore, Clock, QueueStore, Result, StreamStore, TableStore};
use async_trait::async_trait;
use tokio::sync::watch;

use crate::token::Tokens;
use crate::{cloudwatch, dynamodb, firehose, kinesis, secrets, sqs};

/// The account that everything belongs to.
pub(crate) const ACCOUNT: &str = "000000000000";
/// The region of callers that name none.
pub(crate) const REGION_DEFAULT: &str = "us-east-1";

/// The stores that calls are answered from.
#[derive(Clone)]
pub struct Ports {
    /// Kinesis.
    pub streams: Arc<dyn StreamStore>,
    /// SQS.
    pub queues: Arc<dyn QueueStore>,
    /// DynamoDB and its streams.
    pub tables: Arc<dyn TableStore>,
    /// S3.
    pub blobs: Arc<dyn BlobStore>,
    /// What the services keep beside: tags, modes, consumers.
    pub admin: Arc<dyn Admin>,
}

/// Memory for the bodies of calls.
#[async_trait]
pub trait Memory: Send + Sync {
    /// Waits until so many bytes are free. They are taken until the reservation is dropped.
    async fn reserve(&self, bytes: u64) -> Result<Reservation>;
}

/// Bytes that are taken until this is dropped.
pub type Reservation = Box<dyn Send + Sync>;

/// What all calls share.
pub(crate) struct Shared {
    /// The stores.
    pub(crate) ports: Ports,
    /// The time.
    pub(crate) clock: Arc<dyn Clock>,
    /// Memory for the bodies of calls.
    pub(crate) memory: Arc<dyn Memory>,
    /// Becomes true, or closes, when the server stops: answers that wait for news end then.
    pub(crate) stop: watch::Receiver<bool>,
    /// How long something that was made or changed says that it is not ready yet.
    pub(crate) transition: Duration,
    /// Iterators and the like.
    pub(crate) tokens: Tokens,
    /// What Kinesis remembers between calls.
    pub(crate) kinesis: kinesis::State,
    /// What DynamoDB remembers between calls.
    pub(crate) dynamodb: dynamodb::State,
    /// What SQS remembers between calls.
    pub(crate) sqs: sqs::State,
    /// What CloudWatch remembers between calls.
    pub(crate) cloudwatch: cloudwatch::State,
    /// What Firehose remembers between calls.
    pub(crate) firehose: firehose::State,
    /// What Secrets Manager remembers between calls.
    pub(crate) secrets: secrets::State,
}

/// One call, as the operations see it.
#[derive(Clone)]
pub(crate) struct Context {
    /// What all calls share.
    pub(crate) shared: Arc<Shared>,
    /// The region that the caller signs for.
    pub(crate) region: String,
    /// How the caller addresses this server, for instance `http://127.0.0.1:4566`.
    pub(crate) origin: String,
    /// The path that the call came to.
    pub(crate) path: String,
    /// The trace that the call belongs to, as its head says.
    pub(crate) trace: Option<String>,
    /// The identifier of this call.
    pub(crate) request_id: String,
}

impl Deref for Context {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Context {
    /// What the server does by itself.
    pub(crate) fn of_server(shared: Arc<Shared>) -> Self {
        Context {
            shared,
            region: REGION_DEFAULT.to_owned(),
            origin: String::new(),
            path: String::new(),
            trace: None,
            request_id: String::new(),
        }
    }

    /// The name of a resource, for instance `arn:aws:kinesis:us-east-1:000000000000:stream/clicks`.
    pub(crate) fn arn(&self, service: &str, resource: &str) -> String {
        format!("arn:aws:{service}:{}:{ACCOUNT}:{resource}", self.region)
    }
}
