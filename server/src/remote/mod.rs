//! A store that lives in another process: the ports of streams, queues, blobs and tables over the control API.
//!
//! What must hold: a caller cannot tell it from the engine, except that a server that does not answer shows as
//! [`Error::Unavailable`]. A call that ended that way may have had its effect.

mod blobs;
mod call;
mod follow;
mod queues;
mod tables;
mod transfer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{
    Appended, Batch, Capabilities, Error, Follow, HashKey, NewRecord, Page, Position, ReadLimit, Result,
    Shard, ShardId, ShardSource, StreamName, StreamOptions, StreamStore, StreamSummary, check_append,
};
use async_trait::async_trait;
use futures_core::Stream;
use futures_util::stream;

use crate::api::text::Text;
use crate::api::wire::{
    AppendRequest, BackupLine, BackupRequest, CreateRequest, Empty, FollowRequest, MergeRequest,
    NewRecordBody, OpenedReply, ReadRequest, RetentionRequest, ShardsRequest, SplitRequest, StatusReply,
    StreamRequest, StreamsRequest,
};
use crate::api::{self, Operation};
use call::Caller;

/// A running server, seen from another process.
pub struct Remote {
    caller: Arc<Caller>,
    changes: tables::Changes,
}

impl Remote {
    /// The server at `address`. Nothing is sent before the first call.
    pub fn new(address: SocketAddr) -> Self {
        let caller = Arc::new(Caller::new(address));
        Remote { changes: tables::Changes(caller.clone()), caller }
    }

    /// Backs the server's data directory up to an absolute path on its machine; the lines say how far it is. Dropping them
    /// calls it off.
    pub async fn back_up(
        &self,
        target: &str,
    ) -> Result<impl Stream<Item = Result<BackupLine>> + Send + use<>> {
        let request = BackupRequest { target: target.to_owned() };
        let body = self.caller.open(<api::Backup as Operation>::PATH, &request).await?;
        Ok(stream::unfold(Some(follow::Lines::new(body)), |lines| async move {
            let mut lines = lines?;
            let line: Result<BackupLine> = lines.next().await;
            let goes_on = matches!(&line, Ok(line) if line.done.is_none() && line.error.is_none());
            Some((line, goes_on.then_some(lines)))
        }))
    }

    /// Numbers about the server and its engine.
    pub async fn status(&self) -> Result<StatusReply> {
        self.caller.call::<api::Status>(&Empty {}).await
    }
}

#[async_trait]
impl ShardSource for Remote {
    fn capabilities(&self) -> Capabilities {
        Capabilities { hash_ranges: true, at_timestamp: true, push: true, lends: false }
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        let request = ShardsRequest { stream: Text(stream.clone()), after: after.cloned().map(Text), limit };
        self.caller.call::<api::Shards>(&request).await?.into_page()
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        let request = ReadRequest {
            stream: Text(stream.clone()),
            shard: Text(shard.clone()),
            from: from.into(),
            records: limit.records,
            bytes: limit.bytes,
        };
        Ok(self.caller.call::<api::Read>(&request).await?.into())
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        let request =
            FollowRequest { stream: Text(stream.clone()), shard: Text(shard.clone()), from: from.into() };
        let body = self.caller.open(<api::Follow as Operation>::PATH, &request).await?;
        Ok(Box::pin(follow::batches(body)))
    }
}

#[async_trait]
impl StreamStore for Remote {
    async fn create_stream(&self, stream: &StreamName, options: StreamOptions) -> Result<()> {
        let request = CreateRequest {
            stream: Text(stream.clone()),
            shards: options.shards,
            retention: options.retention,
        };
        self.caller.call::<api::CreateStream>(&request).await.map(|Empty {}| ())
    }

    async fn delete_stream(&self, stream: &StreamName) -> Result<()> {
        let request = StreamRequest { stream: Text(stream.clone()) };
        self.caller.call::<api::DeleteStream>(&request).await.map(|Empty {}| ())
    }

    async fn streams(&self, after: Option<&StreamName>, limit: usize) -> Result<Page<StreamSummary>> {
        let request = StreamsRequest { after: after.cloned().map(Text), limit };
        self.caller.call::<api::Streams>(&request).await?.into_page()
    }

    async fn stream(&self, stream: &StreamName) -> Result<StreamSummary> {
        let request = StreamRequest { stream: Text(stream.clone()) };
        self.caller.call::<api::Stream>(&request).await?.try_into()
    }

    async fn set_retention(&self, stream: &StreamName, retention: Duration) -> Result<()> {
        let request = RetentionRequest { stream: Text(stream.clone()), retention };
        self.caller.call::<api::SetRetention>(&request).await.map(|Empty {}| ())
    }

    /// A call here is one call there, and there is the engine.
    fn keeps_runs(&self) -> bool {
        true
    }

    async fn append(
        &self,
        stream: &StreamName,
        records: Vec<NewRecord>,
    ) -> Result<Vec<std::result::Result<Appended, Error>>> {
        // Checked on this side because the server closes the connection of a body that is far too large, and a
        // writer in the middle of it would see that in place of the reason.
        check_append(&records)?;
        let count = records.len();
        let records = records.into_iter().map(NewRecordBody::from).collect();
        let request = AppendRequest { stream: Text(stream.clone()), records };
        let reply = self.caller.call::<api::Append>(&request).await?;
        if reply.results.len() != count {
            return Err(Error::Unavailable("the server answered for another number of records".to_owned()));
        }
        Ok(reply.results.into_iter().map(Into::into).collect())
    }

    async fn split(&self, stream: &StreamName, shard: &ShardId, at: HashKey) -> Result<[ShardId; 2]> {
        let request = SplitRequest { stream: Text(stream.clone()), shard: Text(shard.clone()), at: Text(at) };
        opened(self.caller.call::<api::Split>(&request).await?)
    }

    async fn merge(&self, stream: &StreamName, shard: &ShardId, neighbour: &ShardId) -> Result<ShardId> {
        let request = MergeRequest {
            stream: Text(stream.clone()),
            shard: Text(shard.clone()),
            neighbour: Text(neighbour.clone()),
        };
        opened(self.caller.call::<api::Merge>(&request).await?).map(|[child]| child)
    }
}

fn opened<const N: usize>(reply: OpenedReply) -> Result<[ShardId; N]> {
    let shards: Vec<ShardId> = reply.shards.into_iter().map(|shard| shard.0).collect();
    shards
        .try_into()
        .map_err(|_| Error::Unavailable("the server answered with another number of shards".to_owned()))
}
