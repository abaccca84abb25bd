//! CreateStream.

use std::collections::BTreeMap;

use anabranch_model::StreamOptions;
use anabranch_model::limits::OPEN_SHARDS_MAX;
use serde::Deserialize;

use super::errors::{fault, invalid};
use super::settings;
use super::stream::resolve;
use super::tags;
use super::update_stream_mode::{MODES, ModeDetails};
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
    stream_mode_details: Option<ModeDetails>,
    tags: Option<BTreeMap<String, String>>,
    #[serde(rename = "WarmThroughputMiBps")]
    warm_throughput_mibps: Option<i64>,
    #[serde(rename = "MaxRecordSizeInKiB")]
    max_record_size_in_kib: Option<i64>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let mut validation = Validation::default();
    let mode = request.stream_mode_details.as_ref().and_then(|details| details.stream_mode.as_deref());
    validation
        .required("streamName", &request.stream_name)
        .range("shardCount", request.shard_count, 1..=OPEN_SHARDS_MAX as i64)
        .one_of("streamModeDetails.streamMode", mode, MODES)
        .range("warmThroughputMiBps", request.warm_throughput_mibps, 0..=i64::MAX)
        .range("maxRecordSizeInKiB", request.max_record_size_in_kib, 1_024..=10_240);
    let stream = resolve(&mut validation, request.stream_name.as_deref(), None)?;
    let on_demand = mode == Some("ON_DEMAND");
    let shards = match (request.shard_count, on_demand) {
        (Some(count), _) => count,
        (None, true) => ON_DEMAND_SHARDS,
        (None, false) => return Err(invalid("ShardCount is required for a stream in PROVISIONED mode.")),
    };
    let tags = request.tags.unwrap_or_default();
    tags::check(&tags)?;
    let options = StreamOptions { shards: shards as usize, ..StreamOptions::default() };
    context.ports.streams.create_stream(&stream, options).await.map_err(fault)?;
    settings::change(context, &stream, |settings| {
        settings.on_demand = on_demand;
        settings.warm_mib = request.warm_throughput_mibps;
        settings.record_kib_max = request.max_record_size_in_kib;
        settings.tags = tags;
        Ok(())
    })
    .await?;
    Ok(Nothing)
}
