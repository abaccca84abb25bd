//! The real process, killed again and again while messages come and go, with the whole history checked.
//!
//! Senders send numbered messages, receivers take and delete them; each process gets a few hundred answers and then SIGKILL in
//! the middle of what follows. At the end every message that was sent and not deleted is there, as it was sent, and
//! none that was deleted comes back. Of a call without an answer either outcome is right.

mod harness;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_model::queue::{Message, NewMessage, QueueName, QueueOptions, ReceiveOptions};
use anabranch_model::{QueueStore, Result};
use anabranch_server::Remote;
use harness::Data;
use tokio::sync::Notify;

const KILLS: usize = 60;
const SENDERS: usize = 6;
const RECEIVERS: usize = 3;
/// How long a message that was received is hidden: by far longer than its receiver takes to delete it.
const VISIBILITY: Duration = Duration::from_secs(20);

/// What senders and receivers know of each message.
#[derive(Default)]
struct History {
    messages: Mutex<BTreeMap<usize, Known>>,
    next: AtomicUsize,
    answers: AtomicUsize,
    /// Told of every answer, and when somebody gives up.
    changed: Notify,
}

/// What is known of one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Known {
    sent: bool,
    /// A delete was asked for.
    doomed: bool,
    deleted: bool,
}

impl History {
    fn note(&self, number: usize, what: impl FnOnce(&mut Known)) {
        what(self.messages.lock().expect("no panic").entry(number).or_default());
    }

    fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
    }
}

fn work() -> QueueName {
    QueueName::new("work").expect("a valid name")
}

/// Every third body is short; the others are long enough to stay in the journal.
fn body(number: usize) -> String {
    format!("{number} {}", format!("{number:x}.").repeat(number % 3 * 200))
}

/// The number of a message, which must be as it was sent.
fn number(message: &Message) -> usize {
    let text = std::str::from_utf8(&message.body).expect("a text was sent");
    let number = text.split_once(' ').and_then(|(number, _)| number.parse().ok()).expect("a number was sent");
    assert_eq!(text, body(number), "message {number} is not as it was sent");
    number
}

/// Sends until the server goes away.
async fn send(store: Arc<Remote>, history: Arc<History>) {
    loop {
        let first = history.next.fetch_add(10, Ordering::Relaxed);
        let numbers = first..first + 1 + first / 10 % 10;
        numbers.clone().for_each(|number| history.note(number, |_| {}));
        let messages = numbers.clone().map(|number| NewMessage::new(body(number))).collect();
        let Ok(results) = store.send(&work(), messages).await else { return history.changed.notify_one() };
        for (number, result) in numbers.zip(results) {
            result.expect("every message is good");
            history.note(number, |known| known.sent = true);
        }
        history.answered();
    }
}

/// Receives and deletes until the server goes away. Of three messages it leaves one.
async fn receive(store: Arc<Remote>, history: Arc<History>) {
    loop {
        if take(&store, &history, |number| number % 3 != 1).await.is_err() {
            return history.changed.notify_one();
        }
        history.answered();
    }
}

/// Receives once and deletes those that are picked. Returns whether there was a message.
async fn take(store: &Remote, history: &History, picks: impl Fn(usize) -> bool) -> Result<bool> {
    let options = ReceiveOptions {
        wait: Some(Duration::from_secs(1)),
        visibility: Some(VISIBILITY),
        ..ReceiveOptions::all()
    };
    let messages = store.receive(&work(), options).await?;
    let any = !messages.is_empty();
    for message in &messages {
        let number = number(message);
        let known = history.messages.lock().expect("no panic").get(&number).copied();
        let known = known.unwrap_or_else(|| panic!("message {number} was never sent"));
        assert!(!known.deleted, "message {number} was deleted");
    }
    let (numbers, receipts): (Vec<_>, Vec<_>) = messages
        .into_iter()
        .map(|message| (number(&message), message.receipt))
        .filter(|(number, _)| picks(*number))
        .unzip();
    if receipts.is_empty() {
        return Ok(any);
    }
    numbers.iter().for_each(|number| history.note(*number, |known| known.doomed = true));
    for (number, deleted) in numbers.into_iter().zip(store.delete(&work(), receipts).await?) {
        deleted.expect("its receipt is good");
        history.note(number, |known| known.deleted = true);
    }
    Ok(any)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_message_is_lost_over_many_kills() {
    let data = Data::new();
    let history = Arc::new(History::default());
    for kill in 0..KILLS {
        let server = data.serve();
        let store = Arc::new(Remote::new(server.listen));
        if kill == 0 {
            store.create_queue(&work(), QueueOptions::default()).await.expect("the queue is made");
        }
        let start = history.answers.load(Ordering::Relaxed);
        let mut tasks: Vec<_> =
            (0..SENDERS).map(|_| tokio::spawn(send(store.clone(), history.clone()))).collect();
        tasks.extend((0..RECEIVERS).map(|_| tokio::spawn(receive(store.clone(), history.clone()))));
        // A different moment each time: after 1 to 300 further answers.
        let enough = start + 1 + (kill * 37) % 300;
        while history.answers.load(Ordering::Relaxed) < enough && tasks.iter().any(|task| !task.is_finished())
        {
            history.changed.notified().await;
        }
        server.kill();
        for task in tasks {
            task.await.expect("everybody ends when the server is gone");
        }
    }
    let server = data.serve();
    let store = Remote::new(server.listen);
    let counts = store.queue(&work()).await.expect("a summary").counts;
    let mut left = counts.visible + counts.in_flight;
    println!(
        "{left} messages are left of {} after {KILLS} kills",
        history.messages.lock().expect("no panic").len()
    );
    let mut seen = BTreeSet::new();
    while left > 0 {
        let options = ReceiveOptions { wait: Some(Duration::from_secs(2)), ..ReceiveOptions::all() };
        let messages = store.receive(&work(), options).await.expect("a receive");
        let receipts: Vec<_> = messages.iter().map(|message| message.receipt.clone()).collect();
        seen.extend(messages.iter().map(number));
        if !receipts.is_empty() {
            for deleted in store.delete(&work(), receipts).await.expect("a delete") {
                deleted.expect("it is deleted");
                left -= 1;
            }
        }
    }
    for (number, known) in history.messages.lock().expect("no panic").iter() {
        let there = seen.contains(number);
        assert!(there || !known.sent || known.doomed, "message {number} is lost: {known:?}");
        assert!(!there || !known.deleted, "message {number} came back: {known:?}");
    }
    assert!(seen.iter().all(|number| history.messages.lock().expect("no panic").contains_key(number)));
    server.stop().succeeded();
}
