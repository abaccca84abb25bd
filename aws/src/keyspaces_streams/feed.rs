//! The calls, and what their failures mean.

use anabranch_model::table::ChangeView;
use anabranch_model::{Error, Result, Shard, StreamName};
use async_trait::async_trait;
use aws_sdk_keyspacesstreams::Client;
use aws_sdk_keyspacesstreams::operation::get_records::GetRecordsError;
use aws_sdk_keyspacesstreams::operation::get_shard_iterator::GetShardIteratorError;
use aws_sdk_keyspacesstreams::operation::get_stream::GetStreamOutput;
use aws_sdk_keyspacesstreams::types::{IteratorPosition, ShardIteratorType, Stream, ValidationExceptionType};

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
    pub(super) async fn of_table(&self, keyspace: &str, table: &str) -> Result<Vec<StreamName>> {
        let mut streams = self.streams(keyspace, table, self.caller.deadline(LISTING_MAX)).await?;
        streams.sort_by(|one, other| one.stream_label.cmp(&other.stream_label));
        let owner = format!("{keyspace}.{table}");
        streams.iter().map(|stream| StreamLabel::name(&owner, &stream.stream_label)).collect()
    }

    async fn streams(&self, keyspace: &str, table: &str, deadline: Deadline) -> Result<Vec<Stream>> {
        let mut streams = Vec::new();
        let mut token = None;
        loop {
            let request = || {
                self.client
                    .list_streams()
                    .keyspace_name(keyspace)
                    .table_name(table)
                    .set_next_token(token.clone())
                    .send()
            };
            let answer = match self.caller.call(&action::LIST_STREAMS, deadline, request).await {
                // A table that is not there has no streams.
                Err(failure) if failure.kind == Kind::NotFound => return Ok(streams),
                answer => answer?,
            };
            streams.extend(answer.streams.unwrap_or_default());
            token = answer.next_token;
            if token.is_none() {
                return Ok(streams);
            }
        }
    }

    async fn describe(
        &self,
        stream: &StreamName,
        arn: &str,
        token: Option<String>,
        deadline: Deadline,
    ) -> Result<GetStreamOutput> {
        let request = || self.client.get_stream().stream_arn(arn).set_next_token(token.clone()).send();
        let answer = self.caller.call(&action::GET_STREAM, deadline, request).await;
        answer.map_err(|failure| {
            failure.explained(|kind| match kind {
                Kind::NotFound => Some(Error::StreamNotFound(stream.clone())),
                _ => None,
            })
        })
    }
}

#[async_trait]
impl Feed for Calls {
    type Told = ChangeView;

    async fn find(&self, stream: &StreamName, deadline: Deadline) -> Result<Found<ChangeView>> {
        let unknown = || Error::StreamNotFound(stream.clone());
        let wanted = StreamLabel::parse(stream)?;
        // Names of keyspaces and of their tables are short, so that both always fit.
        let Owner::Whole(owner) = wanted.owner else { return Err(unknown()) };
        let (keyspace, table) = owner.split_once('.').ok_or_else(unknown)?;
        let listed = self.streams(keyspace, table, deadline).await?;
        let found = listed.into_iter().find(|listed| listed.stream_label == wanted.label);
        let arn = found.ok_or_else(unknown)?.stream_arn;
        let told = translate::view(&self.describe(stream, &arn, None, deadline).await?.stream_view_type)?;
        Ok(Found { arn, told })
    }

    async fn page(
        &self,
        stream: &StreamName,
        found: &Found<ChangeView>,
        after: Option<String>,
        deadline: Deadline,
    ) -> Result<(Vec<Shard>, Option<String>)> {
        let answer = self.describe(stream, &found.arn, after, deadline).await?;
        let shards = answer.shards.unwrap_or_default();
        Ok((shards.into_iter().map(translate::shard).collect::<Result<_>>()?, answer.next_token))
    }

    async fn iterator(&self, place: &Place<ChangeView>, start: Start) -> std::result::Result<String, Missed> {
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
        let reason = |error| match error {
            GetShardIteratorError::ValidationException(error) => error.error_code,
            _ => None,
        };
        let iterator = answer.map_err(|failure| missed(failure, reason))?.shard_iterator;
        iterator.ok_or_else(|| Missed::Failed(translate::strange("no iterator")))
    }

    async fn records(
        &self,
        place: &Place<ChangeView>,
        iterator: &str,
        limit: usize,
    ) -> std::result::Result<Fetched, Missed> {
        let limit = i32::try_from(limit.min(RECORDS_MAX)).unwrap_or(i32::MAX);
        let request = || self.client.get_records().shard_iterator(iterator).max_results(limit).send();
        let answer = self.caller.call(&action::GET_RECORDS, place.deadline, request).await;
        let reason = |error| match error {
            GetRecordsError::ValidationException(error) => error.error_code,
            _ => None,
        };
        let answer = answer.map_err(|failure| missed(failure, reason))?;
        let records = answer.change_records.unwrap_or_default().into_iter();
        let records = records.map(|record| translate::record(record, place.found.told));
        let records = records.collect::<Result<_>>().map_err(Missed::Failed)?;
        let position = answer.iterator_description.and_then(|described| described.iterator_position);
        let at_tip = match position {
            Some(IteratorPosition::AtTip) => Some(true),
            Some(IteratorPosition::BehindTip) => Some(false),
            _ => None,
        };
        Ok(Fetched { records, next: answer.next_shard_iterator, at_tip })
    }
}

/// What a failure means; `reason` is what Keyspaces says beside its one name for everything that is wrong.
fn missed<D>(mut failure: Failure<D>, reason: impl FnOnce(D) -> Option<ValidationExceptionType>) -> Missed {
    match failure.detail.take().and_then(reason) {
        Some(ValidationExceptionType::ExpiredIterator) => Missed::Expired,
        Some(ValidationExceptionType::TrimmedDataAccess) => Missed::Trimmed,
        _ if failure.kind == Kind::NotFound => Missed::NotFound,
        _ => Missed::Failed(failure.into()),
    }
}
