//! Reading a batch from a position.

use std::time::Duration;

use anabranch_model::{Batch, Error, Next, Position, ReadLimit, Result, ShardId, StreamName};
use aws_sdk_kinesis::operation::get_records::GetRecordsOutput;
use aws_sdk_kinesis::types::{self, ShardIteratorType};

use super::{Streams, action, translate};
use crate::call::Deadline;
use crate::failure::Kind;
use crate::source::cut;

/// Answers without a record that one read goes through. Kinesis walks a shard in steps, and a step may hold nothing.
const EMPTY_ANSWERS_MAX: usize = 20;
/// The name of the error for an iterator that is too old.
const EXPIRED: &str = "ExpiredIteratorException";
/// The name of the error for a value that Kinesis does not take.
const INVALID: &str = "InvalidArgumentException";

/// Where an answer came from, and what was asked for.
pub(super) struct Place<'a> {
    pub(super) stream: &'a StreamName,
    pub(super) shard: &'a ShardId,
    pub(super) deadline: Deadline,
}

impl Streams {
    pub(super) async fn read_batch(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        let place = Place { stream, shard, deadline: self.soon() };
        match from {
            Position::Latest => self.read_latest(&place).await,
            // Kinesis refuses what has not come yet.
            Position::AtTimestamp(moment) if moment > self.caller.clock().now() => {
                self.read_latest(&place).await
            }
            _ => match self.read_from(&place, from, limit).await? {
                Some(batch) => Ok(batch),
                None => self.read_latest(&place).await,
            },
        }
    }

    /// Reads from a position that is neither `Latest` nor, as far as this machine knows, in the future. None if Kinesis
    /// finds that it is in the future.
    pub(super) async fn read_from(
        &self,
        place: &Place<'_>,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Option<Batch>> {
        let limit = limit.clamped();
        let known = self.iterators.take(place.stream, place.shard, from, self.caller.clock().elapsed());
        let mut iterator = match known {
            Some(iterator) => iterator,
            None => match self.iterator(place, from).await? {
                Some(iterator) => iterator,
                None => return Ok(None),
            },
        };
        for _ in 0..EMPTY_ANSWERS_MAX {
            let request =
                || self.client.get_records().shard_iterator(&iterator).limit(limit.records as i32).send();
            let answer = match self.caller.call(&action::GET_RECORDS, place.deadline, request).await {
                Ok(answer) => answer,
                Err(failure) if failure.is(EXPIRED) => match self.iterator(place, from).await? {
                    Some(again) => {
                        iterator = again;
                        continue;
                    }
                    None => return Ok(None),
                },
                Err(failure) if failure.kind == Kind::NotFound => {
                    return Err(self
                        .missing(place.stream, place.shard, numbered(from), place.deadline)
                        .await);
                }
                Err(failure) => return Err(failure.into()),
            };
            let caught_up = answer.millis_behind_latest.unwrap_or_default() == 0;
            let early = answer.records.len();
            let answer = without_early(answer, from);
            let early = early - answer.records.len();
            match &answer.next_shard_iterator {
                Some(next) if answer.records.is_empty() && (early > 0 || !caught_up) => {
                    iterator = next.clone();
                }
                _ => return self.batch(place, from, limit, answer).await.map(Some),
            }
        }
        // There is more to walk through; the next read goes on where this one stopped.
        self.iterators.keep(place.stream, place.shard, from, iterator, self.caller.clock().elapsed());
        Ok(Some(Batch { records: Vec::new(), next: Next::At(from), behind: Duration::from_millis(1) }))
    }

    async fn batch(
        &self,
        place: &Place<'_>,
        from: Position,
        limit: ReadLimit,
        answer: GetRecordsOutput,
    ) -> Result<Batch> {
        let received = answer.records.len();
        let records = answer.records.into_iter().map(translate::record).collect::<Result<Vec<_>>>()?;
        let records = cut(records, limit.bytes);
        let behind = Duration::from_millis(answer.millis_behind_latest.unwrap_or_default().max(0) as u64);
        let position = records.last().map_or(from, |last| Position::After(last.sequence));
        if records.len() < received {
            let behind = behind.max(Duration::from_millis(1));
            return Ok(Batch { records, next: Next::At(position), behind });
        }
        let next = match answer.next_shard_iterator {
            Some(iterator) => {
                let now = self.caller.clock().elapsed();
                self.iterators.keep(place.stream, place.shard, position, iterator, now);
                Next::At(position)
            }
            None => {
                let named = answer.child_shards.unwrap_or_default();
                let named = named
                    .iter()
                    .map(|child| translate::shard_id(&child.shard_id))
                    .collect::<Result<Vec<_>>>()?;
                Next::Ended(match named.is_empty() {
                    false => named,
                    true => self.children(place.stream, place.shard, place.deadline).await?,
                })
            }
        };
        Ok(Batch { records, next, behind })
    }

    /// An iterator for a position. None if the position is in the future.
    async fn iterator(&self, place: &Place<'_>, from: Position) -> Result<Option<String>> {
        let (kind, number, moment) = match from {
            Position::TrimHorizon => (ShardIteratorType::TrimHorizon, None, None),
            Position::Latest => (ShardIteratorType::Latest, None, None),
            Position::At(number) => (ShardIteratorType::AtSequenceNumber, Some(number), None),
            Position::After(number) => (ShardIteratorType::AfterSequenceNumber, Some(number), None),
            Position::AtTimestamp(moment) => (ShardIteratorType::AtTimestamp, None, Some(moment)),
        };
        let request = || {
            self.client
                .get_shard_iterator()
                .stream_name(place.stream.as_str())
                .shard_id(place.shard.as_str())
                .shard_iterator_type(kind.clone())
                .set_starting_sequence_number(number.map(|number| number.to_string()))
                .set_timestamp(moment.map(translate::date_time))
                .send()
        };
        match self.caller.call(&action::GET_SHARD_ITERATOR, place.deadline, request).await {
            Ok(answer) => match answer.shard_iterator {
                Some(iterator) => Ok(Some(iterator)),
                None => Err(super::strange("no iterator")),
            },
            Err(failure) if failure.kind == Kind::NotFound => {
                Err(self.missing(place.stream, place.shard, numbered(from), place.deadline).await)
            }
            Err(failure) if failure.is(INVALID) && moment.is_some() => Ok(None),
            Err(failure) if failure.is(INVALID) => Err(Error::Invalid(format!(
                "shard `{}` has no position {from:?} ({})",
                place.shard, failure.message
            ))),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// The position of a record by its number, which may be a number that the shard does not know.
fn numbered(from: Position) -> Option<Position> {
    matches!(from, Position::At(_) | Position::After(_)).then_some(from)
}

/// The same answer without records that came before the moment that was asked for: not every server cuts exactly.
fn without_early(mut answer: GetRecordsOutput, from: Position) -> GetRecordsOutput {
    if let Position::AtTimestamp(moment) = from {
        let arrival =
            |record: &types::Record| record.approximate_arrival_timestamp.as_ref().map(translate::timestamp);
        answer.records.retain(|record| arrival(record).is_none_or(|arrival| arrival >= moment));
    }
    answer
}
