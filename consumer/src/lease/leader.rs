//! The lock of the leader, in the format of the DynamoDB lock client.
//!
//! Whoever has it spreads the leases and looks for shards without one. Nothing else waits for a leader. The lock has
//! expired when its version has stood still for its own duration while we looked.

use std::time::Duration;

use anabranch_model::table::expression::{Condition, exists, missing};
use anabranch_model::table::{Item, Update, Write, path};
use anabranch_model::{Error, Result};

use super::item::text;
use super::table::LeaseTable;
use crate::settings::Settings;

const LEADER: &str = "Leader";
const OWNER_NAME: &str = "ownerName";
const DURATION: &str = "leaseDuration";
const VERSION: &str = "recordVersionNumber";
const RELEASED: &str = "isReleased";

/// How long a lock of another library holds that does not say so.
const DURATION_DEFAULT: Duration = Duration::from_secs(120);

/// Most versions that are kept in mind while answers are lost: more than fit into the time that the lock holds.
const VERSIONS_MAX: usize = 10;

/// What this worker knows about the lock.
#[derive(Default)]
pub(crate) struct Leader {
    /// The versions of which one is in the lock unless somebody else has it: the one that was written last, and those whose
    /// answers are lost.
    mine: Vec<String>,
    /// When the write that made it the leader, or left it so, began.
    renewed_at: Option<Duration>,
    /// The version of someone else, since when it has stood, and how long it holds.
    other: Option<(String, Duration, Duration)>,
}

impl Leader {
    /// Whether this worker leads at the moment.
    pub(crate) fn leads(&self, settings: &Settings) -> bool {
        self.renewed_at.is_some_and(|at| settings.clock.elapsed() < at + settings.leader_time())
    }

    /// Keeps the lock, or tries to get it. Says whether this worker leads.
    pub(crate) async fn tick(&mut self, table: &LeaseTable, settings: &Settings) -> Result<bool> {
        let before = self.leads(settings);
        let led = match self.own(settings) {
            Some(own) => self.heartbeat(table, settings, own).await,
            None => self.acquire(table, settings).await,
        };
        let after = self.leads(settings);
        if before != after {
            tracing::info!(worker = %settings.worker, leads = after, "leadership changed");
        }
        led.map(|()| after)
    }

    /// Gives the lock back, so that nobody waits for it.
    pub(crate) async fn release(&mut self, table: &LeaseTable, settings: &Settings) -> Result<()> {
        let Some(own) = self.own(settings) else { return Ok(()) };
        self.lose();
        let place = table.leader_place();
        match table.write_at(place.table, Write::delete(place.key_of(LEADER)).when(own)).await {
            Ok(_) | Err(Error::ConditionFailed { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The condition that the lock is this worker's; none if it cannot be.
    fn own(&self, settings: &Settings) -> Option<Condition> {
        let versions = self.mine.iter().map(String::as_str);
        let own = || path(VERSION).one_of(versions).and(path(OWNER_NAME).equals(settings.worker.as_str()));
        (!self.mine.is_empty()).then(own)
    }

    fn lose(&mut self) {
        self.mine.clear();
        self.renewed_at = None;
    }

    /// What a write of a fresh version to the lock that is its own, or free, brought.
    fn wrote(&mut self, fresh: String, began: Duration, written: Result<Option<Item>>) -> Result<()> {
        match written {
            Ok(_) => {
                self.mine = vec![fresh];
                self.renewed_at = Some(began);
                self.other = None;
            }
            Err(Error::ConditionFailed { .. }) => self.lose(),
            // It may have been carried out: then this version is in the lock, and nobody else knows it.
            Err(error) => {
                if self.mine.len() < VERSIONS_MAX {
                    self.mine.push(fresh);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    async fn heartbeat(&mut self, table: &LeaseTable, settings: &Settings, own: Condition) -> Result<()> {
        let place = table.leader_place();
        let (began, fresh) = (settings.clock.elapsed(), fresh_version(settings));
        let update = Update::new()
            .set(DURATION, settings.leader_time().as_millis().to_string())
            .set(VERSION, fresh.as_str());
        let write = Write::update(place.key_of(LEADER), update).when(exists(place.key).and(own));
        let written = table.write_at(place.table, write).await;
        self.wrote(fresh, began, written)
    }

    async fn acquire(&mut self, table: &LeaseTable, settings: &Settings) -> Result<()> {
        let place = table.leader_place();
        let began = settings.clock.elapsed();
        let found = table.get(place.table, place.key_of(LEADER)).await?;
        let condition = match &found {
            None => missing(place.key),
            Some(item) => match self.expired(item, settings)? {
                Some(version) => exists(place.key).and(path(VERSION).equals(version.as_str())),
                None => return Ok(()),
            },
        };
        let fresh = fresh_version(settings);
        let item = place
            .item(LEADER)
            .with(OWNER_NAME, settings.worker.as_str())
            .with(DURATION, settings.leader_time().as_millis().to_string())
            .with(VERSION, fresh.as_str());
        let written = table.write_at(place.table, Write::put(item).when(condition)).await;
        self.wrote(fresh, began, written)
    }

    /// The version of a lock that holds no longer.
    fn expired(&mut self, item: &Item, settings: &Settings) -> Result<Option<String>> {
        let version = text(item, VERSION)?.unwrap_or_default().to_owned();
        if text(item, RELEASED)? == Some("1") {
            return Ok(Some(version));
        }
        let now = settings.clock.elapsed();
        let given = text(item, DURATION)?.and_then(|text| text.parse().ok()).map(Duration::from_millis);
        let duration = given.unwrap_or(DURATION_DEFAULT);
        match &self.other {
            Some((seen, since, duration)) if *seen == version => {
                Ok((now >= *since + *duration).then_some(version))
            }
            _ => {
                self.other = Some((version, now, duration));
                Ok(None)
            }
        }
    }
}

/// A version that was not there before, spelled as the other library spells it.
fn fresh_version(settings: &Settings) -> String {
    let (a, b) = (settings.dice.roll(), settings.dice.roll());
    let digits = format!("{a:016x}{b:016x}");
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}
