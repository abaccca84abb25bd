//! Kinesis's nouns as the model's, and back.

use std::collections::HashMap;

use anabranch_model::{HashKey, HashRange, Record, Result, SequenceNumber, Shard, ShardId, Timestamp};
use aws_sdk_kinesis::primitives::DateTime;
use aws_sdk_kinesis::types;
use bytes::Bytes;

use super::{moment, strange};
use crate::source;
pub(super) use crate::source::timestamp;

pub(super) fn date_time(time: Timestamp) -> DateTime {
    DateTime::from_millis(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}

pub(super) fn sequence(text: &str) -> Result<SequenceNumber> {
    source::sequence(text).ok_or_else(|| strange("a sequence number that is none"))
}

pub(super) fn shard_id(text: &str) -> Result<ShardId> {
    ShardId::new(text).map_err(|_| strange("a shard without a proper name"))
}

pub(super) fn record(record: types::Record) -> Result<Record> {
    Ok(Record {
        sequence: sequence(&record.sequence_number)?,
        arrival: record.approximate_arrival_timestamp.as_ref().map(timestamp).unwrap_or_default(),
        partition_key: record.partition_key.unwrap_or_default().into(),
        data: Bytes::from(record.data.into_inner()),
    })
}

/// The shards of one answer.
pub(super) fn shards(listed: Vec<types::Shard>) -> Result<Vec<Shard>> {
    let mut shards = listed.into_iter().map(shard).collect::<Result<Vec<_>>>()?;
    relate(&mut shards);
    Ok(shards)
}

/// Sets what follows from shards standing side by side: of two parents the one with the lower range comes first, and a
/// shard was closed when its first child was made.
pub(super) fn relate(shards: &mut [Shard]) {
    let ranges: HashMap<ShardId, HashRange> =
        shards.iter().filter_map(|shard| Some((shard.id.clone(), shard.range?))).collect();
    let mut closed: HashMap<ShardId, Timestamp> = HashMap::new();
    for shard in shards.iter_mut() {
        shard.parents.sort_by_key(|parent| ranges.get(parent).map(|range| range.first()));
        for parent in &shard.parents {
            let opened = moment::of_shard(shard.starts_at);
            closed.entry(parent.clone()).or_insert(opened.unwrap_or_default());
        }
    }
    for shard in shards.iter_mut() {
        if let Some(end) = shard.ends_before {
            let known = closed.get(&shard.id).copied().filter(|moment| *moment > Timestamp::EPOCH);
            // Where numbers do not tell the time, all that is known is that it was some time ago.
            shard.closed_at = Some(known.or(moment::of_record(end)).unwrap_or_default());
        }
    }
}

fn shard(shard: types::Shard) -> Result<Shard> {
    let (Some(range), Some(numbers)) = (shard.hash_key_range, shard.sequence_number_range) else {
        return Err(strange("a shard without ranges"));
    };
    let parents = shard.parent_shard_id.iter().chain(&shard.adjacent_parent_shard_id);
    let ends_at = numbers.ending_sequence_number.as_deref().map(sequence).transpose()?;
    Ok(Shard {
        id: shard_id(&shard.shard_id)?,
        parents: parents.map(|parent| shard_id(parent)).collect::<Result<_>>()?,
        range: Some(HashRange::new(hash_key(&range.starting_hash_key)?, hash_key(&range.ending_hash_key)?)?),
        starts_at: sequence(&numbers.starting_sequence_number)?,
        ends_before: ends_at.map(SequenceNumber::next),
        closed_at: None,
    })
}

fn hash_key(text: &str) -> Result<HashKey> {
    text.parse().map(HashKey::new).map_err(|_| strange("a hash key that is none"))
}
