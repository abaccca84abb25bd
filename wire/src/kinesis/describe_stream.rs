//! DescribeStream.

use serde::{Deserialize, Serialize};

use super::errors::fault;
use super::settings::{self, Settings};
use super::shards::{self, ShardShape};
use super::state::{Status, status};
use super::stream::{arn, check_name, resolve};
use crate::context::Context;
use crate::fault::Fault;
use crate::time::Time;
use crate::validation::Validation;

/// Shards on a page unless the caller says otherwise.
const LIMIT_DEFAULT: i64 = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    limit: Option<i64>,
    exclusive_start_shard_id: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    stream_description: Description,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Description {
    stream_name: String,
    #[serde(rename = "StreamARN")]
    stream_arn: String,
    stream_status: &'static str,
    stream_mode_details: Mode,
    shards: Vec<ShardShape>,
    has_more_shards: bool,
    retention_period_hours: u64,
    stream_creation_timestamp: Time,
    enhanced_monitoring: Vec<Metrics>,
    encryption_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<String>,
}

/// Who decides on the number of shards.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Mode {
    stream_mode: &'static str,
}

/// Metrics of shards that are switched on.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Metrics {
    shard_level_metrics: Vec<String>,
}

impl Mode {
    /// The mode of a stream.
    pub(super) fn of(settings: &Settings) -> Self {
        Mode { stream_mode: settings.mode() }
    }
}

impl Metrics {
    /// The metrics of a stream.
    pub(super) fn of(settings: &Settings) -> Vec<Self> {
        vec![Metrics { shard_level_metrics: settings.metrics.clone() }]
    }
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation.range("limit", request.limit, 1..=10_000);
    check_name(&mut validation, "exclusiveStartShardId", request.exclusive_start_shard_id.as_deref());
    let (name, given) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, given)?;
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    let settings = settings::load(context, &stream).await?;
    let after = request.exclusive_start_shard_id.as_deref().map(shards::parse).transpose()?;
    let status = status(context, &summary);
    // A stream in the making does not show its shards yet.
    let listed = match status {
        Status::Creating => Vec::new(),
        Status::Active | Status::Updating => shards::all(context, &stream, after.as_ref()).await?,
    };
    let limit = request.limit.unwrap_or(LIMIT_DEFAULT) as usize;
    let description = Description {
        stream_name: stream.to_string(),
        stream_arn: arn(context, &stream),
        stream_status: status.text(),
        stream_mode_details: Mode::of(&settings),
        has_more_shards: listed.len() > limit,
        shards: listed.iter().take(limit).map(ShardShape::from).collect(),
        retention_period_hours: summary.retention.as_secs() / 3_600,
        stream_creation_timestamp: Time(summary.created_at),
        enhanced_monitoring: Metrics::of(&settings),
        encryption_type: settings.encryption(),
        key_id: settings.key_id,
    };
    Ok(Response { stream_description: description })
}
