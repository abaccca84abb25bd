//! Errors, sorted by what the caller does next.

use std::time::Duration;

use crate::name::{IndexName, ShardId, StreamName, TableName};
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

    /// The stream has no shard with this name, or retention has removed it.
    #[error("stream `{0}` has no shard `{1}`")]
    ShardNotFound(StreamName, ShardId),

    /// The shard was split or merged before.
    #[error("shard `{0}` is closed: it was split or merged already")]
    ShardClosed(ShardId),

    /// The two shards do not touch.
    #[error("shards `{0}` and `{1}` are not neighbours: one must end where the other begins")]
    NotNeighbours(ShardId, ShardId),

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
            | Error::TableNotFound(_)
            | Error::TableExists(_)
            | Error::IndexNotFound(..)
            | Error::ConditionFailed { .. }
            | Error::TokenReused
            | Error::LimitExceeded(_) => NextMove::FixCall,
            Error::TransactionCancelled { reasons } if !reasons.iter().flatten().all(Cancelled::passes) => {
                NextMove::FixCall
            }
            Error::TransactionCancelled { .. } | Error::TransactionConflict | Error::TableBusy(_) => {
                NextMove::Retry
            }
            Error::Throttled { .. } | Error::Busy { .. } | Error::DiskFull | Error::Unavailable(_) => {
                NextMove::Retry
            }
            Error::Stopped(_) => NextMove::Reopen,
            Error::Damaged { .. } | Error::Corrupt(_) => NextMove::Report,
        }
    }
}
