//! What is known about a stream as a whole.

use anabranch_model::{Error, Result, StreamName};
use aws_sdk_kinesis::types::StreamDescriptionSummary;

use super::{Streams, action};
use crate::call::Deadline;
use crate::failure::Kind;

impl Streams {
    /// The stream as Kinesis describes it, in whatever state it is.
    pub(super) async fn describe(
        &self,
        stream: &StreamName,
        deadline: Deadline,
    ) -> Result<StreamDescriptionSummary> {
        let request = || self.client.describe_stream_summary().stream_name(stream.as_str()).send();
        let answer = self.caller.call(&action::DESCRIBE_STREAM_SUMMARY, deadline, request).await;
        let answer = answer.map_err(|failure| {
            failure.explained(|kind| match kind {
                Kind::NotFound => Some(Error::StreamNotFound(stream.clone())),
                _ => None,
            })
        })?;
        answer.stream_description_summary.ok_or_else(|| super::strange("a description without a stream"))
    }
}
