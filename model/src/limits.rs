//! Every limit in one place. A queue, batch, body or loop without a line here is a defect.

use std::time::Duration;

/// Longest name of a stream, in characters.
pub const STREAM_NAME_CHARS_MAX: usize = 128;
/// Longest identifier of a shard, in characters.
pub const SHARD_ID_CHARS_MAX: usize = 128;

/// Longest partition key, in Unicode characters.
pub const PARTITION_KEY_CHARS_MAX: usize = 256;
/// Largest payload of one record, partition key excluded.
pub const RECORD_BYTES_MAX: usize = 10 << 20;
/// Most records in one append.
pub const APPEND_RECORDS_MAX: usize = 500;
/// Most bytes in one append of several records, partition keys included.
pub const APPEND_BYTES_MAX: usize = 10 << 20;

/// Most records that one read returns.
pub const READ_RECORDS_MAX: usize = 10_000;
/// Bytes after which a read stops adding records; a single larger record is still returned.
pub const READ_BYTES_MAX: usize = 10 << 20;
/// Most entries on one page of a listing.
pub const PAGE_ENTRIES_MAX: usize = 1_000;

/// Most shards that a stream is created with, and most open shards it can be split into.
pub const OPEN_SHARDS_MAX: usize = 10_000;
/// Most streams in one store.
pub const STREAMS_MAX: usize = 10_000;

/// Shortest retention.
pub const RETENTION_MIN: Duration = Duration::from_secs(24 * 3600);
/// Longest retention.
pub const RETENTION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Bytes that one shard takes in a second, where the limits of Kinesis are switched on.
pub const SHARD_WRITE_BYTES_PER_SECOND: u64 = 1 << 20;
/// Records that one shard takes in a second, where the limits of Kinesis are switched on.
pub const SHARD_WRITE_RECORDS_PER_SECOND: u64 = 1_000;
/// Bytes that one shard gives out in a second, where the limits of Kinesis are switched on.
pub const SHARD_READ_BYTES_PER_SECOND: u64 = 2 << 20;
/// Reads that one shard answers in a second, where the limits of Kinesis are switched on.
pub const SHARD_READS_PER_SECOND: u64 = 5;
