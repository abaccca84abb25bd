//! Messages of standard queues: sent, received, hidden, counted, deleted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use super::trial::{Trial, bodies, some, some_bodies, sorted};
use crate::laws::trial::NO_CLOCK;
use crate::limits;
use crate::queue::{Attribute, AttributeValue, NewMessage, ReceiveOptions};

/// Body and attributes come back byte for byte, under the identifier that the sender was told.
pub async fn messages_come_back_as_they_were(trial: Trial) {
    let queue = trial.queue().await;
    let text = Attribute { kind: "Number.int".into(), value: AttributeValue::Text("42 ✓".into()) };
    let binary = Attribute { kind: "Binary".into(), value: AttributeValue::Binary(vec![0, 255].into()) };
    let attributes = BTreeMap::from([("b.1".to_string(), text), ("a_2".to_string(), binary)]);
    for body in [b"plain text".to_vec(), vec![0, 255, 254, 10], "🦦".as_bytes().to_vec()] {
        let message = NewMessage { attributes: attributes.clone(), ..NewMessage::new(body) };
        let sent = trial.send_one(&queue, message.clone().in_group("fair")).await;
        let received = trial.receive_one(&queue).await;
        trial.same("the body", received.body, message.body);
        trial.same("the attributes", received.attributes, message.attributes);
        trial.same("the identifier", received.id, sent.id);
        trial.same("the group", received.group.as_deref(), Some("fair"));
        trial.same("the source", received.dead_letter_source, None);
    }
}

/// A trace comes back as it was, and takes nothing from what else a message can have.
pub async fn traces_come_back(trial: Trial) {
    let queue = trial.queue().await;
    let text = Attribute { kind: "String".into(), value: AttributeValue::Text("x".into()) };
    let most =
        (0..limits::MESSAGE_ATTRIBUTES_MAX).map(|number| (format!("a{number}"), text.clone())).collect();
    let trace = || Some("Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1".to_string());
    for message in [
        NewMessage { attributes: most, trace: trace(), ..NewMessage::new("with others") },
        NewMessage { trace: trace(), ..NewMessage::new("alone") },
        NewMessage::new("untraced"),
    ] {
        trial.send_one(&queue, message.clone()).await;
        let received = trial.receive_one(&queue).await;
        trial.same("the trace", received.trace, message.trace);
        trial.same("the attributes", received.attributes, message.attributes);
    }
}

/// A message in flight is given to nobody; after its visibility timeout it is there again.
pub async fn a_received_message_is_hidden(trial: Trial) {
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 3)).await;
    trial.same("messages received", sorted(&trial.drain(&queue).await), some_bodies("m", 3));
    trial.nothing("while all are in flight", &queue).await;
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    trial.advance(limits::VISIBILITY_DEFAULT - Duration::from_secs(1)).await;
    trial.nothing("a second before the timeout", &queue).await;
    trial.advance(Duration::from_secs(1)).await;
    trial.same("messages after the timeout", sorted(&trial.drain(&queue).await), some_bodies("m", 3));
}

/// Every receive counts one up and has a receipt of its own; the times of the send and of the first receive stay.
pub async fn receives_are_counted(trial: Trial) {
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 1)).await;
    let mut receipts = HashSet::new();
    let mut first = None;
    for count in 1..=4 {
        let message = trial.receive_one(&queue).await;
        trial.same("the count of receives", message.receive_count, count);
        trial.holds(receipts.insert(message.receipt.clone()), "a receipt was given twice");
        let times = (message.sent_at, message.first_received_at);
        trial.same("the times", times, *first.get_or_insert(times));
        trial.ok("making it visible", trial.hide(&queue, &message.receipt, Duration::ZERO).await);
        trial.advance(Duration::from_secs(1)).await;
    }
}

/// A deleted message is gone for good, and the others stay. Deleting it once more succeeds.
pub async fn deleted_messages_never_come_back(trial: Trial) {
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 8)).await;
    let messages = trial.drain(&queue).await;
    let (gone, left) = messages.split_at(4);
    for message in gone.iter().chain(gone) {
        trial.ok("deleting", trial.delete(&queue, &message.receipt).await);
    }
    for message in left {
        trial.ok("making it visible", trial.hide(&queue, &message.receipt, Duration::ZERO).await);
    }
    trial.same("messages left", sorted(&trial.drain(&queue).await), sorted(left));
    trial.advance(2 * limits::VISIBILITY_DEFAULT).await;
    if trial.can_advance() {
        trial.same("messages left later", sorted(&trial.drain(&queue).await), sorted(left));
    }
}

/// A receive gives at most as many messages as it asks for, at least one if there is one, and loses none.
pub async fn a_receive_keeps_its_limit(trial: Trial) {
    let queue = trial.queue().await;
    trial.send(&queue, some("m", 10)).await;
    let mut received = Vec::new();
    while received.len() < 10 {
        let messages_max = 1 + received.len() % 3;
        let options = ReceiveOptions { messages_max, ..ReceiveOptions::all() };
        let messages = trial.receive_with(&queue, options).await;
        trial.holds(!messages.is_empty(), format!("nothing is left after {} of 10", received.len()));
        received.extend(messages);
    }
    trial.same("messages in all", sorted(&received), some_bodies("m", 10));
}

/// Results stand in the order of the messages of a send, each with an identifier of its own.
pub async fn results_stand_in_the_order_of_messages(trial: Trial) {
    let queue = trial.queue().await;
    let sent = trial.send(&queue, some("m", 10)).await;
    let received: HashMap<_, _> =
        trial.drain(&queue).await.into_iter().map(|message| (message.id.clone(), message)).collect();
    trial.same("identifiers", received.len(), 10);
    for (number, sent) in sent.iter().enumerate() {
        let message = received.get(&sent.id);
        let message = message.unwrap_or_else(|| trial.fail(format!("nobody received {}", sent.id)));
        trial.same("the body", bodies(std::slice::from_ref(message)), vec![format!("m-{number}")]);
    }
}

/// The largest message, and the largest send of several, come back whole.
pub async fn the_largest_message_is_sent(trial: Trial) {
    let queue = trial.queue().await;
    let largest = NewMessage::new(vec![b'x'; limits::MESSAGE_BYTES_MAX]);
    trial.send_one(&queue, largest).await;
    trial.same("bytes", trial.receive_one(&queue).await.body.len(), limits::MESSAGE_BYTES_MAX);
    let part = NewMessage::new(vec![b'y'; limits::MESSAGE_BYTES_MAX / 8]);
    trial.send(&queue, vec![part; 8]).await;
    let bytes: usize = trial.drain(&queue).await.iter().map(|message| message.body.len()).sum();
    trial.same("bytes of a batch", bytes, limits::MESSAGE_BYTES_MAX);
}

/// Purging removes visible, delayed and hidden messages; what is sent later is received.
pub async fn purging_leaves_nothing(trial: Trial) {
    let queue = trial.queue().await;
    trial.send(&queue, some("hidden", 2)).await;
    let hidden = trial.drain(&queue).await;
    trial.send(&queue, some("visible", 2)).await;
    trial.send_one(&queue, NewMessage::new("delayed").after(Duration::from_secs(60))).await;
    trial.ok("purging", trial.store().purge(&queue).await);
    trial.same("counts", trial.counts(&queue).await, [0, 0, 0]);
    trial.advance(2 * Duration::from_secs(60)).await;
    trial.nothing("after purging", &queue).await;
    trial.ok("deleting what was purged", trial.delete(&queue, &hidden[0].receipt).await);
    trial.send(&queue, some("new", 2)).await;
    trial.same("new messages", sorted(&trial.drain(&queue).await), some_bodies("new", 2));
}

/// A queue with as many messages in flight as it can have gives no more until one is deleted.
pub async fn messages_in_flight_are_limited(trial: Trial) {
    let most = trial.in_flight_max();
    if most > 1_000 {
        return trial.skip("more messages can be in flight than a law can try");
    }
    let queue = trial.queue().await;
    for round in 0..=most / 10 {
        trial.send(&queue, some(&format!("{round}"), 10)).await;
    }
    let mut taken = Vec::new();
    while taken.len() < most {
        let messages = trial.receive(&queue).await;
        trial.holds(!messages.is_empty(), format!("{} are in flight, {most} can be", taken.len()));
        taken.extend(messages);
    }
    trial.same("messages in flight", taken.len(), most);
    let over = trial.store().receive(&queue, ReceiveOptions::all()).await;
    trial.refused("a receive over the limit", over, |error| {
        matches!(error, crate::Error::InFlightLimit { .. }) && error.next_move() == crate::NextMove::Retry
    });
    trial.ok("deleting", trial.delete(&queue, &taken[0].receipt).await);
    trial.same("messages after a delete", trial.receive(&queue).await.len(), 1);
}
