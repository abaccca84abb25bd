//! How a producer is set up.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::limits::{
    APPEND_BYTES_MAX, APPEND_RECORDS_MAX, SHARD_WRITE_BYTES_PER_SECOND, SHARD_WRITE_RECORDS_PER_SECOND,
};
use anabranch_model::{BlobStore, BucketName, Error, Result};

/// How a producer batches, waits and tries again.
#[derive(Clone)]
pub struct Settings {
    /// Most records in one append.
    pub batch_records: usize,
    /// Most bytes in one append, keys included.
    pub batch_bytes: usize,
    /// How long a record waits for others to share its append. With zero it goes as soon as an append is free, together with
    /// whatever came during the ones before; and so it does, whatever this says, where the store keeps runs and a record is
    /// sent as it is.
    pub linger: Duration,
    /// Most appends under way at once.
    pub appends_max: usize,
    /// Bytes of records that are sent and not concluded; a sender waits when they are used up.
    pub buffer_bytes: usize,
    /// How long a record is tried for, unless it brings a deadline of its own.
    pub lifetime: Duration,
    /// The longest pause behind a first failed attempt, and the longest of all.
    pub retry_first: Duration,
    /// See `retry_first`.
    pub retry_max: Duration,
    /// Packs small records of one shard into aggregates of about this many bytes, in the format of the Kinesis Producer
    /// Library.
    pub aggregate_bytes: Option<usize>,
    /// Sends each shard no more than this.
    pub pace: Option<Pace>,
    /// Where payloads go that are too large for a record.
    pub large: Option<Large>,
    /// How often the shards are listed when nothing gives a reason to.
    pub refresh_every: Duration,
    /// What a shard can take, by which its load is measured.
    pub capacity: Pace,
    /// The beginning of all chance, for runs that can be repeated.
    pub seed: Option<u64>,
}

/// Records and bytes a second for one shard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Records a second.
    pub records: f64,
    /// Bytes a second.
    pub bytes: f64,
}

impl Pace {
    /// The limits of a shard of Kinesis.
    pub const SHARD: Pace =
        Pace { records: SHARD_WRITE_RECORDS_PER_SECOND as f64, bytes: SHARD_WRITE_BYTES_PER_SECOND as f64 };

    /// This share of it.
    pub fn part(self, share: f64) -> Pace {
        Pace { records: self.records * share, bytes: self.bytes * share }
    }
}

/// Where large payloads go.
#[derive(Clone)]
pub struct Large {
    /// The blobs.
    pub blobs: Arc<dyn BlobStore>,
    /// The bucket, which must exist.
    pub bucket: BucketName,
    /// What their keys begin with.
    pub prefix: String,
    /// A payload with more bytes goes to a blob.
    pub threshold_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            batch_records: APPEND_RECORDS_MAX,
            batch_bytes: APPEND_BYTES_MAX / 2,
            linger: Duration::from_millis(2),
            appends_max: 8,
            buffer_bytes: 32 << 20,
            lifetime: Duration::from_secs(30),
            retry_first: Duration::from_millis(50),
            retry_max: Duration::from_secs(3),
            aggregate_bytes: None,
            pace: None,
            large: None,
            refresh_every: Duration::from_secs(60),
            capacity: Pace::SHARD,
            seed: None,
        }
    }
}

impl Settings {
    pub(crate) fn check(&self) -> Result<()> {
        let bounds = [
            ("batch_records", self.batch_records, APPEND_RECORDS_MAX),
            ("batch_bytes", self.batch_bytes, APPEND_BYTES_MAX),
            ("appends_max", self.appends_max, 1_000),
            ("buffer_bytes", self.buffer_bytes, BUFFER_BYTES_MAX),
            ("aggregate_bytes", self.aggregate_bytes.unwrap_or(1), APPEND_BYTES_MAX),
        ];
        for (name, value, limit) in bounds {
            if value == 0 || value > limit {
                return Err(Error::Invalid(format!("`{name}` is {value}: it must be 1 to {limit}")));
            }
        }
        let paces = [("pace", self.pace.unwrap_or(Pace::SHARD)), ("capacity", self.capacity)];
        for (name, pace) in paces {
            let possible = |rate: f64| rate.is_finite() && rate > 0.0;
            if !possible(pace.records) || !possible(pace.bytes) {
                return Err(Error::Invalid(format!(
                    "`{name}` must be more than zero records and bytes a second"
                )));
            }
        }
        if self.lifetime.is_zero() {
            return Err(Error::Invalid("`lifetime` is zero: no record could be sent in time".to_owned()));
        }
        Ok(())
    }
}

/// Largest buffer; permits are counted in 32 bits.
const BUFFER_BYTES_MAX: usize = 1 << 30;
