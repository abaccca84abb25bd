//! Errors on the wire: each error of the model has one code and comes back as exactly that error.

use std::time::Duration;

use anabranch_model::blob::{BlobKey, BucketName, ChecksumAlgorithm, UploadId};
use anabranch_model::queue::{MessageId, MoveId, QueueName, Receipt};
use anabranch_model::{Error, IndexName, NextMove, SequenceNumber, ShardId, StreamName, TableName};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::text::{Number, Text, Verbatim};
use super::wire::{CancelledBody, ItemBody, Mirror};

/// Limits that a shard may be over. The model names them with texts that live as long as the program, so a reader
/// can only give back a text that it knows.
const LIMITS_KNOWN: [&str; 4] =
    ["1000 records written a second", "1 MiB written a second", "2 MiB read a second", "5 reads a second"];
/// What stands for a limit that this build does not know.
const LIMIT_UNKNOWN: &str = "what it may take in a second";

/// The digest that a body is compared by beside the checksums of the model.
const MD5: &str = "md5";
/// What stands for a checksum that this build does not know.
const CHECKSUM_UNKNOWN: &str = "checksum";

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
    /// [`Error::StreamBusy`].
    StreamBusy { stream: Text<StreamName> },
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
    /// [`Error::BucketNotFound`].
    BucketNotFound { bucket: Text<BucketName> },
    /// [`Error::BucketExists`].
    BucketExists { bucket: Text<BucketName> },
    /// [`Error::BucketNotEmpty`].
    BucketNotEmpty { bucket: Text<BucketName> },
    /// [`Error::BlobNotFound`].
    BlobNotFound { bucket: Text<BucketName>, key: Verbatim<BlobKey> },
    /// [`Error::PreconditionFailed`].
    PreconditionFailed { key: Verbatim<BlobKey> },
    /// [`Error::NotModified`].
    NotModified { key: Verbatim<BlobKey> },
    /// [`Error::RangeInvalid`].
    RangeInvalid { size: u64 },
    /// [`Error::ChecksumMismatch`].
    ChecksumMismatch { algorithm: String },
    /// [`Error::BodySizeMismatch`].
    BodySizeMismatch { declared: u64, received: u64 },
    /// [`Error::BodyTooLarge`].
    BodyTooLarge { limit_bytes: u64 },
    /// [`Error::UploadNotFound`].
    UploadNotFound { upload: Verbatim<UploadId> },
    /// [`Error::PartNotFound`].
    PartNotFound { part: Number },
    /// [`Error::PartsOutOfOrder`].
    PartsOutOfOrder { part: Number, next: Number },
    /// [`Error::PartTooSmall`].
    PartTooSmall { part: Number, bytes: u64 },
    /// [`Error::TableNotFound`].
    TableNotFound { table: Text<TableName> },
    /// [`Error::TableExists`].
    TableExists { table: Text<TableName> },
    /// [`Error::IndexNotFound`].
    IndexNotFound { table: Text<TableName>, index: Text<IndexName> },
    /// [`Error::TableBusy`].
    TableBusy { table: Text<TableName> },
    /// [`Error::ConditionFailed`].
    ConditionFailed { item: Option<ItemBody> },
    /// [`Error::TransactionCancelled`].
    TransactionCancelled { reasons: Vec<Option<CancelledBody>> },
    /// [`Error::TransactionConflict`].
    TransactionConflict,
    /// [`Error::TokenReused`].
    TokenReused,
    /// [`Error::LimitExceeded`].
    LimitExceeded { message: String },
    /// [`Error::Throttled`].
    Throttled { shard: Text<ShardId>, limit: String, retry_after: Duration },
    /// [`Error::SlowDown`].
    SlowDown { what: String, retry_after: Duration },
    /// [`Error::Busy`].
    Busy { budget_bytes: u64 },
    /// [`Error::DiskFull`].
    DiskFull,
    /// [`Error::Unavailable`].
    Unavailable { message: String },
    /// [`Error::Denied`].
    Denied { action: String, message: String },
    /// [`Error::Unauthenticated`].
    Unauthenticated { message: String },
    /// [`Error::Misconfigured`].
    Misconfigured { message: String },
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
            Error::StreamBusy(stream) => ErrorBody::StreamBusy { stream: Text(stream) },
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
            Error::BucketNotFound(bucket) => ErrorBody::BucketNotFound { bucket: Text(bucket) },
            Error::BucketExists(bucket) => ErrorBody::BucketExists { bucket: Text(bucket) },
            Error::BucketNotEmpty(bucket) => ErrorBody::BucketNotEmpty { bucket: Text(bucket) },
            Error::BlobNotFound(bucket, key) => {
                ErrorBody::BlobNotFound { bucket: Text(bucket), key: Verbatim(key) }
            }
            Error::PreconditionFailed(key) => ErrorBody::PreconditionFailed { key: Verbatim(key) },
            Error::NotModified(key) => ErrorBody::NotModified { key: Verbatim(key) },
            Error::RangeInvalid { size } => ErrorBody::RangeInvalid { size },
            Error::ChecksumMismatch(algorithm) => {
                ErrorBody::ChecksumMismatch { algorithm: algorithm.to_owned() }
            }
            Error::BodySizeMismatch { declared, received } => {
                ErrorBody::BodySizeMismatch { declared, received }
            }
            Error::BodyTooLarge { limit_bytes } => ErrorBody::BodyTooLarge { limit_bytes },
            Error::UploadNotFound(upload) => ErrorBody::UploadNotFound { upload: Verbatim(upload) },
            Error::PartNotFound(part) => ErrorBody::PartNotFound { part: Number(part) },
            Error::PartsOutOfOrder(part, next) => {
                ErrorBody::PartsOutOfOrder { part: Number(part), next: Number(next) }
            }
            Error::PartTooSmall { part, bytes } => ErrorBody::PartTooSmall { part: Number(part), bytes },
            Error::TableNotFound(table) => ErrorBody::TableNotFound { table: Text(table) },
            Error::TableExists(table) => ErrorBody::TableExists { table: Text(table) },
            Error::IndexNotFound(table, index) => {
                ErrorBody::IndexNotFound { table: Text(table), index: Text(index) }
            }
            Error::TableBusy(table) => ErrorBody::TableBusy { table: Text(table) },
            Error::ConditionFailed { item } => ErrorBody::ConditionFailed { item: Mirror::of(item) },
            Error::TransactionCancelled { reasons } => {
                ErrorBody::TransactionCancelled { reasons: Mirror::of(reasons) }
            }
            Error::TransactionConflict => ErrorBody::TransactionConflict,
            Error::TokenReused => ErrorBody::TokenReused,
            Error::LimitExceeded(message) => ErrorBody::LimitExceeded { message },
            Error::Throttled { shard, limit, retry_after } => {
                ErrorBody::Throttled { shard: Text(shard), limit: limit.to_owned(), retry_after }
            }
            Error::SlowDown { what, retry_after } => ErrorBody::SlowDown { what, retry_after },
            Error::Busy { budget_bytes } => ErrorBody::Busy { budget_bytes },
            Error::DiskFull => ErrorBody::DiskFull,
            Error::Unavailable(message) => ErrorBody::Unavailable { message },
            Error::Denied { action, message } => ErrorBody::Denied { action, message },
            Error::Unauthenticated(message) => ErrorBody::Unauthenticated { message },
            Error::Misconfigured(message) => ErrorBody::Misconfigured { message },
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
            ErrorBody::StreamBusy { stream } => Error::StreamBusy(stream.0),
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
            ErrorBody::BucketNotFound { bucket } => Error::BucketNotFound(bucket.0),
            ErrorBody::BucketExists { bucket } => Error::BucketExists(bucket.0),
            ErrorBody::BucketNotEmpty { bucket } => Error::BucketNotEmpty(bucket.0),
            ErrorBody::BlobNotFound { bucket, key } => Error::BlobNotFound(bucket.0, key.0),
            ErrorBody::PreconditionFailed { key } => Error::PreconditionFailed(key.0),
            ErrorBody::NotModified { key } => Error::NotModified(key.0),
            ErrorBody::RangeInvalid { size } => Error::RangeInvalid { size },
            ErrorBody::ChecksumMismatch { algorithm } => Error::ChecksumMismatch(known_checksum(&algorithm)),
            ErrorBody::BodySizeMismatch { declared, received } => {
                Error::BodySizeMismatch { declared, received }
            }
            ErrorBody::BodyTooLarge { limit_bytes } => Error::BodyTooLarge { limit_bytes },
            ErrorBody::UploadNotFound { upload } => Error::UploadNotFound(upload.0),
            ErrorBody::PartNotFound { part } => Error::PartNotFound(part.0),
            ErrorBody::PartsOutOfOrder { part, next } => Error::PartsOutOfOrder(part.0, next.0),
            ErrorBody::PartTooSmall { part, bytes } => Error::PartTooSmall { part: part.0, bytes },
            ErrorBody::TableNotFound { table } => Error::TableNotFound(table.0),
            ErrorBody::TableExists { table } => Error::TableExists(table.0),
            ErrorBody::IndexNotFound { table, index } => Error::IndexNotFound(table.0, index.0),
            ErrorBody::TableBusy { table } => Error::TableBusy(table.0),
            ErrorBody::ConditionFailed { item } => Error::ConditionFailed { item: item.back() },
            ErrorBody::TransactionCancelled { reasons } => {
                Error::TransactionCancelled { reasons: reasons.back() }
            }
            ErrorBody::TransactionConflict => Error::TransactionConflict,
            ErrorBody::TokenReused => Error::TokenReused,
            ErrorBody::LimitExceeded { message } => Error::LimitExceeded(message),
            ErrorBody::Throttled { shard, limit, retry_after } => {
                let limit = LIMITS_KNOWN.into_iter().find(|known| *known == limit).unwrap_or(LIMIT_UNKNOWN);
                Error::Throttled { shard: shard.0, limit, retry_after }
            }
            ErrorBody::SlowDown { what, retry_after } => Error::SlowDown { what, retry_after },
            ErrorBody::Busy { budget_bytes } => Error::Busy { budget_bytes },
            ErrorBody::DiskFull => Error::DiskFull,
            ErrorBody::Unavailable { message } => Error::Unavailable(message),
            ErrorBody::Denied { action, message } => Error::Denied { action, message },
            ErrorBody::Unauthenticated { message } => Error::Unauthenticated(message),
            ErrorBody::Misconfigured { message } => Error::Misconfigured(message),
            ErrorBody::Stopped { message } => Error::Stopped(message),
            ErrorBody::Damaged { shard, from, resume_at } => {
                Error::Damaged { shard: shard.0, from: from.0, resume_at: resume_at.0 }
            }
            ErrorBody::Corrupt { message } => Error::Corrupt(message),
        }
    }
}

/// The name of a checksum as the model spells it.
fn known_checksum(name: &str) -> &'static str {
    let mut known = ChecksumAlgorithm::ALL.into_iter().map(ChecksumAlgorithm::name).chain([MD5]);
    known.find(|known| *known == name).unwrap_or(CHECKSUM_UNKNOWN)
}

/// The stable code of an error, as programs see it in JSON.
pub fn code(error: &Error) -> &'static str {
    match error {
        Error::Invalid(_) => "invalid",
        Error::BucketNotFound(_) => "bucket_not_found",
        Error::BucketExists(_) => "bucket_exists",
        Error::BucketNotEmpty(_) => "bucket_not_empty",
        Error::BlobNotFound(..) => "blob_not_found",
        Error::PreconditionFailed(_) => "precondition_failed",
        Error::NotModified(_) => "not_modified",
        Error::RangeInvalid { .. } => "range_invalid",
        Error::ChecksumMismatch(_) => "checksum_mismatch",
        Error::BodySizeMismatch { .. } => "body_size_mismatch",
        Error::BodyTooLarge { .. } => "body_too_large",
        Error::UploadNotFound(_) => "upload_not_found",
        Error::PartNotFound(_) => "part_not_found",
        Error::PartsOutOfOrder(..) => "parts_out_of_order",
        Error::PartTooSmall { .. } => "part_too_small",
        Error::StreamNotFound(_) => "stream_not_found",
        Error::StreamExists(_) => "stream_exists",
        Error::StreamBusy(_) => "stream_busy",
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
        Error::SlowDown { .. } => "slow_down",
        Error::Busy { .. } => "busy",
        Error::DiskFull => "disk_full",
        Error::Unavailable(_) => "unavailable",
        Error::Denied { .. } => "denied",
        Error::Unauthenticated(_) => "unauthenticated",
        Error::Misconfigured(_) => "misconfigured",
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
        | Error::ChecksumMismatch(_)
        | Error::BodySizeMismatch { .. }
        | Error::PartsOutOfOrder(..)
        | Error::PartTooSmall { .. }
        | Error::LimitExceeded(_) => StatusCode::BAD_REQUEST,
        Error::StreamNotFound(_)
        | Error::ShardNotFound(..)
        | Error::QueueNotFound(_)
        | Error::MoveNotRunning(_)
        | Error::BucketNotFound(_)
        | Error::BlobNotFound(..)
        | Error::UploadNotFound(_)
        | Error::PartNotFound(_) => StatusCode::NOT_FOUND,
        Error::StreamExists(_)
        | Error::ShardClosed(_)
        | Error::QueueExists(_)
        | Error::ReceiptExpired(_)
        | Error::NotInFlight(_)
        | Error::MoveRunning(_)
        | Error::BucketExists(_)
        | Error::BucketNotEmpty(_) => StatusCode::CONFLICT,
        // An answer with 304 has no body, and the reason stands in the body.
        Error::PreconditionFailed(_) | Error::NotModified(_) => StatusCode::PRECONDITION_FAILED,
        Error::RangeInvalid { .. } => StatusCode::RANGE_NOT_SATISFIABLE,
        Error::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Error::Throttled { .. } | Error::SlowDown { .. } | Error::InFlightLimit { .. } => {
            StatusCode::TOO_MANY_REQUESTS
        }
        Error::TokenReused => StatusCode::BAD_REQUEST,
        Error::TableNotFound(_) | Error::IndexNotFound(..) => StatusCode::NOT_FOUND,
        Error::TableExists(_) | Error::ConditionFailed { .. } => StatusCode::CONFLICT,
        Error::TransactionCancelled { .. } if error.next_move() == NextMove::FixCall => StatusCode::CONFLICT,
        Error::TransactionCancelled { .. }
        | Error::TransactionConflict
        | Error::StreamBusy(_)
        | Error::TableBusy(_) => StatusCode::SERVICE_UNAVAILABLE,
        Error::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        Error::Busy { .. } | Error::Unavailable(_) | Error::Stopped(_) => StatusCode::SERVICE_UNAVAILABLE,
        // The caller can do nothing about it: the server stands before a store that it may not use as it is.
        Error::Denied { .. } | Error::Unauthenticated(_) | Error::Misconfigured(_) => StatusCode::BAD_GATEWAY,
        Error::Damaged { .. } | Error::Corrupt(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::Cancelled;
    use anabranch_model::blob::PartNumber;
    use anabranch_model::table::Item;

    use super::*;

    fn every_error() -> Vec<Error> {
        let stream = || StreamName::new("clicks").unwrap();
        let number = SequenceNumber::from_u128;
        let queue = || QueueName::new("orders.fifo").unwrap();
        let message = || MessageId::new("m-1").unwrap();
        let bucket = || BucketName::new("photos").unwrap();
        // Shown with escapes, and sent without.
        let key = || BlobKey::new("a\nb\u{202e}/\\").unwrap();
        let table = || TableName::new("rides").unwrap();
        let item = || Item::new().with("id", "7").with("bytes", &b"\xff"[..]).with("n", -1);
        let part = |number| PartNumber::new(number).unwrap();
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
            Error::BucketNotFound(bucket()),
            Error::BucketExists(bucket()),
            Error::BucketNotEmpty(bucket()),
            Error::BlobNotFound(bucket(), key()),
            Error::PreconditionFailed(key()),
            Error::NotModified(key()),
            Error::RangeInvalid { size: 7 },
            Error::ChecksumMismatch(ChecksumAlgorithm::Crc64Nvme.name()),
            Error::ChecksumMismatch(MD5),
            Error::BodySizeMismatch { declared: 5 << 40, received: 0 },
            Error::BodyTooLarge { limit_bytes: 5 << 30 },
            Error::UploadNotFound(UploadId::new("u\"1").unwrap()),
            Error::PartNotFound(part(1)),
            Error::PartsOutOfOrder(part(3), part(2)),
            Error::PartTooSmall { part: part(10_000), bytes: 1 },
            Error::TableNotFound(table()),
            Error::TableExists(table()),
            Error::IndexNotFound(table(), IndexName::new("by-colour").unwrap()),
            Error::TableBusy(table()),
            Error::ConditionFailed { item: None },
            Error::ConditionFailed { item: Some(item()) },
            Error::TransactionCancelled {
                reasons: vec![
                    None,
                    Some(Cancelled::ConditionFailed { item: None }),
                    Some(Cancelled::ConditionFailed { item: Some(item()) }),
                    Some(Cancelled::Invalid("too large".into())),
                    Some(Cancelled::Conflict),
                    Some(Cancelled::Throttled),
                ],
            },
            Error::TransactionCancelled { reasons: vec![Some(Cancelled::Conflict), None] },
            Error::TransactionConflict,
            Error::TokenReused,
            Error::LimitExceeded("too many".into()),
            Error::StreamBusy(stream()),
            Error::SlowDown { what: "too fast".into(), retry_after: Duration::from_millis(7) },
            Error::Denied { action: "clicks:Put".into(), message: "not you".into() },
            Error::Unauthenticated("who are you".into()),
            Error::Misconfigured("nobody there".into()),
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
            let status = status(&error);
            let client_is_wrong = status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS;
            assert_eq!(client_is_wrong, error.next_move() == NextMove::FixCall, "{error}");
        }
    }
}
