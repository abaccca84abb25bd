//! ListStreams.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::faults::{fault, invalid, retold};
use super::stream::{arn, table_name};
use crate::context::Context;
use crate::dynamodb_streams::stream::all_of;
use crate::fault::Fault;
use crate::validation::Validation;

/// Most streams on a page.
const RESULTS_MAX: i64 = 100;
const TOKEN: &str = "row-streams";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    keyspace_name: Option<String>,
    table_name: Option<String>,
    max_results: Option<i64>,
    next_token: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response {
    streams: Vec<Stream>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Stream {
    stream_arn: String,
    keyspace_name: String,
    table_name: String,
    stream_label: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    Validation::default().range("maxResults", request.max_results, 1..=RESULTS_MAX).done().map_err(retold)?;
    let table = request.table_name.as_deref().map(table_name).transpose()?;
    let after = match &request.next_token {
        Some(token) => {
            let opened = context.tokens.open(&*context.ports.admin, TOKEN, token).await.map_err(fault)?;
            let opened = opened.ok_or_else(|| invalid("Invalid NextToken"))?;
            String::from_utf8_lossy(&opened.content).into_owned()
        }
        None => String::new(),
    };
    let mut all = BTreeMap::new();
    for known in all_of(context, table.as_ref()).await.map_err(retold)? {
        let Some(keyspace) = known.keyspace else { continue };
        if request.keyspace_name.as_ref().is_none_or(|wanted| *wanted == keyspace) {
            let stream_arn = arn(context, &keyspace, &known.table, &known.label);
            all.insert(stream_arn, (keyspace, known.table, known.label));
        }
    }
    let limit = request.max_results.unwrap_or(RESULTS_MAX) as usize;
    let mut rest = all.into_iter().filter(|(arn, _)| *arn > after);
    let stream = |(stream_arn, (keyspace_name, table_name, stream_label))| Stream {
        stream_arn,
        keyspace_name,
        table_name,
        stream_label,
    };
    let streams: Vec<_> = rest.by_ref().take(limit).map(stream).collect();
    let more = rest.next().is_some();
    let next_token = match streams.last().filter(|_| more) {
        Some(last) => {
            let (admin, clock) = (&*context.ports.admin, &*context.clock);
            Some(context.tokens.seal(admin, clock, TOKEN, last.stream_arn.as_bytes()).await.map_err(fault)?)
        }
        None => None,
    };
    Ok(Response { streams, next_token })
}
