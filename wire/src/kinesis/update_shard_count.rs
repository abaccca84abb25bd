//! UpdateShardCount: shards are split and merged until as many as wanted share the keys evenly.

use std::collections::BTreeMap;

use anabranch_model::limits::OPEN_SHARDS_MAX;
use anabranch_model::{HashKey, HashRange, ShardId, StreamName};
use serde::{Deserialize, Serialize};

use super::errors::{fault, invalid, too_many_shards};
use super::shards::{self, Moment, of_moment};
use super::state::{begin_update, check_changeable};
use super::stream::{self, resolve};
use crate::context::Context;
use crate::fault::Fault;
use crate::making::to_its_end;
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
    let target = usize::try_from(request.target_shard_count.unwrap_or(1)).unwrap_or(usize::MAX);
    let context = context.clone();
    to_its_end(async move { update(&context, stream, target).await }).await
}

async fn update(context: &Context, stream: StreamName, target: usize) -> Result<Response, Fault> {
    // One at a time: each looks at the shards that the other changes.
    let _changing = context.kinesis.changing().await;
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    check_changeable(context, &summary)?;
    let current = summary.open_shards;
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
        return Err(too_many_shards());
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
    let streams = &context.ports.streams;
    // The open shards by their first key. Nobody else changes them meanwhile.
    let open = of_moment(shards::all(context, stream, None).await?, Moment::Now);
    let mut open: BTreeMap<HashKey, ShardId> =
        open.into_iter().filter_map(|shard| Some((shard.range?.first(), shard.id))).collect();
    let wanted = HashRange::even(target);
    for range in &wanted {
        let border = range.first();
        let Some((first, crossed)) = open.range(..=border).next_back() else { continue };
        if *first != border {
            let first = *first;
            let [lower, upper] = streams.split(stream, crossed, border).await.map_err(fault)?;
            open.extend([(first, lower), (border, upper)]);
        }
    }
    for range in &wanted {
        let mut parts = open.range(range.first()..=range.last()).map(|(_, id)| id);
        let Some(mut merged) = parts.next().cloned() else { continue };
        for part in parts {
            merged = streams.merge(stream, &merged, part).await.map_err(fault)?;
        }
    }
    Ok(())
}
