//! SendMessageBatch.

use anabranch_model::limits::MESSAGE_BYTES_MAX;
use anabranch_model::{NewMessage, QueueName};
use serde::Deserialize;

use super::batch::{self, Entry, Response};
use super::digest;
use super::errors::{fault, invalid};
use super::outgoing::{Accepted, Claim, Outgoing, UNNAMED};
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
    check_order(context, &queue, &request.entries).await?;
    let mut messages = Vec::with_capacity(ids.len());
    let mut converted = Vec::with_capacity(ids.len());
    for entry in request.entries {
        converted.push(entry.convert(&queue, context.trace.as_deref()).map(|(message, sums)| {
            let claim = Claim::of(&message);
            messages.push(message);
            (sums, claim)
        }));
    }
    let bytes: usize = messages.iter().map(NewMessage::size).sum();
    if ids.len() > 1 && bytes > MESSAGE_BYTES_MAX {
        return Err(batch::too_long(bytes, MESSAGE_BYTES_MAX));
    }
    let bodies: Vec<String> = digest::of_bodies(messages.iter().map(|message| &message.body[..])).collect();
    let sent = match messages.is_empty() {
        // Nothing is left to send, but the queue must exist all the same.
        true => context.ports.queues.queue(&queue).await.map(|_| Vec::new()),
        false => context.ports.queues.send(&queue, messages).await,
    }
    .map_err(fault)?;
    let mut sent = sent.into_iter().zip(bodies);
    let mut results = Vec::with_capacity(ids.len());
    for (id, converted) in ids.into_iter().zip(converted) {
        let accepted = match converted {
            Ok((sums, claim)) => match sent.next() {
                Some((Ok(sent), body)) => Ok(sums.accepted(Some(id.clone()), body, sent)),
                Some((Err(error), _)) => {
                    Err(claim.refused(context, &queue, error, "cannot be validated").await)
                }
                None => Err(Fault::server("InternalFailure", "the message has no result")),
            },
            Err(fault) => Err(fault),
        };
        results.push((id, accepted));
    }
    Ok(Response::new(results))
}

/// What a queue that keeps an order must know of every message is missing for all of them when it is missing for one.
async fn check_order(context: &Context, queue: &QueueName, entries: &[Outgoing]) -> Result<(), Fault> {
    if !queue.is_fifo() {
        return Ok(());
    }
    if entries.iter().any(|entry| !entry.has_group()) {
        return Err(invalid("The request must contain the parameter MessageGroupId."));
    }
    if entries.iter().all(Outgoing::is_named) {
        return Ok(());
    }
    let summary = context.ports.queues.queue(queue).await.map_err(fault)?;
    if summary.options.deduplicates_content { Ok(()) } else { Err(invalid(UNNAMED)) }
}
