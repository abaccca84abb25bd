//! SendMessage.

use super::digest;
use super::errors::fault;
use super::outgoing::{Accepted, Claim, Outgoing};
use super::queue::resolve;
use crate::context::Context;
use crate::fault::Fault;

pub(super) async fn handle(context: &Context, request: Outgoing) -> Result<Accepted, Fault> {
    let queue = resolve(context, request.queue_url.as_deref())?;
    let (message, sums) = request.convert(&queue, context.trace.as_deref())?;
    let (claim, sum) = (Claim::of(&message), digest::of_body(&message.body));
    let mut results = context.ports.queues.send(&queue, vec![message]).await.map_err(fault)?;
    let result =
        results.pop().ok_or_else(|| Fault::server("InternalFailure", "the message has no result"))?;
    match result {
        Ok(sent) => Ok(sums.accepted(None, sum, sent)),
        Err(error) => Err(claim.refused(context, &queue, error, "are invalid").await),
    }
}
