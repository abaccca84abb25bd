//! UpdateStreamWarmThroughput.

use serde::{Deserialize, Serialize};

use super::describe_stream_summary::WarmThroughput;
use super::errors::fault;
use super::settings;
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
    #[serde(rename = "WarmThroughputMiBps")]
    warm_throughput_mibps: Option<i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    #[serde(rename = "StreamARN")]
    stream_arn: String,
    stream_name: String,
    warm_throughput: WarmThroughput,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation.required("warmThroughputMiBps", &request.warm_throughput_mibps).range(
        "warmThroughputMiBps",
        request.warm_throughput_mibps,
        0..=i64::MAX,
    );
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    let mib = request.warm_throughput_mibps.unwrap_or_default();
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    check_changeable(context, &summary)?;
    settings::change(context, &stream, |settings| {
        settings.warm_mib = Some(mib);
        Ok(())
    })
    .await?;
    begin_update(context, &stream);
    Ok(Response {
        stream_arn: stream::arn(context, &stream),
        stream_name: stream.to_string(),
        warm_throughput: WarmThroughput::of(mib),
    })
}
