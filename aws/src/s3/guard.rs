//! Conditions of writes, as far as S3 knows them: that a key has no object, or one with a given tag.
//!
//! Other conditions are decided by looking, and the write then demands that nothing has changed since. A write that
//! finds a change looks again.

use anabranch_model::blob::{BlobMeta, ETag, WriteCondition};
use anabranch_model::{BlobKey, BucketName, Error, Result};
use futures_util::future::BoxFuture;

use super::Blobs;
use super::explain::{About, Failed, is_condition};
use super::request::Request;
use crate::action::Action;
use crate::call::Deadline;

/// What S3 is told to demand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    Nothing,
    Absent,
    Match(ETag),
}

impl Guard {
    /// The request with what it demands.
    pub(super) fn on(&self, request: Request) -> Request {
        match self {
            Guard::Nothing => request,
            Guard::Absent => request.header("if-none-match", "*"),
            Guard::Match(etag) => request.header("if-match", quoted(etag)),
        }
    }

    /// The action of the write. One that demands nothing has the same effect when it is done twice.
    pub(super) fn action(&self, action: &Action) -> Action {
        Action { repeatable: *self == Guard::Nothing, ..*action }
    }
}

/// A tag as headers spell it.
pub(super) fn quoted(etag: &ETag) -> String {
    format!("\"{etag}\"")
}

impl Blobs {
    /// What to demand so that `condition` holds when the blob is written.
    pub(super) async fn guard(
        &self,
        bucket: &BucketName,
        key: &BlobKey,
        condition: &WriteCondition,
        deadline: Deadline,
    ) -> Result<Guard> {
        match condition {
            WriteCondition::None => Ok(Guard::Nothing),
            WriteCondition::IfAbsent => Ok(Guard::Absent),
            WriteCondition::IfMatch(etag) => Ok(Guard::Match(etag.clone())),
            WriteCondition::IfPresent | WriteCondition::IfNoneMatch(_) => {
                let current = self.current(bucket, key, deadline).await?;
                condition.check(bucket, key, current.as_ref())?;
                Ok(current.map_or(Guard::Absent, Guard::Match))
            }
        }
    }

    /// The tag of the blob that is there, if any.
    async fn current(&self, bucket: &BucketName, key: &BlobKey, deadline: Deadline) -> Result<Option<ETag>> {
        match self.look(bucket, key, deadline).await {
            Ok(meta) => Ok(Some(meta.etag)),
            Err(Error::BlobNotFound(..)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes under a condition: again when what S3 refused fits the condition after all, because others came and went.
    pub(super) async fn guarded<'w, T>(
        &self,
        (bucket, key): (&BucketName, &BlobKey),
        condition: &WriteCondition,
        deadline: Deadline,
        write: impl Fn(Guard) -> BoxFuture<'w, std::result::Result<T, Failed>>,
        explain: impl Fn(Failed) -> Error,
    ) -> Result<T> {
        for rounds in 1.. {
            let guard = self.guard(bucket, key, condition, deadline).await?;
            let failure = match write(guard.clone()).await {
                Ok(written) => return Ok(written),
                Err(failure) => failure,
            };
            let lost = is_condition(&failure) || failure.is("NoSuchKey");
            if guard == Guard::Nothing || !lost {
                return Err(explain(failure));
            }
            condition.check(bucket, key, self.current(bucket, key, deadline).await?.as_ref())?;
            if !self.caller.back_off(rounds, deadline).await {
                break;
            }
        }
        Err(Error::Unavailable(format!("others write to blob `{key}` at the same time: try again")))
    }

    /// What is known about a blob that was just written, and that others may have replaced already.
    pub(super) async fn written(&self, about: About<'_>, written: BlobMeta, deadline: Deadline) -> BlobMeta {
        let (bucket, key) = match about {
            About::Blob(bucket, key) => (bucket, key),
            About::Upload(upload) => (&upload.bucket, &upload.key),
            About::Bucket(_) => return written,
        };
        match self.look(bucket, key, deadline).await {
            Ok(meta) if meta.etag == written.etag => meta,
            Ok(_) | Err(_) => written,
        }
    }
}
