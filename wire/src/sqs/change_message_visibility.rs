//! ChangeMessageVisibility.

use std::time::Duration;

use anabranch_model::limits::VISIBILITY_MAX;
use serde::Deserialize;

use super::Nothing;
use super::batch;
use super::delete_message::receipt;
use super::errors::{fault, missing};
use super::queue::resolve;
use super::receive_message::seconds;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_url: Option<String>,
    receipt_handle: Option<String>,
    visibility_timeout: Option<i64>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let queue = resolve(context, request.queue_url.as_deref())?;
    let receipt = receipt(request.receipt_handle)?;
    let visibility = visibility(request.visibility_timeout)?;
    let changes = vec![(receipt.clone(), visibility)];
    let results = context.ports.queues.change_visibility(&queue, changes).await.map_err(fault)?;
    batch::only(results, &receipt)?;
    Ok(Nothing {})
}

/// How long a message is to be hidden.
pub(super) fn visibility(timeout: Option<i64>) -> Result<Duration, Fault> {
    seconds("VisibilityTimeout", timeout, VISIBILITY_MAX)?.ok_or_else(|| missing("VisibilityTimeout"))
}
