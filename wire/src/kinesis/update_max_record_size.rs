//! UpdateMaxRecordSize.

use serde::Deserialize;

use super::errors::fault;
use super::settings;
use super::state::{begin_update, check_changeable};
use super::stream::resolve;
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    #[serde(rename = "MaxRecordSizeInKiB")]
    max_record_size_in_kib: Option<i64>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let mut validation = Validation::default();
    validation.required("maxRecordSizeInKiB", &request.max_record_size_in_kib).range(
        "maxRecordSizeInKiB",
        request.max_record_size_in_kib,
        1_024..=10_240,
    );
    let stream = resolve(&mut validation, None, request.stream_arn.as_deref())?;
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    check_changeable(context, &summary)?;
    settings::change(context, &stream, |settings| {
        settings.record_kib_max = request.max_record_size_in_kib;
        Ok(())
    })
    .await?;
    begin_update(context, &stream);
    Ok(Nothing)
}
