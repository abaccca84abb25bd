//! Streams on Kinesis.
//!
//! Each file is one step: what a stream is (`describe`, `shards`), how it is made and removed (`manage`), written to
//! (`append`), read (`read`, with `latest` for the end of a shard), followed (`follow`, or `push` with a registered
//! consumer), split and merged (`reshard`).
//!
//! Where Kinesis promises less than the port:
//!
//! * Two who make the same stream at the same moment may both succeed, if the answer to one of them is lost.
//! * Of an append without an answer nobody knows whether it was stored. It is an error that says so, and is not made
//!   again by itself.

pub(crate) mod action;

mod append;
mod describe;
mod follow;
mod latest;
mod manage;
mod moment;
mod push;
mod read;
mod reshard;
mod shards;
mod translate;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{
    Appended, Batch, Capabilities, Error, Follow, HashKey, NewRecord, Page, Position, ReadLimit, Result,
    Shard, ShardId, ShardSource, StreamName, StreamOptions, StreamStore, StreamSummary,
};
use async_trait::async_trait;
use aws_sdk_kinesis::Client;

use self::push::FanOut;
use crate::action::Service;
use crate::call::{Caller, Deadline};
use crate::config::Aws;
use crate::failure;
use crate::source::Iterators;

/// How long a call that moves records may take, with its attempts.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a change of a stream may take: Kinesis needs up to a minute for some.
const CHANGE_PATIENCE: Duration = Duration::from_secs(180);

/// Streams on Kinesis. Cheap to clone: the clones share connections and limits.
#[derive(Clone, Debug)]
pub struct Streams {
    client: Client,
    caller: Caller,
    iterators: Arc<Iterators>,
    fan_out: Option<Arc<FanOut>>,
}

impl Streams {
    /// The streams of the account and region that `aws` is connected to. They are followed by polling, which costs
    /// nothing and shares the reads of a shard with everyone else.
    pub fn new(aws: &Aws) -> Self {
        Streams {
            client: Client::new(&aws.config),
            caller: aws.caller.clone(),
            iterators: Arc::default(),
            fan_out: None,
        }
    }

    /// The same streams, followed with reads of their own: Kinesis pushes records to a registered consumer with this name,
    /// which AWS charges for. It is registered with each stream that is followed, and stays so. One follower of a
    /// shard is served like this at a time; others of the same process poll.
    pub fn with_fan_out(mut self, consumer: &str) -> Result<Self> {
        self.fan_out = Some(Arc::new(FanOut::new(consumer)?));
        Ok(self)
    }

    fn soon(&self) -> Deadline {
        self.caller.deadline(PATIENCE)
    }
}

#[async_trait]
impl ShardSource for Streams {
    fn capabilities(&self) -> Capabilities {
        Capabilities { hash_ranges: true, at_timestamp: true, push: self.fan_out.is_some(), lends: false }
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        self.list(stream, after, limit).await
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        self.read_batch(stream, shard, from, limit).await
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        match &self.fan_out {
            Some(fan_out) => self.subscribe(fan_out, stream, shard, from).await,
            None => self.poll(stream, shard, from).await,
        }
    }
}

#[async_trait]
impl StreamStore for Streams {
    async fn create_stream(&self, stream: &StreamName, options: StreamOptions) -> Result<()> {
        self.make(stream, options).await
    }

    async fn delete_stream(&self, stream: &StreamName) -> Result<()> {
        let removed = self.remove(stream).await;
        self.iterators.forget(stream);
        if let Some(fan_out) = &self.fan_out {
            fan_out.forget(stream);
        }
        removed
    }

    async fn streams(&self, after: Option<&StreamName>, limit: usize) -> Result<Page<StreamSummary>> {
        self.page(after, limit).await
    }

    async fn stream(&self, stream: &StreamName) -> Result<StreamSummary> {
        self.summary(stream).await
    }

    async fn set_retention(&self, stream: &StreamName, retention: Duration) -> Result<()> {
        self.change_retention(stream, retention).await
    }

    async fn append(
        &self,
        stream: &StreamName,
        records: Vec<NewRecord>,
    ) -> Result<Vec<std::result::Result<Appended, Error>>> {
        self.append_all(stream, records).await
    }

    async fn split(&self, stream: &StreamName, shard: &ShardId, at: HashKey) -> Result<[ShardId; 2]> {
        self.split_shard(stream, shard, at).await
    }

    async fn merge(&self, stream: &StreamName, shard: &ShardId, neighbour: &ShardId) -> Result<ShardId> {
        self.merge_shards(stream, shard, neighbour).await
    }
}

/// What the answer of Kinesis cannot be.
fn strange(what: &str) -> Error {
    failure::strange(Service::Kinesis, what)
}
