//! Making, listing, changing and removing streams.

use std::time::Duration;

use anabranch_model::{
    Error, Page, Result, StreamName, StreamOptions, StreamSummary, Timestamp, check_retention, limits,
};
use aws_sdk_kinesis::types::{StreamDescriptionSummary, StreamMode, StreamModeDetails, StreamStatus};
use futures_util::{StreamExt, TryStreamExt};

use super::{CHANGE_PATIENCE, Streams, action};
use crate::call::Deadline;
use crate::change::Change;
use crate::failure::{Failure, Kind, Outcome};

const HOUR: Duration = Duration::from_secs(3600);
/// Streams that are described at the same time for one page of a listing.
const DESCRIPTIONS_MAX: usize = 8;
/// Names that one answer lists at most.
const NAMES_MAX: i32 = 10_000;

impl Streams {
    pub(super) async fn make(&self, stream: &StreamName, options: StreamOptions) -> Result<()> {
        options.check()?;
        let deadline = self.caller.deadline(CHANGE_PATIENCE);
        self.begin(stream, &options, deadline).await?;
        let made = self.until_made(stream, deadline).await?;
        self.keep_for(stream, &made, options.retention, deadline).await
    }

    /// A stream that was not there before is ours if it is there behind a lost answer: that is why it is looked for first.
    async fn begin(&self, stream: &StreamName, options: &StreamOptions, deadline: Deadline) -> Result<()> {
        if self.look_for(stream, deadline).await?.is_some() {
            return Err(Error::StreamExists(stream.clone()));
        }
        let provisioned = StreamModeDetails::builder().stream_mode(StreamMode::Provisioned).build();
        let provisioned = provisioned.map_err(|error| Error::Invalid(error.to_string()))?;
        let request = || {
            self.client
                .create_stream()
                .stream_name(stream.as_str())
                .shard_count(i32::try_from(options.shards).unwrap_or(i32::MAX))
                // Without it the largest record of a stream is a tenth of what the port promises.
                .max_record_size_in_kib((limits::RECORD_BYTES_MAX >> 10) as i32)
                .stream_mode_details(provisioned.clone())
                .send()
        };
        let ask = async || self.caller.call(&action::CREATE_STREAM, deadline, request).await.map(drop);
        let look = async || Ok(self.look_for(stream, deadline).await?.is_some());
        let made = self.caller.until_certain(Change::Making, deadline, ask, look).await;
        made.map_err(|failure| {
            failure.explained(|kind| (kind == Kind::InUse).then(|| Error::StreamExists(stream.clone())))
        })
    }

    /// The stream as it is, if there is one.
    async fn look_for(
        &self,
        stream: &StreamName,
        deadline: Deadline,
    ) -> Result<Option<StreamDescriptionSummary>> {
        match self.describe(stream, deadline).await {
            Ok(described) => Ok(Some(described)),
            Err(Error::StreamNotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// That a stream is gone behind a lost answer says something only if it was there before.
    pub(super) async fn remove(&self, stream: &StreamName) -> Result<()> {
        let deadline = self.caller.deadline(CHANGE_PATIENCE);
        self.describe(stream, deadline).await?;
        let request = || {
            self.client.delete_stream().stream_name(stream.as_str()).enforce_consumer_deletion(true).send()
        };
        let ask = async || self.caller.call(&action::DELETE_STREAM, deadline, request).await.map(drop);
        let look = async || {
            let seen = self.look_for(stream, deadline).await?;
            Ok(seen.is_none_or(|seen| seen.stream_status == StreamStatus::Deleting))
        };
        match self.caller.until_certain(Change::Removing, deadline, ask, look).await {
            Ok(()) => self.until_gone(stream, deadline).await,
            Err(failure) if failure.kind == Kind::NotFound => Err(Error::StreamNotFound(stream.clone())),
            Err(failure) => Err(self.busy(stream, failure)),
        }
    }

    pub(super) async fn change_retention(&self, stream: &StreamName, retention: Duration) -> Result<()> {
        check_retention(retention)?;
        let deadline = self.caller.deadline(CHANGE_PATIENCE);
        let described = self.until_active(stream, deadline).await?;
        self.keep_for(stream, &described, retention, deadline).await
    }

    /// Sets the retention. Kinesis counts in hours: what lies between two is kept for the longer time.
    async fn keep_for(
        &self,
        stream: &StreamName,
        described: &StreamDescriptionSummary,
        retention: Duration,
        deadline: Deadline,
    ) -> Result<()> {
        let wanted = i32::try_from(retention.as_millis().div_ceil(HOUR.as_millis())).unwrap_or(i32::MAX);
        let mut current = described.retention_period_hours;
        let mut patience = deadline;
        let mut rounds = 0;
        while current != wanted {
            let Err(failure) = self.move_retention(stream, current, wanted, deadline).await else {
                self.until_active(stream, deadline).await?;
                return Ok(());
            };
            match failure.kind {
                Kind::NotFound => return Err(Error::StreamNotFound(stream.clone())),
                Kind::InUse => {}
                Kind::Away if failure.outcome == Outcome::Unknown => {
                    patience = patience.min(self.caller.absence());
                }
                // Someone else has set it meanwhile, and the direction is no longer right.
                Kind::Invalid if failure.is("InvalidArgumentException") && rounds == 0 => {}
                _ => return Err(failure.into()),
            }
            rounds += 1;
            if !self.caller.back_off(rounds, patience).await {
                return Err(self.busy(stream, failure));
            }
            current = self.until_active(stream, deadline).await?.retention_period_hours;
        }
        Ok(())
    }

    async fn move_retention(
        &self,
        stream: &StreamName,
        current: i32,
        wanted: i32,
        deadline: Deadline,
    ) -> std::result::Result<(), Failure> {
        let (client, name) = (&self.client, stream.as_str());
        if wanted > current {
            let request = || {
                client
                    .increase_stream_retention_period()
                    .stream_name(name)
                    .retention_period_hours(wanted)
                    .send()
            };
            let answer = self.caller.call(&action::INCREASE_RETENTION, deadline, request).await;
            answer.map(drop).map_err(Failure::without_detail)
        } else {
            let request = || {
                client
                    .decrease_stream_retention_period()
                    .stream_name(name)
                    .retention_period_hours(wanted)
                    .send()
            };
            let answer = self.caller.call(&action::DECREASE_RETENTION, deadline, request).await;
            answer.map(drop).map_err(Failure::without_detail)
        }
    }

    /// What to say when the patience with a stream has ended.
    pub(super) fn busy<D>(&self, stream: &StreamName, failure: Failure<D>) -> Error {
        failure.explained(|kind| (kind == Kind::InUse).then(|| Error::StreamBusy(stream.clone())))
    }
}

/// Listing.
impl Streams {
    pub(super) async fn summary(&self, stream: &StreamName) -> Result<StreamSummary> {
        let deadline = self.soon();
        let described = self.describe(stream, deadline).await?;
        if described.stream_status == StreamStatus::Deleting {
            return Err(Error::StreamNotFound(stream.clone()));
        }
        let shards = self.all_shards(stream, deadline).await?;
        let open_shards = shards.iter().filter(|shard| shard.is_open()).count();
        let hours = u64::try_from(described.retention_period_hours).unwrap_or_default();
        Ok(StreamSummary {
            name: stream.clone(),
            created_at: created_at(&described),
            retention: HOUR * u32::try_from(hours).unwrap_or(u32::MAX),
            open_shards,
            closed_shards: shards.len() - open_shards,
            active: described.stream_status == StreamStatus::Active,
        })
    }

    /// A page of streams. All names fit into a few answers, so that they can be put in order here.
    pub(super) async fn page(&self, after: Option<&StreamName>, limit: usize) -> Result<Page<StreamSummary>> {
        let limit = limit.clamp(1, limits::PAGE_ENTRIES_MAX);
        let mut names = self.names().await?;
        names.sort();
        let first = names.partition_point(|name| after.is_some_and(|after| name <= after));
        let mut names = names.split_off(first).into_iter();
        let mut entries = Vec::new();
        // A stream that is deleted between the two calls is not counted.
        while entries.len() < limit && names.len() > 0 {
            let some: Vec<_> = names.by_ref().take(limit - entries.len()).collect();
            let summaries = futures_util::stream::iter(some)
                .map(|name| async move {
                    match self.summary(&name).await {
                        Ok(summary) => Ok(Some(summary)),
                        Err(Error::StreamNotFound(_)) => Ok(None),
                        Err(error) => Err(error),
                    }
                })
                .buffered(DESCRIPTIONS_MAX);
            let summaries: Vec<_> = summaries.try_collect().await?;
            entries.extend(summaries.into_iter().flatten());
        }
        Ok(Page { entries, more: names.len() > 0 })
    }

    async fn names(&self) -> Result<Vec<StreamName>> {
        let deadline = self.soon();
        let mut names: Vec<StreamName> = Vec::new();
        loop {
            let last = names.last().map(|name| name.to_string());
            let request = || {
                self.client
                    .list_streams()
                    .limit(NAMES_MAX)
                    .set_exclusive_start_stream_name(last.clone())
                    .send()
            };
            let answer = self.caller.call(&action::LIST_STREAMS, deadline, request).await?;
            let before = names.len();
            for name in &answer.stream_names {
                names.push(
                    StreamName::new(name).map_err(|_| super::strange("a stream without a proper name"))?,
                );
            }
            if !answer.has_more_streams || names.len() == before {
                return Ok(names);
            }
        }
    }
}

fn created_at(described: &StreamDescriptionSummary) -> Timestamp {
    super::translate::timestamp(&described.stream_creation_timestamp)
}
