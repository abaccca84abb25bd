//! Queues.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_aws::Queues;
use anabranch_model::queue::{ReceiveOptions, Sent};
use anabranch_model::{Error, Message, MessageId, NewMessage, QueueName, QueueOptions, QueueStore};
use futures_util::future::join_all;

use crate::peer::Peer;
use crate::peer::gaps::queues::MOTO;
use crate::peer::plan::{chance, once_each};
use crate::peer::proxy::{Fault, Proxy};
use crate::peer::suite::{self, queue_cases};
use crate::peer::wire::Request;
use crate::{
    ALL, AT_MOST_ONCE, ATTEMPT_MAX, CERTAIN, Fate, LOOKED_UP, OF_CHANGES, PERCENT, REPEATED, UNHEARD,
};

/// The calls that change a queue, in the order in which they are made here.
const CHANGES: &[&str] = &["CreateQueue", "SetQueueAttributes", "PurgeQueue", "DeleteQueue"];
/// How long a message is hidden whose receipt is lost.
const VISIBILITY: Duration = Duration::from_secs(2);

fn name(name: &str) -> QueueName {
    QueueName::new(name).expect("a name")
}

fn of_laws(request: &Request) -> &'static [Fault] {
    match request.operation.as_str() {
        "SendMessageBatch" => CERTAIN,
        // What a lost answer held is hidden for a while, which a law does not wait for.
        "ReceiveMessage" => UNHEARD,
        operation if CHANGES.contains(&operation) => LOOKED_UP,
        _ => REPEATED,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_of_queues_hold() {
    let moto = Peer::moto().await;
    let proxy = Proxy::start(moto.address(), chance(21, PERCENT, of_laws)).await;
    let queues = Queues::new(&proxy.connect(None).await).purging_at_once();
    suite::hold(queue_cases(&queues, "faulty"), MOTO, 6).await;
    proxy.saw(REPEATED);
}

type Told = Vec<(String, Fate<Sent>)>;

/// Sends two messages at a time, and says what it was told about each.
async fn send(queues: Queues, queue: QueueName, sender: usize, sends: usize) -> Told {
    let mut told = Vec::new();
    for send in 0..sends {
        let texts: Vec<_> = (0..2).map(|place| format!("{sender}-{send}-{place}")).collect();
        let messages = texts.iter().map(|text| NewMessage::new(text.clone()));
        let fates = match queues.send(&queue, messages.collect()).await {
            Ok(results) => results.into_iter().map(Fate::of).collect(),
            Err(error) => vec![Fate::of(Err(error)); texts.len()],
        };
        told.extend(texts.into_iter().zip(fates));
    }
    told
}

/// What receivers have seen.
#[derive(Default)]
struct Seen {
    /// What moments are told by.
    ticks: AtomicUsize,
    /// The messages by their identifiers.
    bodies: Mutex<HashMap<MessageId, String>>,
    /// When a message was deleted for good.
    deleted: Mutex<HashMap<MessageId, usize>>,
}

impl Seen {
    fn now(&self) -> usize {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }

    /// Notes messages of a receive that was begun at a moment.
    fn note(&self, began: usize, messages: &[Message]) {
        let deleted = self.deleted.lock().expect("the moments");
        for message in messages {
            let late = deleted.get(&message.id).is_some_and(|moment| *moment < began);
            assert!(!late, "message {} came back after it was deleted", message.id);
            let body = String::from_utf8(message.body.to_vec()).expect("a text");
            self.bodies.lock().expect("the bodies").insert(message.id.clone(), body);
        }
    }
}

/// Receives and deletes until the server has nothing more.
async fn drain(queues: Queues, direct: Queues, queue: QueueName, seen: &Seen) {
    loop {
        let began = seen.now();
        let options = ReceiveOptions { visibility: Some(VISIBILITY), ..ReceiveOptions::all() };
        let messages = queues.receive(&queue, options).await.unwrap();
        seen.note(began, &messages);
        if messages.is_empty() {
            let counts = direct.queue(&queue).await.unwrap().counts;
            match counts.visible + counts.in_flight {
                0 => return,
                _ => continue,
            }
        }
        let receipts = messages.iter().map(|message| message.receipt.clone()).collect();
        let results = queues.delete(&queue, receipts).await.unwrap();
        let mut deleted = seen.deleted.lock().expect("the moments");
        for (message, result) in messages.iter().zip(results) {
            if result.is_ok() {
                deleted.entry(message.id.clone()).or_insert_with(|| seen.now());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_sent_is_received_until_it_is_deleted() {
    let moto = Peer::moto().await;
    let (direct, queue) = (Queues::new(&moto.connect().await), name("sends"));
    direct.create_queue(&queue, QueueOptions::default()).await.unwrap();
    let faults = |request: &Request| match request.operation.as_str() {
        "SendMessageBatch" => AT_MOST_ONCE,
        _ => ALL,
    };
    let proxy = Proxy::start(moto.address(), chance(22, 20, faults)).await;
    let queues = Queues::new(&proxy.connect(ATTEMPT_MAX).await);
    let senders = (0..4).map(|sender| tokio::spawn(send(queues.clone(), queue.clone(), sender, 30)));
    let told = join_all(senders).await.into_iter().flat_map(|told| told.unwrap());
    let told: Vec<_> = told.collect();
    let seen = Seen::default();
    join_all((0..3).map(|_| drain(queues.clone(), direct.clone(), queue.clone(), &seen))).await;
    proxy.saw(ALL);

    let bodies = seen.bodies.into_inner().unwrap();
    let mut copies: HashMap<&str, Vec<&MessageId>> = HashMap::new();
    for (id, body) in &bodies {
        copies.entry(body).or_default().push(id);
    }
    let (mut doubts, mut doubts_stored) = (0, 0);
    for (text, fate) in &told {
        let found = copies.remove(text.as_str()).unwrap_or_default();
        match fate {
            Fate::Stored(sent) => assert_eq!(found, [&sent.id], "{text}"),
            Fate::InDoubt => {
                doubts += 1;
                doubts_stored += found.len();
                assert!(found.len() <= 1, "{text} is there {} times", found.len());
            }
            Fate::Refused => assert!(found.is_empty(), "{text} was refused, and is there"),
        }
    }
    assert!(copies.is_empty(), "nobody has sent {copies:?}");
    assert!(0 < doubts_stored && doubts_stored < doubts, "{doubts_stored} of {doubts} are there");
    let deleted: HashSet<_> = seen.deleted.into_inner().unwrap().into_keys().collect();
    assert_eq!(deleted, bodies.into_keys().collect(), "what is gone was not deleted by anyone");
}

/// Sends one message after the other to a group. Half of them are recognised by their bodies.
async fn send_in_order(queues: Queues, queue: QueueName, group: String, count: usize) {
    for number in 0..count {
        let message = NewMessage::new(format!("{group}-{number}")).in_group(&group);
        let message = match number % 2 {
            0 => message.known_as(&format!("{group}-{number}")),
            _ => message,
        };
        queues.send(&queue, vec![message]).await.unwrap().remove(0).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_sent_in_order_is_there_once_and_in_order() {
    const COUNT: usize = 25;
    let ministack = Peer::ministack().await;
    let (direct, queue) = (Queues::new(&ministack.connect().await), name("ordered.fifo"));
    let options = QueueOptions { deduplicates_content: true, ..QueueOptions::fifo() };
    direct.create_queue(&queue, options).await.unwrap();
    let proxy = Proxy::start(ministack.address(), chance(23, 30, |_| ALL)).await;
    let queues = Queues::new(&proxy.connect(ATTEMPT_MAX).await);
    let groups = ["a", "b", "c"];
    join_all(groups.map(|group| send_in_order(queues.clone(), queue.clone(), group.to_string(), COUNT)))
        .await;
    proxy.saw(ALL);
    let mut received: HashMap<String, Vec<String>> = HashMap::new();
    loop {
        let messages = direct.receive(&queue, ReceiveOptions::all()).await.unwrap();
        if messages.is_empty() {
            break;
        }
        for message in messages {
            let body = String::from_utf8(message.body.to_vec()).unwrap();
            received.entry(message.group.unwrap()).or_default().push(body);
            direct.delete(&queue, vec![message.receipt]).await.unwrap().remove(0).unwrap();
        }
    }
    for group in groups {
        let expected: Vec<_> = (0..COUNT).map(|number| format!("{group}-{number}")).collect();
        assert_eq!(received.remove(group), Some(expected));
    }
}

/// A queue is made, changed, purged and removed, and each of these calls has the fault once.
async fn live(moto: &Peer, fault: Fault) {
    let proxy = Proxy::start(moto.address(), once_each(fault, CHANGES)).await;
    let queues = Queues::new(&proxy.connect(ATTEMPT_MAX).await).purging_at_once();
    let queue = name(&format!("life-{fault:?}"));
    queues.create_queue(&queue, QueueOptions::default()).await.unwrap();
    let again = queues.create_queue(&queue, QueueOptions::default()).await;
    assert_eq!(again, Err(Error::QueueExists(queue.clone())), "{fault:?}");
    let options = QueueOptions { visibility: Duration::from_secs(77), ..QueueOptions::default() };
    queues.set_options(&queue, options.clone()).await.unwrap();
    assert_eq!(queues.queue(&queue).await.unwrap().options, options, "{fault:?}");
    queues.send(&queue, vec![NewMessage::new("m")]).await.unwrap().remove(0).unwrap();
    queues.purge(&queue).await.unwrap();
    assert_eq!(queues.receive(&queue, ReceiveOptions::all()).await, Ok(Vec::new()), "{fault:?}");
    queues.delete_queue(&queue).await.unwrap();
    let gone = Err(Error::QueueNotFound(queue.clone()));
    assert_eq!(queues.delete_queue(&queue).await, gone, "{fault:?}");
    assert_eq!(proxy.count(fault), CHANGES.len(), "{fault:?} did not happen to every change");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_change_as_they_should_behind_lost_answers() {
    let moto = Peer::moto().await;
    join_all(OF_CHANGES.iter().map(|fault| live(&moto, *fault))).await;
}
