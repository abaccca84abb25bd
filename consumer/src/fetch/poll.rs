//! Polling, within what Kinesis allows a reader of a shard: five reads a second.

use std::time::Duration;

use anabranch_model::{Batch, Error, Position, Result};

use super::{Expected, Fetcher, Room};
use crate::pause::pause;

/// Shortest time between two reads of a shard.
const READ_EVERY_MIN: Duration = Duration::from_millis(200);
/// How long one read may take.
const READ_MAX: Duration = Duration::from_secs(30);

/// When the shard was read last, and whether there was anything.
#[derive(Default)]
pub(super) struct Polling {
    last: Option<(Duration, bool)>,
}

impl Polling {
    pub(super) async fn next(
        &mut self,
        fetcher: &Fetcher,
        from: Position,
        expected: &Expected,
    ) -> Result<(Batch, Room)> {
        let settings = &fetcher.settings;
        if let Some((at, found)) = self.last {
            let gap = if found { READ_EVERY_MIN } else { settings.poll_idle.max(READ_EVERY_MIN) };
            pause((at + gap).saturating_sub(settings.clock.elapsed())).await;
        }
        let began = settings.clock.elapsed();
        let (batch, room) = read(fetcher, from, expected).await?;
        self.last = Some((began, !batch.records.is_empty()));
        Ok((batch, room))
    }
}

/// Reads as much as there is room for.
pub(super) async fn read(fetcher: &Fetcher, from: Position, expected: &Expected) -> Result<(Batch, Room)> {
    let room = fetcher.share.take(expected.largest).await;
    let limit = fetcher.limit(&room, expected);
    let read = fetcher.source.read(&fetcher.shard.stream, &fetcher.shard.shard, from, limit);
    match tokio::time::timeout(READ_MAX, read).await {
        Ok(batch) => Ok((batch?, room)),
        Err(_) => Err(Error::Unavailable("the source does not answer".to_owned())),
    }
}
