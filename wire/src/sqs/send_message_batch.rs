//! SendMessageBatch.

use anabranch_model::NewMessage;
use anabranch_model::limits::MESSAGE_BYTES_MAX;
use serde::Deserialize;

use super::batch::{self, Entry, Response};
use super::errors::fault;
use super::outgoing::{Accepted, Outgoing};
use super::queue::resolve;
use crate::context::Context;
use crate::fault::Fault;
use crate::list::{ENTRIES_MAX, bounded};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_url: Option<String>,
    #[serde(
        alias = "SendMessageBatchRequestEntry",
        default,
        deserialize_with = "bounded::<_, _, { ENTRIES_MAX }>"
    )]
    entries: Vec<Outgoing>,
}

impl Entry for Outgoing {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response<Accepted>, Fault> {
    let queue = resolve(context, request.queue_url.as_deref())?;
    let ids = batch::check(&request.entries)?;
    let mut messages = Vec::with_capacity(ids.len());
    let mut converted = Vec::with_capacity(ids.len());
    for entry in request.entries {
        converted.push(entry.convert(&queue).map(|(message, sums)| {
            messages.push(message);
            sums
        }));
    }
    let bytes: usize = messages.iter().map(NewMessage::size).sum();
    if ids.len() > 1 && bytes > MESSAGE_BYTES_MAX {
        return Err(batch::too_long(bytes, MESSAGE_BYTES_MAX));
    }
    let sent = match messages.is_empty() {
        // Nothing is left to send, but the queue must exist all the same.
        true => context.ports.queues.queue(&queue).await.map(|_| Vec::new()),
        false => context.ports.queues.send(&queue, messages).await,
    }
    .map_err(fault)?;
    let mut sent = sent.into_iter();
    let results = ids.into_iter().zip(converted).map(|(id, converted)| {
        let accepted = converted.and_then(|sums| {
            let missing = || Fault::server("InternalFailure", "the message has no result");
            let sent = sent.next().ok_or_else(missing)?.map_err(fault)?;
            Ok(sums.accepted(Some(id.clone()), sent))
        });
        (id, accepted)
    });
    Ok(Response::new(results))
}
