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

/// Renews until it is dropped. A lease ends in time even if renewals hang, so nothing that they do holds expiry up.
pub(crate) async fn renew_all(book: &Book, settings: &Settings) {
    tokio::join!(renew_regularly(book, settings), expire_in_time(book, settings));
}

async fn renew_regularly(book: &Book, settings: &Settings) {
    loop {
        let round = settings.clock.elapsed();
        let next = round + settings.renew_every();
        renew_round(book, settings, round, next).await;
        pause(next.saturating_sub(settings.clock.elapsed())).await;
    }
}

/// Renews what was not written lately, and tries again what fails. What expires first comes first, and nothing is begun
/// when the next round is due.
async fn renew_round(book: &Book, settings: &Settings, round: Duration, next: Duration) {
    // Half a round: a renewal of the last one is older, however much time passed before it began.
    let lately = round.saturating_sub(settings.renew_every() / 2);
    let renew = |held: Arc<Held>| async move {
        while settings.clock.elapsed() < next && !held.renew(lately).await {
            let again = settings.lease_time / 20;
            pause(settings.dice.between(again / 2, again)).await;
        }
    };
    let mut all = book.all();
    // Checkpoints renew too, while this sorts: each is asked once, or the order would contradict itself.
    all.sort_by_cached_key(|held| held.expires_at());
    stream::iter(all).for_each_concurrent(CALLS_MAX, renew).await;
}

/// Gives up what has expired, at the moment at which it does.
async fn expire_in_time(book: &Book, settings: &Settings) {
    loop {
        let now = settings.clock.elapsed();
        for held in book.all() {
            held.expire(now);
        }
        let open = book.all().into_iter().filter(|held| !held.is_lost());
        let first = open.map(|held| held.expires_at()).min().unwrap_or(now + settings.lease_time);
        pause_until_any(first.saturating_sub(now), book.changed.notified()).await;
    }
}
