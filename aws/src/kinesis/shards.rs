//! Shards as Kinesis lists them.

use anabranch_model::{Error, Page, Position, Result, Shard, ShardId, StreamName, limits};

use super::{Streams, action, translate};
use crate::call::Deadline;
use crate::failure::Kind;

/// Most pages of a listing that is read to its end: far more shards than a stream can have in a year.
const PAGES_MAX: usize = 10_000;

/// Where a page begins.
enum Begin<'a> {
    /// Behind a shard, or with the first one.
    After(Option<&'a ShardId>),
    /// Where the last page ended, as Kinesis remembers it.
    Token(String),
}

impl Streams {
    /// One answer, and where the next one begins.
    async fn answer(
        &self,
        stream: &StreamName,
        begin: &Begin<'_>,
        limit: usize,
        deadline: Deadline,
    ) -> Result<(Vec<Shard>, Option<String>)> {
        let limit = limit.clamp(1, limits::PAGE_ENTRIES_MAX);
        let request = || {
            let request = self.client.list_shards().max_results(i32::try_from(limit).unwrap_or(i32::MAX));
            match begin {
                Begin::After(shard) => request
                    .stream_name(stream.as_str())
                    .set_exclusive_start_shard_id(shard.map(ShardId::to_string))
                    .send(),
                Begin::Token(token) => request.next_token(token).send(),
            }
        };
        let answer = self.caller.call(&action::LIST_SHARDS, deadline, request).await;
        let answer = answer.map_err(|failure| {
            failure.explained(|kind| match kind {
                Kind::NotFound => Some(Error::StreamNotFound(stream.clone())),
                Kind::InUse => Some(Error::StreamBusy(stream.clone())),
                _ => None,
            })
        })?;
        Ok((translate::shards(answer.shards.unwrap_or_default())?, answer.next_token))
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
        let (entries, token) = self.answer(stream, &Begin::After(after), limit, deadline).await?;
        let page = Page { entries, more: token.is_some() };
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
        let mut token = None;
        for _ in 0..PAGES_MAX {
            let begin = match token {
                Some(token) => Begin::Token(token),
                None => Begin::After(None),
            };
            let (page, next) = self.answer(stream, &begin, limits::PAGE_ENTRIES_MAX, deadline).await?;
            shards.extend(page);
            token = next;
            if token.is_none() {
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

    /// What does not exist: the stream, the shard, or the position in it.
    pub(super) async fn missing(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        position: Option<Position>,
        deadline: Deadline,
    ) -> Error {
        let listed = match self.all_shards(stream, deadline).await {
            Ok(shards) => shards.iter().any(|listed| listed.id == *shard),
            Err(error) => return error,
        };
        match position {
            Some(position) if listed => {
                Error::Invalid(format!("shard `{shard}` has no position {position:?}"))
            }
            _ => Error::ShardNotFound(stream.clone(), shard.clone()),
        }
    }
}
