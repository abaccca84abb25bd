//! ChangeMessageVisibilityBatch.

use serde::Deserialize;

use super::batch::{self, Done, Entry, Response};
use super::change_message_visibility::visibility;
use super::delete_message::receipt;
use super::errors::fault;
use super::queue::resolve;
use crate::context::Context;
use crate::fault::Fault;
use crate::list::{ENTRIES_MAX, bounded};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_url: Option<String>,
    #[serde(
        alias = "ChangeMessageVisibilityBatchRequestEntry",
        default,
        deserialize_with = "bounded::<_, _, { ENTRIES_MAX }>"
    )]
    entries: Vec<RequestEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RequestEntry {
    id: Option<String>,
    receipt_handle: Option<String>,
    visibility_timeout: Option<i64>,
}

impl Entry for RequestEntry {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response<Done>, Fault> {
    let queue = resolve(context, request.queue_url.as_deref())?;
    let ids = batch::check(&request.entries)?;
    let mut changes = Vec::with_capacity(ids.len());
    let mut read = Vec::with_capacity(ids.len());
    for entry in request.entries {
        let change = receipt(entry.receipt_handle)
            .and_then(|receipt| Ok((receipt, visibility(entry.visibility_timeout)?)));
        read.push(change.map(|change| {
            changes.push(change.clone());
            change.0
        }));
    }
    let changed = match changes.is_empty() {
        // Nothing is left to change, but the queue must exist all the same.
        true => context.ports.queues.queue(&queue).await.map(|_| Vec::new()),
        false => context.ports.queues.change_visibility(&queue, changes).await,
    };
    Ok(batch::Response::new(batch::done(ids, read, changed.map_err(fault)?)))
}
