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
    let asked = request.retention_period_hours;
    validation.required("retentionPeriodHours", &asked).range("retentionPeriodHours", asked, 1..=i64::MAX);
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut validation, name, arn)?;
    let hours = asked.unwrap_or_default().unsigned_abs();
    check_bounds(hours)?;
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    check_changeable(context, &summary)?;
    let now = summary.retention.as_secs() / 3_600;
    let refused = match direction {
        Direction::Longer => (hours < now).then_some(("shorter", "Decrease")),
        Direction::Shorter => (hours > now).then_some(("longer", "Increase")),
    };
    if let Some((relation, other)) = refused {
        return Err(invalid(format!(
            "Requested retention period ({hours} hours) for stream {stream} can not be {relation} than existing retention \
             period ({now} hours). Use {other}RetentionPeriod API."
        )));
    }
    // What it is already needs no change, and is none.
    if hours == now {
        return Ok(Nothing);
    }
    let retention = Duration::from_secs(hours * 3_600);
    context.ports.streams.set_retention(&stream, retention).await.map_err(fault)?;
    begin_update(context, &stream);
    Ok(Nothing)
}

fn check_bounds(hours: u64) -> Result<(), Fault> {
    let (least, most) = (RETENTION_MIN.as_secs() / 3_600, RETENTION_MAX.as_secs() / 3_600);
    let (bound, allowed, wrong) = match hours {
        hours if hours < least => ("Minimum", least, "short"),
        hours if hours > most => ("Maximum", most, "long"),
        _ => return Ok(()),
    };
    Err(invalid(format!(
        "{bound} allowed retention period is {allowed} hours. Requested retention period ({hours} hours) is too {wrong}."
    )))
}
