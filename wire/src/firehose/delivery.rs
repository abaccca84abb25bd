//! Deliveries: looked for every second, for as long as the server runs.

use std::sync::{Arc, Weak};
use std::time::Duration;

use anabranch_model::blob::PutOptions;
use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::stream::ReadLimit;
use anabranch_model::{Error, Timestamp};
use parking_lot::Mutex;
use tokio::time::MissedTickBehavior;

use super::contents::Contents;
use super::definition::{self, Definition};
use super::{buffer, object};
use crate::context::Shared;

/// How often deliveries are looked for.
const TICK: Duration = Duration::from_secs(1);
/// How long after a failure a delivery is tried again.
const RETRY: Duration = Duration::from_secs(10);

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

async fn deliver_due(shared: &Shared) -> Result<(), Error> {
    let mut after: Option<String> = None;
    loop {
        let (page, more) = definition::page(&shared.ports, after.as_deref(), PAGE_ENTRIES_MAX).await?;
        after = page.last().map(|definition| definition.name.clone());
        for definition in &page {
            if shared.firehose.is_due(definition, shared.clock.elapsed()) {
                let _alone = shared.firehose.delivering(&definition.name).await;
                // It may have been deleted since the page was read.
                if let Some(definition) = definition::get(&shared.ports, &definition.name).await? {
                    deliver_waiting(shared, &definition).await;
                }
            }
        }
        if !more {
            return Ok(());
        }
    }
}

/// Delivers everything that waits; what comes meanwhile waits anew, or there would be no end. What fails is tried again
/// later. The caller keeps others from delivering.
pub(super) async fn deliver_waiting(shared: &Shared, definition: &Definition) {
    shared.firehose.begin(&definition.name);
    let began = shared.clock.now();
    let mut until = None;
    while !*shared.stop.borrow() {
        match deliver_object(shared, definition, until).await {
            // The first object is delivered whatever the clock says, which may have been set back.
            Ok(true) => until = Some(began),
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(name = definition.name, %error, "Firehose could not deliver");
                metrics::counter!("anabranch_firehose_failures_total").increment(1);
                shared.firehose.postpone(&definition.name, shared.clock.elapsed() + RETRY);
                return;
            }
        }
    }
}

/// Delivers one object; false if nothing waits, or nothing that came until then.
async fn deliver_object(
    shared: &Shared,
    definition: &Definition,
    until: Option<Timestamp>,
) -> Result<bool, Error> {
    let ports = &shared.ports;
    let stream = buffer::stream(&definition.name)?;
    let shard = match buffer::shard(ports, &stream).await {
        // A crash between the two steps of making or deleting one leaves a definition without a stream.
        Err(Error::StreamNotFound(_)) => {
            return buffer::create(ports, &definition.name).await.map(|()| false);
        }
        shard => shard?,
    };
    let from = buffer::delivered(ports, &definition.name).await?;
    let one = ReadLimit { records: 1, ..ReadLimit::default() };
    let batch = ports.streams.read(&stream, &shard, from, one).await?;
    let Some(first) = batch.records.first() else { return Ok(false) };
    if until.is_some_and(|until| first.arrival > until) {
        shared.firehose.add(definition, 0, shared.clock.elapsed());
        return Ok(false);
    }
    let key = object::key(definition, first)?;
    let last = Arc::new(Mutex::new(first.sequence));
    let contents = Contents::new(ports.streams.clone(), (stream, shard, from), definition, last.clone());
    ports.blobs.put(&definition.bucket()?, &key, contents.into_body(), PutOptions::default()).await?;
    let last = *last.lock();
    buffer::note(ports, &definition.name, last).await?;
    metrics::counter!("anabranch_firehose_objects_total").increment(1);
    Ok(true)
}
