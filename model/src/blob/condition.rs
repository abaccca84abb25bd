//! What must be true of the blob under a key for a call to go ahead.

use super::etag::ETag;
use super::meta::BlobMeta;
use super::name::{BlobKey, BucketName};
use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// What must be true of the blob that is there, if any, at the moment in which the new one takes its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WriteCondition {
    /// Nothing.
    #[default]
    None,
    /// There is none.
    IfAbsent,
    /// There is one, whatever it is.
    IfPresent,
    /// There is one with this tag.
    IfMatch(ETag),
    /// There is none with this tag.
    IfNoneMatch(ETag),
}

impl WriteCondition {
    /// Compares with what is there. A blob that must be there and is not is [`Error::BlobNotFound`].
    pub fn check(&self, bucket: &BucketName, key: &BlobKey, current: Option<&ETag>) -> Result<()> {
        let holds = match (self, current) {
            (WriteCondition::IfPresent | WriteCondition::IfMatch(_), None) => {
                return Err(Error::BlobNotFound(bucket.clone(), key.clone()));
            }
            (WriteCondition::None, _) | (WriteCondition::IfPresent, Some(_)) => true,
            (WriteCondition::IfAbsent, current) => current.is_none(),
            (WriteCondition::IfMatch(tag), Some(current)) => current == tag,
            (WriteCondition::IfNoneMatch(tag), current) => current != Some(tag),
        };
        if holds { Ok(()) } else { Err(Error::PreconditionFailed(key.clone())) }
    }
}

/// Tags to compare a blob with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ETagMatch {
    /// Any tag.
    Any,
    /// One of these.
    OneOf(Vec<ETag>),
}

impl ETagMatch {
    fn fits(&self, etag: &ETag) -> bool {
        match self {
            ETagMatch::Any => true,
            ETagMatch::OneOf(tags) => tags.contains(etag),
        }
    }
}

/// What must be true of a blob to be read or copied. Times count in whole seconds, as in the headers they come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadConditions {
    /// Its tag is among these.
    pub if_match: Option<ETagMatch>,
    /// Its tag is not among these.
    pub if_none_match: Option<ETagMatch>,
    /// It was put after this moment. Not looked at where `if_none_match` is given.
    pub if_modified_since: Option<Timestamp>,
    /// It was not put after this moment. Not looked at where `if_match` is given.
    pub if_unmodified_since: Option<Timestamp>,
}

impl ReadConditions {
    /// Compares with a blob. What a reader has already is [`Error::NotModified`].
    pub fn check(&self, key: &BlobKey, meta: &BlobMeta) -> Result<()> {
        let seconds = |moment: Timestamp| moment.as_millis() / 1000;
        let modified_after = |moment: Timestamp| seconds(meta.modified_at) > seconds(moment);
        let unchanged = match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) => tags.fits(&meta.etag),
            (None, Some(moment)) => !modified_after(moment),
            (None, None) => true,
        };
        if !unchanged {
            return Err(Error::PreconditionFailed(key.clone()));
        }
        let new = match (&self.if_none_match, self.if_modified_since) {
            (Some(tags), _) => !tags.fits(&meta.etag),
            (None, Some(moment)) => modified_after(moment),
            (None, None) => true,
        };
        if new { Ok(()) } else { Err(Error::NotModified(key.clone())) }
    }
}
