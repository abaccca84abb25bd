//! SplitShard.

use anabranch_model::{Error, HashKey, HashRange};
use serde::Deserialize;

use super::errors::{fault, invalid};
use super::records::HASH_KEY;
use super::shards;
use super::state::{begin_update, check_changeable};
use super::stream::{check_name, resolve};
use crate::answer::Nothing;
use crate::context::{ACCOUNT, Context};
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    shard_to_split: Option<String>,
    new_starting_hash_key: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let mut validation = Validation::default();
    validation
        .required("shardToSplit", &request.shard_to_split)
        .required("newStartingHashKey", &request.new_starting_hash_key)
        .pattern("newStartingHashKey", request.new_starting_hash_key.as_deref(), HASH_KEY);
    check_name(&mut validation, "shardToSplit", request.shard_to_split.as_deref());
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    // Whoever changes the number of shards looks at them once.
    let _changing = context.kinesis.changing().await;
    let id = shards::parse_of(&stream, &request.shard_to_split.unwrap_or_default())?;
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    check_changeable(context, &summary)?;
    let shard = shards::find_to_change(context, &stream, &id).await?;
    let text = request.new_starting_hash_key.unwrap_or_default();
    let refused = || {
        let (first, last) = shard
            .range
            .map_or_else(Default::default, |range| (range.first().to_string(), range.last().to_string()));
        invalid(format!(
            "NewStartingHashKey {text} used in SplitShard() on shard {id} in stream {stream} under account {ACCOUNT} is \
             not both greater than one plus the shard's StartingHashKey {first} and less than the shard's \
             EndingHashKey {last}."
        ))
    };
    let at: HashKey = text.parse().map_err(|_| refused())?;
    // Neither half may be a single key; a shard that was split already has no range, and the store tells of it.
    let halves =
        |range: HashRange| at > range.first() && at.get() - range.first().get() > 1 && at < range.last();
    if !shard.range.is_none_or(halves) {
        return Err(refused());
    }
    match context.ports.streams.split(&stream, &id, at).await {
        Ok(_) => {}
        Err(Error::Invalid(_)) => return Err(refused()),
        Err(error) => return Err(fault(error)),
    }
    begin_update(context, &stream);
    Ok(Nothing)
}
