//! The open shards of a stream by their ranges, with the traffic of each. It is replaced as a whole when the stream was
//! resharded; what is known about shards that stay is kept.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::{Error, HashKey, Result, Shard, ShardGraph, ShardId, ShardSource, StreamName};

use crate::settings::Pace;
use crate::traffic::ShardTraffic;

/// The open shards in the order of their ranges.
#[derive(Clone, Debug, Default)]
pub struct ShardMap {
    shards: Vec<Arc<ShardTraffic>>,
    /// Where the range of each shard begins, side by side: they are looked at for every record.
    firsts: Vec<HashKey>,
}

impl ShardMap {
    /// The map of these shards; traffic that `old` has is kept, and others get this pace.
    pub(crate) fn new(
        shards: impl IntoIterator<Item = Shard>,
        old: &ShardMap,
        pace: Option<Pace>,
        now: Duration,
    ) -> Self {
        // What was listed on an earlier page may have been closed before the last one.
        let graph = ShardGraph::new(shards);
        let open = graph.open().filter(|shard| graph.children_of(&shard.id).is_empty());
        let traffic = |shard: &Shard| {
            let range = shard.range?;
            let known = old.by_id(&shard.id).filter(|known| known.range == range);
            let new = || Arc::new(ShardTraffic::new(shard.id.clone(), range, pace, now));
            Some(known.cloned().unwrap_or_else(new))
        };
        let mut shards: Vec<_> = open.filter_map(traffic).collect();
        shards.sort_by_key(|shard| shard.range.first());
        let firsts = shards.iter().map(|shard| shard.range.first()).collect();
        ShardMap { shards, firsts }
    }

    /// The shards in the order of their ranges.
    pub fn shards(&self) -> &[Arc<ShardTraffic>] {
        &self.shards
    }

    /// Where the shard stands that takes a key, as far as is known.
    pub(crate) fn slot(&self, key: HashKey) -> usize {
        // Shards are often of the same width.
        let guess = (((key.get() >> 64) * self.firsts.len() as u128) >> 64) as usize;
        if self.firsts.get(guess).is_some_and(|first| *first <= key)
            && self.firsts.get(guess + 1).is_none_or(|next| key < *next)
        {
            return guess;
        }
        self.firsts.partition_point(|first| *first <= key).saturating_sub(1)
    }

    /// Where a shard stands.
    pub(crate) fn slot_of(&self, id: &ShardId) -> Option<usize> {
        self.shards.iter().position(|shard| shard.shard == *id)
    }

    pub(crate) fn by_id(&self, id: &ShardId) -> Option<&Arc<ShardTraffic>> {
        self.shards.iter().find(|shard| shard.shard == *id)
    }
}

/// All shards of a stream.
pub(crate) async fn list(source: &(impl ShardSource + ?Sized), stream: &StreamName) -> Result<Vec<Shard>> {
    let mut shards: Vec<Shard> = Vec::new();
    loop {
        let after = shards.last().map(|shard| shard.id.clone());
        let page = source.shards(stream, after.as_ref(), PAGE_ENTRIES_MAX).await?;
        let done = !page.more || page.entries.is_empty();
        shards.extend(page.entries);
        if done {
            break;
        }
    }
    match shards.iter().any(|shard| shard.range.is_some()) {
        true => Ok(shards),
        false => Err(Error::Invalid(format!("stream `{stream}` has no shard with a hash range to write to"))),
    }
}
