//! Errors on the wire: each error of the model has one code and comes back as exactly that error.

use std::time::Duration;

use anabranch_model::queue::{MessageId, MoveId, QueueName, Receipt};
use anabranch_model::{Error, SequenceNumber, ShardId, StreamName};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::text::Text;

/// Limits that a shard may be over. The model names them with texts that live as long as the program, so a reader
/// can only give back a text that it knows.
const LIMITS_KNOWN: [&str; 4] =
    ["1000 records written a second", "1 MiB written a second", "2 MiB read a second", "5 reads a second"];
/// What stands for a limit that this build does not know.
const LIMIT_UNKNOWN: &str = "what it may take in a second";

/// An error, with the fields that make it the same error on the other side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are those of the model's error of the same name")]
pub enum ErrorBody {
    /// [`Error::Invalid`].
    Invalid { message: String },
    /// [`Error::StreamNotFound`].
    StreamNotFound { stream: Text<StreamName> },
    /// [`Error::StreamExists`].
    StreamExists { stream: Text<StreamName> },
    /// [`Error::ShardNotFound`].
    ShardNotFound { stream: Text<StreamName>, shard: Text<ShardId> },
    /// [`Error::ShardClosed`].
    ShardClosed { shard: Text<ShardId> },
    /// [`Error::NotNeighbours`].
    NotNeighbours { shard: Text<ShardId>, neighbour: Text<ShardId> },
    /// [`Error::QueueNotFound`].
    QueueNotFound { queue: Text<QueueName> },
    /// [`Error::QueueExists`].
    QueueExists { queue: Text<QueueName> },
    /// [`Error::ReceiptInvalid`].
    ReceiptInvalid { queue: Text<QueueName>, receipt: Text<Receipt> },
    /// [`Error::ReceiptExpired`].
    ReceiptExpired { message: Text<MessageId> },
    /// [`Error::NotInFlight`].
    NotInFlight { message: Text<MessageId> },
    /// [`Error::MoveNotRunning`].
    MoveNotRunning { id: Text<MoveId> },
    /// [`Error::MoveRunning`].
    MoveRunning { queue: Text<QueueName> },
    /// [`Error::InFlightLimit`].
    InFlightLimit { queue: Text<QueueName>, limit: usize },
    /// [`Error::LimitExceeded`].
    LimitExceeded { message: String },
    /// [`Error::Throttled`].
    Throttled { shard: Text<ShardId>, limit: String, retry_after: Duration },
    /// [`Error::Busy`].
    Busy { budget_bytes: u64 },
    /// [`Error::DiskFull`].
    DiskFull,
    /// [`Error::Unavailable`].
    Unavailable { message: String },
    /// [`Error::Stopped`].
    Stopped { message: String },
    /// [`Error::Damaged`].
    Damaged { shard: Text<ShardId>, from: Text<SequenceNumber>, resume_at: Text<SequenceNumber> },
    /// [`Error::Corrupt`].
    Corrupt { message: String },
}

impl From<Error> for ErrorBody {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(message) => ErrorBody::Invalid { message },
            Error::StreamNotFound(stream) => ErrorBody::StreamNotFound { stream: Text(stream) },
            Error::StreamExists(stream) => ErrorBody::StreamExists { stream: Text(stream) },
            Error::ShardNotFound(stream, shard) => {
                ErrorBody::ShardNotFound { stream: Text(stream), shard: Text(shard) }
            }
            Error::ShardClosed(shard) => ErrorBody::ShardClosed { shard: Text(shard) },
            Error::NotNeighbours(shard, neighbour) => {
                ErrorBody::NotNeighbours { shard: Text(shard), neighbour: Text(neighbour) }
            }
            Error::QueueNotFound(queue) => ErrorBody::QueueNotFound { queue: Text(queue) },
            Error::QueueExists(queue) => ErrorBody::QueueExists { queue: Text(queue) },
            Error::ReceiptInvalid(queue, receipt) => {
                ErrorBody::ReceiptInvalid { queue: Text(queue), receipt: Text(receipt) }
            }
            Error::ReceiptExpired(message) => ErrorBody::ReceiptExpired { message: Text(message) },
            Error::NotInFlight(message) => ErrorBody::NotInFlight { message: Text(message) },
            Error::MoveNotRunning(id) => ErrorBody::MoveNotRunning { id: Text(id) },
            Error::MoveRunning(queue) => ErrorBody::MoveRunning { queue: Text(queue) },
            Error::InFlightLimit { queue, limit } => ErrorBody::InFlightLimit { queue: Text(queue), limit },
            // No call of this API touches blobs, so their errors need no form of their own here.
            error @ (Error::BucketNotFound(_)
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
            | Error::PartTooSmall { .. }) => ErrorBody::Invalid { message: error.to_string() },
            // The calls of this interface are about streams; what tables say has a wire format of its own.
            error @ (Error::TableNotFound(_)
            | Error::TableExists(_)
            | Error::IndexNotFound(..)
            | Error::ConditionFailed { .. }
            | Error::TransactionCancelled { .. }
            | Error::TokenReused) => ErrorBody::Invalid { message: error.to_string() },
            error @ (Error::TableBusy(_) | Error::TransactionConflict) => {
                ErrorBody::Unavailable { message: error.to_string() }
            }
            Error::LimitExceeded(message) => ErrorBody::LimitExceeded { message },
            Error::Throttled { shard, limit, retry_after } => {
                ErrorBody::Throttled { shard: Text(shard), limit: limit.to_owned(), retry_after }
            }
            Error::Busy { budget_bytes } => ErrorBody::Busy { budget_bytes },
            Error::DiskFull => ErrorBody::DiskFull,
            Error::Unavailable(message) => ErrorBody::Unavailable { message },
            Error::Stopped(message) => ErrorBody::Stopped { message },
            Error::Damaged { shard, from, resume_at } => {
                ErrorBody::Damaged { shard: Text(shard), from: Text(from), resume_at: Text(resume_at) }
            }
            Error::Corrupt(message) => ErrorBody::Corrupt { message },
        }
    }
}

impl From<ErrorBody> for Error {
    fn from(body: ErrorBody) -> Self {
        match body {
            ErrorBody::Invalid { message } => Error::Invalid(message),
            ErrorBody::StreamNotFound { stream } => Error::StreamNotFound(stream.0),
            ErrorBody::StreamExists { stream } => Error::StreamExists(stream.0),
            ErrorBody::ShardNotFound { stream, shard } => Error::ShardNotFound(stream.0, shard.0),
            ErrorBody::ShardClosed { shard } => Error::ShardClosed(shard.0),
            ErrorBody::NotNeighbours { shard, neighbour } => Error::NotNeighbours(shard.0, neighbour.0),
            ErrorBody::QueueNotFound { queue } => Error::QueueNotFound(queue.0),
            ErrorBody::QueueExists { queue } => Error::QueueExists(queue.0),
            ErrorBody::ReceiptInvalid { queue, receipt } => Error::ReceiptInvalid(queue.0, receipt.0),
            ErrorBody::ReceiptExpired { message } => Error::ReceiptExpired(message.0),
            ErrorBody::NotInFlight { message } => Error::NotInFlight(message.0),
            ErrorBody::MoveNotRunning { id } => Error::MoveNotRunning(id.0),
            ErrorBody::MoveRunning { queue } => Error::MoveRunning(queue.0),
            ErrorBody::InFlightLimit { queue, limit } => Error::InFlightLimit { queue: queue.0, limit },
            ErrorBody::LimitExceeded { message } => Error::LimitExceeded(message),
            ErrorBody::Throttled { shard, limit, retry_after } => {
                let limit = LIMITS_KNOWN.into_iter().find(|known| *known == limit).unwrap_or(LIMIT_UNKNOWN);
                Error::Throttled { shard: shard.0, limit, retry_after }
            }
            ErrorBody::Busy { budget_bytes } => Error::Busy { budget_bytes },
            ErrorBody::DiskFull => Error::DiskFull,
            ErrorBody::Unavailable { message } => Error::Unavailable(message),
            ErrorBody::Stopped { message } => Error::Stopped(message),
            ErrorBody::Damaged { shard, from, resume_at } => {
                Error::Damaged { shard: shard.0, from: from.0, resume_at: resume_at.0 }
            }
            ErrorBody::Corrupt { message } => Error::Corrupt(message),
        }
    }
}

/// The stable code of an error, as programs see it in JSON.
pub fn code(error: &Error) -> &'static str {
    match error {
        Error::Invalid(_)
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
        | Error::PartTooSmall { .. } => "invalid",
        Error::StreamNotFound(_) => "stream_not_found",
        Error::StreamExists(_) => "stream_exists",
        Error::ShardNotFound(..) => "shard_not_found",
        Error::ShardClosed(_) => "shard_closed",
        Error::NotNeighbours(..) => "not_neighbours",
        Error::QueueNotFound(_) => "queue_not_found",
        Error::QueueExists(_) => "queue_exists",
        Error::ReceiptInvalid(..) => "receipt_invalid",
        Error::ReceiptExpired(_) => "receipt_expired",
        Error::NotInFlight(_) => "not_in_flight",
        Error::MoveNotRunning(_) => "move_not_running",
        Error::MoveRunning(_) => "move_running",
        Error::InFlightLimit { .. } => "in_flight_limit",
        Error::TableNotFound(_) => "table_not_found",
        Error::TableExists(_) => "table_exists",
        Error::IndexNotFound(..) => "index_not_found",
        Error::TableBusy(_) => "table_busy",
        Error::ConditionFailed { .. } => "condition_failed",
        Error::TransactionCancelled { .. } => "transaction_cancelled",
        Error::TransactionConflict => "transaction_conflict",
        Error::TokenReused => "token_reused",
        Error::LimitExceeded(_) => "limit_exceeded",
        Error::Throttled { .. } => "throttled",
        Error::Busy { .. } => "busy",
        Error::DiskFull => "disk_full",
        Error::Unavailable(_) => "unavailable",
        Error::Stopped(_) => "stopped",
        Error::Damaged { .. } => "damaged",
        Error::Corrupt(_) => "corrupt",
    }
}

/// The HTTP status that says the same to proxies and people.
pub(super) fn status(error: &Error) -> StatusCode {
    match error {
        Error::Invalid(_)
        | Error::NotNeighbours(..)
        | Error::ReceiptInvalid(..)
        | Error::LimitExceeded(_) => StatusCode::BAD_REQUEST,
        Error::StreamNotFound(_)
        | Error::ShardNotFound(..)
        | Error::QueueNotFound(_)
        | Error::MoveNotRunning(_) => StatusCode::NOT_FOUND,
        Error::StreamExists(_)
        | Error::ShardClosed(_)
        | Error::QueueExists(_)
        | Error::ReceiptExpired(_)
        | Error::NotInFlight(_)
        | Error::MoveRunning(_) => StatusCode::CONFLICT,
        Error::Throttled { .. } | Error::InFlightLimit { .. } => StatusCode::TOO_MANY_REQUESTS,
        Error::LimitExceeded(_)
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
        | Error::PartTooSmall { .. } => StatusCode::BAD_REQUEST,
        Error::StreamNotFound(_) | Error::ShardNotFound(..) => StatusCode::NOT_FOUND,
        Error::StreamExists(_) | Error::ShardClosed(_) => StatusCode::CONFLICT,
        Error::Invalid(_) | Error::NotNeighbours(..) | Error::LimitExceeded(_) | Error::TokenReused => {
            StatusCode::BAD_REQUEST
        }
        Error::TableNotFound(_) | Error::IndexNotFound(..) => StatusCode::NOT_FOUND,
        Error::TableExists(_)
        | Error::TableBusy(_)
        | Error::ConditionFailed { .. }
        | Error::TransactionCancelled { .. }
        | Error::TransactionConflict => StatusCode::CONFLICT,
        Error::Throttled { .. } => StatusCode::TOO_MANY_REQUESTS,
        Error::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        Error::Busy { .. } | Error::Unavailable(_) | Error::Stopped(_) => StatusCode::SERVICE_UNAVAILABLE,
        Error::Damaged { .. } | Error::Corrupt(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::NextMove;

    use super::*;

    fn every_error() -> Vec<Error> {
        let stream = || StreamName::new("clicks").unwrap();
        let number = SequenceNumber::from_u128;
        let queue = || QueueName::new("orders.fifo").unwrap();
        let message = || MessageId::new("m-1").unwrap();
        vec![
            Error::Invalid("wrong".into()),
            Error::StreamNotFound(stream()),
            Error::StreamExists(stream()),
            Error::ShardNotFound(stream(), ShardId::numbered(3)),
            Error::ShardClosed(ShardId::numbered(3)),
            Error::NotNeighbours(ShardId::numbered(1), ShardId::numbered(3)),
            Error::QueueNotFound(queue()),
            Error::QueueExists(queue()),
            Error::ReceiptInvalid(queue(), Receipt::new("1.2.m-1").unwrap()),
            Error::ReceiptExpired(message()),
            Error::NotInFlight(message()),
            Error::MoveNotRunning(MoveId::new("7").unwrap()),
            Error::MoveRunning(queue()),
            Error::InFlightLimit { queue: queue(), limit: 120_000 },
            Error::LimitExceeded("too many".into()),
            Error::Throttled {
                shard: ShardId::numbered(2),
                limit: LIMITS_KNOWN[0],
                retry_after: Duration::from_nanos(1_000_001),
            },
            Error::Busy { budget_bytes: u64::MAX },
            Error::DiskFull,
            Error::Unavailable("gone".into()),
            Error::Stopped("no room".into()),
            Error::Damaged { shard: ShardId::numbered(1), from: number(7), resume_at: SequenceNumber::MAX },
            Error::Corrupt("the catalogue".into()),
        ]
    }

    #[test]
    fn every_error_comes_back_as_itself_under_its_code() {
        for error in every_error() {
            let json = serde_json::to_value(ErrorBody::from(error.clone())).unwrap();
            assert_eq!(json["code"], code(&error));
            assert_eq!(Error::from(serde_json::from_value::<ErrorBody>(json).unwrap()), error);
        }
    }

    #[test]
    fn retrying_never_looks_like_a_wrong_call() {
        for error in every_error() {
            let client_is_wrong = matches!(status(&error).as_u16(), 400 | 404 | 409);
            assert_eq!(client_is_wrong, error.next_move() == NextMove::FixCall, "{error}");
        }
    }
}
