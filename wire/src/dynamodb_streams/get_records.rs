//! GetRecords.

use anabranch_model::table::{Change, Event};
use anabranch_model::{HashKey, Next, ReadLimit, Record, Timestamp};
use serde::{Deserialize, Serialize};

use super::ITERATOR;
use super::iterator::Place;
use super::numbers::sequence_text;
use super::reading::read;
use crate::context::Context;
use crate::dynamodb::{ItemBody, fault};
use crate::fault::Fault;
use crate::time::Time;
use crate::validation::Validation;

/// Most records of one answer.
const LIMIT_MAX: i64 = 1_000;
/// Bytes after which no record is added.
const BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    shard_iterator: Option<String>,
    limit: Option<i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    records: Vec<RecordBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_shard_iterator: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RecordBody {
    #[serde(rename = "eventID")]
    event_id: String,
    event_name: &'static str,
    event_version: &'static str,
    event_source: &'static str,
    aws_region: String,
    dynamodb: ChangeBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_identity: Option<Identity>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ChangeBody {
    approximate_creation_date_time: Time,
    keys: ItemBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_image: Option<ItemBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_image: Option<ItemBody>,
    sequence_number: String,
    size_bytes: u64,
    stream_view_type: String,
}

/// Who made a change, where it was the service itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Identity {
    principal_id: &'static str,
    r#type: &'static str,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation.required("shardIterator", &request.shard_iterator).range(
        "limit",
        request.limit,
        1..=LIMIT_MAX,
    );
    validation.done()?;
    let place = Place::open(context, ITERATOR, request.shard_iterator.as_deref().unwrap_or_default()).await?;
    let limit = ReadLimit { records: request.limit.unwrap_or(LIMIT_MAX) as usize, bytes: BYTES_MAX };
    let (source, from) = (context.ports.tables.changes(), (&place.stream, &place.shard));
    let (changes, next) = read(source, from, place.position, limit).await.map_err(fault)?;
    place.check_trimmed(context).await?;
    let records = changes.into_iter().map(|(record, change)| body(context, &place, &record, change));
    let records = records.collect();
    let next = match next {
        Next::At(position) => Some(Place { position, ..place }.seal(context, ITERATOR).await?),
        Next::Ended(_) => None,
    };
    Ok(Response { records, next_shard_iterator: next })
}

fn body(context: &Context, place: &Place, record: &Record, change: Change) -> RecordBody {
    let number = sequence_text(record.sequence);
    let seed = format!("{}/{}/{number}", place.stream, place.shard);
    let seconds = change.at.as_millis() / 1_000 * 1_000;
    RecordBody {
        event_id: format!("{:032x}", HashKey::of(seed.as_bytes()).get()),
        event_name: match change.event {
            Event::Insert => "INSERT",
            Event::Modify => "MODIFY",
            Event::Remove => "REMOVE",
        },
        event_version: "1.1",
        event_source: "aws:dynamodb",
        aws_region: context.region.clone(),
        user_identity: change
            .expired
            .then_some(Identity { principal_id: "dynamodb.amazonaws.com", r#type: "Service" }),
        dynamodb: ChangeBody {
            approximate_creation_date_time: Time(Timestamp::from_millis(seconds)),
            keys: ItemBody(change.keys),
            new_image: change.new.map(ItemBody),
            old_image: change.old.map(ItemBody),
            sequence_number: number,
            size_bytes: change.size,
            stream_view_type: place.note.clone(),
        },
    }
}
