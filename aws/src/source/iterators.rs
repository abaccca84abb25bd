//! Places in shards that the service remembers for us.
//!
//! A position of the model says everything, but Kinesis and its siblings want an iterator, and give a new one with every
//! batch. Whoever reads on from where the last batch ended uses that one and saves a call. An iterator that is not
//! there, or that the service has forgotten, is asked for again by its position: what is kept here may be lost at any
//! time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anabranch_model::{Position, ShardId, StreamName};

/// How long an iterator is used. Kinesis forgets it after five minutes, the others later.
const AGE_MAX: Duration = Duration::from_secs(4 * 60);
/// Most iterators that are kept: more readers than one process has.
const ITERATORS_MAX: usize = 4_096;

type Key = (StreamName, ShardId, Position);

/// The iterators of everyone who reads through one store.
#[derive(Debug, Default)]
pub(crate) struct Iterators(Mutex<HashMap<Key, (String, Duration)>>);

impl Iterators {
    /// Takes out the iterator for a position, if there is a good one. The one who reads brings back the next.
    pub(crate) fn take(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        position: Position,
        now: Duration,
    ) -> Option<String> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (iterator, since) = kept.remove(&(stream.clone(), shard.clone(), position))?;
        (now.saturating_sub(since) < AGE_MAX).then_some(iterator)
    }

    pub(crate) fn keep(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        position: Position,
        iterator: String,
        now: Duration,
    ) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= ITERATORS_MAX {
            kept.retain(|_, (_, since)| now.saturating_sub(*since) < AGE_MAX);
        }
        if kept.len() >= ITERATORS_MAX {
            kept.clear();
        }
        kept.insert((stream.clone(), shard.clone(), position), (iterator, now));
    }

    /// Forgets a stream that was removed.
    pub(crate) fn forget(&self, stream: &StreamName) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(of, ..), _| of != stream);
    }
}
