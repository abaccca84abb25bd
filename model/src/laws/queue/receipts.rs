//! What a receipt is good for, and until when.

use std::time::Duration;

use super::trial::{Trial, grouped, some};
use crate::Error;
use crate::laws::trial::NO_CLOCK;
use crate::limits::VISIBILITY_DEFAULT;
use crate::queue::{QueueName, QueueOptions, Receipt};

fn expired(error: &Error) -> bool {
    matches!(error, Error::ReceiptExpired(_))
}

fn not_in_flight(error: &Error) -> bool {
    matches!(error, Error::NotInFlight(_) | Error::ReceiptExpired(_))
}

/// In a standard queue a receipt deletes its message after the visibility timeout, as long as nobody else received it.
pub async fn late_receipts_delete_in_standard_queues(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 1)).await;
    let message = trial.receive_one(&queue).await;
    trial.advance(VISIBILITY_DEFAULT).await;
    trial.ok("deleting late", trial.delete(&queue, &message.receipt).await);
    trial.nothing("after a late delete", &queue).await;
    trial.same("counts", trial.counts(&queue).await, [0, 0, 0]);
}

/// Deleting with the receipt of an earlier receive succeeds, and whoever received the message since still can delete it.
pub async fn an_old_receipt_does_not_disturb_the_new_one(trial: Trial) {
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 1)).await;
    let old = trial.receive_one(&queue).await.receipt;
    trial.ok("showing at once", trial.hide(&queue, &old, Duration::ZERO).await);
    let new = trial.receive_one(&queue).await.receipt;
    trial.ok("deleting by the old receipt", trial.delete(&queue, &old).await);
    trial.ok("deleting by the new receipt", trial.delete(&queue, &new).await);
    trial.advance(VISIBILITY_DEFAULT).await;
    trial.nothing("after both deletes", &queue).await;
}

/// In a FIFO queue a receipt is worth nothing once the message is visible again, and the message stays.
pub async fn late_receipts_are_refused_in_fifo_queues(trial: Trial) {
    let queue = trial.fifo().await;
    trial.send(&queue, grouped("g", some("m", 1))).await;
    let old = trial.receive_one(&queue).await.receipt;
    trial.ok("showing at once", trial.hide(&queue, &old, Duration::ZERO).await);
    trial.refused("deleting what is visible", trial.delete(&queue, &old).await, expired);
    let new = trial.receive_one(&queue).await.receipt;
    trial.same("counts", trial.counts(&queue).await, [0, 1, 0]);
    if trial.can_advance() {
        trial.advance(VISIBILITY_DEFAULT).await;
        trial.refused("deleting late", trial.delete(&queue, &new).await, expired);
        let new = trial.receive_one(&queue).await.receipt;
        trial.ok("deleting in time", trial.delete(&queue, &new).await);
    } else {
        trial.ok("deleting in time", trial.delete(&queue, &new).await);
    }
    trial.same("counts", trial.counts(&queue).await, [0, 0, 0]);
}

/// In a FIFO queue the receipt of an earlier receive is worth nothing, and whoever received the message since keeps it.
pub async fn old_receipts_are_refused_in_fifo_queues(trial: Trial) {
    let queue = trial.fifo().await;
    trial.send(&queue, grouped("g", some("m", 1))).await;
    let old = trial.receive_one(&queue).await.receipt;
    trial.ok("showing at once", trial.hide(&queue, &old, Duration::ZERO).await);
    let new = trial.receive_one(&queue).await.receipt;
    trial.refused("deleting by the old receipt", trial.delete(&queue, &old).await, expired);
    trial.nothing("while another has it", &queue).await;
    trial.ok("showing it again", trial.hide(&queue, &new, Duration::ZERO).await);
    let new = trial.receive_one(&queue).await.receipt;
    trial.ok("deleting by the new receipt", trial.delete(&queue, &new).await);
    trial.same("counts", trial.counts(&queue).await, [0, 0, 0]);
}

/// Receipts of another queue, of an earlier queue of the same name, and texts that are none are refused alone.
pub async fn foreign_receipts_are_refused(trial: Trial) {
    let (queue, other) = (trial.queue().await, trial.queue().await);
    for queue in [&queue, &other] {
        trial.send(queue, some("m", 1)).await;
    }
    let earlier = trial.receive_one(&queue).await.receipt;
    trial.ok("deleting a queue", trial.store().delete_queue(&queue).await);
    trial.ok("making it again", trial.store().create_queue(&queue, QueueOptions::default()).await);
    trial.send(&queue, some("m", 2)).await;
    let foreign = trial.receive_one(&other).await.receipt;
    let nonsense = ["x", "1.2", "1.1.message-1", "-1.x.y"];
    let nonsense = nonsense.map(|text| trial.ok("spelling a receipt", Receipt::new(text)));
    let good = trial.drain(&queue).await;
    for bad in [&earlier, &foreign].into_iter().chain(&nonsense) {
        check_invalid(&trial, &queue, bad).await;
    }
    let receipts = vec![good[0].receipt.clone(), foreign.clone(), good[1].receipt.clone()];
    let results = trial.ok("delete", trial.store().delete(&queue, receipts).await);
    let kinds: Vec<_> = results.iter().map(|result| result.is_ok()).collect();
    trial.same("which receipts are taken", kinds, vec![true, false, true]);
    trial.same("counts of the other queue", trial.counts(&other).await, [0, 1, 0]);
}

async fn check_invalid(trial: &Trial, queue: &QueueName, receipt: &Receipt) {
    let invalid = |error: &Error| matches!(error, Error::ReceiptInvalid(..));
    trial.refused(format!("deleting by {receipt}"), trial.delete(queue, receipt).await, invalid);
    let hidden = trial.hide(queue, receipt, VISIBILITY_DEFAULT).await;
    trial.refused(format!("hiding by {receipt}"), hidden, invalid);
    trial.same("counts", trial.counts(queue).await, [0, 2, 0]);
}

/// In a standard queue a receipt hides its message also when it is visible again.
pub async fn late_receipts_hide_in_standard_queues(trial: Trial) {
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 1)).await;
    let old = trial.receive_one(&queue).await.receipt;
    trial.ok("showing at once", trial.hide(&queue, &old, Duration::ZERO).await);
    trial.ok("hiding what is visible", trial.hide(&queue, &old, VISIBILITY_DEFAULT).await);
    trial.nothing("while it is hidden again", &queue).await;
    trial.same("counts", trial.counts(&queue).await, [0, 1, 0]);
    trial.ok("showing it again", trial.hide(&queue, &old, Duration::ZERO).await);
    trial.receive_one(&queue).await;
}

/// Whoever received a message keeps it, whatever is done with the receipt of an earlier receive.
pub async fn old_receipts_show_nothing(trial: Trial) {
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 1)).await;
    let old = trial.receive_one(&queue).await.receipt;
    trial.ok("showing at once", trial.hide(&queue, &old, Duration::ZERO).await);
    let new = trial.receive_one(&queue).await.receipt;
    // Refused or not, it changes nothing.
    let _ = trial.hide(&queue, &old, Duration::ZERO).await;
    trial.nothing("while another has it", &queue).await;
    trial.same("counts", trial.counts(&queue).await, [0, 1, 0]);
    trial.ok("deleting by the new receipt", trial.delete(&queue, &new).await);
    trial.same("counts", trial.counts(&queue).await, [0, 0, 0]);
}

/// In a FIFO queue what is visible cannot be hidden for longer, nor what someone else received since.
pub async fn only_messages_in_flight_can_be_hidden(trial: Trial) {
    let queue = trial.fifo().await;
    trial.send(&queue, grouped("g", some("m", 1))).await;
    let receipt = trial.receive_one(&queue).await.receipt;
    trial.ok("showing at once", trial.hide(&queue, &receipt, Duration::ZERO).await);
    let visible = trial.hide(&queue, &receipt, VISIBILITY_DEFAULT).await;
    trial.refused("hiding what is visible", visible, |error| matches!(error, Error::NotInFlight(_)));
    trial.receive_one(&queue).await;
    let by_the_old = trial.hide(&queue, &receipt, VISIBILITY_DEFAULT).await;
    trial.refused("hiding by the old receipt", by_the_old, not_in_flight);
}

/// What is deleted cannot be hidden for longer.
pub async fn deleted_messages_cannot_be_hidden(trial: Trial) {
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 1)).await;
    let receipt = trial.receive_one(&queue).await.receipt;
    trial.ok("deleting", trial.delete(&queue, &receipt).await);
    let gone = trial.hide(&queue, &receipt, VISIBILITY_DEFAULT).await;
    trial.refused("hiding what is gone", gone, |error| matches!(error, Error::NotInFlight(_)));
}
