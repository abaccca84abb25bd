//! UpdateStreamMode. In either mode shards are split and merged by whoever asks for it.

use serde::Deserialize;

use super::errors::fault;
use super::settings;
use super::state::{begin_update, check_changeable};
use super::stream::resolve;
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

/// The modes of a stream.
pub(super) const MODES: &[&str] = &["PROVISIONED", "ON_DEMAND"];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    stream_mode_details: Option<ModeDetails>,
    #[serde(rename = "WarmThroughputMiBps")]
    warm_throughput_mibps: Option<i64>,
}

/// Who decides on the number of shards.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ModeDetails {
    pub(super) stream_mode: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let mode = request.stream_mode_details.as_ref().and_then(|details| details.stream_mode.clone());
    let mut validation = Validation::default();
    validation
        .required("streamARN", &request.stream_arn)
        .required("streamModeDetails.streamMode", &mode)
        .one_of("streamModeDetails.streamMode", mode.as_deref(), MODES)
        .range("warmThroughputMiBps", request.warm_throughput_mibps, 0..=i64::MAX)
        .done()?;
    let stream = resolve(&mut validation, None, request.stream_arn.as_deref())?;
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    check_changeable(context, &summary)?;
    settings::change(context, &stream, |settings| {
        settings.on_demand = mode.as_deref() == Some("ON_DEMAND");
        settings.warm_mib = request.warm_throughput_mibps.or(settings.warm_mib);
        Ok(())
    })
    .await?;
    begin_update(context, &stream);
    Ok(Nothing)
}
