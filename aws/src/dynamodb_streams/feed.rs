//! The calls, and what their failures mean.

use anabranch_model::{Error, Result, Shard, StreamName, TableName};
use async_trait::async_trait;
use aws_sdk_dynamodbstreams::Client;
use aws_sdk_dynamodbstreams::types::{KeyType, ShardIteratorType, Stream, StreamDescription};

use super::{action, translate};
use crate::call::{Caller, Deadline};
use crate::failure::{Failure, Kind};
use crate::source::{
    Feed, Fetched, Found, LISTING_MAX, Missed, Owner, Place, RECORDS_MAX, SEQUENCE_DIGITS_MIN, Start,
    StreamLabel,
};

/// The client and the way to call.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    pub(super) client: Client,
    pub(super) caller: Caller,
}

impl Calls {
    pub(super) async fn of_table(&self, table: &TableName) -> Result<Vec<StreamName>> {
        let mut streams = self.streams(Some(table.as_str()), self.caller.deadline(LISTING_MAX)).await?;
        streams.sort_by(|one, other| one.stream_label.cmp(&other.stream_label));
        let label = |stream: &Stream| stream.stream_label.clone().unwrap_or_default();
        streams.iter().map(|stream| StreamLabel::name(table.as_str(), &label(stream))).collect()
    }

    /// Every stream of a table, or of the account.
    async fn streams(&self, table: Option<&str>, deadline: Deadline) -> Result<Vec<Stream>> {
        let mut streams = Vec::new();
        let mut last = None;
        loop {
            let request = || {
                self.client
                    .list_streams()
                    .set_table_name(table.map(str::to_string))
                    .set_exclusive_start_stream_arn(last.clone())
                    .send()
            };
            let answer = self.caller.call(&action::LIST_STREAMS, deadline, request).await;
            let answer = match answer {
                // A table that is not there has no streams.
                Err(failure) if failure.kind == Kind::NotFound => return Ok(streams),
                answer => answer?,
            };
            streams.extend(answer.streams.unwrap_or_default());
            last = answer.last_evaluated_stream_arn;
            if last.is_none() {
                return Ok(streams);
            }
        }
    }

    async fn describe(
        &self,
        stream: &StreamName,
        arn: &str,
        after: Option<String>,
        deadline: Deadline,
    ) -> Result<StreamDescription> {
        let request = || {
            self.client.describe_stream().stream_arn(arn).set_exclusive_start_shard_id(after.clone()).send()
        };
        let answer = self.caller.call(&action::DESCRIBE_STREAM, deadline, request).await;
        let answer = answer.map_err(|failure| {
            failure.explained(|kind| match kind {
                Kind::NotFound => Some(Error::StreamNotFound(stream.clone())),
                _ => None,
            })
        })?;
        answer.stream_description.ok_or_else(|| translate::strange("a description without a stream"))
    }
}

#[async_trait]
impl Feed for Calls {
    /// The attribute that chooses the partition.
    type Told = String;

    async fn find(&self, stream: &StreamName, deadline: Deadline) -> Result<Found<String>> {
        let wanted = StreamLabel::parse(stream)?;
        let table = match &wanted.owner {
            Owner::Whole(table) => Some(table.as_str()),
            Owner::Cut(_) => None,
        };
        let listed = self.streams(table, deadline).await?;
        let is_wanted = |listed: &&Stream| {
            listed.stream_label.as_deref() == Some(wanted.label.as_str())
                && listed.table_name.as_deref().is_some_and(|table| wanted.owner.is(table))
        };
        let arn = listed.iter().find(is_wanted).and_then(|listed| listed.stream_arn.clone());
        let arn = arn.ok_or_else(|| Error::StreamNotFound(stream.clone()))?;
        let described = self.describe(stream, &arn, None, deadline).await?;
        let hash = described.key_schema.unwrap_or_default().into_iter();
        let hash = hash.filter(|part| part.key_type == KeyType::Hash).map(|part| part.attribute_name).next();
        Ok(Found { arn, told: hash.ok_or_else(|| translate::strange("a table without a key"))? })
    }

    async fn page(
        &self,
        stream: &StreamName,
        found: &Found<String>,
        after: Option<String>,
        deadline: Deadline,
    ) -> Result<(Vec<Shard>, Option<String>)> {
        let described = self.describe(stream, &found.arn, after, deadline).await?;
        let shards = described.shards.unwrap_or_default();
        let shards = shards.into_iter().map(translate::shard).collect::<Result<_>>()?;
        Ok((shards, described.last_evaluated_shard_id))
    }

    async fn iterator(&self, place: &Place<String>, start: Start) -> std::result::Result<String, Missed> {
        let (kind, number) = match start {
            Start::Horizon => (ShardIteratorType::TrimHorizon, None),
            Start::Latest => (ShardIteratorType::Latest, None),
            Start::At(number) => (ShardIteratorType::AtSequenceNumber, Some(number)),
            Start::After(number) => (ShardIteratorType::AfterSequenceNumber, Some(number)),
        };
        let request = || {
            self.client
                .get_shard_iterator()
                .stream_arn(&place.found.arn)
                .shard_id(place.shard.as_str())
                .shard_iterator_type(kind.clone())
                .set_sequence_number(number.map(|number| format!("{number:0>SEQUENCE_DIGITS_MIN$}")))
                .send()
        };
        let answer = self.caller.call(&action::GET_SHARD_ITERATOR, place.deadline, request).await;
        let iterator = answer.map_err(missed)?.shard_iterator;
        iterator.ok_or_else(|| Missed::Failed(translate::strange("no iterator")))
    }

    async fn records(
        &self,
        place: &Place<String>,
        iterator: &str,
        limit: usize,
    ) -> std::result::Result<Fetched, Missed> {
        let limit = i32::try_from(limit.min(RECORDS_MAX)).unwrap_or(i32::MAX);
        let request = || self.client.get_records().shard_iterator(iterator).limit(limit).send();
        let answer = self.caller.call(&action::GET_RECORDS, place.deadline, request).await;
        let answer = answer.map_err(missed)?;
        let records = answer.records.unwrap_or_default().into_iter();
        let records = records.map(|record| translate::record(record, &place.found.told));
        let records = records.collect::<Result<_>>().map_err(Missed::Failed)?;
        Ok(Fetched { records, next: answer.next_shard_iterator, at_tip: None })
    }
}

fn missed<D>(failure: Failure<D>) -> Missed {
    match failure.code.as_deref() {
        Some("ExpiredIteratorException") => Missed::Expired,
        Some("TrimmedDataAccessException") => Missed::Trimmed,
        _ if failure.kind == Kind::NotFound => Missed::NotFound,
        _ => Missed::Failed(failure.into()),
    }
}
