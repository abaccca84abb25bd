//! What must be true of a blob for a call to go ahead.

use anabranch_model::Timestamp;
use anabranch_model::blob::{ETag, ETagMatch, ReadConditions, WriteCondition};
use serde::{Deserialize, Serialize};

use super::super::text::Text;

/// What must be true of the blob that is replaced.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteConditionBody {
    /// Nothing.
    #[default]
    None,
    /// There is none.
    IfAbsent,
    /// There is one.
    IfPresent,
    /// There is one with this tag.
    IfMatch(Text<ETag>),
    /// There is none with this tag.
    IfNoneMatch(Text<ETag>),
}

impl From<WriteCondition> for WriteConditionBody {
    fn from(condition: WriteCondition) -> Self {
        match condition {
            WriteCondition::None => WriteConditionBody::None,
            WriteCondition::IfAbsent => WriteConditionBody::IfAbsent,
            WriteCondition::IfPresent => WriteConditionBody::IfPresent,
            WriteCondition::IfMatch(etag) => WriteConditionBody::IfMatch(Text(etag)),
            WriteCondition::IfNoneMatch(etag) => WriteConditionBody::IfNoneMatch(Text(etag)),
        }
    }
}

impl From<WriteConditionBody> for WriteCondition {
    fn from(body: WriteConditionBody) -> Self {
        match body {
            WriteConditionBody::None => WriteCondition::None,
            WriteConditionBody::IfAbsent => WriteCondition::IfAbsent,
            WriteConditionBody::IfPresent => WriteCondition::IfPresent,
            WriteConditionBody::IfMatch(etag) => WriteCondition::IfMatch(etag.0),
            WriteConditionBody::IfNoneMatch(etag) => WriteCondition::IfNoneMatch(etag.0),
        }
    }
}

/// Tags to compare a blob with.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ETagMatchBody {
    /// Any tag.
    Any,
    /// One of these.
    OneOf(Vec<Text<ETag>>),
}

impl From<ETagMatch> for ETagMatchBody {
    fn from(tags: ETagMatch) -> Self {
        match tags {
            ETagMatch::Any => ETagMatchBody::Any,
            ETagMatch::OneOf(tags) => ETagMatchBody::OneOf(tags.into_iter().map(Text).collect()),
        }
    }
}

impl From<ETagMatchBody> for ETagMatch {
    fn from(body: ETagMatchBody) -> Self {
        match body {
            ETagMatchBody::Any => ETagMatch::Any,
            ETagMatchBody::OneOf(tags) => ETagMatch::OneOf(tags.into_iter().map(|tag| tag.0).collect()),
        }
    }
}

/// What must be true of a blob to be read or copied.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadConditionsBody {
    /// Its tag is among these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_match: Option<ETagMatchBody>,
    /// Its tag is not among these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_none_match: Option<ETagMatchBody>,
    /// It was put after this moment, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_modified_since_ms: Option<u64>,
    /// It was not put after this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_unmodified_since_ms: Option<u64>,
}

impl From<ReadConditions> for ReadConditionsBody {
    fn from(conditions: ReadConditions) -> Self {
        ReadConditionsBody {
            if_match: conditions.if_match.map(Into::into),
            if_none_match: conditions.if_none_match.map(Into::into),
            if_modified_since_ms: conditions.if_modified_since.map(Timestamp::as_millis),
            if_unmodified_since_ms: conditions.if_unmodified_since.map(Timestamp::as_millis),
        }
    }
}

impl From<ReadConditionsBody> for ReadConditions {
    fn from(body: ReadConditionsBody) -> Self {
        ReadConditions {
            if_match: body.if_match.map(Into::into),
            if_none_match: body.if_none_match.map(Into::into),
            if_modified_since: body.if_modified_since_ms.map(Timestamp::from_millis),
            if_unmodified_since: body.if_unmodified_since_ms.map(Timestamp::from_millis),
        }
    }
}
