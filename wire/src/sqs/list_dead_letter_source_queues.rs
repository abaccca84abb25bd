//! ListDeadLetterSourceQueues.

use anabranch_model::QueueName;
use anabranch_model::limits::PAGE_ENTRIES_MAX;
use serde::{Deserialize, Serialize};

use super::errors::fault;
use super::list_queues::{of_token, page_size, token};
use super::queue::{resolve, url};
use crate::context::Context;
use crate::fault::Fault;

const PURPOSE: &str = "sqs-list-dead-letter-source-queues";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_url: Option<String>,
    next_token: Option<String>,
    max_results: Option<i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    /// The one member of SQS that begins small.
    #[serde(rename = "queueUrls")]
    queue_urls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let queue = resolve(context, request.queue_url.as_deref())?;
    let limit = page_size(request.max_results)?;
    let purpose = format!("{PURPOSE} {queue}");
    let after = match &request.next_token {
        Some(token) => Some(of_token(context, &purpose, token).await?),
        None => None,
    };
    context.ports.queues.queue(&queue).await.map_err(fault)?;
    // One more than asked for tells whether there is another page.
    let mut sources = sources(context, &queue, after, limit + 1).await?;
    let more = sources.len() > limit;
    sources.truncate(limit);
    let next_token = match sources.last().filter(|_| more) {
        Some(last) => Some(token(context, &purpose, last).await?),
        None => None,
    };
    Ok(Response { next_token, queue_urls: sources.iter().map(|source| url(context, source)).collect() })
}

/// The first queues behind `after` whose dead letters go to `queue`.
async fn sources(
    context: &Context,
    queue: &QueueName,
    mut after: Option<QueueName>,
    limit: usize,
) -> Result<Vec<QueueName>, Fault> {
    let mut sources = Vec::new();
    loop {
        let queues = &context.ports.queues;
        let page = queues.queues(after.as_ref(), PAGE_ENTRIES_MAX, "").await.map_err(fault)?;
        after = page.entries.last().map(|entry| entry.name.clone());
        let of_queue = page.entries.into_iter().filter(|source| {
            source.options.redrive.as_ref().is_some_and(|policy| policy.dead_letters == *queue)
        });
        sources.extend(of_queue.map(|source| source.name));
        if sources.len() >= limit || !page.more {
            sources.truncate(limit);
            return Ok(sources);
        }
    }
}
