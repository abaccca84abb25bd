//! Messages that were received too often, and their way back.

use std::time::Duration;

use super::trial::{Trial, bodies, grouped, some, some_bodies, sorted};
use crate::laws::trial::{NO_CLOCK, give_way};
use crate::limits::VISIBILITY_DEFAULT;
use crate::queue::{Message, MoveStatus, MoveSummary, NewMessage, QueueName, QueueOptions};
use crate::{Error, limits};

/// How often a law looks for what a move does in its own time.
const LOOKS_MAX: usize = 5_000;

/// Receives everything `times` times and shows it again each time.
async fn wear_out(trial: &Trial, queue: &QueueName, times: u32) -> Vec<Message> {
    let mut last = Vec::new();
    for _ in 0..times {
        last = trial.drain(queue).await;
        for message in &last {
            trial.ok("showing", trial.hide(queue, &message.receipt, Duration::ZERO).await);
        }
    }
    last
}

/// The move when it no longer runs.
async fn ended(trial: &Trial, from: &QueueName) -> MoveSummary {
    for _ in 0..LOOKS_MAX {
        let moves = trial.ok("listing moves", trial.store().moves(from).await);
        let Some(moving) = moves.into_iter().next() else { trial.fail("the move is not listed") };
        if moving.status != MoveStatus::Running {
            return moving;
        }
        trial.advance(Duration::from_millis(100)).await;
        give_way().await;
    }
    trial.fail("the move does not end")
}

/// Waits until a queue counts so many messages to receive and no other ones. SQS counts by and by, and a move may have held
/// the message that it failed at; a store whose clock obeys must count right at once.
async fn stayed(trial: &Trial, queue: &QueueName, messages: u64) {
    let mut counts = trial.counts(queue).await;
    let looks = if trial.can_advance() { 0 } else { LOOKS_MAX };
    for _ in 0..looks {
        if counts == [messages, 0, 0] {
            break;
        }
        give_way().await;
        counts = trial.counts(queue).await;
    }
    trial.same("messages that stayed", counts, [messages, 0, 0]);
}

/// A message that was received as often as it may be goes to the dead-letter queue at the next receive, as it was.
pub async fn messages_received_too_often_are_moved(trial: Trial) {
    let [queue, dead] = trial.with_dead_letters(false, 2).await;
    trial.send(&queue, some("m", 2)).await;
    let last = wear_out(&trial, &queue, 2).await;
    trial.same("messages at the last receive", sorted(&last), some_bodies("m", 2));
    trial.same("dead letters before the next receive", trial.counts(&dead).await, [0, 0, 0]);
    trial.nothing("when they were received too often", &queue).await;
    trial.same("counts of the queue", trial.counts(&queue).await, [0, 0, 0]);
    let letters = trial.drain(&dead).await;
    trial.same("dead letters", sorted(&letters), some_bodies("m", 2));
    for letter in letters {
        let before = last.iter().find(|message| message.id == letter.id);
        let before = before.unwrap_or_else(|| trial.fail("a dead letter has another identifier"));
        trial.same("the body", &letter.body, &before.body);
        trial.same("the time of the send", letter.sent_at, before.sent_at);
        trial.same("the count of receives", letter.receive_count, 3);
        trial.same("the source", letter.dead_letter_source, Some(queue.clone()));
    }
}

/// The age of a dead letter of a standard queue counts from its send.
pub async fn dead_letters_keep_their_age(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let [queue, dead] = trial.with_dead_letters(false, 1).await;
    trial.send(&queue, some("m", 1)).await;
    wear_out(&trial, &queue, 1).await;
    trial.advance(limits::MESSAGE_RETENTION_DEFAULT / 2).await;
    trial.nothing("when it was received too often", &queue).await;
    trial.same("dead letters", trial.counts(&dead).await, [1, 0, 0]);
    trial.advance(limits::MESSAGE_RETENTION_DEFAULT / 2).await;
    trial.nothing("when the dead letter is old", &dead).await;
}

/// In FIFO queues the group goes on behind a dead letter, whose age begins anew.
pub async fn fifo_dead_letters_make_way(trial: Trial) {
    let [queue, dead] = trial.with_dead_letters(true, 1).await;
    trial.send(&queue, grouped("g", some("m", 1))).await;
    let worn = wear_out(&trial, &queue, 1).await;
    trial.send(&queue, grouped("g", some("n", 1))).await;
    trial.advance(Duration::from_secs(3600)).await;
    trial.same("messages behind", bodies(&trial.drain(&queue).await), vec!["n-0".to_string()]);
    let letter = trial.receive_one(&dead).await;
    trial.same("the identifier", &letter.id, &worn[0].id);
    trial.same("the group", letter.group.as_deref(), Some("g"));
    if trial.can_advance() {
        trial.holds(letter.sent_at > worn[0].sent_at, "the age of the dead letter does not begin anew");
    }
}

/// In FIFO queues duplicates of a dead letter are told by its identifier.
pub async fn the_identifier_of_a_dead_letter_tells_duplicates(trial: Trial) {
    let [queue, dead] = trial.with_dead_letters(true, 1).await;
    trial.send(&queue, grouped("g", some("m", 1))).await;
    wear_out(&trial, &queue, 1).await;
    trial.nothing("of the worn-out queue", &queue).await;
    let letter = trial.receive_one(&dead).await;
    trial.same("the deduplication id", letter.deduplication.as_deref(), Some(letter.id.as_str()));
}

/// Without a dead-letter queue to go to, a message stays and is received on.
pub async fn messages_stay_without_a_dead_letter_queue(trial: Trial) {
    let [queue, dead] = trial.with_dead_letters(false, 1).await;
    trial.send(&queue, some("m", 1)).await;
    trial.ok("deleting the dead-letter queue", trial.store().delete_queue(&dead).await);
    wear_out(&trial, &queue, 3).await;
    trial.same("the count", trial.receive_one(&queue).await.receive_count, 4);
}

/// A move takes dead letters back to where each came from. What is in flight stays.
pub async fn dead_letters_go_back_to_their_sources(trial: Trial) {
    let [queue, dead] = trial.with_dead_letters(false, 1).await;
    let options = trial.summary(&queue).await.options;
    let other = trial.queue_with(options).await;
    trial.send(&queue, some("stays", 1)).await;
    wear_out(&trial, &queue, 1).await;
    trial.nothing("of the worn-out queue", &queue).await;
    trial.same("in flight", trial.drain(&dead).await.len(), 1);
    for (source, label) in [(&queue, "one"), (&other, "two")] {
        trial.send(source, some(label, 3)).await;
        wear_out(&trial, source, 1).await;
        trial.nothing("of the worn-out queue", source).await;
    }
    trial.ok("starting a move", trial.store().start_move(&dead, None, None).await);
    let moving = ended(&trial, &dead).await;
    trial.same("the move", (moving.status, moving.moved), (MoveStatus::Completed, 6));
    for (source, label) in [(&queue, "one"), (&other, "two")] {
        let back = trial.drain(source).await;
        trial.same("messages that came back", sorted(&back), some_bodies(label, 3));
    }
    trial.same("dead letters left", trial.counts(&dead).await, [0, 1, 0]);
}

/// What was moved is a new message.
pub async fn moved_messages_are_new(trial: Trial) {
    let [queue, dead] = trial.with_dead_letters(false, 1).await;
    let sent = trial.send_one(&queue, NewMessage::new("m")).await;
    wear_out(&trial, &queue, 1).await;
    trial.nothing("of the worn-out queue", &queue).await;
    trial.ok("starting a move", trial.store().start_move(&dead, None, None).await);
    let moving = ended(&trial, &dead).await;
    trial.same("the move", (moving.status, moving.moved), (MoveStatus::Completed, 1));
    let message = trial.receive_one(&queue).await;
    trial.same("the count", message.receive_count, 1);
    trial.holds(message.id != sent.id, "a moved message is not a new one");
    trial.same("the source", message.dead_letter_source, None);
}

/// A move to a given queue takes messages there, those too that were sent to the dead-letter queue itself.
pub async fn dead_letters_go_where_they_are_told(trial: Trial) {
    let [_queue, dead] = trial.with_dead_letters(false, 1).await;
    let target = trial.queue().await;
    trial.send(&dead, some("m", 3)).await;
    trial.ok("starting a move", trial.store().start_move(&dead, Some(&target), None).await);
    let moving = ended(&trial, &dead).await;
    trial.same("the move", (moving.status, moving.to), (MoveStatus::Completed, Some(target.clone())));
    trial.same("messages that were moved", sorted(&trial.drain(&target).await), some_bodies("m", 3));
    trial.same("moves", trial.ok("listing moves", trial.store().moves(&dead).await).len(), 1);
}

/// Messages that were sent to the dead-letter queue itself fail a move to where they came from, and stay. They can be moved
/// to a given queue after that.
pub async fn moves_without_a_source_fail(trial: Trial) {
    let [_queue, dead] = trial.with_dead_letters(false, 1).await;
    let target = trial.queue().await;
    trial.send(&dead, some("m", 3)).await;
    trial.ok("starting a move", trial.store().start_move(&dead, None, None).await);
    let moving = ended(&trial, &dead).await;
    trial.holds(matches!(moving.status, MoveStatus::Failed(_)), format!("{moving:?} has not failed"));
    stayed(&trial, &dead, 3).await;
    trial.ok("starting a move", trial.store().start_move(&dead, Some(&target), None).await);
    let moving = ended(&trial, &dead).await;
    trial.same("the move", (moving.status, moving.to), (MoveStatus::Completed, Some(target.clone())));
    trial.same("messages that were moved", sorted(&trial.drain(&target).await), some_bodies("m", 3));
    trial.same("moves", trial.ok("listing moves", trial.store().moves(&dead).await).len(), 2);
}

/// A move keeps its rate, is the only one of its queue, and stops when it is cancelled; no message is lost.
pub async fn a_move_keeps_its_rate_and_can_be_cancelled(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let [_queue, dead] = trial.with_dead_letters(false, 1).await;
    let target = trial.queue().await;
    trial.send(&dead, some("m", 10)).await;
    let id = trial.ok("starting a move", trial.store().start_move(&dead, Some(&target), Some(2)).await);
    let second = trial.store().start_move(&dead, Some(&target), None).await;
    trial.refused("a second move", second, |error| matches!(error, Error::MoveRunning(_)));
    trial.advance(Duration::from_secs(2)).await;
    let moved = trial.counts(&target).await[0];
    trial.holds(moved <= 6, format!("{moved} messages were moved in two seconds at two a second"));
    let cancelled = trial.ok("cancelling", trial.store().cancel_move(&id).await);
    trial.advance(Duration::from_secs(60)).await;
    let [there, here] = [trial.counts(&target).await[0], trial.counts(&dead).await[0]];
    trial.same("messages in both queues", there + here, 10);
    trial.same("messages that were moved", there, cancelled);
    trial.same("the move", ended(&trial, &dead).await.status, MoveStatus::Cancelled);
    let again = trial.store().cancel_move(&id).await;
    trial.refused("cancelling twice", again, |error| matches!(error, Error::MoveNotRunning(_)));
}

/// Moves need a dead-letter queue, a target of the same kind and an allowed rate.
pub async fn bad_moves_are_refused(trial: Trial) {
    let [queue, dead] = trial.with_dead_letters(false, 1).await;
    let fifo = trial.queue_with(QueueOptions::fifo()).await;
    let store = trial.store();
    let invalid = |error: &Error| matches!(error, Error::Invalid(_));
    trial.send_one(&dead, NewMessage::new("m")).await;
    let bad = [
        ("a move from no dead-letter queue", &queue, Some(&dead), None),
        ("a move to itself", &dead, Some(&dead), None),
        ("a move to another kind", &dead, Some(&fifo), None),
        ("a move at no rate", &dead, Some(&queue), Some(0)),
        ("a move at a high rate", &dead, Some(&queue), Some(501)),
    ];
    for (what, from, to, rate) in bad {
        trial.refused(what, store.start_move(from, to, rate).await, invalid);
    }
    trial.same("moves", trial.ok("listing moves", store.moves(&dead).await), Vec::new());
    trial.same("messages", trial.counts(&dead).await, [1, 0, 0]);
    trial.advance(VISIBILITY_DEFAULT).await;
}
