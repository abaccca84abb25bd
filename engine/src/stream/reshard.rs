//! Making, deleting, splitting and merging: operations on the catalogue that take one frame each.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::limits::{OPEN_SHARDS_MAX, STREAMS_MAX};
use anabranch_model::stream::check_retention;
use anabranch_model::{Error, HashKey, HashRange, Result, ShardId, StreamName, StreamOptions};

use super::catalogue::{Effect, accept_create, accept_delete, accept_merge, accept_split};
use super::operation::Operation;
use crate::core::{Attempt, Core};
use crate::journal::Urgency;

impl Core {
    /// Makes a stream.
    pub async fn create_stream(&self, name: &StreamName, options: StreamOptions) -> Result<()> {
        options.check()?;
        let ranges = HashRange::even(options.shards);
        self.submit(|| {
            let mut names = self.catalogue.accepted.lock();
            if names.contains_key(name) {
                return Err(Error::StreamExists(name.clone()).into());
            }
            if names.len() >= STREAMS_MAX {
                let text = format!("a store holds at most {STREAMS_MAX} streams: delete one first");
                return Err(Error::LimitExceeded(text).into());
            }
            let (created_at, retention_ms) = (self.now_ms(), millis(options.retention));
            let operation = Operation::Create {
                name: name.as_str().to_owned(),
                created_at,
                retention_ms,
                ranges: ranges.clone(),
            };
            self.record(&operation, Urgency::Normal, |position| {
                ((), accept_create(&mut names, name, created_at, retention_ms, &ranges, position))
            })
        })
        .await
    }

    /// Deletes a stream.
    pub async fn delete_stream(&self, name: &StreamName) -> Result<()> {
        let deleted = self.submit(|| {
            let mut names = self.catalogue.accepted.lock();
            let stream = names.get(name).cloned().ok_or_else(|| Error::StreamNotFound(name.clone()))?;
            let operation = Operation::Delete { stream: stream.id };
            self.record(&operation, Urgency::Upkeep, |_| (stream.id, accept_delete(&mut names, &stream)))
        });
        let id = deleted.await?;
        self.bury_documents_of_stream(id).await;
        Ok(())
    }

    /// Splits a shard.
    pub async fn split(&self, name: &StreamName, shard: &ShardId, at: HashKey) -> Result<[ShardId; 2]> {
        let stream = self.catalogue.stream(name)?;
        self.submit(|| {
            let mut accepted = stream.accepted.lock();
            let index = accepted.open_shard(&stream, shard)?;
            let ranges = accepted.routes[index].range.split_at(at)?;
            if accepted.routes.len() >= OPEN_SHARDS_MAX {
                let text = format!("a stream has at most {OPEN_SHARDS_MAX} open shards: merge some first");
                return Err(Error::LimitExceeded(text).into());
            }
            let children = [accepted.next_shard, accepted.next_shard + 1];
            let (key, time) = (accepted.routes[index].key, self.now_ms());
            let operation = Operation::Split { shard: key, at, children, time };
            self.record(&operation, Urgency::Normal, |position| {
                let effect = accept_split(&stream, &mut accepted, index, ranges, children, time, position);
                (children.map(|number| ShardId::numbered(u64::from(number))), effect)
            })
        })
        .await
    }

    /// Merges two neighbours.
    pub async fn merge(&self, name: &StreamName, shard: &ShardId, neighbour: &ShardId) -> Result<ShardId> {
        let stream = self.catalogue.stream(name)?;
        self.submit(|| {
            let mut accepted = stream.accepted.lock();
            let (a, b) = (accepted.open_shard(&stream, shard)?, accepted.open_shard(&stream, neighbour)?);
            if a.abs_diff(b) != 1 {
                return Err(Error::NotNeighbours(shard.clone(), neighbour.clone()).into());
            }
            let (lower, child, time) = (a.min(b), accepted.next_shard, self.now_ms());
            let parents = [lower, lower + 1].map(|index| accepted.routes[index].key.number);
            let operation = Operation::Merge { stream: stream.id, parents, child, time };
            self.record(&operation, Urgency::Normal, |position| {
                let effect = accept_merge(&stream, &mut accepted, lower, child, time, position);
                (ShardId::numbered(u64::from(child)), effect)
            })
        })
        .await
    }

    /// Changes how long records are kept.
    pub async fn set_retention(&self, name: &StreamName, retention: Duration) -> Result<()> {
        check_retention(retention)?;
        let stream = self.catalogue.stream(name)?;
        let retention_ms = millis(retention);
        self.submit(|| {
            let accepted = stream.accepted.lock();
            if accepted.deleted {
                return Err(Error::StreamNotFound(name.clone()).into());
            }
            let operation = Operation::Retain { stream: stream.id, retention_ms };
            self.record(&operation, Urgency::Upkeep, |_| {
                ((), Effect::Retained(Arc::clone(&stream), retention_ms))
            })
        })
        .await
    }

    /// Takes a turn for one operation. `accept` runs when nothing can go wrong any more.
    pub fn record<T>(
        &self,
        operation: &Operation,
        urgency: Urgency,
        accept: impl FnOnce(u64) -> (T, Effect),
    ) -> Attempt<T> {
        let draft = operation.draft();
        if draft.bytes() > self.sequencer.frame_bytes_max() {
            return Err(Error::Invalid("the operation does not fit into a segment".into()).into());
        }
        let mut turn = self.turn(std::iter::once(draft.bytes()), urgency)?;
        let mut value = None;
        turn.push(draft, |position| {
            let (accepted, effect) = accept(position);
            value = Some(accepted);
            Some(effect)
        });
        let done = turn.finish(None);
        Ok((value.expect("push calls accept"), done))
    }
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis() as u64
}
