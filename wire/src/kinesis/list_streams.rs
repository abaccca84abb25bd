//! ListStreams.

use serde::{Deserialize, Serialize};

use super::describe_stream::Mode;
use super::errors::fault;
use super::page_token;
use super::settings;
use super::state::status;
use super::stream::{arn, check_name, parse};
use crate::context::Context;
use crate::fault::Fault;
use crate::time::Time;
use crate::validation::Validation;

const PURPOSE: &str = "kinesis-list-streams";
/// Streams on a page unless the caller says otherwise.
const LIMIT_DEFAULT: i64 = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    limit: Option<i64>,
    exclusive_start_stream_name: Option<String>,
    next_token: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    stream_names: Vec<String>,
    has_more_streams: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
    stream_summaries: Vec<Summary>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Summary {
    stream_name: String,
    #[serde(rename = "StreamARN")]
    stream_arn: String,
    stream_status: &'static str,
    stream_mode_details: Mode,
    stream_creation_timestamp: Time,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation.range("limit", request.limit, 1..=10_000);
    validation.length("nextToken", request.next_token.as_deref(), 1..=1_048_576);
    let start = request.exclusive_start_stream_name.as_deref();
    check_name(&mut validation, "exclusiveStartStreamName", start).done()?;
    let after = match &request.next_token {
        Some(token) => Some(parse(&page_token::open(context, PURPOSE, token).await?)?),
        None => start.map(parse).transpose()?,
    };
    let limit = request.limit.unwrap_or(LIMIT_DEFAULT) as usize;
    let page = context.ports.streams.streams(after.as_ref(), limit).await.map_err(fault)?;
    let names: Vec<String> = page.entries.iter().map(|stream| stream.name.to_string()).collect();
    let mut summaries = Vec::with_capacity(names.len());
    for stream in &page.entries {
        let settings = settings::load_listed(context, &stream.name).await?;
        summaries.push(Summary {
            stream_name: stream.name.to_string(),
            stream_arn: arn(context, &stream.name),
            stream_status: status(context, stream).text(),
            stream_mode_details: Mode::of(&settings),
            stream_creation_timestamp: Time(stream.created_at),
        });
    }
    let next_token = match names.last().filter(|_| page.more) {
        Some(last) => Some(page_token::seal(context, PURPOSE, last).await?),
        None => None,
    };
    Ok(Response { next_token, has_more_streams: page.more, stream_summaries: summaries, stream_names: names })
}
