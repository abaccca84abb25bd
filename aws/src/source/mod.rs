//! What the sources of shards on AWS share.
//!
//! Kinesis, the streams of DynamoDB's tables and those of Keyspaces's tables speak alike: shards are listed, an iterator
//! is asked for, and records come with the next iterator. What is the same for all of them is here (`iterators`, `poll`);
//! `feed` is the whole of reading for the two that know no time and no ranges, and `name` is how their streams are called.

mod feed;
mod iterators;
mod name;
mod poll;

use std::str::FromStr;
use std::time::Duration;

use anabranch_model::table::{Change, Item};
use anabranch_model::{Record, SequenceNumber, Timestamp};
use aws_smithy_types::DateTime;
use bytes::Bytes;

pub(crate) use feed::{Feed, Fetched, Found, Missed, Place, Source, Start};
pub(crate) use iterators::Iterators;
pub(crate) use name::{Owner, StreamLabel};
pub(crate) use poll::{Polled, poll};

/// Makes a [`ShardSource`](anabranch_model::ShardSource) of a type that holds a [`Source`] and nothing else.
macro_rules! shard_source {
    ($changes:ty) => {
        #[::async_trait::async_trait]
        impl ::anabranch_model::ShardSource for $changes {
            fn capabilities(&self) -> ::anabranch_model::Capabilities {
                self.0.capabilities()
            }

            async fn shards(
                &self,
                stream: &::anabranch_model::StreamName,
                after: Option<&::anabranch_model::ShardId>,
                limit: usize,
            ) -> ::anabranch_model::Result<::anabranch_model::Page<::anabranch_model::Shard>> {
                self.0.shards(stream, after, limit).await
            }

            async fn read(
                &self,
                stream: &::anabranch_model::StreamName,
                shard: &::anabranch_model::ShardId,
                from: ::anabranch_model::Position,
                limit: ::anabranch_model::ReadLimit,
            ) -> ::anabranch_model::Result<::anabranch_model::Batch> {
                self.0.read(stream, shard, from, limit).await
            }

            async fn follow(
                &self,
                stream: &::anabranch_model::StreamName,
                shard: &::anabranch_model::ShardId,
                from: ::anabranch_model::Position,
            ) -> ::anabranch_model::Result<::anabranch_model::Follow> {
                self.0.follow(stream, shard, from).await
            }
        }
    };
}
pub(crate) use shard_source;

/// Most records that one call of the two that know no time returns.
pub(crate) const RECORDS_MAX: usize = 1_000;
/// Fewest digits of a sequence number in their calls. They tell shorter ones in their answers, and refuse them here.
pub(crate) const SEQUENCE_DIGITS_MIN: usize = 21;
/// How long a listing of their streams may take, with its attempts.
pub(crate) const LISTING_MAX: Duration = Duration::from_secs(30);

/// A moment as the model counts it.
pub(crate) fn timestamp(time: &DateTime) -> Timestamp {
    Timestamp::from_millis(
        time.to_millis().ok().and_then(|millis| u64::try_from(millis).ok()).unwrap_or_default(),
    )
}

/// A sequence number as a service writes it.
pub(crate) fn sequence(text: &str) -> Option<SequenceNumber> {
    // Some servers pad their numbers; the value is the same.
    let digits = text.trim_start_matches('0');
    let digits = if digits.is_empty() && !text.is_empty() { "0" } else { digits };
    SequenceNumber::from_str(digits).ok()
}

/// The records up to the one that reaches so many bytes. The first one is returned whatever its size.
pub(crate) fn cut(mut records: Vec<Record>, bytes_max: usize) -> Vec<Record> {
    let mut bytes = 0;
    let kept = records.iter().take_while(|record| {
        let fits = bytes < bytes_max;
        bytes += record.size();
        fits
    });
    let kept = kept.count();
    records.truncate(kept);
    records
}

/// The bytes of a change, with the size that follows from the model's own rule.
pub(crate) fn encoded(change: Change) -> Bytes {
    let images = [&change.new, &change.old].into_iter().flatten().map(Item::size).sum::<usize>();
    let size = (change.keys.size() + images) as u64;
    Change { size, ..change }.encode().into()
}
