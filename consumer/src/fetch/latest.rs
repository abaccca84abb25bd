//! Where the end of a shard is. "From now on" means another place to whoever asks later, so a worker that begins there
//! finds out once where that is, and writes it down before it reads anything.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Next, Position, ReadLimit, Result, ShardSource};

use crate::delivery::ShardInfo;
use crate::lease::Checkpoint;
use crate::lease::held::Start;

/// How long the end may be looked for. Some sources find it only by reading everything, and nobody wants to wait for that.
const SEARCH_MAX: Duration = Duration::from_secs(30);

/// What `LATEST` stands for now; none if the source cannot say it, or the shard has ended.
pub(crate) async fn find_end(source: &Arc<dyn ShardSource>, shard: &ShardInfo) -> Result<Option<Start>> {
    let limit = ReadLimit { records: 1, bytes: 1 };
    let read = source.read(&shard.stream, &shard.shard, Position::Latest, limit);
    let batch = match tokio::time::timeout(SEARCH_MAX, read).await {
        Ok(batch) => batch?,
        Err(_) => {
            tracing::warn!(shard = %shard.shard, "the end of the shard is not found in time");
            return Ok(None);
        }
    };
    let next = match batch.records.first() {
        Some(first) => Next::At(Position::At(first.sequence)),
        None => batch.next,
    };
    Ok(match next {
        Next::At(Position::After(sequence)) => Some(Start::Behind(Checkpoint::behind(sequence))),
        Next::At(Position::At(sequence)) => {
            Some(Start::Behind(sequence.previous().map_or(Checkpoint::TrimHorizon, Checkpoint::behind)))
        }
        // The shard has no record yet.
        Next::At(Position::TrimHorizon) => Some(Start::Behind(Checkpoint::TrimHorizon)),
        Next::At(Position::AtTimestamp(moment)) => Some(Start::Since(moment)),
        Next::At(Position::Latest) | Next::Ended(_) => None,
    })
}
