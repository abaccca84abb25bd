//! Faults in the words of S3, and errors of the ports as such faults.

use anabranch_model::Error;
use anabranch_model::blob::{BlobKey, BucketName};
use anabranch_model::limits::PART_BYTES_MIN;
use http::StatusCode;
use serde_json::Value;

use crate::fault::Fault;

/// What S3 says about an error.
pub(super) fn fault(error: Error) -> Fault {
    match error {
        Error::BucketNotFound(bucket) => no_such_bucket(&bucket),
        Error::BucketExists(bucket) => with(
            Fault::client(
                "BucketAlreadyOwnedByYou",
                "Your previous request to create the named bucket succeeded and you already own it.",
            )
            .with_status(StatusCode::CONFLICT),
            "BucketName",
            bucket.as_str(),
        ),
        Error::BucketNotEmpty(bucket) => with(
            Fault::client("BucketNotEmpty", "The bucket you tried to delete is not empty")
                .with_status(StatusCode::CONFLICT),
            "BucketName",
            bucket.as_str(),
        ),
        Error::BlobNotFound(_, key) => no_such_key(&key),
        Error::PreconditionFailed(_) => precondition_failed(),
        Error::NotModified(_) => {
            Fault::client("NotModified", "Not Modified").with_status(StatusCode::NOT_MODIFIED)
        }
        Error::RangeInvalid { size } => with(
            Fault::client("InvalidRange", "The requested range is not satisfiable")
                .with_status(StatusCode::RANGE_NOT_SATISFIABLE),
            "ActualObjectSize",
            size.to_string(),
        ),
        Error::ChecksumMismatch("md5") => bad_digest("Content-MD5"),
        Error::ChecksumMismatch(algorithm) => bad_digest(&algorithm.to_uppercase()),
        Error::BodySizeMismatch { .. } => incomplete_body(),
        Error::BodyTooLarge { limit_bytes } => with(
            Fault::client("EntityTooLarge", "Your proposed upload exceeds the maximum allowed size"),
            "MaxSizeAllowed",
            limit_bytes.to_string(),
        ),
        Error::UploadNotFound(id) => no_such_upload(id.as_str()),
        Error::PartNotFound(number) => with(
            Fault::client(
                "InvalidPart",
                "One or more of the specified parts could not be found.  The part may not have been uploaded, or the \
                 specified entity tag may not match the part's entity tag.",
            ),
            "PartNumber",
            number.to_string(),
        ),
        Error::PartsOutOfOrder(..) => Fault::client(
            "InvalidPartOrder",
            "The list of parts was not in ascending order. Parts must be ordered by part number.",
        ),
        Error::PartTooSmall { part, bytes } => {
            let message = "Your proposed upload is smaller than the minimum allowed size";
            let fault = with(Fault::client("EntityTooSmall", message), "PartNumber", part.to_string());
            let fault = with(fault, "MinSizeAllowed", PART_BYTES_MIN.to_string());
            with(fault, "ProposedSize", bytes.to_string())
        }
        Error::LimitExceeded(message) => Fault::client("TooManyBuckets", message),
        Error::Busy { .. } | Error::DiskFull | Error::Unavailable(_) | Error::Stopped(_) => {
            // What clients of S3 try again.
            let fault = Fault::server("ServiceUnavailable", error.to_string());
            fault.with_status(StatusCode::SERVICE_UNAVAILABLE)
        }
        Error::Damaged { .. } | Error::Corrupt(_) => Fault::server("InternalError", error.to_string()),
        other => invalid(other.to_string()),
    }
}

/// This fault with one more member.
pub(super) fn with(mut fault: Fault, name: &str, value: impl Into<String>) -> Fault {
    fault.members.insert(name.to_owned(), Value::String(value.into()));
    fault
}

/// A value is not allowed.
pub(super) fn invalid(message: impl Into<String>) -> Fault {
    Fault::client("InvalidArgument", message)
}

/// The value of an argument of the request is not allowed: which one, and what it was.
pub(super) fn invalid_argument(name: &str, value: &str, message: impl Into<String>) -> Fault {
    let shown: String = value.chars().take(1_024).collect();
    with(with(invalid(message), "ArgumentName", name), "ArgumentValue", shown)
}

/// Nothing here has versions.
pub(super) fn invalid_version(version: &str) -> Fault {
    invalid_argument("versionId", version, "Invalid version id specified")
}

/// A request makes no sense.
pub(super) fn invalid_request(message: impl Into<String>) -> Fault {
    Fault::client("InvalidRequest", message)
}

/// S3 could do this, and it is not done here.
pub(super) fn not_implemented(what: &str) -> Fault {
    let message =
        format!("A header or parameter you provided implies functionality that is not implemented: {what}");
    Fault::client("NotImplemented", message).with_status(StatusCode::NOT_IMPLEMENTED)
}

/// S3 itself takes only some values of a header, or not two headers together.
pub(super) fn unaccepted(headers: &str, why: impl Into<String>) -> Fault {
    let message = "A header you provided implies functionality that is not implemented";
    let fault = Fault::client("NotImplemented", message).with_status(StatusCode::NOT_IMPLEMENTED);
    with(with(fault, "Header", headers), "additionalMessage", why)
}

pub(super) fn no_such_bucket(bucket: &BucketName) -> Fault {
    let fault = Fault::client("NoSuchBucket", "The specified bucket does not exist");
    with(fault.with_status(StatusCode::NOT_FOUND), "BucketName", bucket.as_str())
}

pub(super) fn no_such_key(key: &BlobKey) -> Fault {
    let fault = Fault::client("NoSuchKey", "The specified key does not exist.");
    with(fault.with_status(StatusCode::NOT_FOUND), "Key", key.as_str())
}

pub(super) fn no_such_upload(id: &str) -> Fault {
    let message = "The specified upload does not exist. The upload ID may be invalid, or the upload may have been \
                   aborted or completed.";
    let fault = Fault::client("NoSuchUpload", message).with_status(StatusCode::NOT_FOUND);
    with(fault, "UploadId", id)
}

pub(super) fn precondition_failed() -> Fault {
    let message = "At least one of the pre-conditions you specified did not hold";
    Fault::client("PreconditionFailed", message).with_status(StatusCode::PRECONDITION_FAILED)
}

/// Something else was done to the object meanwhile, so that a condition cannot be decided.
pub(super) fn conflict(key: &BlobKey, condition: &str) -> Fault {
    let message =
        "The conditional request cannot succeed due to a conflicting operation against this resource.";
    let fault = Fault::client("ConditionalRequestConflict", message).with_status(StatusCode::CONFLICT);
    with(with(fault, "Condition", condition), "Key", key.as_str())
}

/// A body has another checksum than the one that came with it.
pub(super) fn bad_digest(what: &str) -> Fault {
    let received = if what == "Content-MD5" { "what we received" } else { "the calculated checksum" };
    Fault::client("BadDigest", format!("The {what} you specified did not match {received}."))
}

pub(super) fn incomplete_body() -> Fault {
    let message = "You did not provide the number of bytes specified by the Content-Length HTTP header";
    Fault::client("IncompleteBody", message)
}
