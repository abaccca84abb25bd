//! GetRecords.

use anabranch_model::table::{Change, KeyspaceShape};
use anabranch_model::{Error, Next, ReadLimit, Record};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::ITERATOR;
use super::cell::{keys, row};
use super::faults::{fault, retold};
use super::stream::table_name;
use crate::context::Context;
use crate::dynamodb_streams::iterator::Place;
use crate::dynamodb_streams::numbers::sequence_text;
use crate::dynamodb_streams::reading::read;
use crate::fault::Fault;
use crate::time::Time;
use crate::validation::Validation;

/// Most records of one answer.
const RESULTS_MAX: i64 = 1_000;
/// Bytes after which no record is added.
const BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    shard_iterator: Option<String>,
    max_results: Option<i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response {
    change_records: Vec<RecordBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_shard_iterator: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RecordBody {
    event_version: &'static str,
    created_at: Time,
    origin: &'static str,
    partition_keys: Json,
    clustering_keys: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_image: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_image: Option<Json>,
    sequence_number: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation.required("shardIterator", &request.shard_iterator);
    validation.range("maxResults", request.max_results, 1..=RESULTS_MAX).done().map_err(retold)?;
    let iterator = request.shard_iterator.as_deref().unwrap_or_default();
    let place = Place::open(context, ITERATOR, iterator).await.map_err(retold)?;
    let limit = ReadLimit { records: request.max_results.unwrap_or(RESULTS_MAX) as usize, bytes: BYTES_MAX };
    let (source, from) = (context.ports.tables.changes(), (&place.stream, &place.shard));
    let (changes, next) = read(source, from, place.position, limit).await.map_err(fault)?;
    place.check_trimmed(context).await.map_err(retold)?;
    let shape = match changes.is_empty() {
        true => None,
        false => shape(context, &place).await?,
    };
    let records = changes.iter().map(|(record, change)| body(record, change, shape.as_ref())).collect();
    let next = match next {
        Next::At(position) => Some(Place { position, ..place }.seal(context, ITERATOR).await?),
        Next::Ended(_) => None,
    };
    Ok(Response { change_records: records, next_shard_iterator: next })
}

/// How the rows of the table look; none if it is gone.
async fn shape(context: &Context, place: &Place) -> Result<Option<KeyspaceShape>, Fault> {
    match context.ports.tables.table(&table_name(&place.note)?).await {
        Ok(summary) => Ok(summary.options.keyspace),
        Err(Error::TableNotFound(_)) => Ok(None),
        Err(error) => Err(fault(error)),
    }
}

fn body(record: &Record, change: &Change, shape: Option<&KeyspaceShape>) -> RecordBody {
    let image = change.new.as_ref().or(change.old.as_ref());
    let (partition_keys, clustering_keys) = keys(&change.keys, image, shape);
    RecordBody {
        event_version: "1.0",
        created_at: Time(change.at),
        origin: if change.expired { "TTL" } else { "USER" },
        partition_keys,
        clustering_keys,
        new_image: change.new.as_ref().map(|item| row(item, &change.keys, shape)),
        old_image: change.old.as_ref().map(|item| row(item, &change.keys, shape)),
        sequence_number: sequence_text(record.sequence),
    }
}
