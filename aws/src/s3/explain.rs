//! What a failure means for a caller who named a bucket, a blob or an upload.

use anabranch_model::blob::Upload;
use anabranch_model::{BlobKey, BucketName, Error};

use super::refusal::Refusal;
use crate::failure::{Failure, Kind};

/// A failed call of this service.
pub(super) type Failed = Failure<Refusal>;

/// What a call was about.
#[derive(Clone, Copy, Debug)]
pub(super) enum About<'a> {
    Bucket(&'a BucketName),
    Blob(&'a BucketName, &'a BlobKey),
    Upload(&'a Upload),
}

impl<'a> About<'a> {
    fn bucket(self) -> &'a BucketName {
        match self {
            About::Bucket(bucket) | About::Blob(bucket, _) => bucket,
            About::Upload(upload) => &upload.bucket,
        }
    }

    /// The error for whoever called.
    pub(super) fn explain(self, failure: Failed) -> Error {
        let known = match (failure.code.as_deref().unwrap_or_default(), self) {
            ("NoSuchBucket", about) => Some(Error::BucketNotFound(about.bucket().clone())),
            ("NoSuchKey", About::Blob(bucket, key)) => Some(Error::BlobNotFound(bucket.clone(), key.clone())),
            ("NoSuchUpload", About::Upload(upload)) => Some(Error::UploadNotFound(upload.id.clone())),
            ("BucketNotEmpty", about) => Some(Error::BucketNotEmpty(about.bucket().clone())),
            ("BucketAlreadyExists" | "BucketAlreadyOwnedByYou", about) => {
                Some(Error::BucketExists(about.bucket().clone()))
            }
            ("BadDigest" | "XAmzContentChecksumMismatch", _) => Some(Error::ChecksumMismatch("checksum")),
            ("OperationAborted" | "ConditionalRequestConflict", about) => Some(Error::Unavailable(format!(
                "another call changes bucket `{}` at the same time: try again",
                about.bucket()
            ))),
            _ => None,
        };
        match known {
            Some(error) => error,
            // An identity without permissions and a bucket of someone else look the same from here.
            None if failure.kind == Kind::Denied => Error::Denied {
                action: failure.action.permission(),
                message: format!(
                    "{} (bucket `{}`: it may belong to another account)",
                    failure.message,
                    self.bucket()
                ),
            },
            None => failure.into(),
        }
    }
}

/// Whether the condition of a write did not hold, or another write was under way.
pub(super) fn is_condition(failure: &Failed) -> bool {
    failure.is("PreconditionFailed") || failure.is("ConditionalRequestConflict")
}
