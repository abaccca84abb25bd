//! Following: the source pushes. It is asked for more only while there is room for what may come. A stream that is silent for
//! long is checked by a read, for nothing else tells a shard without records from a connection that is dead.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use anabranch_model::{Batch, Error, Follow, Next, Position, ReadLimit, Result};
use futures_util::StreamExt;

use super::{Expected, Fetcher, Room};
use crate::pause::pause;

/// How long the source may be silent before it is looked after.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// How long room is kept for a source that has nothing yet: it may just be reading.
const QUIET_MAX: Duration = Duration::from_secs(1);

/// The stream of batches, once it is there.
#[derive(Default)]
pub(super) struct Following {
    stream: Option<Follow>,
}

impl Following {
    pub(super) async fn next(
        &mut self,
        fetcher: &Fetcher,
        from: Position,
        expected: &Expected,
    ) -> Result<(Batch, Room)> {
        let (source, shard) = (&fetcher.source, &fetcher.shard);
        if self.stream.is_none() {
            let follow = source.follow(&shard.stream, &shard.shard, from);
            let stream = tokio::time::timeout(SILENCE_MAX, follow).await.map_err(|_| silent())??;
            self.stream = Some(stream);
        }
        let Some(stream) = &mut self.stream else { return Err(silent()) };
        let silence = pause(SILENCE_MAX);
        tokio::pin!(silence);
        loop {
            let room = fetcher.share.take(expected.largest).await;
            tokio::select! {
                biased;
                batch = stream.next() => return match batch {
                    Some(batch) => Ok((batch?, room)),
                    None => Err(Error::Unavailable("the source stopped sending".to_owned())),
                },
                () = pause(QUIET_MAX) => drop(room),
            }
            tokio::select! {
                biased;
                () = &mut silence => {
                    look_after(fetcher, from).await?;
                    fetcher.progress.advanced();
                    silence.set(pause(SILENCE_MAX));
                }
                () = woken() => {}
            }
        }
    }
}

/// Waits until this task is woken. The stream was polled before, so it wakes it when it has something, and keeps that to itself
/// until it is polled again.
async fn woken() {
    let mut was_polled = false;
    poll_fn(|_| if std::mem::replace(&mut was_polled, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Whether it is right that the source is silent. An error if it is not.
async fn look_after(fetcher: &Fetcher, from: Position) -> Result<()> {
    // Nothing can be said about what came after `Latest` before the first batch.
    if from == Position::Latest {
        return Err(silent());
    }
    let limit = ReadLimit { records: 1, bytes: 1 };
    let read = fetcher.source.read(&fetcher.shard.stream, &fetcher.shard.shard, from, limit);
    let batch = tokio::time::timeout(SILENCE_MAX, read).await.map_err(|_| silent())??;
    if !batch.records.is_empty() {
        return Err(Error::Unavailable("records have come, and the source did not send them".to_owned()));
    }
    if matches!(batch.next, Next::Ended(_)) {
        return Err(Error::Unavailable("the shard has ended, and the source did not say so".to_owned()));
    }
    Ok(())
}

fn silent() -> Error {
    Error::Unavailable("the source does not answer".to_owned())
}
