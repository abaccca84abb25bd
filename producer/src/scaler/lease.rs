//! Which of several scalers acts: the one that holds the lease of the stream.
//!
//! The lease has expired when its version has stood still for its own duration while we looked, so clocks of different
//! machines are never compared. Each write names the version of the one before.

use std::time::Duration;

use anabranch_model::table::expression::{exists, missing};
use anabranch_model::table::{Item, Write, path};
use anabranch_model::{Clock, Dice, Error, Result, StreamName};

use super::table::{ScalerTable, key, number, text};

const LEASE: &str = "lease";
const OWNER: &str = "owner";
const VERSION: &str = "version";
const DURATION: &str = "duration_ms";
const ENTRY: &str = "entry";

/// How long a lease holds without renewal.
pub(super) const LEASE_TIME: Duration = Duration::from_secs(15);

/// What this process knows about the lease.
#[derive(Debug, Default)]
pub(super) struct Lease {
    /// The version that this process wrote last, if it holds the lease.
    mine: Option<String>,
    /// When the write of that version began.
    renewed_at: Duration,
    /// The version of somebody else, since when it has stood, and how long it holds.
    other: Option<(String, Duration, Duration)>,
}

impl Lease {
    /// Whether this process may act at the moment.
    pub(super) fn holds(&self, clock: &dyn Clock) -> bool {
        self.mine.is_some() && clock.elapsed() < self.renewed_at + LEASE_TIME
    }

    /// Keeps the lease, or tries to get it. Says whether this process holds it.
    pub(super) async fn tick(
        &mut self,
        table: &ScalerTable,
        stream: &StreamName,
        owner: &str,
        clock: &dyn Clock,
        dice: &Dice,
    ) -> Result<bool> {
        let began = clock.elapsed();
        let condition = match self.mine.take() {
            Some(version) => exists(ENTRY).and(path(VERSION).equals(version.as_str())),
            None => match table.get(stream, LEASE).await? {
                None => missing(ENTRY),
                Some(item) => match self.expired(&item, began) {
                    Some(version) => exists(ENTRY).and(path(VERSION).equals(version.as_str())),
                    None => return Ok(false),
                },
            },
        };
        let fresh = format!("{:016x}{:016x}", dice.roll(), dice.roll());
        let item = key(stream, LEASE)
            .with(OWNER, owner)
            .with(VERSION, fresh.as_str())
            .with(DURATION, LEASE_TIME.as_millis() as u64);
        match table.write(Write::put(item).when(condition)).await {
            Ok(()) => {
                (self.mine, self.renewed_at) = (Some(fresh), began);
                Ok(true)
            }
            Err(Error::ConditionFailed { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives the lease back, so that nobody waits for it.
    pub(super) async fn release(&mut self, table: &ScalerTable, stream: &StreamName) -> Result<()> {
        let Some(version) = self.mine.take() else { return Ok(()) };
        let condition = path(VERSION).equals(version.as_str());
        match table.write(Write::delete(key(stream, LEASE)).when(condition)).await {
            Ok(()) | Err(Error::ConditionFailed { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The version of a lease that nobody renews.
    fn expired(&mut self, item: &Item, now: Duration) -> Option<String> {
        let version = text(item, VERSION)?.to_owned();
        let duration = number(item, DURATION).map_or(LEASE_TIME, Duration::from_millis);
        match &self.other {
            Some((seen, since, duration)) if *seen == version => {
                (now >= *since + *duration).then_some(version)
            }
            _ => {
                self.other = Some((version, now, duration));
                None
            }
        }
    }
}
