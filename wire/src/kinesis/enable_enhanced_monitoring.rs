//! EnableEnhancedMonitoring. What is switched on is counted from then on, and stands in `/metrics` (`shard_numbers`).

use serde::{Deserialize, Serialize};

use super::settings;
use super::shard_numbers::METRICS;
use super::stream::{self, resolve};
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

/// All metrics.
const ALL: &str = "ALL";

/// What both operations on metrics are asked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    shard_level_metrics: Option<Vec<String>>,
}

/// What both operations on metrics answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    stream_name: String,
    current_shard_level_metrics: Vec<String>,
    desired_shard_level_metrics: Vec<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    change(context, request, |before, metric, asked| before || asked.contains(metric)).await
}

/// Changes which metrics are on: `on` is told whether one was and which are asked for.
pub(super) async fn change(
    context: &Context,
    request: Request,
    on: fn(bool, &str, &Asked) -> bool,
) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation.required("shardLevelMetrics", &request.shard_level_metrics);
    if let Some(metrics) = &request.shard_level_metrics {
        validation.size("shardLevelMetrics", format_args!("{metrics:?}"), metrics.len(), 1..=7);
        let allowed: Vec<&str> = METRICS.iter().copied().chain([ALL]).collect();
        for metric in metrics {
            validation.one_of("shardLevelMetrics", Some(metric), &allowed);
        }
    }
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    let asked = Asked(request.shard_level_metrics.unwrap_or_default());
    let (before, after) = settings::change(context, &stream, |settings| {
        let was = settings.metrics.clone();
        let is_on = |metric: &&&str| on(was.iter().any(|other| other == **metric), metric, &asked);
        settings.metrics = METRICS.iter().filter(is_on).map(ToString::to_string).collect();
        Ok((was, settings.metrics.clone()))
    })
    .await?;
    Ok(Response {
        stream_name: stream.to_string(),
        current_shard_level_metrics: before,
        desired_shard_level_metrics: after,
        stream_arn: stream::arn(context, &stream),
    })
}

/// The metrics that a request names.
pub(super) struct Asked(Vec<String>);

impl Asked {
    /// Whether a metric is among them.
    pub(super) fn contains(&self, metric: &str) -> bool {
        self.0.iter().any(|asked| asked == metric || asked == ALL)
    }
}
