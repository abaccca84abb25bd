//! IncreaseStreamRetentionPeriod.

use std::time::Duration;

use anabranch_model::limits::{RETENTION_MAX, RETENTION_MIN};
use serde::Deserialize;

use super::errors::{fault, invalid};
use super::state::{begin_update, check_changeable};
use super::stream::resolve;
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

/// What both operations on the retention are asked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    retention_period_hours: Option<i64>,
}

/// In which direction the retention is to be changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Longer,
    Shorter,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    change(context, request, Direction::Longer).await
}

/// Changes the retention of a stream in one direction only.
pub(super) async fn change(
    context: &Context,
    request: Request,
    direction: Direction,
) -> Result<Nothing, Fault> {
    let mut validation = Validation::default();
    validation.required("retentionPeriodHours", &request.retention_period_hours);
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    let hours = request.retention_period_hours.unwrap_or_default();
    let (least, most) = (RETENTION_MIN.as_secs() / 3_600, RETENTION_MAX.as_secs() / 3_600);
    let Some(hours) = u64::try_from(hours).ok().filter(|hours| (least..=most).contains(hours)) else {
        return Err(invalid(format!(
            "RetentionPeriodHours {hours} is not allowed: it must be {least} to {most} hours."
        )));
    };
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    check_changeable(context, &summary)?;
    let now = summary.retention.as_secs() / 3_600;
    let refused = match direction {
        Direction::Longer => (hours < now).then_some(("less", "Increase")),
        Direction::Shorter => (hours > now).then_some(("greater", "Decrease")),
    };
    if let Some((relation, verb)) = refused {
        return Err(invalid(format!(
            "Requested retention period ({hours} hours) for stream {stream} can not be {relation} than the existing \
             retention period ({now} hours) with {verb}StreamRetentionPeriod."
        )));
    }
    let retention = Duration::from_secs(hours * 3_600);
    context.ports.streams.set_retention(&stream, retention).await.map_err(fault)?;
    begin_update(context, &stream);
    Ok(Nothing)
}
