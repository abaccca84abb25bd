//! ListStreamConsumers.

use serde::{Deserialize, Serialize};

use super::consumer::{self, ConsumerShape};
use super::errors::{fault, stream_not_found};
use super::page_token;
use super::stream::of_arn;
use crate::context::Context;
use crate::fault::Fault;
use crate::time::Time;
use crate::validation::Validation;

const PURPOSE: &str = "kinesis-list-stream-consumers";
/// Consumers on a page unless the caller says otherwise.
const RESULTS_DEFAULT: i64 = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    next_token: Option<String>,
    max_results: Option<i64>,
    stream_creation_timestamp: Option<Time>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    consumers: Vec<ConsumerShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    Validation::default()
        .required("streamARN", &request.stream_arn)
        .length("nextToken", request.next_token.as_deref(), 1..=1_048_576)
        .range("maxResults", request.max_results, 1..=10_000)
        .done()?;
    let stream = of_arn(&request.stream_arn.unwrap_or_default())?;
    let summary = context.ports.streams.stream(&stream).await.map_err(fault)?;
    if let Some(created) = request.stream_creation_timestamp
        && created.0.as_millis() / 1_000 != summary.created_at.as_millis() / 1_000
    {
        return Err(stream_not_found(&stream));
    }
    let purpose = format!("{PURPOSE} {stream} {}", summary.created_at.as_millis());
    let after = match &request.next_token {
        Some(token) => Some(page_token::open(context, &purpose, token).await?),
        None => None,
    };
    let consumers = consumer::all(context, &stream).await?;
    let mut rest =
        consumers.iter().filter(|consumer| after.as_ref().is_none_or(|after| consumer.name > *after));
    let limit = request.max_results.unwrap_or(RESULTS_DEFAULT) as usize;
    let page: Vec<_> = rest.by_ref().take(limit).collect();
    let next_token = match (rest.next(), page.last()) {
        (Some(_), Some(last)) => Some(page_token::seal(context, &purpose, &last.name).await?),
        _ => None,
    };
    let consumers = page.into_iter().map(|consumer| consumer.shape(context, &stream)).collect();
    Ok(Response { consumers, next_token })
}
