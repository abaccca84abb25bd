//! DeleteSecret.

use std::time::Duration;

use anabranch_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::errors::{deleted, invalid, no_secret};
use super::name;
use super::secret::Deletion;
use super::stored;
use crate::context::Context;
use crate::fault::Fault;
use crate::time::Time;

/// Days until a deleted secret is gone, unless the caller says otherwise.
const DAYS_DEFAULT: u64 = 30;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    secret_id: Option<String>,
    recovery_window_in_days: Option<i64>,
    force_delete_without_recovery: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    #[serde(rename = "ARN")]
    arn: String,
    name: String,
    deletion_date: Time,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let force = request.force_delete_without_recovery.unwrap_or(false);
    if force && request.recovery_window_in_days.is_some() {
        return Err(invalid(
            "You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.",
        ));
    }
    let days = match request.recovery_window_in_days {
        None => DAYS_DEFAULT,
        Some(days @ 7..=30) => days as u64,
        Some(_) => {
            return Err(invalid("RecoveryWindowInDays value must be between 7 and 30 days (inclusive)."));
        }
    };
    let changing = context.secrets.changing().await;
    let id = request.secret_id.as_deref();
    let now = context.clock.now();
    let response = |due: Timestamp, arn, name| Response { arn, name, deletion_date: Time(due) };
    let mut secret = match stored::look_for(context, &changing, id).await? {
        Some(secret) => secret,
        // Whoever wants it gone for good has what he wants, as he does when he asks again.
        None if force => {
            let (arn, name) = name::of_missing(context, id.unwrap_or(""))?;
            return Ok(response(now, arn, name));
        }
        None => return Err(no_secret()),
    };
    if force {
        stored::remove(context, &mut secret).await?;
        return Ok(response(now, secret.arn(context), secret.name));
    }
    if secret.deletion.is_some() {
        return Err(deleted());
    }
    let due = now.plus(Duration::from_secs(days * 86_400));
    secret.deletion = Some(Deletion { said_at: now.as_millis(), due_at: due.as_millis() });
    stored::keep(context, &secret).await?;
    Ok(response(due, secret.arn(context), secret.name))
}
