//! Many receivers who wait on one queue: each message ends the waiting of one of them, in time.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Engine, Options, SystemClock};
use anabranch_model::queue::{Message, NewMessage, QueueName, QueueOptions, QueueStore, ReceiveOptions};
use anabranch_model::{Clock, Result};
use anabranch_sim::SimDisk;
use tokio::task::JoinHandle;

const RECEIVERS: usize = 32;
/// Well below the wait of a receive, so that nobody is served by its end.
const SOON: Duration = Duration::from_secs(8);

async fn open(options: QueueOptions, name: &str) -> (Engine, QueueName) {
    let engine = Engine::open(
        Arc::new(SimDisk::new()),
        Arc::new(SystemClock::new()),
        Options { segment_bytes: 4 << 20, ..Options::default() },
    );
    let (engine, queue) = (engine.expect("it opens"), QueueName::new(name).expect("a name"));
    engine.create_queue(&queue, options).await.expect("create");
    (engine, queue)
}

fn waiting(engine: &Engine, queue: &QueueName) -> JoinHandle<Result<Vec<Message>>> {
    let (engine, queue) = (engine.clone(), queue.clone());
    tokio::spawn(async move {
        let wait = Some(Duration::from_secs(20));
        engine.receive(&queue, ReceiveOptions { messages_max: 1, wait, ..ReceiveOptions::default() }).await
    })
}

/// Waits until all receivers have had their turn to begin.
async fn begun() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

async fn served(receivers: Vec<JoinHandle<Result<Vec<Message>>>>) -> Vec<Message> {
    let mut messages = Vec::new();
    for receiver in receivers {
        let received = tokio::time::timeout(SOON, receiver).await.expect("a receiver waits on");
        messages.extend(received.expect("a task").expect("a receive"));
    }
    messages
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everyone_who_waits_is_served() {
    let (engine, queue) = open(QueueOptions::default(), "shared").await;
    for _ in 0..5 {
        let receivers: Vec<_> = (0..RECEIVERS).map(|_| waiting(&engine, &queue)).collect();
        begun().await;
        for sent in 0..RECEIVERS.div_ceil(10) {
            let messages = (0..10).map(|n| NewMessage::new(format!("{sent}-{n}"))).collect();
            engine.send(&queue, messages).await.expect("a send");
        }
        assert_eq!(served(receivers).await.len(), RECEIVERS);
        engine.purge(&queue).await.expect("a purge");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_serves_one_after_the_other() {
    let options = QueueOptions { deduplicates_content: true, ..QueueOptions::fifo() };
    let (engine, queue) = open(options, "ordered.fifo").await;
    let receivers: Vec<_> = (0..8)
        .map(|_| {
            let (engine, queue) = (engine.clone(), queue.clone());
            tokio::spawn(async move {
                let received = waiting(&engine, &queue).await.expect("a task")?;
                let receipts = received.iter().map(|message| message.receipt.clone()).collect();
                engine.delete(&queue, receipts).await?;
                Ok(received)
            })
        })
        .collect();
    begun().await;
    let messages = (0..8).map(|n| NewMessage::new(format!("{n}")).in_group("g")).collect();
    engine.send(&queue, messages).await.expect("a send");
    let mut bodies: Vec<_> = served(receivers).await.into_iter().map(|message| message.body).collect();
    bodies.sort();
    assert_eq!(bodies, (0..8).map(|n| format!("{n}")).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_becomes_visible_is_not_late() {
    let (engine, queue) = open(QueueOptions::default(), "late").await;
    let clock = SystemClock::new();
    let second = Duration::from_secs(1);
    engine.send(&queue, vec![NewMessage::new("delayed").after(second)]).await.expect("a send");
    for round in 0..2 {
        let start = clock.elapsed();
        let options = ReceiveOptions {
            wait: Some(Duration::from_secs(20)),
            visibility: Some(second),
            ..ReceiveOptions::default()
        };
        let received = engine.receive(&queue, options).await.expect("a receive");
        let took = clock.elapsed() - start;
        assert_eq!(received.len(), 1);
        assert!(took < 4 * second, "round {round}: {took:?}");
    }
}
