//! Queues themselves: described, listed, deleted; and calls that are refused.

use std::time::Duration;

use super::trial::{Trial, bodies, grouped, some};
use crate::queue::{
    NewMessage, QueueName, QueueOptions, Receipt, ReceiveOptions, RedriveAllow, RedrivePolicy,
};
use crate::{Error, limits};

fn invalid(error: &Error) -> bool {
    matches!(error, Error::Invalid(_))
}

fn not_found(error: &Error) -> bool {
    matches!(error, Error::QueueNotFound(_))
}

/// A description counts visible, hidden and delayed messages and tells the age of the oldest.
pub async fn queues_are_described(trial: Trial) {
    let options = QueueOptions { visibility: Duration::from_secs(500), ..QueueOptions::default() };
    let queue = trial.queue_with(options.clone()).await;
    let summary = trial.summary(&queue).await;
    trial.same("the name and options", (summary.name, summary.options), (queue.clone(), options));
    trial.same("the age of nothing", summary.oldest_age, None);
    trial.send(&queue, some("hidden", 2)).await;
    trial.drain(&queue).await;
    trial.advance(Duration::from_secs(100)).await;
    trial.send(&queue, some("visible", 3)).await;
    trial.send_one(&queue, NewMessage::new("delayed").after(Duration::from_secs(60))).await;
    trial.same("counts", trial.counts(&queue).await, [3, 2, 1]);
    let age = trial.summary(&queue).await.oldest_age;
    if !trial.tells_age() {
        return trial.same("the age that nobody tells", age, None);
    }
    trial.holds(age.is_some(), "the oldest message has no age");
    if trial.can_advance() {
        trial.same("the age of the oldest", age, Some(Duration::from_secs(100)));
    }
}

/// Listings are in the order of names, page by page, and keep to a prefix.
pub async fn queues_are_listed_by_name(trial: Trial) {
    let mut names = Vec::new();
    for _ in 0..5 {
        names.push(trial.queue().await);
    }
    names.sort();
    let prefix = names[0].as_str().trim_end_matches(|c: char| c.is_ascii_digit()).to_string();
    for limit in [0, 1, 2, 5, 1_000] {
        let mut listed: Vec<QueueName> = Vec::new();
        loop {
            let page = trial.store().queues(listed.last(), limit, &prefix).await;
            let page = trial.ok("listing queues", page);
            let size = page.entries.len();
            trial.holds(size <= limit.max(1), format!("a page of {limit} has {size} queues"));
            trial.holds(size > 0 || !page.more, "an empty page says that there is more");
            listed.extend(page.entries.into_iter().map(|summary| summary.name));
            if !page.more {
                break;
            }
        }
        trial.same(format!("queues by {limit}"), listed, names.clone());
    }
    let none = trial.ok("listing queues", trial.store().queues(None, 10, "no-queue-begins-like-this").await);
    trial.same("queues with a strange prefix", none.entries.len(), 0);
}

/// A deleted queue is gone with its messages; a new one of the same name is empty.
pub async fn a_deleted_queue_is_gone(trial: Trial) {
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 3)).await;
    trial.ok("deleting a queue", trial.store().delete_queue(&queue).await);
    trial.refused("describing it", trial.store().queue(&queue).await, not_found);
    trial.ok("making it again", trial.store().create_queue(&queue, QueueOptions::default()).await);
    trial.nothing("from a new queue", &queue).await;
    trial.same("counts", trial.counts(&queue).await, [0, 0, 0]);
}

/// In a send each message has its own result: a bad one is refused, the others are sent.
pub async fn a_bad_message_fails_alone(trial: Trial) {
    let options = QueueOptions { message_bytes_max: 1_024, ..QueueOptions::default() };
    let queue = trial.queue_with(options).await;
    let long = Duration::from_secs(901);
    let bad = vec![
        NewMessage::new(""),
        NewMessage::new(vec![b'x'; 1_025]),
        NewMessage::new("late").after(long),
        NewMessage::new("known").known_as("1"),
    ];
    check_bad(&trial, &queue, bad, |message| message).await;
    let fifo = trial.queue_with(QueueOptions::fifo()).await;
    let body = || NewMessage::new("m");
    let bad = vec![
        body().known_as("no-group"),
        body().in_group("g"),
        body().in_group("g").known_as("delayed").after(Duration::ZERO),
        body().in_group("not visible").known_as("1"),
    ];
    check_bad(&trial, &fifo, bad, |message| message.in_group("g").known_as("good")).await;
}

async fn check_bad(
    trial: &Trial,
    queue: &QueueName,
    bad: Vec<NewMessage>,
    dress: fn(NewMessage) -> NewMessage,
) {
    for bad in bad {
        let what = format!("{bad:?}");
        let messages = vec![bad, dress(NewMessage::new("good"))];
        let results = trial.ok("send", trial.store().send(queue, messages).await);
        trial.same("results", results.len(), 2);
        trial.refused(what, results[0].clone(), invalid);
        trial.holds(results[1].is_ok(), format!("a good message was refused: {:?}", results[1]));
    }
    let received = trial.drain(queue).await;
    trial.holds(bodies(&received).iter().all(|body| body == "good"), "a bad message is received");
}

/// Batches without entries, of eleven, or of too many bytes are refused as a whole.
pub async fn bad_batches_are_refused(trial: Trial) {
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 1)).await;
    let receipt = trial.receive_one(&queue).await.receipt;
    let store = trial.store();
    for count in [0, 11] {
        trial.refused("a send", store.send(&queue, some("x", count)).await, invalid);
        let receipts = vec![receipt.clone(); count];
        trial.refused("a delete", store.delete(&queue, receipts.clone()).await, invalid);
        let changes = receipts.into_iter().map(|receipt| (receipt, Duration::ZERO)).collect();
        trial.refused("a change", store.change_visibility(&queue, changes).await, invalid);
    }
    let large = vec![NewMessage::new(vec![b'x'; limits::MESSAGE_BYTES_MAX / 2 + 1]); 2];
    trial.refused("a send of too many bytes", store.send(&queue, large).await, invalid);
    let too_long = trial.hide(&queue, &receipt, limits::VISIBILITY_MAX + Duration::from_secs(1)).await;
    trial.refused("hiding for too long", too_long, invalid);
    for options in [
        ReceiveOptions { messages_max: 0, ..ReceiveOptions::all() },
        ReceiveOptions { messages_max: 11, ..ReceiveOptions::all() },
        ReceiveOptions { wait: Some(Duration::from_secs(21)), ..ReceiveOptions::all() },
        ReceiveOptions { visibility: Some(Duration::from_secs(43_201)), ..ReceiveOptions::all() },
        ReceiveOptions { attempt: Some("a".into()), ..ReceiveOptions::all() },
    ] {
        trial.refused(format!("{options:?}"), store.receive(&queue, options).await, invalid);
    }
    trial.same("counts", trial.counts(&queue).await, [0, 1, 0]);
}

/// Names that exist, options out of range, the wrong ending and dead letters that nobody takes are refused.
pub async fn bad_queues_are_refused(trial: Trial) {
    let store = trial.store();
    let existing = trial.queue().await;
    let again = store.create_queue(&existing, QueueOptions::default()).await;
    trial.refused("making a queue twice", again, |error| matches!(error, Error::QueueExists(_)));
    let (plain, fifo) = (trial.fresh_name(false), trial.fresh_name(true));
    let base = QueueOptions::default;
    let denying = trial.queue_with(QueueOptions { redrive_allow: RedriveAllow::None, ..base() }).await;
    let to = |target: &QueueName, receives_max| QueueOptions {
        redrive: Some(RedrivePolicy { dead_letters: target.clone(), receives_max }),
        ..base()
    };
    let bad = [
        (&fifo, base()),
        (&plain, QueueOptions::fifo()),
        (&plain, QueueOptions { visibility: Duration::from_secs(43_201), ..base() }),
        (&plain, QueueOptions { retention: Duration::from_secs(59), ..base() }),
        (&plain, QueueOptions { delay: Duration::from_secs(901), ..base() }),
        (&plain, QueueOptions { message_bytes_max: 1, ..base() }),
        (&plain, to(&existing, 0)),
        (&plain, to(&existing, 1_001)),
        (&plain, to(&denying, 3)),
    ];
    for (name, options) in bad {
        trial.refused(
            format!("{name} {options:?}"),
            store.create_queue(name, options.clone()).await,
            invalid,
        );
        trial.refused("describing it", store.queue(name).await, not_found);
        if name == &plain {
            trial.refused("changing to it", store.set_options(&existing, options).await, invalid);
        }
    }
    let nowhere = store.create_queue(&plain, to(&trial.fresh_name(false), 3)).await;
    trial.refused("a dead-letter queue that does not exist", nowhere, not_found);
    trial.same("options", trial.summary(&existing).await.options, base());
}

/// Every call to a queue that does not exist says so.
pub async fn unknown_queues_are_refused(trial: Trial) {
    let (store, queue) = (trial.store(), trial.fresh_name(false));
    let receipt = trial.ok("spelling a receipt", Receipt::new("x"));
    trial.refused("delete_queue", store.delete_queue(&queue).await, not_found);
    trial.refused("queue", store.queue(&queue).await, not_found);
    trial.refused("set_options", store.set_options(&queue, QueueOptions::default()).await, not_found);
    trial.refused("send", store.send(&queue, grouped("g", some("m", 1))).await, not_found);
    trial.refused("receive", store.receive(&queue, ReceiveOptions::all()).await, not_found);
    trial.refused("delete", store.delete(&queue, vec![receipt.clone()]).await, not_found);
    let changes = vec![(receipt, Duration::ZERO)];
    trial.refused("change_visibility", store.change_visibility(&queue, changes).await, not_found);
    trial.refused("purge", store.purge(&queue).await, not_found);
    trial.refused("start_move", store.start_move(&queue, None, None).await, not_found);
    trial.refused("moves", store.moves(&queue).await, not_found);
}
