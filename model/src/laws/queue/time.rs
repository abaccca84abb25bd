//! What time does to messages: it hides them, shows them and removes them.

use std::time::Duration;

use super::trial::{Trial, bodies, some, some_bodies, sorted};
use crate::laws::trial::NO_CLOCK;
use crate::queue::{NewMessage, QueueOptions, ReceiveOptions};
use crate::{Error, limits};

const SECOND: Duration = Duration::from_secs(1);

fn hidden_for(visibility: Duration) -> ReceiveOptions {
    ReceiveOptions { visibility: Some(visibility), ..ReceiveOptions::all() }
}

/// The visibility timeout of a receive comes before that of the queue.
pub async fn visibility_is_chosen_at_the_receive(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let queue = trial.queue_with(QueueOptions { visibility: 10 * SECOND, ..QueueOptions::default() }).await;
    trial.send(&queue, some("m", 1)).await;
    for (chosen, timeout) in [(Some(100 * SECOND), 100), (None, 10), (Some(3 * SECOND), 3)] {
        let options = ReceiveOptions { visibility: chosen, ..ReceiveOptions::all() };
        trial.same("messages", trial.receive_with(&queue, options).await.len(), 1);
        trial.advance((timeout - 1) * SECOND).await;
        trial.nothing("before the timeout", &queue).await;
        trial.advance(SECOND).await;
    }
    trial.same("messages", trial.receive_with(&queue, hidden_for(Duration::ZERO)).await.len(), 1);
    trial.same("messages that were not hidden", trial.receive(&queue).await.len(), 1);
}

/// A changed visibility counts from the change, longer or shorter; zero shows the message at once.
pub async fn visibility_can_be_changed(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 1)).await;
    let message = trial.receive_one(&queue).await;
    trial.advance(20 * SECOND).await;
    trial.ok("hiding for longer", trial.hide(&queue, &message.receipt, 30 * SECOND).await);
    trial.advance(29 * SECOND).await;
    trial.nothing("after the first timeout", &queue).await;
    trial.ok("hiding for less", trial.hide(&queue, &message.receipt, 5 * SECOND).await);
    trial.advance(5 * SECOND).await;
    let message = trial.receive_one(&queue).await;
    trial.ok("showing at once", trial.hide(&queue, &message.receipt, Duration::ZERO).await);
    trial.same("the count", trial.receive_one(&queue).await.receive_count, 3);
}

/// However often it is changed, hiding ends twelve hours after the receive.
pub async fn hiding_has_an_end(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 1)).await;
    let message = trial.receive_with(&queue, hidden_for(limits::VISIBILITY_MAX)).await.swap_remove(0);
    trial.advance(3600 * SECOND).await;
    let longer = trial.hide(&queue, &message.receipt, limits::VISIBILITY_MAX).await;
    trial.refused("hiding for thirteen hours", longer, |error| matches!(error, Error::Invalid(_)));
    let rest = limits::VISIBILITY_MAX - 3600 * SECOND;
    trial.ok("hiding for twelve hours", trial.hide(&queue, &message.receipt, rest).await);
    trial.advance(rest).await;
    trial.receive_one(&queue).await;
}

/// A message is not received before its own delay is over, or else the queue's.
pub async fn delayed_messages_wait(trial: Trial) {
    let queue = trial.queue_with(QueueOptions { delay: 60 * SECOND, ..QueueOptions::default() }).await;
    let own = |body: &'static str, seconds| NewMessage::new(body).after(seconds * SECOND);
    let messages = vec![own("at once", 0), own("late", 120), NewMessage::new("like the queue")];
    trial.send(&queue, messages).await;
    trial.same("messages at once", bodies(&trial.drain(&queue).await), vec!["at once".to_string()]);
    trial.same("counts", trial.counts(&queue).await, [0, 1, 2]);
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    trial.ok("purging", trial.store().purge(&queue).await);
    trial.send(&queue, vec![own("late", 120), NewMessage::new("like the queue")]).await;
    trial.advance(59 * SECOND).await;
    trial.nothing("before the delay is over", &queue).await;
    trial.advance(SECOND).await;
    trial.same("messages", bodies(&trial.drain(&queue).await), vec!["like the queue".to_string()]);
    trial.advance(60 * SECOND).await;
    let late = trial.drain(&queue).await;
    trial.holds(bodies(&late).contains(&"late".to_string()), "the longest delay never ends");
}

/// Messages older than the retention are gone, hidden ones too; younger ones stay.
pub async fn retention_removes_what_is_old(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let retention = 600 * SECOND;
    let queue = trial.queue_with(QueueOptions { retention, ..QueueOptions::default() }).await;
    trial.send(&queue, some("hidden", 1)).await;
    trial.receive_with(&queue, hidden_for(580 * SECOND)).await;
    trial.send(&queue, some("old", 2)).await;
    trial.advance(300 * SECOND).await;
    trial.send(&queue, some("young", 2)).await;
    trial.advance(301 * SECOND).await;
    trial.same("messages", sorted(&trial.drain(&queue).await), some_bodies("young", 2));
    trial.same("counts", trial.counts(&queue).await, [0, 2, 0]);
    trial.advance(300 * SECOND).await;
    trial.nothing("when all are old", &queue).await;
    trial.same("the age of the oldest", trial.summary(&queue).await.oldest_age, None);
}

/// Changed options are shown and hold: visibility for receives that come later, retention for messages that are there.
pub async fn changed_options_hold(trial: Trial) {
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 1)).await;
    let before = trial.summary(&queue).await;
    trial.advance(10 * SECOND).await;
    let options = QueueOptions { visibility: 5 * SECOND, retention: 60 * SECOND, ..QueueOptions::default() };
    trial.ok("changing options", trial.store().set_options(&queue, options.clone()).await);
    let after = trial.summary(&queue).await;
    trial.same("the options", after.options, options);
    trial.same("when it was made", after.created_at, before.created_at);
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    trial.holds(after.changed_at > before.changed_at, "the time of the change is not shown");
    trial.receive_one(&queue).await;
    trial.advance(5 * SECOND).await;
    trial.receive_one(&queue).await;
    trial.advance(46 * SECOND).await;
    trial.nothing("when it is older than the new retention", &queue).await;
}
