//! Records on their way in and out, and the places between them.

use std::time::Duration;

use anabranch_model::{
    Appended, Batch, Error, HashKey, NewRecord, Next, Position, Record, SequenceNumber, ShardId, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::super::error::ErrorBody;
use super::super::text::{Base64, Key, Text};

/// The answer to an append, in the order of the records.
#[derive(Debug, Serialize, Deserialize)]
pub struct AppendReply {
    /// One result a record.
    pub results: Vec<AppendedBody>,
}

/// What became of one record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppendedBody {
    /// It is stored.
    Stored {
        /// In this shard.
        shard: Text<ShardId>,
        /// At this place.
        sequence: Text<SequenceNumber>,
    },
    /// It is not.
    Error(ErrorBody),
}

impl From<std::result::Result<Appended, Error>> for AppendedBody {
    fn from(result: std::result::Result<Appended, Error>) -> Self {
        match result {
            Ok(Appended { shard, sequence }) => {
                AppendedBody::Stored { shard: Text(shard), sequence: Text(sequence) }
            }
            Err(error) => AppendedBody::Error(error.into()),
        }
    }
}

impl From<AppendedBody> for std::result::Result<Appended, Error> {
    fn from(body: AppendedBody) -> Self {
        match body {
            AppendedBody::Stored { shard, sequence } => Ok(Appended { shard: shard.0, sequence: sequence.0 }),
            AppendedBody::Error(error) => Err(error.into()),
        }
    }
}

/// A record on its way in.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewRecordBody {
    /// The partition key.
    pub key: Key,
    /// Chooses the shard in place of the key's hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash_key: Option<Text<HashKey>>,
    /// The payload.
    pub data: Base64,
}

impl From<NewRecord> for NewRecordBody {
    fn from(record: NewRecord) -> Self {
        NewRecordBody {
            key: Key(record.partition_key),
            hash_key: record.explicit_hash_key.map(Text),
            data: Base64(record.data),
        }
    }
}

impl From<NewRecordBody> for NewRecord {
    fn from(body: NewRecordBody) -> Self {
        NewRecord {
            partition_key: body.key.0,
            explicit_hash_key: body.hash_key.map(|key| key.0),
            data: body.data.0,
        }
    }
}

/// A record on its way out.
#[derive(Debug, Serialize, Deserialize)]
pub struct RecordBody {
    /// Its place in the shard.
    pub sequence: Text<SequenceNumber>,
    /// When the store took it, in milliseconds since the Unix epoch.
    pub arrival_ms: u64,
    /// The partition key.
    pub key: Key,
    /// The payload.
    pub data: Base64,
}

impl From<RecordBody> for Record {
    fn from(body: RecordBody) -> Self {
        Record {
            sequence: body.sequence.0,
            arrival: Timestamp::from_millis(body.arrival_ms),
            partition_key: body.key.0,
            data: body.data.0,
        }
    }
}

/// A place in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PositionBody {
    /// The oldest record.
    TrimHorizon,
    /// Behind the newest record.
    Latest,
    /// The record with this number.
    At(Text<SequenceNumber>),
    /// The first record behind this number.
    After(Text<SequenceNumber>),
    /// The first record that arrived at this moment or later, in milliseconds since the Unix epoch.
    AtTimestampMs(u64),
}

impl From<Position> for PositionBody {
    fn from(position: Position) -> Self {
        match position {
            Position::TrimHorizon => PositionBody::TrimHorizon,
            Position::Latest => PositionBody::Latest,
            Position::At(number) => PositionBody::At(Text(number)),
            Position::After(number) => PositionBody::After(Text(number)),
            Position::AtTimestamp(moment) => PositionBody::AtTimestampMs(moment.as_millis()),
        }
    }
}

impl From<PositionBody> for Position {
    fn from(body: PositionBody) -> Self {
        match body {
            PositionBody::TrimHorizon => Position::TrimHorizon,
            PositionBody::Latest => Position::Latest,
            PositionBody::At(number) => Position::At(number.0),
            PositionBody::After(number) => Position::After(number.0),
            PositionBody::AtTimestampMs(millis) => Position::AtTimestamp(Timestamp::from_millis(millis)),
        }
    }
}

/// What comes after a batch.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextBody {
    /// Go on here.
    At(PositionBody),
    /// The shard ends; its records continue in these.
    Ended(Vec<Text<ShardId>>),
}

impl From<Next> for NextBody {
    fn from(next: Next) -> Self {
        match next {
            Next::At(position) => NextBody::At(position.into()),
            Next::Ended(children) => NextBody::Ended(children.into_iter().map(Text).collect()),
        }
    }
}

impl From<NextBody> for Next {
    fn from(body: NextBody) -> Self {
        match body {
            NextBody::At(position) => Next::At(position.into()),
            NextBody::Ended(children) => Next::Ended(children.into_iter().map(|child| child.0).collect()),
        }
    }
}

/// The answer to a read, and one line of a follow.
#[derive(Debug, Serialize, Deserialize)]
pub struct BatchBody {
    /// In order.
    pub records: Vec<RecordBody>,
    /// Where the following read starts.
    pub next: NextBody,
    /// How far the end of the batch lies behind the end of the shard.
    pub behind: Duration,
}

impl From<BatchBody> for Batch {
    fn from(body: BatchBody) -> Self {
        Batch {
            records: body.records.into_iter().map(Record::from).collect(),
            next: body.next.into(),
            behind: body.behind,
        }
    }
}

/// One line of a follow: the fields of a [`BatchBody`], or `error` in the last line if the follow ends before the
/// shard does. One type with optional fields is read in one pass; a choice of two would be buffered first.
#[derive(Debug, Serialize, Deserialize)]
pub struct FollowLine {
    /// In order.
    #[serde(default)]
    pub records: Vec<RecordBody>,
    /// Where the following read starts; missing beside an error only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextBody>,
    /// How far the end of the batch lies behind the end of the shard.
    #[serde(default)]
    pub behind: Duration,
    /// Why it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

impl FollowLine {
    /// The line that ends a follow.
    pub fn failed(error: Error) -> Self {
        FollowLine {
            records: Vec::new(),
            next: None,
            behind: Duration::ZERO,
            error: Some(ErrorBody::from(error)),
        }
    }

    /// What the follower gets.
    pub fn into_batch(self) -> Result<Batch, Error> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        let next = self.next.ok_or_else(|| {
            Error::Unavailable("the server sent a line that is neither a batch nor an error".to_owned())
        })?;
        Ok(BatchBody { records: self.records, next, behind: self.behind }.into())
    }
}
