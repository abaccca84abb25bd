//! Shards as Kinesis lists them.

use anabranch_model::{Error, Page, Result, Shard, ShardId, StreamName, limits};

use super::{Streams, action, translate};
use crate::call::Deadline;
use crate::failure::Kind;

/// Most pages of a listing that is read to its end: far more shards than a stream can have in a year.
const PAGES_MAX: usize = 10_000;

impl Streams {
    pub(super) async fn shard_page(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
        deadline: Deadline,
    ) -> Result<Page<Shard>> {
        let limit = limit.clamp(1, limits::PAGE_ENTRIES_MAX);
        let request = || {
            self.client
                .list_shards()
                .stream_name(stream.as_str())
                .set_exclusive_start_shard_id(after.map(ShardId::to_string))
                .max_results(i32::try_from(limit).unwrap_or(i32::MAX))
                .send()
        };
        let answer = self.caller.call(&action::LIST_SHARDS, deadline, request).await;
        let answer = answer.map_err(|failure| {
            failure.explained(|kind| match kind {
                Kind::NotFound => Some(Error::StreamNotFound(stream.clone())),
                Kind::InUse => Some(Error::StreamBusy(stream.clone())),
                _ => None,
            })
        })?;
        let more = answer.next_token.is_some();
        Ok(Page { entries: translate::shards(answer.shards.unwrap_or_default())?, more })
    }

    /// A page as the port wants it. What stands on another page, the other parent of a merge or the child that tells
    /// when a shard was closed, is looked up, so that a shard looks the same on every page.
    pub(super) async fn list(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        let deadline = self.soon();
        let page = self.shard_page(stream, after, limit, deadline).await?;
        let alone = after.is_none() && !page.more;
        let resharded = page.entries.iter().any(|shard| !shard.is_open() || !shard.parents.is_empty());
        if alone || !resharded {
            return Ok(page);
        }
        let mut all = self.all_shards(stream, deadline).await?;
        all.retain(|shard| page.entries.iter().any(|listed| listed.id == shard.id));
        Ok(Page { entries: all, more: page.more })
    }

    /// Every shard of a stream, open and closed, in the order of their creation.
    pub(super) async fn all_shards(&self, stream: &StreamName, deadline: Deadline) -> Result<Vec<Shard>> {
        let mut shards: Vec<Shard> = Vec::new();
        for _ in 0..PAGES_MAX {
            let after = shards.last().map(|shard| shard.id.clone());
            let page = self.shard_page(stream, after.as_ref(), limits::PAGE_ENTRIES_MAX, deadline).await?;
            let progress = !page.entries.is_empty();
            shards.extend(page.entries);
            if !page.more || !progress {
                translate::relate(&mut shards);
                return Ok(shards);
            }
        }
        Err(super::strange("a listing of shards without end"))
    }

    /// The shards that continue a closed one.
    pub(super) async fn children(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        deadline: Deadline,
    ) -> Result<Vec<ShardId>> {
        let shards = self.all_shards(stream, deadline).await?;
        Ok(shards.into_iter().filter(|child| child.parents.contains(shard)).map(|child| child.id).collect())
    }

    /// Which of the two does not exist.
    pub(super) async fn missing(&self, stream: &StreamName, shard: &ShardId, deadline: Deadline) -> Error {
        match self.describe(stream, deadline).await {
            Ok(_) => Error::ShardNotFound(stream.clone(), shard.clone()),
            Err(error) => error,
        }
    }
}
