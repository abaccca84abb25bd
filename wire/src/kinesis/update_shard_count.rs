//! UpdateShardCount: shards are split and merged until as many as wanted share the keys evenly.

use anabranch_model::limits::OPEN_SHARDS_MAX;
use anabranch_model::{HashRange, Shard, StreamName};
use serde::{Deserialize, Serialize};

use super::errors::{fault, invalid};
use super::shards::{self, Moment, of_moment};
use super::state::{begin_update, check_changeable};
use super::stream::{self, resolve};
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    target_shard_count: Option<i64>,
    scaling_type: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    stream_name: String,
    current_shard_count: usize,
    target_shard_count: usize,
    #[serde(rename = "StreamARN")]
    stream_arn: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation
        .required("targetShardCount", &request.target_shard_count)
        .range("targetShardCount", request.target_shard_count, 1..=i64::MAX)
        .required("scalingType", &request.scaling_type)
        .one_of("scalingType", request.scaling_type.as_deref(), &["UNIFORM_SCALING"]);
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    // One at a time: each looks at the shards that the other changes.
    let _changing = context.kinesis.changing().await;
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    check_changeable(context, &summary)?;
    let (current, target) = (summary.open_shards, request.target_shard_count.unwrap_or(1) as usize);
    check_target(current, target)?;
    reshard(context, &stream, target).await?;
    begin_update(context, &stream);
    Ok(Response {
        stream_name: stream.to_string(),
        current_shard_count: current,
        target_shard_count: target,
        stream_arn: stream::arn(context, &stream),
    })
}

fn check_target(current: usize, target: usize) -> Result<(), Fault> {
    if target > OPEN_SHARDS_MAX {
        let message = format!("A stream has at most {OPEN_SHARDS_MAX} open shards.");
        return Err(Fault::client("LimitExceededException", message));
    }
    if target > 2 * current {
        return Err(invalid(format!(
            "UpdateShardCount cannot scale up over double your current open shard count. Current open shard count: \
             {current} Target shard count: {target}"
        )));
    }
    if 2 * target < current {
        return Err(invalid(format!(
            "UpdateShardCount cannot scale down below half your current open shard count. Current open shard count: \
             {current} Target shard count: {target}"
        )));
    }
    Ok(())
}

/// First every border that is wanted is made, then everything between two of them becomes one.
async fn reshard(context: &Context, stream: &StreamName, target: usize) -> Result<(), Fault> {
    let wanted = HashRange::even(target);
    for range in &wanted {
        let crossed = open(context, stream).await?.into_iter().find(|shard| {
            shard.range.is_some_and(|shard| shard.contains(range.first()) && shard.first() != range.first())
        });
        if let Some(shard) = crossed {
            context.ports.streams.split(stream, &shard.id, range.first()).await.map_err(fault)?;
        }
    }
    for range in &wanted {
        let mut parts = open(context, stream).await?;
        parts.retain(|shard| shard.range.is_some_and(|shard| range.contains(shard.first())));
        parts.sort_by_key(|shard| shard.range.map(HashRange::first));
        let mut parts = parts.into_iter().map(|shard| shard.id);
        let Some(mut merged) = parts.next() else { continue };
        for part in parts {
            merged = context.ports.streams.merge(stream, &merged, &part).await.map_err(fault)?;
        }
    }
    Ok(())
}

async fn open(context: &Context, stream: &StreamName) -> Result<Vec<Shard>, Fault> {
    Ok(of_moment(shards::all(context, stream, None).await?, Moment::Now))
}
