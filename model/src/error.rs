//! Errors, sorted by what the caller does next.

use std::time::Duration;

use crate::blob::{BlobKey, BucketName, PartNumber, UploadId};
use crate::limits::PART_BYTES_MIN;
use crate::name::{IndexName, ShardId, StreamName, TableName};
use crate::queue::{MessageId, MoveId, QueueName, Receipt};
use crate::sequence::SequenceNumber;
use crate::table::Item;

/// The result of a call to a port.
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller does about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextMove {
    /// The same call may succeed later.
    Retry,
    /// The same call never succeeds; change it.
    FixCall,
    /// The call is right, but something around it must change first: a permission, credentials, a clock, an address.
    FixSetup,
    /// The store takes no more writes; open it again.
    Reopen,
    /// Data is damaged; tell a person.
    Report,
}

/// Everything that can go wrong at a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The call itself is wrong. The text says which value, what is allowed, and what was given.
    #[error("{0}")]
    Invalid(String),

    /// No stream has this name.
    #[error("stream `{0}` does not exist")]
    StreamNotFound(StreamName),

    /// A stream with this name exists.
    #[error("stream `{0}` exists already")]
    StreamExists(StreamName),

    /// The stream is being made, changed or removed.
    #[error("stream `{0}` is being changed; try again when it is active")]
    StreamBusy(StreamName),

    /// The stream has no shard with this name, or retention has removed it.
    #[error("stream `{0}` has no shard `{1}`")]
    ShardNotFound(StreamName, ShardId),

    /// The shard was split or merged before.
    #[error("shard `{0}` is closed: it was split or merged already")]
    ShardClosed(ShardId),

    /// The two shards do not touch.
    #[error("shards `{0}` and `{1}` are not neighbours: one must end where the other begins")]
    NotNeighbours(ShardId, ShardId),

    /// No queue has this name.
    #[error("queue `{0}` does not exist")]
    QueueNotFound(QueueName),

    /// A queue with this name exists.
    #[error("queue `{0}` exists already")]
    QueueExists(QueueName),

    /// The queue never gave this receipt: it is of another queue, of an earlier one of the same name, or no receipt.
    #[error("queue `{0}` did not give the receipt `{1}`: use the one that came with the message")]
    ReceiptInvalid(QueueName, Receipt),

    /// The receipt was good once: the message is visible again, or someone else has received it since.
    #[error("the receipt of message `{0}` has expired: the message was visible again before it was used")]
    ReceiptExpired(MessageId),

    /// The message is visible or gone, so there is nothing to hide for longer.
    #[error("message `{0}` is not in flight: it is visible again, or it was deleted")]
    NotInFlight(MessageId),

    /// No move that runs has this identifier.
    #[error("move `{0}` does not run: it has ended, or there never was one")]
    MoveNotRunning(MoveId),

    /// The queue is the source of a move that has not ended.
    #[error("messages of queue `{0}` are being moved already: wait for the end, or cancel it")]
    MoveRunning(QueueName),

    /// No bucket has this name.
    #[error("bucket `{0}` does not exist")]
    BucketNotFound(BucketName),

    /// A bucket with this name exists.
    #[error("bucket `{0}` exists already")]
    BucketExists(BucketName),

    /// The bucket holds blobs.
    #[error("bucket `{0}` is not empty: delete its blobs first")]
    BucketNotEmpty(BucketName),

    /// The bucket has no blob with this key.
    #[error("bucket `{0}` has no blob `{1}`")]
    BlobNotFound(BucketName, BlobKey),

    /// The blob under this key is not what the caller demanded.
    #[error("blob `{0}` is not what the condition demands: read it again and decide anew")]
    PreconditionFailed(BlobKey),

    /// The blob under this key is what the reader has already.
    #[error("blob `{0}` is what the reader has already")]
    NotModified(BlobKey),

    /// The range has no byte of the body.
    #[error("the range lies outside a body of {size} bytes")]
    RangeInvalid {
        /// Bytes of the whole body.
        size: u64,
    },

    /// The body is not the one that was announced; the algorithm that noticed it is named.
    #[error("the {0} of the body is not the one that was given: it was damaged on its way, send it again")]
    ChecksumMismatch(&'static str),

    /// The body is longer or shorter than announced.
    #[error("the body of {declared} bytes came with {received}: send it again")]
    BodySizeMismatch {
        /// Bytes that were announced.
        declared: u64,
        /// Bytes that came until it was noticed.
        received: u64,
    },

    /// The body is larger than one call may store.
    #[error("the body is larger than {limit_bytes} bytes: put it in parts")]
    BodyTooLarge {
        /// Most bytes.
        limit_bytes: u64,
    },

    /// The upload was completed or aborted, or never begun.
    #[error("upload `{0}` does not exist: it was completed or aborted, or never begun")]
    UploadNotFound(UploadId),

    /// The upload has no part with this number, or one with another tag.
    #[error("part {0} does not exist, or has another etag: list the parts")]
    PartNotFound(PartNumber),

    /// The parts of a completion do not ascend.
    #[error("part {1} comes behind part {0}: the numbers must ascend")]
    PartsOutOfOrder(PartNumber, PartNumber),

    /// A part other than the last has too few bytes.
    #[error("part {part} has {bytes} bytes: only the last one may have less than {PART_BYTES_MIN}")]
    PartTooSmall {
        /// Its number.
        part: PartNumber,
        /// What it has.
        bytes: u64,
    },

    /// No table has this name.
    #[error("table `{0}` does not exist")]
    TableNotFound(TableName),

    /// A table with this name exists.
    #[error("table `{0}` exists already")]
    TableExists(TableName),

    /// The table has no index with this name.
    #[error("table `{0}` has no index `{1}`")]
    IndexNotFound(TableName, IndexName),

    /// The table or one of its indexes is being made, changed or removed.
    #[error("table `{0}` is being changed; try again when it is active")]
    TableBusy(TableName),

    /// The condition of a write does not hold. Nothing was written.
    #[error("the condition of the write does not hold")]
    ConditionFailed {
        /// The item as it is, if it was asked for and exists.
        item: Option<Item>,
    },

    /// A transaction was refused. Nothing of it was written.
    #[error("the transaction was cancelled: {}", Cancelled::list(reasons))]
    TransactionCancelled {
        /// In the order of the transaction's parts; none for a part that was not in the way.
        reasons: Vec<Option<Cancelled>>,
    },

    /// A transaction is at work on the same item.
    #[error("a transaction is at work on the same item; try again")]
    TransactionConflict,

    /// The token of a transaction was used for another one a short while ago.
    #[error("the token of the transaction belongs to another one with other content")]
    TokenReused,

    /// A limit of the store is reached; something must be removed first.
    #[error("{0}")]
    LimitExceeded(String),

    /// A limit per second is reached.
    #[error("shard `{shard}` is over its limit of {limit}; try again in {} ms", retry_after.as_millis())]
    Throttled {
        /// Whose limit it is.
        shard: ShardId,
        /// The limit in words, for instance `1000 records a second`.
        limit: &'static str,
        /// When the same call fits again.
        retry_after: Duration,
    },

    /// A limit per second of something larger than a shard is reached; the text says which.
    #[error("{what}; try again in {} ms", retry_after.as_millis())]
    SlowDown {
        /// What has to be slower.
        what: String,
        /// When the same call is likely to fit.
        retry_after: Duration,
    },

    /// As many messages of the queue as can be are received and not deleted.
    #[error(
        "queue `{queue}` has {limit} messages in flight: delete some, or wait until they are visible again"
    )]
    InFlightLimit {
        /// Whose messages they are.
        queue: QueueName,
        /// How many can be in flight.
        limit: usize,
    },

    /// The memory budget is taken by other calls.
    #[error("the memory budget of {budget_bytes} bytes is in use; try again, or raise it")]
    Busy {
        /// The whole budget.
        budget_bytes: u64,
    },

    /// The disk is full. Nothing was written; reads and deletes work; writes resume when there is room.
    #[error("the disk is full: free some space or shorten a retention; writes resume by themselves")]
    DiskFull,

    /// The far side did not answer.
    #[error("{0}")]
    Unavailable(String),

    /// The store knows the caller and does not let it do this.
    #[error("permission `{action}` is missing: {message}")]
    Denied {
        /// The name of the permission, as the one who grants it spells it.
        action: String,
        /// What the store says.
        message: String,
    },

    /// The store does not know the caller: there are no credentials, or they are wrong or have expired.
    #[error("{0}")]
    Unauthenticated(String),

    /// The store cannot be used like this: its address, the region or the clock of this machine is wrong. The text
    /// says which, and what to set.
    #[error("{0}")]
    Misconfigured(String),

    /// A write or sync failed earlier, or the store is shutting down. Nothing more is acknowledged.
    #[error("the store takes no more writes: {0}")]
    Stopped(String),

    /// Stored records fail their checksum. Reading from `resume_at` goes on behind the damage.
    #[error("records of shard `{shard}` from {from} on are damaged; reading resumes at {resume_at}")]
    Damaged {
        /// Where the records belonged.
        shard: ShardId,
        /// The first number that cannot be read.
        from: SequenceNumber,
        /// The next number that can.
        resume_at: SequenceNumber,
    },

    /// The store's own files are damaged or missing in a way that touches more than single records.
    #[error("{0}")]
    Corrupt(String),
}

/// Why a part of a transaction was in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// Its condition does not hold.
    ConditionFailed {
        /// The item as it is, if it was asked for and exists.
        item: Option<Item>,
    },
    /// It cannot be done to the item as it is; the text says why.
    Invalid(String),
    /// Someone else is at work on the same item.
    Conflict,
    /// A limit per second is reached.
    Throttled,
}

impl Cancelled {
    fn list(reasons: &[Option<Cancelled>]) -> String {
        let one = |(number, reason): (usize, &Option<Cancelled>)| {
            let why = match reason.as_ref()? {
                Cancelled::ConditionFailed { .. } => "its condition does not hold",
                Cancelled::Invalid(why) => why,
                Cancelled::Conflict => "another call is at work on the item",
                Cancelled::Throttled => "it is over a limit per second",
            };
            Some(format!("part {}: {why}", number + 1))
        };
        reasons.iter().enumerate().filter_map(one).collect::<Vec<_>>().join("; ")
    }

    /// Whether the same part may succeed later.
    fn passes(&self) -> bool {
        matches!(self, Cancelled::Conflict | Cancelled::Throttled)
    }
}

impl Error {
    /// What the caller does next.
    pub fn next_move(&self) -> NextMove {
        match self {
            Error::Invalid(_)
            | Error::StreamNotFound(_)
            | Error::StreamExists(_)
            | Error::ShardNotFound(..)
            | Error::ShardClosed(_)
            | Error::NotNeighbours(..)
            | Error::QueueNotFound(_)
            | Error::QueueExists(_)
            | Error::ReceiptInvalid(..)
            | Error::ReceiptExpired(_)
            | Error::NotInFlight(_)
            | Error::MoveNotRunning(_)
            | Error::MoveRunning(_)
            | Error::BucketNotFound(_)
            | Error::BucketExists(_)
            | Error::BucketNotEmpty(_)
            | Error::BlobNotFound(..)
            | Error::PreconditionFailed(_)
            | Error::NotModified(_)
            | Error::RangeInvalid { .. }
            | Error::ChecksumMismatch(_)
            | Error::BodySizeMismatch { .. }
            | Error::BodyTooLarge { .. }
            | Error::UploadNotFound(_)
            | Error::PartNotFound(_)
            | Error::PartsOutOfOrder(..)
            | Error::PartTooSmall { .. }
            | Error::TableNotFound(_)
            | Error::TableExists(_)
            | Error::IndexNotFound(..)
            | Error::ConditionFailed { .. }
            | Error::TokenReused
            | Error::LimitExceeded(_) => NextMove::FixCall,
            Error::TransactionCancelled { reasons } if !reasons.iter().flatten().all(Cancelled::passes) => {
                NextMove::FixCall
            }
            Error::TransactionCancelled { .. }
            | Error::TransactionConflict
            | Error::StreamBusy(_)
            | Error::TableBusy(_)
            | Error::Throttled { .. }
            | Error::SlowDown { .. }
            | Error::InFlightLimit { .. }
            | Error::Busy { .. }
            | Error::DiskFull
            | Error::Unavailable(_) => NextMove::Retry,
            Error::Denied { .. } | Error::Unauthenticated(_) | Error::Misconfigured(_) => NextMove::FixSetup,
            Error::Stopped(_) => NextMove::Reopen,
            Error::Damaged { .. } | Error::Corrupt(_) => NextMove::Report,
        }
    }
}
