//! GetStream.

use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::{Shard, ShardId, Timestamp};
use serde::{Deserialize, Serialize};

use super::faults::{fault, invalid, retold};
use super::stream::{arn, find_by_arn};
use crate::context::Context;
use crate::dynamodb_streams::numbers::{SHARD_ID_CHARS, sequence_text, shard, shard_text};
use crate::fault::Fault;
use crate::time::Time;
use crate::validation::Validation;

/// Most shards on a page.
const RESULTS_MAX: i64 = 100;
const TOKEN: &str = "row-stream-shards";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    stream_arn: Option<String>,
    max_results: Option<i64>,
    shard_filter: Option<ShardFilter>,
    next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShardFilter {
    r#type: Option<String>,
    shard_id: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response {
    stream_arn: String,
    stream_label: String,
    stream_status: &'static str,
    stream_view_type: String,
    creation_request_date_time: Time,
    keyspace_name: String,
    table_name: String,
    shards: Vec<ShardBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_token: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShardBody {
    shard_id: String,
    parent_shard_ids: Vec<String>,
    sequence_number_range: Range,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Range {
    starting_sequence_number: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ending_sequence_number: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation.required("streamArn", &request.stream_arn).range(
        "maxResults",
        request.max_results,
        1..=RESULTS_MAX,
    );
    if let Some(ShardFilter { r#type, shard_id }) = &request.shard_filter {
        validation.required("shardFilter.type", r#type).required("shardFilter.shardId", shard_id);
        validation.length("shardFilter.shardId", shard_id.as_deref(), SHARD_ID_CHARS);
    }
    let kind = request.shard_filter.as_ref().and_then(|filter| filter.r#type.as_deref());
    validation.one_of("shardFilter.type", kind, &["CHILD_SHARDS"]).done().map_err(retold)?;
    let given = request.stream_arn.unwrap_or_default();
    let (named, keyspace, known) = find_by_arn(context, &given).await?;
    let after = match &request.next_token {
        Some(token) => {
            let opened = context.tokens.open(&*context.ports.admin, TOKEN, token).await.map_err(fault)?;
            let opened = opened.ok_or_else(|| invalid("Invalid NextToken"))?;
            Some(shard(&String::from_utf8_lossy(&opened.content)).map_err(retold)?)
        }
        None => None,
    };
    let parent = request.shard_filter.and_then(|filter| filter.shard_id);
    let parent = parent.as_deref().map(shard).transpose().map_err(retold)?;
    let limit = request.max_results.unwrap_or(RESULTS_MAX) as usize;
    // Children are sought among all shards.
    let sought = if parent.is_some() { PAGE_ENTRIES_MAX } else { limit };
    let changes = context.ports.tables.changes();
    let page = changes.shards(&named.stream, after.as_ref(), sought).await.map_err(fault)?;
    let belongs =
        |shard: &&Shard| parent.as_ref().is_none_or(|parent: &ShardId| shard.parents.contains(parent));
    let next_token = match page.entries.last().filter(|_| page.more) {
        Some(last) => {
            let (admin, clock) = (&*context.ports.admin, &*context.clock);
            let text = shard_text(&last.id);
            Some(context.tokens.seal(admin, clock, TOKEN, text.as_bytes()).await.map_err(fault)?)
        }
        None => None,
    };
    Ok(Response {
        stream_arn: arn(context, &keyspace, &known.table, &known.label),
        stream_label: known.label,
        stream_status: if known.enabled { "ENABLED" } else { "DISABLED" },
        stream_view_type: known.view,
        creation_request_date_time: Time(Timestamp::from_millis(known.created_at_ms)),
        keyspace_name: keyspace,
        table_name: known.table,
        shards: page.entries.iter().filter(belongs).map(ShardBody::of).collect(),
        next_token,
    })
}

impl ShardBody {
    fn of(shard: &Shard) -> ShardBody {
        ShardBody {
            shard_id: shard_text(&shard.id),
            parent_shard_ids: shard.parents.iter().map(shard_text).collect(),
            sequence_number_range: Range {
                starting_sequence_number: sequence_text(shard.starts_at),
                ending_sequence_number: shard.ends_before.map(sequence_text),
            },
        }
    }
}
