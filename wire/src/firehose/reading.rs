//! Reading what waits for its delivery, whatever is in the way: limits are waited for, damage is passed over and told.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Batch, Error, Position, ReadLimit, SequenceNumber, ShardId, StreamName};
use parking_lot::Mutex;

use super::definition::Definition;
use crate::context::Shared;

/// How long memory is waited for that others have.
const PAUSE: Duration = Duration::from_millis(100);

/// Reads the records of a delivery stream onwards. Clones share how far they have come.
#[derive(Clone)]
pub(super) struct Reader {
    shared: Arc<Shared>,
    name: String,
    stream: StreamName,
    shard: ShardId,
    passed: Arc<Mutex<Option<SequenceNumber>>>,
}

impl Reader {
    /// Reads this shard.
    pub(super) fn new(
        shared: &Arc<Shared>,
        definition: &Definition,
        stream: StreamName,
        shard: ShardId,
    ) -> Self {
        let (shared, name) = (shared.clone(), definition.name.clone());
        Reader { shared, name, stream, shard, passed: Arc::default() }
    }

    /// The last number that was read or passed over, if there is one.
    pub(super) fn passed(&self) -> Option<SequenceNumber> {
        *self.passed.lock()
    }

    /// Reads a batch. A delivery that stopped at a limit or at damage would stop there whenever it is tried again.
    pub(super) async fn read(&self, mut at: Position, limit: ReadLimit) -> Result<Batch, Error> {
        loop {
            let wait = match self.shared.ports.streams.read(&self.stream, &self.shard, at, limit).await {
                Err(Error::Damaged { from, resume_at, .. }) => {
                    self.tell(from, resume_at);
                    *self.passed.lock() = resume_at.previous();
                    at = Position::At(resume_at);
                    continue;
                }
                Err(Error::Throttled { retry_after, .. } | Error::SlowDown { retry_after, .. }) => {
                    retry_after
                }
                Err(Error::Busy { .. }) => PAUSE,
                read => {
                    let batch = read?;
                    if let Some(last) = batch.records.last() {
                        *self.passed.lock() = Some(last.sequence);
                    }
                    return Ok(batch);
                }
            };
            self.wait(wait).await?;
        }
    }

    /// A delivery that fails is begun anew, and meets the same damage again.
    fn tell(&self, from: SequenceNumber, resume_at: SequenceNumber) {
        if self.shared.firehose.tell_damage(&self.name, resume_at) {
            tracing::error!(name = self.name, %from, %resume_at, "Firehose cannot deliver damaged records");
            metrics::counter!("anabranch_firehose_damaged_total").increment(1);
        }
    }

    async fn wait(&self, time: Duration) -> Result<(), Error> {
        let mut stop = self.shared.stop.clone();
        match tokio::time::timeout(time, stop.wait_for(|stopped| *stopped)).await {
            Err(_) => Ok(()),
            Ok(_) => Err(Error::Unavailable("the server stops".to_owned())),
        }
    }
}
