//! Queues that keep an order: groups, duplicates, receives that can be repeated.

use std::collections::BTreeMap;
use std::time::Duration;

use super::trial::{Trial, bodies, grouped, some};
use crate::laws::trial::NO_CLOCK;
use crate::limits::{DEDUPLICATION_WINDOW, VISIBILITY_DEFAULT};
use crate::queue::{
    Attribute, AttributeValue, DeduplicationScope, Message, NewMessage, QueueOptions, ReceiveOptions,
};

fn one() -> ReceiveOptions {
    ReceiveOptions { messages_max: 1, ..ReceiveOptions::all() }
}

fn of_group(messages: &[Message], group: &str) -> Vec<String> {
    let of_group = |message: &&Message| message.group.as_deref() == Some(group);
    bodies(&messages.iter().filter(of_group).cloned().collect::<Vec<_>>())
}

/// Messages of a group are received in the order of their sends, whatever is received at once; numbers grow.
pub async fn groups_keep_their_order(trial: Trial) {
    let queue = trial.fifo().await;
    let mut numbers = Vec::new();
    for round in 0..4 {
        for group in ["a", "b"] {
            let sent = trial.send(&queue, grouped(group, some(&format!("{group}{round}"), 3))).await;
            numbers.extend(sent.into_iter().map(|sent| sent.sequence));
        }
    }
    trial.holds(numbers.iter().all(Option::is_some), "a message has no sequence number");
    trial.holds(numbers.is_sorted_by(|a, b| a < b), format!("sequence numbers do not grow: {numbers:?}"));
    let mut received: Vec<Message> = Vec::new();
    for size in (1..=5).cycle() {
        let options = ReceiveOptions { messages_max: size, ..ReceiveOptions::all() };
        let messages = trial.receive_with(&queue, options).await;
        if messages.is_empty() {
            break;
        }
        for message in &messages {
            trial.ok("deleting", trial.delete(&queue, &message.receipt).await);
        }
        received.extend(messages);
    }
    for group in ["a", "b"] {
        let expected: Vec<_> =
            (0..4).flat_map(|round| (0..3).map(move |n| format!("{group}{round}-{n}"))).collect();
        trial.same(format!("messages of group {group}"), of_group(&received, group), expected);
    }
    let mut seen: Vec<_> = received.iter().map(|message| message.sequence).collect();
    seen.sort();
    trial.same("sequence numbers of messages", seen, numbers);
}

/// While a message of a group is in flight the group gives nothing else; when it is visible again it comes first.
pub async fn a_message_in_flight_holds_up_its_group(trial: Trial) {
    let queue = trial.fifo().await;
    trial.send(&queue, grouped("g", some("m", 3))).await;
    let first = trial.receive_with(&queue, one()).await;
    trial.same("the first", bodies(&first), vec!["m-0".to_string()]);
    trial.nothing("while the first is in flight", &queue).await;
    trial.ok("showing at once", trial.hide(&queue, &first[0].receipt, Duration::ZERO).await);
    let first = trial.receive_with(&queue, one()).await;
    trial.same("the first again", bodies(&first), vec!["m-0".to_string()]);
    trial.ok("deleting", trial.delete(&queue, &first[0].receipt).await);
    let rest = trial.receive(&queue).await;
    trial.holds(bodies(&rest).first().is_some_and(|body| body == "m-1"), "the second does not come next");
}

/// A group whose message is in flight does not hold up the others.
pub async fn groups_do_not_hold_each_other_up(trial: Trial) {
    let queue = trial.fifo().await;
    for group in ["a", "b", "c"] {
        trial.send(&queue, grouped(group, some(group, 2))).await;
    }
    let mut groups = Vec::new();
    for _ in 0..3 {
        let messages = trial.receive_with(&queue, one()).await;
        trial.same("messages", messages.len(), 1);
        groups.extend(messages.into_iter().filter_map(|message| message.group));
    }
    groups.sort();
    trial.same("groups that were served", groups, ["a", "b", "c"].map(String::from).to_vec());
    trial.nothing("while each group has one in flight", &queue).await;
}

/// A duplicate is acknowledged as the first and not received, even after that one was deleted.
pub async fn duplicates_are_not_received(trial: Trial) {
    let queue = trial.queue_with(QueueOptions::fifo()).await;
    let message = |body: &str, id: &str| NewMessage::new(body.to_string()).in_group("g").known_as(id);
    let first = trial.send_one(&queue, message("first", "1")).await;
    let batch = vec![message("other body", "1"), message("second", "2"), message("third", "2")];
    let sent = trial.send(&queue, batch).await;
    trial.same("the duplicate", &sent[0], &first);
    trial.same("the duplicate in its own batch", &sent[2], &sent[1]);
    let received = trial.receive(&queue).await;
    trial.same("messages", bodies(&received), vec!["first".to_string(), "second".to_string()]);
    trial.same("the deduplication id", received[0].deduplication.as_deref(), Some("1"));
    for message in &received {
        trial.ok("deleting", trial.delete(&queue, &message.receipt).await);
    }
    trial.same("a duplicate of what is gone", trial.send_one(&queue, message("first", "1")).await, first);
    trial.nothing("after a duplicate of what is gone", &queue).await;
}

/// Where the queue deduplicates by content, equal bodies are duplicates, whatever their attributes; an identifier of
/// the message's own comes before the body.
pub async fn equal_bodies_are_duplicates(trial: Trial) {
    let queue = trial.fifo().await;
    let plain = NewMessage::new("body").in_group("g");
    let value = Attribute { kind: "String".into(), value: AttributeValue::Text("v".into()) };
    let attributed = NewMessage { attributes: BTreeMap::from([("a".to_string(), value)]), ..plain.clone() };
    let first = trial.send_one(&queue, plain.clone()).await;
    trial.same("the duplicate", trial.send_one(&queue, attributed).await, first.clone());
    let own = trial.send_one(&queue, plain.clone().known_as("own")).await;
    trial.holds(own.id != first.id, "an identifier of its own does not come before the body");
    let received = trial.receive(&queue).await;
    let ids: Vec<_> = received.iter().map(|message| message.id.clone()).collect();
    trial.same("messages", ids, vec![first.id, own.id]);
    trial.same("the id", received[0].deduplication.clone(), Some(plain.deduplication_id()));
}

/// Duplicates are recognised for five minutes after the first, and not for longer.
pub async fn duplicates_are_recognised_for_a_while(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let queue = trial.fifo().await;
    let message = || NewMessage::new("body").in_group("g");
    let first = trial.send_one(&queue, message()).await;
    trial.advance(DEDUPLICATION_WINDOW - Duration::from_secs(1)).await;
    trial.same("a duplicate in time", trial.send_one(&queue, message()).await, first.clone());
    trial.advance(Duration::from_secs(1)).await;
    let second = trial.send_one(&queue, message()).await;
    trial.holds(second.id != first.id, "a duplicate is recognised for too long");
    trial.same("messages", trial.receive(&queue).await.len(), 2);
}

/// Duplicates are looked for in the whole queue, or in the group if the queue says so.
pub async fn duplicates_are_looked_for_in_their_scope(trial: Trial) {
    for (deduplication_scope, expected) in [(DeduplicationScope::Queue, 1), (DeduplicationScope::Group, 2)] {
        let options = QueueOptions { deduplication_scope, ..QueueOptions::fifo() };
        let queue = trial.queue_with(options).await;
        for group in ["a", "b", "a"] {
            trial.send_one(&queue, NewMessage::new("m").in_group(group).known_as("1")).await;
        }
        let received = trial.drain(&queue).await;
        trial.same(format!("messages by {deduplication_scope:?}"), received.len(), expected);
    }
}

/// A receive of the same attempt gives the same again, uncounted and hidden anew; not once something was deleted.
pub async fn a_receive_can_be_repeated(trial: Trial) {
    let queue = trial.fifo().await;
    trial.send(&queue, grouped("g", some("m", 4))).await;
    let attempt = |name: &str| ReceiveOptions {
        messages_max: 2,
        attempt: Some(name.to_string()),
        ..ReceiveOptions::all()
    };
    let first = trial.receive_with(&queue, attempt("one")).await;
    trial.same("messages", bodies(&first), vec!["m-0".to_string(), "m-1".to_string()]);
    trial.advance(VISIBILITY_DEFAULT / 2).await;
    trial.same("another attempt", trial.receive_with(&queue, attempt("two")).await, Vec::new());
    trial.same("the same attempt", trial.receive_with(&queue, attempt("one")).await, first.clone());
    trial.advance(VISIBILITY_DEFAULT / 2).await;
    trial.nothing("because hiding began anew", &queue).await;
    for message in &first {
        trial.ok("deleting", trial.delete(&queue, &message.receipt).await);
    }
    let rest = trial.receive_with(&queue, attempt("one")).await;
    trial.same("the attempt after a delete", bodies(&rest), vec!["m-2".to_string(), "m-3".to_string()]);
}
