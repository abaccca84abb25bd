//! Following by polling: a read after the other, with pauses while nothing comes.
//!
//! A shard answers five reads a second for all who read it, so a follower that has caught up asks once a second at most.

use std::time::Duration;

use anabranch_model::{Batch, Follow, Next, Position, ReadLimit, Result, ShardId, StreamName};
use futures_util::stream;

use super::Streams;
use crate::backoff::pause;

/// The first pause of a follower that has caught up; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// One follower.
pub(super) struct Poll {
    streams: Streams,
    stream: StreamName,
    shard: ShardId,
    /// Where the next read starts; none behind the end or an error.
    position: Option<Position>,
    /// The batch that was read when following began.
    first: Option<Batch>,
    pause: Duration,
}

impl Streams {
    /// Follows from a position. The first read is made before it returns, so that what does not exist is an error at
    /// once, and `Latest` is the end as it is now.
    pub(super) async fn poll(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        let first = self.read_batch(stream, shard, from, ReadLimit::default()).await?;
        let poll = Poll {
            streams: self.clone(),
            stream: stream.clone(),
            shard: shard.clone(),
            position: next_position(&first),
            first: Some(first),
            pause: PAUSE_FIRST,
        };
        Ok(Box::pin(stream::unfold(poll, |mut poll| async move {
            let item = poll.next().await?;
            Some((item, poll))
        })))
    }
}

impl Poll {
    async fn next(&mut self) -> Option<Result<Batch>> {
        if let Some(first) = self.first.take()
            && is_worth_showing(&first)
        {
            return Some(Ok(first));
        }
        loop {
            let from = self.position?;
            let read = self.streams.read_batch(&self.stream, &self.shard, from, ReadLimit::default()).await;
            let batch = match read {
                Ok(batch) => batch,
                Err(error) => {
                    self.position = None;
                    return Some(Err(error));
                }
            };
            self.position = next_position(&batch);
            if is_worth_showing(&batch) {
                self.pause = PAUSE_FIRST;
                return Some(Ok(batch));
            }
            if batch.behind.is_zero() {
                pause(self.pause).await;
                self.pause = (self.pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

fn is_worth_showing(batch: &Batch) -> bool {
    !batch.records.is_empty() || matches!(batch.next, Next::Ended(_))
}

fn next_position(batch: &Batch) -> Option<Position> {
    match batch.next {
        Next::At(position) => Some(position),
        Next::Ended(_) => None,
    }
}
