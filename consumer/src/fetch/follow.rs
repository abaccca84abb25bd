//! Following: the source pushes. A stream that is silent for long is checked by a read, for nothing else tells a shard
//! without records from a connection that is dead.

use std::time::Duration;

use anabranch_model::{Batch, Error, Follow, Next, Position, ReadLimit, Result};
use futures_util::StreamExt;

use super::Fetcher;

/// How long the source may be silent before it is looked after.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// The stream of batches, once it is there.
#[derive(Default)]
pub(super) struct Following {
    stream: Option<Follow>,
}

impl Following {
    pub(super) async fn next(&mut self, fetcher: &Fetcher, from: Position) -> Result<Batch> {
        let (source, shard) = (&fetcher.source, &fetcher.shard);
        let silent = || Error::Unavailable("the source does not answer".to_owned());
        if self.stream.is_none() {
            let follow = source.follow(&shard.stream, &shard.shard, from);
            let stream = tokio::time::timeout(SILENCE_MAX, follow).await.map_err(|_| silent())??;
            self.stream = Some(stream);
        }
        loop {
            let Some(stream) = &mut self.stream else { return Err(silent()) };
            match tokio::time::timeout(SILENCE_MAX, stream.next()).await {
                Ok(Some(batch)) => return batch,
                Ok(None) => return Err(Error::Unavailable("the source stopped sending".to_owned())),
                Err(_) => {}
            }
            // Nothing can be said about what came after `Latest` before the first batch.
            if from == Position::Latest {
                return Err(silent());
            }
            let limit = ReadLimit { records: 1, bytes: 1 };
            let read = source.read(&shard.stream, &shard.shard, from, limit);
            let batch = tokio::time::timeout(SILENCE_MAX, read).await.map_err(|_| silent())??;
            if !batch.records.is_empty() {
                return Err(Error::Unavailable(
                    "records have come, and the source did not send them".to_owned(),
                ));
            }
            if matches!(batch.next, Next::Ended(_)) {
                return Err(Error::Unavailable(
                    "the shard has ended, and the source did not say so".to_owned(),
                ));
            }
            fetcher.progress.advanced();
        }
    }
}
