//! Appending: one request for all records, and further ones for those that Kinesis did not take.
//!
//! Kinesis goes on behind a record that it refuses. Sent again, such a record would land behind later ones of its shard,
//! so it is sent again only if none of those was stored; otherwise it is reported, and its sender decides.

use std::collections::HashMap;
use std::time::Duration;

use anabranch_model::{
    Appended, Error, HashKey, NewRecord, Result, Shard, ShardId, StreamName, check_append,
};
use aws_sdk_kinesis::primitives::Blob;
use aws_sdk_kinesis::types::{PutRecordsRequestEntry, PutRecordsResultEntry};

use super::{PATIENCE, Streams, action, translate};
use crate::call::Deadline;
use crate::failure::Kind;

/// What a shard is over when Kinesis refuses a record; it does not say which of its limits it is.
const LIMIT: &str = "what it may take in a second";
/// When a refused record is likely to fit: limits are counted by the second.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// What Kinesis calls a record that is over the limit of its shard.
const OVER_LIMIT: &str = "ProvisionedThroughputExceededException";

type Outcome = std::result::Result<Appended, Error>;

/// A record that is not stored yet.
struct Pending {
    /// Where it stands in the append.
    place: usize,
    hash_key: HashKey,
    entry: PutRecordsRequestEntry,
}

impl Streams {
    pub(super) async fn append_all(
        &self,
        stream: &StreamName,
        records: Vec<NewRecord>,
    ) -> Result<Vec<Outcome>> {
        check_append(&records)?;
        let bytes = records.iter().map(NewRecord::size).sum();
        let deadline = self.caller.deadline_moving(PATIENCE, bytes);
        let mut results: Vec<Option<Outcome>> =
            records.iter().map(|record| record.check().err().map(Err)).collect();
        let mut pending = Vec::new();
        for (place, record) in records.into_iter().enumerate() {
            if results[place].is_none() {
                let hash_key = record.hash_key();
                pending.push(Pending { place, hash_key, entry: entry(record)? });
            }
        }
        let mut rounds = 0;
        while !pending.is_empty() {
            let answers = match self.put(stream, &pending, deadline).await {
                Ok(answers) => answers,
                // As long as nothing was acknowledged it is an error of the whole call.
                Err(error) if rounds == 0 => return Err(error),
                Err(error) => {
                    fill(&mut results, &pending, &error);
                    break;
                }
            };
            let refused = settle(&mut results, pending, answers)?;
            pending = self.not_overtaken(stream, refused, &mut results, deadline).await?;
            rounds += 1;
            if !pending.is_empty() && !self.caller.back_off(rounds, deadline).await {
                break;
            }
        }
        Ok(results.into_iter().map(|result| result.unwrap_or_else(|| Err(no_result()))).collect())
    }

    async fn put(
        &self,
        stream: &StreamName,
        pending: &[Pending],
        deadline: Deadline,
    ) -> Result<Vec<PutRecordsResultEntry>> {
        let request = || {
            let entries = pending.iter().map(|record| record.entry.clone()).collect();
            self.client.put_records().stream_name(stream.as_str()).set_records(Some(entries)).send()
        };
        let answer = self.caller.call(&action::PUT_RECORDS, deadline, request).await.map_err(|failure| {
            failure.explained(|kind| match kind {
                Kind::NotFound => Some(Error::StreamNotFound(stream.clone())),
                Kind::InUse => Some(Error::StreamBusy(stream.clone())),
                _ => None,
            })
        })?;
        match answer.records.len() == pending.len() {
            true => Ok(answer.records),
            false => Err(super::strange("fewer results than records")),
        }
    }

    /// The refused records that may be sent again. The others keep the error that they have.
    async fn not_overtaken(
        &self,
        stream: &StreamName,
        refused: Vec<Pending>,
        results: &mut [Option<Outcome>],
        deadline: Deadline,
    ) -> Result<Vec<Pending>> {
        let last_stored = last_stored(results);
        if refused.is_empty() || last_stored.is_empty() {
            return Ok(refused);
        }
        // Nobody says which shard refused a record, so it is looked up. Without an answer nothing is sent again.
        let Ok(shards) = self.all_shards(stream, deadline).await else { return Ok(Vec::new()) };
        let overtaken = |record: &Pending| {
            let owners = shards.iter().filter(|shard| owns(shard, record.hash_key));
            let stored = owners.filter_map(|shard| last_stored.get(&shard.id)).max();
            stored.is_some_and(|stored| *stored > record.place)
        };
        Ok(refused.into_iter().filter(|record| !overtaken(record)).collect())
    }
}

fn entry(record: NewRecord) -> Result<PutRecordsRequestEntry> {
    // The record was checked, so its key is UTF-8.
    let key = String::from_utf8_lossy(&record.partition_key).into_owned();
    let entry = PutRecordsRequestEntry::builder()
        .partition_key(key)
        .set_explicit_hash_key(record.explicit_hash_key.map(|key| key.get().to_string()))
        .data(Blob::new(record.data))
        .build();
    entry.map_err(|error| Error::Invalid(error.to_string()))
}

/// Writes down what became of each record, and returns those that were refused for a reason that passes.
fn settle(
    results: &mut [Option<Outcome>],
    pending: Vec<Pending>,
    answers: Vec<PutRecordsResultEntry>,
) -> Result<Vec<Pending>> {
    let mut refused = Vec::new();
    for (record, answer) in pending.into_iter().zip(answers) {
        let (result, again) = match (answer.shard_id, answer.sequence_number, answer.error_code) {
            (Some(shard), Some(number), None) => {
                let (shard, sequence) = (translate::shard_id(&shard)?, translate::sequence(&number)?);
                (Ok(Appended { shard, sequence }), false)
            }
            (_, _, Some(code)) => {
                (Err(refusal(&code, answer.error_message.as_deref().unwrap_or_default())), true)
            }
            _ => return Err(super::strange("a result that says neither yes nor no")),
        };
        results[record.place] = Some(result);
        if again {
            refused.push(record);
        }
    }
    Ok(refused)
}

fn refusal(code: &str, message: &str) -> Error {
    if code != OVER_LIMIT {
        return Error::Unavailable(format!("Kinesis did not store the record ({code}: {message})"));
    }
    // The message names the shard, but nobody promises its wording.
    let named = message.split_whitespace().find(|word| word.starts_with("shardId-"));
    match named.and_then(|name| ShardId::new(name).ok()) {
        Some(shard) => Error::Throttled { shard, limit: LIMIT, retry_after: RETRY_AFTER },
        None => Error::SlowDown {
            what: format!("Kinesis throttles the record ({message})"),
            retry_after: RETRY_AFTER,
        },
    }
}

/// For each shard the place of the last record that it has stored.
fn last_stored(results: &[Option<Outcome>]) -> HashMap<ShardId, usize> {
    let mut last = HashMap::new();
    for (place, result) in results.iter().enumerate() {
        if let Some(Ok(appended)) = result {
            last.insert(appended.shard.clone(), place);
        }
    }
    last
}

fn owns(shard: &Shard, key: HashKey) -> bool {
    shard.range.is_some_and(|range| range.contains(key))
}

fn fill(results: &mut [Option<Outcome>], pending: &[Pending], error: &Error) {
    for record in pending {
        results[record.place] = Some(Err(error.clone()));
    }
}

fn no_result() -> Error {
    Error::Unavailable("Kinesis said nothing about the record".to_string())
}
