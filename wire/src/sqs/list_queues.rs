//! ListQueues.

use anabranch_model::QueueName;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::errors::{fault, invalid_value};
use super::queue::url;
use crate::context::Context;
use crate::fault::Fault;

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
    let after = request.next_token.as_deref().map(of_token).transpose()?;
    let prefix = request.queue_name_prefix.unwrap_or_default();
    let page = context.ports.queues.queues(after.as_ref(), limit, &prefix).await.map_err(fault)?;
    let last = page.entries.last().filter(|_| page.more && request.max_results.is_some());
    Ok(Response {
        next_token: last.map(|queue| token(&queue.name)),
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
pub(super) fn token(queue: &QueueName) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(queue.as_str())
}

/// The queue behind which a page begins.
pub(super) fn of_token(token: &str) -> Result<QueueName, Fault> {
    let name = BASE64_URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    name.and_then(|name| QueueName::new(&name).ok())
        .ok_or_else(|| invalid_value("NextToken", token, "Invalid or expired next token."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_lead_on_and_others_nowhere() {
        let queue = QueueName::new("orders.fifo").unwrap();
        assert_eq!(of_token(&token(&queue)).unwrap(), queue);
        for text in ["", "orders", "!!", "_w"] {
            assert!(of_token(text).is_err(), "{text}");
        }
        for size in [0, -1, 1_001] {
            assert!(page_size(Some(size)).is_err(), "{size}");
        }
        assert_eq!((page_size(None).unwrap(), page_size(Some(1)).unwrap()), (1_000, 1));
    }
}
