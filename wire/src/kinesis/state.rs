//! What Kinesis remembers between calls: who subscribes to what, and which streams are being changed.

use std::collections::HashMap;
use std::time::Duration;

use anabranch_model::{StreamName, StreamSummary};
use tokio::sync::{Mutex, MutexGuard};

use super::errors::{in_use, stream_not_found};
use super::subscriptions::Subscriptions;
use crate::context::{ACCOUNT, Context};
use crate::fault::Fault;
use crate::making::Settled;

/// What is remembered. Nothing of it outlives the server.
#[derive(Default)]
pub(crate) struct State {
    /// Held by whoever reads documents to change them.
    changing: Mutex<()>,
    /// Whether nothing is left that was begun before the start.
    pub(crate) settled: Settled,
    /// Streams that were changed a moment ago, and until when they say so (time of the stopwatch).
    updating: parking_lot::Mutex<HashMap<StreamName, Duration>>,
    /// Who gets which shard.
    pub(super) subscriptions: Subscriptions,
}

/// What a stream says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Creating,
    Active,
    Updating,
}

impl Status {
    pub(super) fn text(self) -> &'static str {
        match self {
            Status::Creating => "CREATING",
            Status::Active => "ACTIVE",
            Status::Updating => "UPDATING",
        }
    }
}

impl State {
    /// Keeps others from changing documents.
    pub(super) async fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().await
    }
}

/// What a stream says about itself now.
pub(super) fn status(context: &Context, stream: &StreamSummary) -> Status {
    if context.transition.is_zero() {
        return Status::Active;
    }
    if context.clock.now().since(stream.created_at) < context.transition {
        return Status::Creating;
    }
    let mut updating = context.kinesis.updating.lock();
    let now = context.clock.elapsed();
    updating.retain(|_, until| *until > now);
    if updating.contains_key(&stream.name) { Status::Updating } else { Status::Active }
}

/// From now on the stream says for a moment that it is being changed.
pub(super) fn begin_update(context: &Context, stream: &StreamName) {
    if !context.transition.is_zero() {
        let until = context.clock.elapsed() + context.transition;
        context.kinesis.updating.lock().insert(stream.clone(), until);
    }
}

/// A stream that is gone is not being changed; a younger one of its name has not been.
pub(super) fn forget_update(context: &Context, stream: &StreamName) {
    context.kinesis.updating.lock().remove(stream);
}

/// Refuses a change of a stream that is not ready for one.
pub(super) fn check_changeable(context: &Context, stream: &StreamSummary) -> Result<(), Fault> {
    match status(context, stream) {
        Status::Active => Ok(()),
        other => Err(in_use(format!(
            "Stream {} under account {ACCOUNT} not ACTIVE, instead in state {}",
            stream.name,
            other.text()
        ))),
    }
}

/// Refuses records for a stream that is still being made, and reads from it.
pub(super) async fn check_usable(context: &Context, stream: &StreamName) -> Result<(), Fault> {
    if context.transition.is_zero() {
        return Ok(());
    }
    let summary = context.ports.streams.stream(stream).await.map_err(super::errors::fault)?;
    match status(context, &summary) {
        Status::Creating => Err(stream_not_found(stream)),
        Status::Active | Status::Updating => Ok(()),
    }
}
