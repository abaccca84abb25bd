//! CreateStream.

use std::collections::BTreeMap;

use anabranch_model::limits::OPEN_SHARDS_MAX;
use anabranch_model::{Error, StreamName, StreamOptions};
use serde::Deserialize;

use super::errors::{fault, invalid, too_many_shards};
use super::settings::{Settings, decode, load};
use super::stream::resolve;
use super::tags;
use super::update_stream_mode::{MODES, ModeDetails};
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;
use crate::making::{Notes, to_its_end};
use crate::validation::Validation;

/// Streams that are being made with settings.
const NOTES: Notes = Notes("kinesis-making");
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
        .range("shardCount", request.shard_count, 1..=i64::from(i32::MAX))
        .one_of("streamModeDetails.streamMode", mode, MODES)
        .range("warmThroughputMiBps", request.warm_throughput_mibps, 0..=i64::MAX)
        .range("maxRecordSizeInKiB", request.max_record_size_in_kib, 1_024..=10_240);
    let stream = resolve(&mut validation, request.stream_name.as_deref(), None)?;
    // Who asks neither for a mode nor for shards leaves both to the service.
    let on_demand = mode.map_or(request.shard_count.is_none(), |mode| mode == "ON_DEMAND");
    let shards = match (request.shard_count, on_demand) {
        (Some(count), _) => count,
        (None, true) => ON_DEMAND_SHARDS,
        (None, false) => return Err(invalid("ShardCount is required for a stream in PROVISIONED mode.")),
    };
    if shards > OPEN_SHARDS_MAX as i64 {
        return Err(too_many_shards());
    }
    let tags = request.tags.unwrap_or_default();
    tags::check(&tags)?;
    let options = StreamOptions { shards: shards as usize, ..StreamOptions::default() };
    let settings = Settings {
        on_demand,
        warm_mib: request.warm_throughput_mibps,
        record_kib_max: request.max_record_size_in_kib,
        tags,
        ..Settings::default()
    };
    let context = context.clone();
    to_its_end(async move { make(&context, &stream, options, &settings).await }).await
}

async fn make(
    context: &Context,
    stream: &StreamName,
    options: StreamOptions,
    settings: &Settings,
) -> Result<Nothing, Fault> {
    let (name, note) = (stream.as_str(), settings.to_bytes()?);
    let is_plain = *settings == Settings::default();
    let _changing = context.kinesis.changing().await;
    let unfinished = NOTES.unfinished(context, name).await.map_err(fault)?;
    match context.ports.streams.stream(stream).await {
        Ok(_) if unfinished.as_ref().is_some_and(|unfinished| *unfinished == note) => {}
        Ok(_) => return Err(fault(Error::StreamExists(stream.clone()))),
        Err(Error::StreamNotFound(_)) => {
            if !is_plain {
                NOTES.begin(context, name, note).await.map_err(fault)?;
            }
            if let Err(error) = context.ports.streams.create_stream(stream, options).await {
                NOTES.refused(context, name, &error).await;
                return Err(fault(error));
            }
        }
        Err(error) => return Err(fault(error)),
    }
    if !is_plain {
        settings.keep(context, stream).await?;
    }
    if !is_plain || unfinished.is_some() {
        NOTES.end(context, name).await.map_err(fault)?;
    }
    Ok(Nothing)
}

/// Gives the streams their settings that a server made which died before it could.
pub(crate) async fn finish_making(context: &Context) -> Result<(), Fault> {
    let _changing = context.kinesis.changing().await;
    for (name, note) in NOTES.all(context).await.map_err(fault)? {
        let stream = StreamName::new(&name).map_err(fault)?;
        match context.ports.streams.stream(&stream).await {
            // Settings that somebody made since count.
            Ok(_) if load(context, &stream).await? == Settings::default() => {
                decode(&stream, Some(note))?.keep(context, &stream).await?;
            }
            // Or it was not made, and nobody was told that it was.
            Ok(_) | Err(Error::StreamNotFound(_)) => {}
            Err(error) => return Err(fault(error)),
        }
        NOTES.end(context, &name).await.map_err(fault)?;
    }
    Ok(())
}
