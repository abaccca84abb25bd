//! ListQueues.

use anabranch_model::QueueName;
use serde::{Deserialize, Serialize};

use super::errors::{fault, invalid_value};
use super::queue::url;
use crate::context::Context;
use crate::fault::Fault;

const PURPOSE: &str = "sqs-list-queues";
/// Most queues on a page.
const RESULTS_MAX: i64 = 1_000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_name_prefix: Option<String>,
    next_token: Option<String>,
    max_results: Option<i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queue_urls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let limit = page_size(request.max_results)?;
    let after = match &request.next_token {
        Some(token) => Some(of_token(context, PURPOSE, token).await?),
        None => None,
    };
    let prefix = request.queue_name_prefix.unwrap_or_default();
    let page = context.ports.queues.queues(after.as_ref(), limit, &prefix).await.map_err(fault)?;
    let last = page.entries.last().filter(|_| page.more && request.max_results.is_some());
    let next_token = match last {
        Some(queue) => Some(token(context, PURPOSE, &queue.name).await?),
        None => None,
    };
    Ok(Response {
        next_token,
        queue_urls: page.entries.iter().map(|queue| url(context, &queue.name)).collect(),
    })
}

/// How many results a page has.
pub(super) fn page_size(max_results: Option<i64>) -> Result<usize, Fault> {
    let results = max_results.unwrap_or(RESULTS_MAX);
    if !(1..=RESULTS_MAX).contains(&results) {
        let reason = "MaxResults must be an integer between 1 and 1000.";
        return Err(invalid_value("MaxResults", results, reason));
    }
    Ok(results as usize)
}

/// What leads to the page behind this queue.
pub(super) async fn token(context: &Context, purpose: &str, queue: &QueueName) -> Result<String, Fault> {
    let (admin, clock) = (&*context.ports.admin, &*context.clock);
    context.tokens.seal(admin, clock, purpose, queue.as_str().as_bytes()).await.map_err(fault)
}

/// The queue behind which a page begins.
pub(super) async fn of_token(context: &Context, purpose: &str, token: &str) -> Result<QueueName, Fault> {
    let opened = context.tokens.open(&*context.ports.admin, purpose, token).await.map_err(fault)?;
    let name = opened.and_then(|opened| String::from_utf8(opened.content.to_vec()).ok());
    name.and_then(|name| QueueName::new(&name).ok())
        .ok_or_else(|| invalid_value("NextToken", token, "Invalid or expired next token."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_bounds() {
        for size in [0, -1, 1_001] {
            assert!(page_size(Some(size)).is_err(), "{size}");
        }
        assert_eq!((page_size(None).unwrap(), page_size(Some(1)).unwrap()), (1_000, 1));
    }
}
