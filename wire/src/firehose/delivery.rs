//! Deliveries: looked for every second, for as long as the server runs.

use std::sync::{Arc, Weak};
use std::time::Duration;

use anabranch_model::blob::PutOptions;
use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::stream::ReadLimit;
use anabranch_model::{Error, Position, Timestamp};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::time::MissedTickBehavior;

use super::contents::Contents;
use super::definition::{self, Definition};
use super::reading::Reader;
use super::{buffer, object};
use crate::context::Shared;

/// How often deliveries are looked for.
const TICK: Duration = Duration::from_secs(1);
/// How long after a failure a delivery is tried again.
const RETRY: Duration = Duration::from_secs(10);
/// Delivery streams that are delivered side by side.
const AT_ONCE: usize = 4;

/// Delivers what is due until the server stops or is gone.
pub(crate) async fn deliver(shared: Weak<Shared>) {
    let Some(mut stop) = shared.upgrade().map(|shared| shared.stop.clone()) else { return };
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = None;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stop.wait_for(|stopped| *stopped) => return,
        }
        let Some(shared) = shared.upgrade() else { return };
        let failure = deliver_due(&shared).await.err();
        // What stays as it is, as damage does, is said once.
        if let Some(error) = failure.as_ref().filter(|error| told.as_ref() != Some(*error)) {
            tracing::warn!(%error, "deliveries of Firehose could not be looked for");
        }
        told = failure;
    }
}

async fn deliver_due(shared: &Arc<Shared>) -> Result<(), Error> {
    let mut after: Option<String> = None;
    loop {
        let (page, more) = definition::page(&shared.ports, after.as_deref(), PAGE_ENTRIES_MAX).await?;
        after = page.last().map(|definition| definition.name.clone());
        let mut due = Vec::new();
        for definition in page {
            if shared.firehose.is_due(&definition, shared.clock.elapsed()) {
                due.push(deliver_if_there(shared.clone(), definition.name));
            }
        }
        // One that waits for the limits of its shard holds up no other.
        stream::iter(due).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        if !more {
            return Ok(());
        }
    }
}

/// Delivers what waits, unless the delivery stream has been deleted since it was listed.
async fn deliver_if_there(shared: Arc<Shared>, name: String) -> Result<(), Error> {
    let _alone = shared.firehose.delivering(&name).await;
    if let Some(definition) = definition::get(&shared.ports, &name).await? {
        // What fails has been told, and is tried again later.
        let _ = deliver_waiting(&shared, &definition, Until::Now).await;
    }
    Ok(())
}

/// When a delivery has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// What comes meanwhile waits anew, or there would be no end.
    Now,
    /// Nothing waits. Somebody sees to it that nothing comes.
    Empty,
}

/// Delivers everything that waits. What fails is tried again later. The caller keeps others from delivering.
pub(super) async fn deliver_waiting(
    shared: &Arc<Shared>,
    definition: &Definition,
    end: Until,
) -> Result<(), Error> {
    shared.firehose.begin(&definition.name);
    let began = shared.clock.now();
    let mut until = None;
    loop {
        let stopping = || *shared.stop.borrow();
        let delivered = match stopping() {
            true => Err(Error::Unavailable("the server stops".to_owned())),
            false => deliver_object(shared, definition, until).await,
        };
        match delivered {
            // The first object is delivered whatever the clock says, which may have been set back.
            Ok(true) => until = (end == Until::Now).then_some(began),
            Ok(false) => return Ok(()),
            Err(error) => {
                if !stopping() {
                    tracing::warn!(name = definition.name, %error, "Firehose could not deliver");
                    metrics::counter!("anabranch_firehose_failures_total").increment(1);
                }
                shared.firehose.postpone(&definition.name, shared.clock.elapsed() + RETRY);
                return Err(error);
            }
        }
    }
}

/// Delivers one object; false if nothing waits, or nothing that came until then.
async fn deliver_object(
    shared: &Arc<Shared>,
    definition: &Definition,
    until: Option<Timestamp>,
) -> Result<bool, Error> {
    let (ports, name) = (&shared.ports, &definition.name);
    let stream = buffer::stream(name)?;
    let shard = match buffer::shard(ports, &stream).await {
        // A crash between the two steps of making or deleting one leaves a definition without a stream.
        Err(Error::StreamNotFound(_)) => {
            return buffer::create(ports, name).await.map(|()| false);
        }
        shard => shard?,
    };
    let from = buffer::delivered(ports, name).await?;
    let reader = Reader::new(shared, definition, stream, shard);
    let one = ReadLimit { records: 1, ..ReadLimit::default() };
    let batch = reader.read(from, one).await?;
    let Some(first) = batch.records.first() else {
        // Damage that nothing follows is not met again.
        if let Some(passed) = reader.passed() {
            buffer::note(ports, name, passed).await?;
        }
        return Ok(false);
    };
    if until.is_some_and(|until| first.arrival > until) {
        shared.firehose.add(definition, 0, shared.clock.elapsed());
        return Ok(false);
    }
    let key = object::key(definition, first)?;
    let contents = Contents::new(reader.clone(), Position::At(first.sequence), definition);
    ports.blobs.put(&definition.bucket()?, &key, contents.into_body(), PutOptions::default()).await?;
    buffer::note(ports, name, reader.passed().unwrap_or(first.sequence)).await?;
    metrics::counter!("anabranch_firehose_objects_total").increment(1);
    Ok(true)
}
