//! Renewal of all leases, in a task of its own that nothing a pipeline does can hold up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use parking_lot::Mutex;
use smol_str::SmolStr;
use tokio::sync::Notify;

use super::held::Held;
use crate::pause::{pause, pause_until_any};
use crate::settings::Settings;

/// Renewals that are under way at the same time.
const CALLS_MAX: usize = 20;

/// The leases that this worker holds, in an order that is the same in every run.
#[derive(Default)]
pub(crate) struct Book {
    held: Mutex<BTreeMap<SmolStr, Arc<Held>>>,
    changed: Notify,
}

impl Book {
    pub(crate) fn insert(&self, held: Arc<Held>) {
        self.held.lock().insert(held.info.lease.clone(), held);
        self.changed.notify_one();
    }

    pub(crate) fn remove(&self, lease: &str) {
        self.held.lock().remove(lease);
    }

    pub(crate) fn get(&self, lease: &str) -> Option<Arc<Held>> {
        self.held.lock().get(lease).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Held>> {
        self.held.lock().values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.held.lock().len()
    }
}

/// Renews until it is dropped.
pub(crate) async fn renew_all(book: &Book, settings: &Settings) {
    let mut previous = settings.clock.elapsed();
    loop {
        let round = settings.clock.elapsed();
        let next = round + settings.renew_every();
        // A lease ends in time even if a renewal hangs, so expiry is looked at while renewals are under way.
        tokio::join!(renew_round(book, settings, previous, next), expire_until(book, settings, next));
        previous = round;
    }
}

/// Renews what was not written since the round before, and tries again what fails.
async fn renew_round(book: &Book, settings: &Settings, previous: Duration, next: Duration) {
    let renew = |held: Arc<Held>| async move {
        while !held.renew(previous).await && settings.clock.elapsed() < next {
            let again = settings.lease_time / 20;
            pause(settings.dice.between(again / 2, again)).await;
        }
    };
    stream::iter(book.all()).for_each_concurrent(CALLS_MAX, renew).await;
}

/// Gives up what has expired, until the next round.
async fn expire_until(book: &Book, settings: &Settings, next: Duration) {
    loop {
        let now = settings.clock.elapsed();
        for held in book.all() {
            held.expire(now);
        }
        if now >= next {
            return;
        }
        let open = book.all().into_iter().filter(|held| !held.is_lost());
        let first = open.map(|held| held.expires_at()).min().unwrap_or(next).min(next);
        pause_until_any(first.saturating_sub(now), book.changed.notified()).await;
    }
}
