//! CreateStream.

use anabranch_model::StreamOptions;
use anabranch_model::limits::OPEN_SHARDS_MAX;
use serde::Deserialize;

use super::errors::fault;
use super::stream::resolve;
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

/// Shards of a stream whose maker leaves their number to the service.
const ON_DEMAND_SHARDS: i64 = 4;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    shard_count: Option<i64>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let mut validation = Validation::default();
    validation.required("streamName", &request.stream_name).range(
        "shardCount",
        request.shard_count,
        1..=OPEN_SHARDS_MAX as i64,
    );
    let stream = resolve(&mut validation, request.stream_name.as_deref(), None)?;
    let shards = request.shard_count.unwrap_or(ON_DEMAND_SHARDS);
    let options = StreamOptions { shards: shards as usize, ..StreamOptions::default() };
    context.ports.streams.create_stream(&stream, options).await.map_err(fault)?;
    Ok(Nothing)
}
