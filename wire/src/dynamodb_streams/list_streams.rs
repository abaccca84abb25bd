//! ListStreams.

use std::collections::BTreeMap;

use anabranch_model::TableName;
use serde::{Deserialize, Serialize};

use super::stream::{Named, all_of, arn};
use crate::context::Context;
use crate::dynamodb::fault;
use crate::fault::Fault;
use crate::validation::Validation;

/// Most streams on a page.
const LIMIT_MAX: i64 = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    table_name: Option<String>,
    limit: Option<i64>,
    exclusive_start_stream_arn: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    streams: Vec<Stream>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_evaluated_stream_arn: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Stream {
    stream_arn: String,
    table_name: String,
    stream_label: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    Validation::default().range("limit", request.limit, 1..=LIMIT_MAX).done()?;
    let table = request.table_name.as_deref().map(TableName::new).transpose().map_err(fault)?;
    let mut all = BTreeMap::new();
    for known in all_of(context, table.as_ref()).await? {
        all.insert(arn(context, &known.table, &known.label), known);
    }
    if let Some(after) = &request.exclusive_start_stream_arn {
        Named::parse(after)?;
    }
    let after = request.exclusive_start_stream_arn.unwrap_or_default();
    let limit = request.limit.unwrap_or(LIMIT_MAX) as usize;
    let mut rest = all.into_iter().filter(|(arn, _)| *arn > after);
    let streams: Vec<_> = rest
        .by_ref()
        .take(limit)
        .map(|(stream_arn, known)| Stream { stream_arn, table_name: known.table, stream_label: known.label })
        .collect();
    let more = rest.next().is_some();
    let last = streams.last().filter(|_| more).map(|stream| stream.stream_arn.clone());
    Ok(Response { streams, last_evaluated_stream_arn: last })
}
