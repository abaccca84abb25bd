//! Waiting until Kinesis has done what it agreed to do.

use std::time::Duration;

use anabranch_model::{Error, Result, StreamName};
use aws_sdk_kinesis::types::{StreamDescriptionSummary, StreamStatus};

use super::Streams;
use crate::call::Deadline;

/// How long a stream may be invisible after Kinesis has agreed to make it.
const UNSEEN_MAX: Duration = Duration::from_secs(20);

impl Streams {
    /// Waits until a stream that was asked for is active. It need not be visible at once.
    pub(super) async fn until_made(
        &self,
        stream: &StreamName,
        deadline: Deadline,
    ) -> Result<StreamDescriptionSummary> {
        let seen_by = self.caller.deadline(UNSEEN_MAX).min(deadline);
        let mut rounds = 0;
        loop {
            let active = self.until_active(stream, deadline).await;
            if !matches!(active, Err(Error::StreamNotFound(_))) {
                return active;
            }
            rounds += 1;
            if !self.caller.back_off(rounds, seen_by).await {
                return active;
            }
        }
    }

    /// Waits until a stream is active, and returns it as it is then.
    pub(super) async fn until_active(
        &self,
        stream: &StreamName,
        deadline: Deadline,
    ) -> Result<StreamDescriptionSummary> {
        let mut rounds = 0;
        loop {
            let description = self.describe(stream, deadline).await?;
            match description.stream_status {
                StreamStatus::Active => return Ok(description),
                StreamStatus::Deleting => return Err(Error::StreamNotFound(stream.clone())),
                _ => {}
            }
            rounds += 1;
            if !self.caller.back_off(rounds, deadline).await {
                return Err(Error::StreamBusy(stream.clone()));
            }
        }
    }

    /// Waits until a stream is gone.
    pub(super) async fn until_gone(&self, stream: &StreamName, deadline: Deadline) -> Result<()> {
        let mut rounds = 0;
        loop {
            match self.describe(stream, deadline).await {
                Err(Error::StreamNotFound(_)) => return Ok(()),
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            rounds += 1;
            if !self.caller.back_off(rounds, deadline).await {
                return Err(Error::StreamBusy(stream.clone()));
            }
        }
    }
}
