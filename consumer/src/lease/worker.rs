//! What workers say about themselves, so that whoever leads knows who can have leases.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anabranch_model::table::{Item, Update, Write};
use anabranch_model::{Error, Result};
use smol_str::SmolStr;

use super::item::{ENTITY, text, whole};
use super::layout::Layout;
use super::table::LeaseTable;
use crate::settings::{Settings, WORKER_ROW_AGE_MAX};

const LAST_UPDATE: &str = "lut";
const STATS: &str = "sts";
const RANGES: &str = "opr";
/// What this worker can do, and when it said so: it can work with one table.
const SUPPORT: &str = "sup";
const SUPPORT_UPDATE: &str = "slu";
const SUPPORTS_ONE_TABLE: u64 = 1;

/// How old a row is that nobody needs any more.
const ROW_AGE_REMOVED: Duration = Duration::from_secs(24 * 3600);

/// The workers as their rows show them.
#[derive(Default)]
pub(crate) struct Workers {
    seen: HashMap<SmolStr, Seen>,
}

struct Seen {
    last_update: u64,
    /// When it was seen to change, on the stopwatch; none if it looked old from the beginning.
    since: Option<Duration>,
    /// It let a lease expire and has not said a word since.
    silent: bool,
}

/// Says that this worker lives. It measures nothing but throughput, which the leases say, so its own figures are empty.
pub(crate) async fn report(table: &LeaseTable, settings: &Settings) -> Result<()> {
    let place = table.worker_place();
    let seconds = settings.clock.now().as_millis() / 1000;
    let mut update = Update::new()
        .set(LAST_UPDATE, seconds)
        .set(STATS, Item::new())
        .set(RANGES, Item::new())
        .set("properties", Item::new());
    if let (Layout::One, Some(entity)) = (table.layout(), place.entity) {
        update = update.set(ENTITY, entity).set(SUPPORT, SUPPORTS_ONE_TABLE).set(SUPPORT_UPDATE, seconds);
    }
    table.write_at(place.table, Write::update(place.key_of(&settings.worker), update)).await.map(drop)
}

/// Says that this worker is gone.
pub(crate) async fn withdraw(table: &LeaseTable, settings: &Settings) -> Result<()> {
    let place = table.worker_place();
    table.write_at(place.table, Write::delete(place.key_of(&settings.worker))).await.map(drop)
}

impl Workers {
    /// Reads the rows. Those that are a day old are removed if this worker leads.
    pub(crate) async fn look(&mut self, table: &LeaseTable, settings: &Settings, tidy: bool) -> Result<()> {
        let place = table.worker_place();
        let (now, seconds) = (settings.clock.elapsed(), settings.clock.now().as_millis() / 1000);
        let items = table.scan(place.table).await?;
        let mut fresh = HashMap::new();
        for item in items.iter().filter(|item| place.holds(item)) {
            let Some(name) = text(item, place.key)? else { continue };
            let last_update = whole(item, LAST_UPDATE)?;
            let age = Duration::from_secs(seconds.saturating_sub(last_update));
            if tidy && age > ROW_AGE_REMOVED {
                table.write_at(place.table, Write::delete(place.key_of(name))).await?;
                continue;
            }
            let (since, silent) = match self.seen.get(name) {
                Some(seen) if seen.last_update == last_update => (seen.since, seen.silent),
                Some(_) => (Some(now), false),
                None => ((age < WORKER_ROW_AGE_MAX).then_some(now), false),
            };
            fresh.insert(SmolStr::from(name), Seen { last_update, since, silent });
        }
        self.seen = fresh;
        Ok(())
    }

    /// A worker let a lease expire: it does not count as alive until its row changes.
    pub(crate) fn note_silent(&mut self, worker: &str) {
        if let Some(seen) = self.seen.get_mut(worker) {
            seen.silent = true;
        }
    }

    /// The workers whose rows have changed lately.
    pub(crate) fn alive(&self, now: Duration) -> HashSet<SmolStr> {
        let lately =
            |seen: &Seen| !seen.silent && seen.since.is_some_and(|since| now < since + WORKER_ROW_AGE_MAX);
        self.seen.iter().filter(|(_, seen)| lately(seen)).map(|(name, _)| name.clone()).collect()
    }
}

/// Workers that do not know a table yet make it again when it is gone; that is no error of theirs.
pub(crate) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::TableNotFound(_))
}
