//! DescribeStream.

use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::{Error, Page, Shard, ShardId, Timestamp};
use serde::{Deserialize, Serialize};

use super::numbers::{SHARD_ID_CHARS, sequence_text, shard, shard_text};
use super::stream::{Known, Named, arn, find, stream_not_found};
use crate::context::Context;
use crate::dynamodb::{Element, fault};
use crate::fault::Fault;
use crate::time::Time;
use crate::validation::Validation;

/// Most shards on a page.
const LIMIT_MAX: i64 = 100;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_arn: Option<String>,
    limit: Option<i64>,
    exclusive_start_shard_id: Option<String>,
    shard_filter: Option<ShardFilter>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ShardFilter {
    r#type: Option<String>,
    shard_id: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    stream_description: Description,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Description {
    stream_arn: String,
    stream_label: String,
    stream_status: &'static str,
    stream_view_type: String,
    creation_request_date_time: Time,
    table_name: String,
    key_schema: Vec<Element>,
    shards: Vec<ShardBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_evaluated_shard_id: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ShardBody {
    shard_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_shard_id: Option<String>,
    sequence_number_range: Range,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Range {
    starting_sequence_number: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ending_sequence_number: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation.required("streamArn", &request.stream_arn).range("limit", request.limit, 1..=LIMIT_MAX);
    if let Some(ShardFilter { r#type, shard_id }) = &request.shard_filter {
        validation.required("shardFilter.type", r#type).required("shardFilter.shardId", shard_id);
        validation.length("shardFilter.shardId", shard_id.as_deref(), SHARD_ID_CHARS);
    }
    let kind = request.shard_filter.as_ref().and_then(|filter| filter.r#type.as_deref());
    validation.one_of("shardFilter.type", kind, &["CHILD_SHARDS"]).done()?;
    let given = request.stream_arn.unwrap_or_default();
    let named = Named::parse(&given)?;
    let known = find(context, &named).await?.ok_or_else(|| stream_not_found(&given))?;
    let after = request.exclusive_start_shard_id.as_deref().map(shard).transpose()?;
    let limit = request.limit.unwrap_or(LIMIT_MAX) as usize;
    let parent = request.shard_filter.and_then(|filter| filter.shard_id);
    let parent = parent.as_deref().map(shard).transpose()?;
    // Children are sought among all shards.
    let sought = if parent.is_some() { PAGE_ENTRIES_MAX } else { limit };
    let listed = context.ports.tables.changes().shards(&named.stream, after.as_ref(), sought).await;
    let page = match listed {
        // Behind a shard that is not known there is none.
        Err(Error::ShardNotFound(..)) => Page { entries: Vec::new(), more: false },
        Err(Error::StreamNotFound(_)) => return Err(stream_not_found(&given)),
        listed => listed.map_err(fault)?,
    };
    let belongs =
        |shard: &&Shard| parent.as_ref().is_none_or(|parent: &ShardId| shard.parents.contains(parent));
    let shards: Vec<_> = page.entries.iter().filter(belongs).map(ShardBody::of).collect();
    let last = page.entries.last().filter(|_| page.more).map(|shard| shard_text(&shard.id));
    Ok(Response { stream_description: describe(context, known, shards, last) })
}

fn describe(context: &Context, known: Known, shards: Vec<ShardBody>, last: Option<String>) -> Description {
    Description {
        stream_arn: arn(context, &known.table, &known.label),
        stream_label: known.label,
        stream_status: if known.enabled { "ENABLED" } else { "DISABLED" },
        stream_view_type: known.view,
        creation_request_date_time: Time(Timestamp::from_millis(known.created_at_ms)),
        table_name: known.table,
        key_schema: known.key,
        shards,
        last_evaluated_shard_id: last,
    }
}

impl ShardBody {
    fn of(shard: &Shard) -> ShardBody {
        ShardBody {
            shard_id: shard_text(&shard.id),
            parent_shard_id: shard.parents.first().map(shard_text),
            sequence_number_range: Range {
                starting_sequence_number: sequence_text(shard.starts_at),
                ending_sequence_number: shard.ends_before.map(sequence_text),
            },
        }
    }
}
