//! Receives that wait.

use std::future::Future;
use std::time::Duration;

use futures_util::future::{Either, join, select};

use super::trial::{Trial, bodies, some};
use crate::laws::trial::NO_CLOCK;
use crate::queue::{Message, NewMessage, QueueName, QueueOptions, ReceiveOptions};
use crate::{Error, limits};

fn waiting(wait: Duration) -> ReceiveOptions {
    ReceiveOptions { wait: Some(wait), ..ReceiveOptions::all() }
}

/// Gives a receive time to begin to wait, then lets something happen, and returns what was received in the end.
async fn received_during(
    trial: &Trial,
    queue: &QueueName,
    options: ReceiveOptions,
    happening: impl Future<Output = ()>,
) -> crate::Result<Vec<Message>> {
    let store = trial.store();
    let happening = async {
        trial.settle().await;
        happening.await;
    };
    join(store.receive(queue, options), happening).await.0
}

/// A receive that finds nothing returns as soon as a message is sent, and waits as the queue says if it does not say.
pub async fn a_receive_waits_for_a_message(trial: Trial) {
    let options = QueueOptions { receive_wait: limits::RECEIVE_WAIT_MAX, ..QueueOptions::default() };
    let queue = trial.queue_with(options).await;
    for wait in [Some(limits::RECEIVE_WAIT_MAX), None] {
        let options = ReceiveOptions { wait, ..ReceiveOptions::all() };
        let sending = async {
            trial.send(&queue, some("m", 1)).await;
        };
        let received = received_during(&trial, &queue, options, sending).await;
        let received = trial.ok("waiting", received);
        trial.same("messages", bodies(&received), vec!["m-0".to_string()]);
        trial.ok("deleting", trial.delete(&queue, &received[0].receipt).await);
    }
}

/// A receive returns with nothing when its wait is over, not before, and at once if it does not wait.
pub async fn a_receive_gives_up_when_its_wait_is_over(trial: Trial) {
    let queue = trial.queue().await;
    trial.same("messages", trial.receive_with(&queue, waiting(Duration::ZERO)).await.len(), 0);
    if !trial.can_advance() {
        let options = waiting(Duration::from_secs(1));
        return trial.same("messages", trial.receive_with(&queue, options).await.len(), 0);
    }
    let store = trial.store();
    let receive = store.receive(&queue, waiting(limits::RECEIVE_WAIT_MAX));
    let early = async {
        trial.settle().await;
        trial.advance(limits::RECEIVE_WAIT_MAX - Duration::from_secs(1)).await;
        trial.settle().await;
    };
    let receive = match select(receive, Box::pin(early)).await {
        Either::Left((received, _)) => trial.fail(format!("it did not wait: {received:?}")),
        Either::Right(((), receive)) => receive,
    };
    let (received, ()) = join(receive, trial.advance(Duration::from_secs(1))).await;
    trial.same("messages", trial.ok("waiting", received), Vec::new());
}

/// A message whose delay or visibility timeout ends while a receive waits is given to it.
pub async fn a_waiting_receive_sees_what_becomes_visible(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let queue = trial.queue().await;
    let ten = Duration::from_secs(10);
    trial.send_one(&queue, NewMessage::new("m").after(ten)).await;
    for count in 1..=2 {
        let options = ReceiveOptions { visibility: Some(ten), ..waiting(limits::RECEIVE_WAIT_MAX) };
        let received = received_during(&trial, &queue, options, trial.advance(ten)).await;
        let received = trial.ok("waiting", received);
        let counts: Vec<_> = received.iter().map(|message| message.receive_count).collect();
        trial.same("counts of receives", counts, vec![count]);
    }
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 1)).await;
    let receipt = trial.receive_one(&queue).await.receipt;
    let shown = async { trial.ok("showing", trial.hide(&queue, &receipt, Duration::ZERO).await) };
    let received = received_during(&trial, &queue, waiting(limits::RECEIVE_WAIT_MAX), shown).await;
    trial.same("messages that were shown", trial.ok("waiting", received).len(), 1);
}

/// Deleting the queue ends every receive that waits, even if a queue of the same name is made at once.
pub async fn deleting_the_queue_ends_the_waiting(trial: Trial) {
    let queue = trial.queue().await;
    let gone = |error: &Error| matches!(error, Error::QueueNotFound(_));
    for again in [true, false] {
        let deleting = async {
            trial.ok("deleting the queue", trial.store().delete_queue(&queue).await);
            if again {
                let made = trial.store().create_queue(&queue, QueueOptions::default()).await;
                trial.ok("making it again", made);
            }
        };
        let received = received_during(&trial, &queue, waiting(limits::RECEIVE_WAIT_MAX), deleting).await;
        trial.refused("waiting in a deleted queue", received, gone);
    }
}
