//! Following by polling: a read after the other, with pauses while nothing comes.

use anabranch_model::{Follow, Next, Position, ReadLimit, Result, ShardId, StreamName};

use super::Streams;
use crate::source::{Polled, poll};

impl Streams {
    /// Follows from a position. The first read is made before it returns, so that what does not exist is an error at
    /// once, and `Latest` is the end as it is now.
    pub(super) async fn poll(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        let first = self.polled(stream, shard, from).await?;
        let (streams, stream, shard) = (self.clone(), stream.clone(), shard.clone());
        Ok(poll(first, move |position| {
            let (streams, stream, shard) = (streams.clone(), stream.clone(), shard.clone());
            async move { streams.polled(&stream, &shard, position).await }
        }))
    }

    async fn polled(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Polled<Position>> {
        let batch = self.read_batch(stream, shard, from, ReadLimit::default()).await?;
        let next = match batch.next {
            Next::At(position) => Some(position),
            Next::Ended(_) => None,
        };
        Ok(Polled { batch, next })
    }
}
