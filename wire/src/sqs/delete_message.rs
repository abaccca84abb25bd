//! DeleteMessage.

use anabranch_model::Receipt;
use serde::Deserialize;

use super::Nothing;
use super::batch;
use super::errors::{bad_receipt, fault, required};
use super::queue::resolve;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_url: Option<String>,
    receipt_handle: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let queue = resolve(context, request.queue_url.as_deref())?;
    let receipt = receipt(request.receipt_handle)?;
    let results = context.ports.queues.delete(&queue, vec![receipt.clone()]).await.map_err(fault)?;
    batch::only(results, &receipt)?;
    Ok(Nothing {})
}

/// The receipt that a caller names.
pub(super) fn receipt(handle: Option<String>) -> Result<Receipt, Fault> {
    let handle = required("ReceiptHandle", handle)?;
    Receipt::new(&handle).map_err(|_| bad_receipt(&handle))
}
