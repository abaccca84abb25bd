//! MergeShards.

use anabranch_model::Error;
use serde::Deserialize;

use super::errors::{fault, invalid};
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
    shard_to_merge: Option<String>,
    adjacent_shard_to_merge: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let mut validation = Validation::default();
    for (field, id) in [
        ("shardToMerge", &request.shard_to_merge),
        ("adjacentShardToMerge", &request.adjacent_shard_to_merge),
    ] {
        validation.required(field, id);
        check_name(&mut validation, field, id.as_deref());
    }
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    // Whoever changes the number of shards looks at them once.
    let _changing = context.kinesis.changing().await;
    let shard = shards::parse_of(&stream, &request.shard_to_merge.unwrap_or_default())?;
    let neighbour = shards::parse_of(&stream, &request.adjacent_shard_to_merge.unwrap_or_default())?;
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    check_changeable(context, &summary)?;
    let lower = shards::find_to_change(context, &stream, &shard).await?;
    let upper = shards::find_to_change(context, &stream, &neighbour).await?;
    let refused = || {
        invalid(format!(
            "Shards {shard} and {neighbour} in stream {stream} under account {ACCOUNT} are not an adjacent pair of shards \
             eligible for merging"
        ))
    };
    // The store merges neighbours whichever is named first; the service wants the lower one first.
    if let (Some(lower), Some(upper)) = (lower.range, upper.range)
        && lower.first() > upper.first()
    {
        return Err(refused());
    }
    match context.ports.streams.merge(&stream, &shard, &neighbour).await {
        Ok(_) => {}
        Err(Error::NotNeighbours(..)) => return Err(refused()),
        Err(error) => return Err(fault(error)),
    }
    begin_update(context, &stream);
    Ok(Nothing)
}
