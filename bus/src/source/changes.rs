//! The streams of the changes of tables, for those who keep them beyond a call.

use std::sync::Arc;

use anabranch_model::{
    Batch, Capabilities, Follow, Page, Position, ReadLimit, Result, SequenceNumber, Shard, ShardId,
    ShardSource, StreamName, TableStore,
};
use async_trait::async_trait;

/// The changes of the tables of a store, as a source that can be shared.
pub struct Changes(pub Arc<dyn TableStore>);

#[async_trait]
impl ShardSource for Changes {
    fn capabilities(&self) -> Capabilities {
        self.0.changes().capabilities()
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        self.0.changes().shards(stream, after, limit).await
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        self.0.changes().read(stream, shard, from, limit).await
    }

    async fn trimmed(&self, stream: &StreamName, shard: &ShardId) -> Result<Option<SequenceNumber>> {
        self.0.changes().trimmed(stream, shard).await
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        self.0.changes().follow(stream, shard, from).await
    }
}
