//! One shard on its way through `stream tail`: where it stands, and how the next batch is got.

use anabranch_model::{
    Batch, Error, Follow, Next, NextMove, Position, ReadLimit, Result, SequenceNumber, ShardId, StreamName,
};
use futures_util::StreamExt;

use crate::patience::Patience;
use crate::stream::Session;

/// Records that are got in one go, so that printing starts soon and memory stays small.
const BATCH: ReadLimit = ReadLimit { records: 1_000, bytes: 1 << 20 };

/// How batches are got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Read what is there.
    Once,
    /// Let the store push.
    Push,
    /// Read again and again.
    Poll,
}

/// A place in a shard that moves with each batch.
pub(super) struct Cursor<'a> {
    session: &'a Session<'a>,
    stream: &'a StreamName,
    shard: ShardId,
    position: Position,
    follow: Option<Follow>,
    patience: Patience<'a>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(
        session: &'a Session<'a>,
        stream: &'a StreamName,
        shard: ShardId,
        position: Position,
    ) -> Self {
        Cursor { session, stream, shard, position, follow: None, patience: Patience::new(session.clock) }
    }

    pub(super) fn shard(&self) -> &ShardId {
        &self.shard
    }

    /// The same cursor behind a damaged place.
    pub(super) fn resumed_at(mut self, number: SequenceNumber) -> Self {
        self.position = Position::At(number);
        self.follow = None;
        self
    }

    /// The next batch. A store that says "later" is asked again for a while.
    pub(super) async fn next(&mut self, pace: Pace) -> Result<Batch> {
        loop {
            let batch = match pace {
                Pace::Push => self.pushed().await,
                Pace::Once | Pace::Poll => self.read().await,
            };
            match batch {
                Ok(batch) => {
                    self.patience.restore();
                    if let Next::At(position) = batch.next {
                        self.position = position;
                    }
                    return Ok(batch);
                }
                Err(error) if error.next_move() == NextMove::Retry => {
                    self.follow = None;
                    self.patience.wait(error).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn read(&mut self) -> Result<Batch> {
        self.follow = None;
        self.session.store.read(self.stream, &self.shard, self.position, BATCH).await
    }

    async fn pushed(&mut self) -> Result<Batch> {
        let follow = match &mut self.follow {
            Some(follow) => follow,
            empty => {
                let follow = self.session.store.follow(self.stream, &self.shard, self.position).await?;
                empty.insert(follow)
            }
        };
        follow.next().await.unwrap_or_else(|| Err(Error::Unavailable("the follow has ended".to_owned())))
    }
}
