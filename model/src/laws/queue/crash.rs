//! What was acknowledged is so after the store ended without warning.

use std::time::Duration;

use super::trial::{Trial, bodies, grouped, some, some_bodies, sorted};
use crate::laws::trial::NO_CRASH;
use crate::limits::VISIBILITY_DEFAULT;
use crate::queue::QueueOptions;

/// Sent messages are there after a crash, and deleted ones are not.
pub async fn sends_and_deletes_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let queue = trial.queue().await;
    for round in 0..3 {
        trial.send(&queue, some("gone", 2)).await;
        let gone = trial.drain(&queue).await;
        trial.send(&queue, some("m", 5)).await;
        trial.crash().await;
        for message in &gone {
            trial.ok("deleting", trial.delete(&queue, &message.receipt).await);
        }
        trial.crash().await;
        let left = trial.drain(&queue).await;
        trial.same(format!("messages after crash {round}"), sorted(&left), some_bodies("m", 5));
        trial.ok("purging", trial.store().purge(&queue).await);
        trial.crash().await;
        trial.same("counts after purging", trial.counts(&queue).await, [0, 0, 0]);
    }
}

/// A message that was received stays hidden until its time, its receipt stays good, and its count goes on.
pub async fn messages_in_flight_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 2)).await;
    let before = trial.drain(&queue).await;
    trial.crash().await;
    trial.nothing("inside their visibility, after a crash", &queue).await;
    trial.ok("hiding", trial.hide(&queue, &before[1].receipt, 2 * VISIBILITY_DEFAULT).await);
    trial.crash().await;
    trial.ok("deleting", trial.delete(&queue, &before[0].receipt).await);
    if trial.can_advance() {
        trial.advance(VISIBILITY_DEFAULT).await;
        trial.nothing("inside its changed visibility", &queue).await;
        trial.advance(VISIBILITY_DEFAULT).await;
    } else {
        trial.ok("showing", trial.hide(&queue, &before[1].receipt, Duration::ZERO).await);
    }
    let again = trial.receive_one(&queue).await;
    trial.same("the message", (again.id, again.receive_count), (before[1].id.clone(), 2));
}

/// Order, numbers and duplicates of FIFO queues survive a crash.
pub async fn order_and_duplicates_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let queue = trial.fifo().await;
    let mut numbers = Vec::new();
    let mut expected = Vec::new();
    for round in 0..3 {
        let messages = grouped("g", some(&format!("{round}"), 3));
        let sent = trial.send(&queue, messages.clone()).await;
        trial.crash().await;
        trial.same("duplicates after a crash", trial.send(&queue, messages).await, sent.clone());
        numbers.extend(sent.into_iter().map(|sent| sent.sequence));
        expected.extend(some_bodies(&format!("{round}"), 3));
    }
    trial.holds(numbers.is_sorted_by(|a, b| a < b), format!("numbers do not grow: {numbers:?}"));
    let received = trial.receive(&queue).await;
    trial.same("messages", bodies(&received), expected);
    trial.crash().await;
    trial.nothing("while the group is in flight, after a crash", &queue).await;
}

/// Queues, their options, dead letters and receipts of deleted queues are after a crash what they were before.
pub async fn queues_survive_a_crash(trial: Trial) {
    if !trial.can_crash() {
        return trial.skip(NO_CRASH);
    }
    let [queue, dead] = trial.with_dead_letters(false, 1).await;
    let gone = trial.queue().await;
    trial.ok("deleting a queue", trial.store().delete_queue(&gone).await);
    trial.crash().await;
    let listed = trial.store().queue(&gone).await;
    trial.refused("a deleted queue", listed, |error| matches!(error, crate::Error::QueueNotFound(_)));
    let options = trial.summary(&queue).await.options;
    let options = QueueOptions { visibility: Duration::from_secs(7), ..options };
    trial.ok("changing options", trial.store().set_options(&queue, options.clone()).await);
    trial.crash().await;
    trial.same("the options", trial.summary(&queue).await.options, options);
    trial.send(&queue, some("m", 1)).await;
    let message = trial.receive_one(&queue).await;
    trial.ok("showing", trial.hide(&queue, &message.receipt, Duration::ZERO).await);
    trial.nothing("when it was received too often", &queue).await;
    trial.crash().await;
    trial.nothing("of the queue, after a crash", &queue).await;
    let letter = trial.receive_one(&dead).await;
    trial.same("the dead letter", (letter.id, letter.dead_letter_source), (message.id, Some(queue)));
}
