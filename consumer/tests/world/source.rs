//! Streams as real stores push them: a follower hears nothing before there is something, not every store has a number for
//! the end of a shard, and connections break or fall silent.

use std::sync::Arc;

use anabranch_model::laws::reference::SimpleStreams;
use anabranch_model::{
    Batch, Capabilities, Error, Follow, Next, Page, Position, ReadLimit, Result, Shard, ShardId, ShardSource,
    StreamName,
};
use async_trait::async_trait;
use futures_util::{StreamExt, future, stream};
use parking_lot::Mutex;
use tokio::sync::watch;

/// How a store tells where the end of a shard is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By a number, as the engine does, and Kinesis where a record came lately.
    Number,
    /// By a moment, as Kinesis does for a shard that is quiet.
    Moment,
    /// Not at all.
    Unknown,
}

/// A store that pushes.
#[derive(Clone)]
pub struct Pushing {
    pub inner: SimpleStreams,
    pub end: End,
    /// Nothing is answered, and nothing arrives, while it is so.
    pub down: watch::Sender<bool>,
    /// Followers that begin while it is so never hear anything.
    pub silent: Arc<Mutex<bool>>,
    /// What reading is refused with.
    pub refusal: Arc<Mutex<Option<Error>>>,
    /// Positions that are numbers are refused.
    pub refuses_numbers: Arc<Mutex<bool>>,
}

impl Pushing {
    pub fn new(inner: &SimpleStreams, end: End) -> Self {
        Pushing {
            inner: inner.clone(),
            end,
            down: watch::Sender::new(false),
            silent: Arc::default(),
            refusal: Arc::default(),
            refuses_numbers: Arc::default(),
        }
    }

    fn check(&self, from: Position) -> Result<()> {
        if *self.refuses_numbers.lock() && matches!(from, Position::At(_) | Position::After(_)) {
            return Err(Error::Invalid("no such number".to_owned()));
        }
        if *self.down.borrow() {
            return Err(Error::Unavailable("down".to_owned()));
        }
        self.refusal.lock().clone().map_or(Ok(()), Err)
    }
}

#[async_trait]
impl ShardSource for Pushing {
    fn capabilities(&self) -> Capabilities {
        ShardSource::capabilities(&self.inner)
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        self.inner.shards(stream, after, limit).await
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        self.check(from)?;
        let batch = self.inner.read(stream, shard, from, limit).await?;
        let moment = Next::At(Position::AtTimestamp(self.inner.now()));
        match self.end {
            End::Moment if from == Position::Latest && matches!(batch.next, Next::At(_)) => {
                Ok(Batch { next: moment, ..batch })
            }
            End::Unknown if from == Position::Latest => {
                Err(Error::Unavailable("the end was not found".to_owned()))
            }
            _ => Ok(batch),
        }
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        self.check(from)?;
        if *self.silent.lock() {
            return Ok(Box::pin(stream::pending()));
        }
        let follow = self.inner.follow(stream, shard, from).await?;
        let loud = |batch: &Result<Batch>| {
            future::ready(
                !matches!(batch, Ok(Batch { records, next: Next::At(_), .. }) if records.is_empty()),
            )
        };
        let mut down = self.down.subscribe();
        let broken = async move {
            let _ = down.wait_for(|down| *down).await;
        };
        let error = stream::iter([Err(Error::Unavailable("the connection broke".to_owned()))]);
        Ok(Box::pin(follow.filter(loud).take_until(broken).chain(error)))
    }
}
