//! Records and shards of DynamoDB's streams as the model's.

use anabranch_model::table::{Change, Event, KeyValue, Value};
use anabranch_model::{Error, PartitionKey, Record, Result, SequenceNumber, Shard, ShardId};
use aws_sdk_dynamodbstreams::types::{self, OperationType};

use crate::action::Service;
use crate::attribute::streams::item;
use crate::{failure, source};

/// Who removes the items whose time has come.
const EXPIRY: (&str, &str) = ("Service", "dynamodb.amazonaws.com");

/// What an answer of the service cannot be.
pub(super) fn strange(what: &str) -> Error {
    failure::strange(Service::DynamodbStreams, what)
}

pub(super) fn shard(shard: types::Shard) -> Result<Shard> {
    let id = |text: &str| ShardId::new(text).map_err(|_| strange("a shard without a proper name"));
    let number = |text: &str| source::sequence(text).ok_or_else(|| strange("a sequence number that is none"));
    let range = shard.sequence_number_range.ok_or_else(|| strange("a shard without numbers"))?;
    let ends_at = range.ending_sequence_number.as_deref().map(number).transpose()?;
    Ok(Shard {
        id: id(shard.shard_id.as_deref().unwrap_or_default())?,
        parents: shard.parent_shard_id.as_deref().map(id).into_iter().collect::<Result<_>>()?,
        range: None,
        starts_at: number(range.starting_sequence_number.as_deref().unwrap_or_default())?,
        ends_before: ends_at.map(SequenceNumber::next),
        closed_at: None,
    })
}

/// A record with the change that it tells of. `hash` is the attribute whose value is its partition key.
pub(super) fn record(record: types::Record, hash: &str) -> Result<Record> {
    let told = record.dynamodb.ok_or_else(|| strange("a record without a change"))?;
    let event = match record.event_name {
        Some(OperationType::Insert) => Event::Insert,
        Some(OperationType::Modify) => Event::Modify,
        Some(OperationType::Remove) => Event::Remove,
        _ => return Err(strange("a change of no known kind")),
    };
    let expired = record.user_identity.is_some_and(|who| {
        (who.r#type.as_deref(), who.principal_id.as_deref()) == (Some(EXPIRY.0), Some(EXPIRY.1))
    });
    let keys = item(told.keys.unwrap_or_default())?;
    let new = told.new_image.map(item).transpose()?;
    let old = told.old_image.map(item).transpose()?;
    let at = told.approximate_creation_date_time.as_ref().map(source::timestamp).unwrap_or_default();
    let sequence = told.sequence_number.as_deref().and_then(source::sequence);
    let sequence = sequence.ok_or_else(|| strange("a record without a number"))?;
    let partition_key = key_text(keys.get(hash).ok_or_else(|| strange("a change without its key"))?)?;
    let data = source::encoded(Change { event, keys, new, old, at, size: 0, expired });
    Ok(Record { sequence, arrival: at, partition_key, data })
}

fn key_text(value: &Value) -> Result<PartitionKey> {
    let value = match value {
        Value::Text(text) => KeyValue::Text(text.clone()),
        Value::Number(number) => KeyValue::Number(*number),
        Value::Binary(bytes) => KeyValue::Binary(bytes.clone()),
        _ => return Err(strange("a key that is neither text, number nor binary")),
    };
    Ok(value.text().into())
}
