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

/// Most records in one aggregate.
pub const AGGREGATE_RECORDS_MAX: usize = 100_000;

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

/// Longest name of a queue, in characters, with its ending.
pub const QUEUE_NAME_CHARS_MAX: usize = 80;
/// Longest identifier of a message, in characters.
pub const MESSAGE_ID_CHARS_MAX: usize = 100;
/// Longest receipt of a message, in characters.
pub const RECEIPT_CHARS_MAX: usize = 1_024;
/// Most queues in one store.
pub const QUEUES_MAX: usize = 10_000;

/// Largest message, attributes included, and most bytes in one send of several.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// The least that the largest message of a queue can be set to.
pub const MESSAGE_BYTES_MAX_MIN: usize = 1 << 10;
/// Most attributes of a message.
pub const MESSAGE_ATTRIBUTES_MAX: usize = 10;
/// Longest trace of a message, in characters.
pub const TRACE_CHARS_MAX: usize = 1_024;
/// Longest name and longest kind of an attribute, in characters.
pub const ATTRIBUTE_NAME_CHARS_MAX: usize = 256;
/// Longest group and longest deduplication id, in characters.
pub const GROUP_CHARS_MAX: usize = 128;
/// Most messages or receipts in one call.
pub const MESSAGE_BATCH_MAX: usize = 10;

/// Longest delay of a message.
pub const MESSAGE_DELAY_MAX: Duration = Duration::from_secs(900);
/// How long a received message is hidden unless someone says otherwise.
pub const VISIBILITY_DEFAULT: Duration = Duration::from_secs(30);
/// Longest time that a message can be hidden, counted from its receive.
pub const VISIBILITY_MAX: Duration = Duration::from_secs(12 * 3600);
/// Longest wait of a receive.
pub const RECEIVE_WAIT_MAX: Duration = Duration::from_secs(20);
/// How long messages are kept unless someone says otherwise.
pub const MESSAGE_RETENTION_DEFAULT: Duration = Duration::from_secs(4 * 24 * 3600);
/// Shortest retention of messages.
pub const MESSAGE_RETENTION_MIN: Duration = Duration::from_secs(60);
/// Longest retention of messages.
pub const MESSAGE_RETENTION_MAX: Duration = Duration::from_secs(14 * 24 * 3600);
/// How long a duplicate of a message is recognised, and a receive can be repeated.
pub const DEDUPLICATION_WINDOW: Duration = Duration::from_secs(5 * 60);

/// Most receives before a message becomes a dead letter.
pub const RECEIVES_MAX: u32 = 1_000;
/// Most queues that can be named as allowed sources of dead letters.
pub const REDRIVE_SOURCES_MAX: usize = 10;
/// Most messages of a queue that are received and not deleted.
pub const IN_FLIGHT_MAX: usize = 120_000;
/// Most messages that a move of dead letters can be told to move in a second.
pub const MOVE_MESSAGES_PER_SECOND_MAX: u32 = 500;
/// Most moves of one queue that are remembered.
pub const MOVES_REMEMBERED_MAX: usize = 10;
/// Shortest name of a bucket, in characters.
pub const BUCKET_NAME_CHARS_MIN: usize = 3;
/// Longest name of a bucket, in characters.
pub const BUCKET_NAME_CHARS_MAX: usize = 63;
/// Most buckets in one store.
pub const BUCKETS_MAX: usize = 10_000;
/// Longest key of a blob, in bytes of UTF-8.
pub const BLOB_KEY_BYTES_MAX: usize = 1_024;
/// Most bytes in the values of a blob's headers.
pub const BLOB_HEADERS_BYTES_MAX: usize = 8 << 10;
/// Most bytes in the names and values of a blob's metadata.
pub const BLOB_METADATA_BYTES_MAX: usize = 2 << 10;
/// Longest etag, in characters.
pub const ETAG_CHARS_MAX: usize = 256;
/// Most bytes in one body: of a blob that is put at once or copied, or of a part.
pub const BODY_BYTES_MAX: u64 = 5 << 30;
/// Most keys in one deletion.
pub const DELETE_KEYS_MAX: usize = 1_000;
/// Longest identifier of an upload, in characters.
pub const UPLOAD_ID_CHARS_MAX: usize = 1_024;
/// Most parts of an upload, and the highest number of one.
pub const UPLOAD_PARTS_MAX: usize = 10_000;
/// Fewest bytes in a part, except the last.
pub const PART_BYTES_MIN: u64 = 5 << 20;
/// Shortest name of a table or an index, in characters.
pub const TABLE_NAME_CHARS_MIN: usize = 3;
/// Longest name of a table or an index, in characters.
pub const TABLE_NAME_CHARS_MAX: usize = 255;
/// Most tables in one store.
pub const TABLES_MAX: usize = 10_000;
/// Most global indexes of a table.
pub const GLOBAL_INDEXES_MAX: usize = 20;
/// Most local indexes of a table.
pub const LOCAL_INDEXES_MAX: usize = 5;
/// Most attributes that the indexes of a table name for inclusion.
pub const INDEX_INCLUDED_MAX: usize = 100;
/// Most columns of a table in a keyspace.
pub const COLUMNS_MAX: usize = 500;

/// Most significant digits of a number.
pub const NUMBER_DIGITS_MAX: usize = 38;
/// Largest power of ten of a number's first digit.
pub const NUMBER_EXPONENT_MAX: i32 = 125;
/// Smallest power of ten of a number's first digit.
pub const NUMBER_EXPONENT_MIN: i32 = -130;
/// Largest item, names of attributes included.
pub const ITEM_BYTES_MAX: usize = 400 << 10;
/// How deep lists and maps nest.
pub const NESTING_MAX: usize = 32;
/// Longest name of an attribute.
pub const ATTRIBUTE_NAME_BYTES_MAX: usize = 65_535;
/// Longest name of an attribute of a key.
pub const KEY_NAME_BYTES_MAX: usize = 255;
/// Most attributes that together are the hash of an index, and most that are its range.
pub const KEY_ATTRIBUTES_MAX: usize = 4;
/// Largest value of a hash key.
pub const HASH_VALUE_BYTES_MAX: usize = 2_048;
/// Largest value of a range key.
pub const RANGE_VALUE_BYTES_MAX: usize = 1_024;

/// Most operators and functions in one expression.
pub const EXPRESSION_OPERATORS_MAX: usize = 300;
/// How deep conditions nest.
pub const EXPRESSION_DEPTH_MAX: usize = 300;
/// Most values that one membership test compares with.
pub const IN_OPERANDS_MAX: usize = 100;

/// Most items of one batch of reads.
pub const BATCH_GET_ITEMS_MAX: usize = 100;
/// Bytes after which a batch of reads leaves the rest for another.
pub const BATCH_GET_BYTES_MAX: usize = 16 << 20;
/// Most writes of one batch.
pub const BATCH_WRITE_ITEMS_MAX: usize = 25;
/// Most items of one transaction.
pub const TRANSACTION_ITEMS_MAX: usize = 100;
/// Most bytes of the items of one transaction.
pub const TRANSACTION_BYTES_MAX: usize = 4 << 20;
/// Longest token of a transaction, in characters.
pub const TRANSACTION_TOKEN_CHARS_MAX: usize = 36;
/// How long a token of a transaction is remembered.
pub const TRANSACTION_TOKEN_LIFE: Duration = Duration::from_secs(600);
/// Bytes of items after which a page of a query or scan ends.
pub const QUERY_BYTES_MAX: usize = 1 << 20;
/// Most segments of a parallel scan.
pub const SCAN_SEGMENTS_MAX: u32 = 1_000_000;
/// How long changes of a table are kept.
pub const CHANGES_RETENTION: Duration = Duration::from_secs(24 * 3600);
/// An expiry this far in the past is taken for something else than a time.
pub const EXPIRY_AGE_MAX: Duration = Duration::from_secs(5 * 365 * 24 * 3600);

/// Largest document that only a server keeps.
pub const DOCUMENT_BYTES_MAX: usize = 256 << 10;
/// Longest kind of documents, in characters.
pub const DOCUMENT_KIND_CHARS_MAX: usize = 32;
/// Longest name of a document, in bytes of UTF-8.
pub const DOCUMENT_NAME_BYTES_MAX: usize = 1_024;
/// Most documents that one call writes or removes.
pub const DOCUMENTS_WRITTEN_MAX: usize = 200;
