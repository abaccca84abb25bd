//! DescribeStreamSummary.

use serde::{Deserialize, Serialize};

use super::consumer;
use super::describe_stream::{Metrics, Mode};
use super::errors::fault;
use super::settings::{self, RECORD_KIB_DEFAULT};
use super::state::status;
use super::stream::{arn, resolve};
use crate::context::Context;
use crate::fault::Fault;
use crate::time::Time;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    stream_description_summary: Summary,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Summary {
    stream_name: String,
    #[serde(rename = "StreamARN")]
    stream_arn: String,
    stream_status: &'static str,
    stream_mode_details: Mode,
    retention_period_hours: u64,
    stream_creation_timestamp: Time,
    enhanced_monitoring: Vec<Metrics>,
    encryption_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<String>,
    open_shard_count: usize,
    consumer_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    warm_throughput: Option<WarmThroughput>,
    #[serde(rename = "MaxRecordSizeInKiB")]
    max_record_size_in_kib: i64,
}

/// Throughput that is kept ready.
#[derive(Debug, Serialize)]
pub(super) struct WarmThroughput {
    #[serde(rename = "TargetMiBps")]
    target: i64,
    #[serde(rename = "CurrentMiBps")]
    current: i64,
}

impl WarmThroughput {
    /// It takes no time to get ready here.
    pub(super) fn of(mib: i64) -> Self {
        WarmThroughput { target: mib, current: mib }
    }
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let (name, given) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut Validation::default(), name, given)?;
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    let settings = settings::load(context, &stream).await?;
    let consumers = consumer::all(context, &stream).await?;
    let description = Summary {
        stream_name: stream.to_string(),
        stream_arn: arn(context, &stream),
        stream_status: status(context, &summary).text(),
        stream_mode_details: Mode::of(&settings),
        retention_period_hours: summary.retention.as_secs() / 3_600,
        stream_creation_timestamp: Time(summary.created_at),
        enhanced_monitoring: Metrics::of(&settings),
        encryption_type: settings.encryption(),
        open_shard_count: summary.open_shards,
        consumer_count: consumers.len(),
        warm_throughput: settings.warm_mib.map(WarmThroughput::of),
        max_record_size_in_kib: settings.record_kib_max.unwrap_or(RECORD_KIB_DEFAULT),
        key_id: settings.key_id,
    };
    Ok(Response { stream_description_summary: description })
}
