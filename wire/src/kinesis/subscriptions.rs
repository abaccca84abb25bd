//! Who gets which shard: one subscription for each shard and consumer. A new one takes the place of an old one, but not of
//! one that has just begun.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::ShardId;
use parking_lot::Mutex;
use tokio::sync::watch;

/// How long a subscription cannot be replaced.
const GRACE: Duration = Duration::from_secs(5);

type Key = (String, ShardId);

/// All subscriptions that run.
#[derive(Clone, Default)]
pub(super) struct Subscriptions {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    running: HashMap<Key, Running>,
    /// The number of the next one.
    next: u64,
}

struct Running {
    /// Tells this one from its successor.
    number: u64,
    /// By the stopwatch.
    began: Duration,
    /// Dropping it ends the subscription.
    _end: watch::Sender<()>,
}

/// A place that is held until it is dropped.
pub(super) struct Held {
    subscriptions: Subscriptions,
    key: Key,
    number: u64,
    /// Closes when another one takes the place.
    ended: watch::Receiver<()>,
}

impl Subscriptions {
    /// Takes the place of a consumer at a shard; none if somebody took it a moment ago.
    pub(super) fn take(&self, consumer: String, shard: ShardId, now: Duration) -> Option<Held> {
        let key = (consumer, shard);
        let mut inner = self.inner.lock();
        let before = inner.running.get(&key);
        if before.is_some_and(|before| now.saturating_sub(before.began) < GRACE) {
            return None;
        }
        let number = inner.next;
        inner.next += 1;
        let (end, ended) = watch::channel(());
        inner.running.insert(key.clone(), Running { number, began: now, _end: end });
        Some(Held { subscriptions: self.clone(), key, number, ended })
    }

    /// Ends all subscriptions of a consumer.
    pub(super) fn end_all(&self, consumer: &str) {
        self.inner.lock().running.retain(|(other, _), _| other != consumer);
    }
}

impl Held {
    /// Returns when another subscription has taken the place.
    pub(super) async fn replaced(&mut self) {
        // Nothing is ever sent, so this returns when the sender is gone.
        while self.ended.changed().await.is_ok() {}
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut inner = self.subscriptions.inner.lock();
        if inner.running.get(&self.key).is_some_and(|running| running.number == self.number) {
            inner.running.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_new_subscription_takes_the_place_of_an_old_one() {
        let subscriptions = Subscriptions::default();
        let take =
            |seconds| subscriptions.take("app".into(), ShardId::numbered(0), Duration::from_secs(seconds));
        let mut first = take(10).unwrap();
        assert!(take(14).is_none(), "it has just begun");
        assert!(subscriptions.take("other".into(), ShardId::numbered(0), Duration::from_secs(14)).is_some());
        let mut second = take(15).unwrap();
        first.replaced().await;
        drop(first);
        assert!(take(16).is_none(), "the second holds the place");
        subscriptions.end_all("app");
        second.replaced().await;
        assert!(take(17).is_some());
    }

    #[tokio::test]
    async fn a_place_is_free_when_its_holder_is_gone() {
        let subscriptions = Subscriptions::default();
        let take = || subscriptions.take("app".into(), ShardId::numbered(0), Duration::ZERO);
        drop(take().unwrap());
        assert!(take().is_some());
    }
}
