//! ListStreams.

use std::collections::BTreeMap;

use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::{Error, TableName};
use serde::{Deserialize, Serialize};

use super::stream::{arn, ended, of_table};
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
    let ended = ended(context).await?.into_iter().map(|known| (known.table, known.label));
    for known in current(context, table.as_ref()).await?.into_iter().chain(ended) {
        let wanted = table.as_ref().is_none_or(|table| table.as_str() == known.0);
        if wanted {
            all.insert(arn(context, &known.0, &known.1), known);
        }
    }
    let after = request.exclusive_start_stream_arn.unwrap_or_default();
    let limit = request.limit.unwrap_or(LIMIT_MAX) as usize;
    let mut rest = all.into_iter().filter(|(arn, _)| *arn > after);
    let streams: Vec<_> = rest
        .by_ref()
        .take(limit)
        .map(|(stream_arn, (table_name, stream_label))| Stream { stream_arn, table_name, stream_label })
        .collect();
    let more = rest.next().is_some();
    let last = streams.last().filter(|_| more).map(|stream| stream.stream_arn.clone());
    Ok(Response { streams, last_evaluated_stream_arn: last })
}

/// Tables whose changes are written down, with the labels of their streams.
async fn current(context: &Context, table: Option<&TableName>) -> Result<Vec<(String, String)>, Fault> {
    let mut found = Vec::new();
    let mut names = Vec::from_iter(table.cloned());
    let mut after = None;
    while table.is_none() {
        let page = context.ports.tables.tables(after.as_ref(), PAGE_ENTRIES_MAX).await.map_err(fault)?;
        after = page.entries.last().cloned();
        names.extend(page.entries);
        if !page.more || after.is_none() {
            break;
        }
    }
    for name in names {
        match context.ports.tables.table(&name).await {
            Ok(summary) => found.extend(of_table(&summary).map(|(_, known)| (known.table, known.label))),
            // It was deleted since it was listed, or never was there.
            Err(Error::TableNotFound(_)) => {}
            Err(error) => return Err(fault(error)),
        }
    }
    Ok(found)
}
