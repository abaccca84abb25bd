//! Bots on queues: deleted only when done, visible again at once, dead letters in full.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_bus::{Bot, Event, Outcome, Queue, Refusal, Sink, Source, Step};
use anabranch_consumer::{DeadLetters, FailurePolicy, Finally};
use anabranch_model::{NewMessage, QueueName, QueueOptions, QueueStore};
use async_trait::async_trait;
use parking_lot::Mutex;
use world::{Running, World, pause, seconds, start};

/// Answers by what the event says, and notes what it was given.
#[derive(Clone, Default)]
struct Ward {
    seen: Arc<Mutex<Vec<(String, u32)>>>,
    takes: Duration,
    /// How often it says that it is not there.
    absent: Arc<Mutex<u32>>,
    /// Whether it takes the messages of several receives at once.
    many: bool,
    /// How many it was given with each call.
    calls: Arc<Mutex<Vec<usize>>>,
}

#[async_trait]
impl Sink for Ward {
    async fn write(&self, events: &[Event]) -> Vec<Outcome> {
        pause(self.takes).await;
        self.calls.lock().push(events.len());
        if std::mem::replace(&mut *self.absent.lock(), 0) > 0 {
            return vec![Outcome::Unavailable("nobody there".to_owned()); events.len()];
        }
        let text = |event: &Event| String::from_utf8_lossy(&event.data).into_owned();
        self.seen.lock().extend(events.iter().map(|event| (text(event), event.attempt)));
        assert!(events.iter().all(|event| text(event) != "panic"), "as told");
        let outcomes = events.iter().map(|event| match text(event).as_str() {
            "fail" => Outcome::Failed("as told".to_owned()),
            "refuse" => Outcome::Refused("as told".to_owned()),
            _ => Outcome::Done,
        });
        outcomes.collect()
    }

    fn takes_many(&self) -> bool {
        self.many
    }
}

async fn queue(world: &World, bodies: &[&str]) -> QueueName {
    let name = QueueName::new("work").unwrap();
    world.queues.create_queue(&name, QueueOptions::default()).await.unwrap();
    for body in bodies {
        let sent = world.queues.send(&name, vec![NewMessage::new((*body).to_owned())]).await.unwrap();
        assert!(sent.iter().all(Result::is_ok));
    }
    name
}

fn bot(world: &World, name: &QueueName, ward: &Ward, in_flight: usize) -> Running {
    let mut source = Queue::new(Arc::new(world.queues.clone()), name.clone());
    source.in_flight = in_flight;
    let dead = QueueName::new("dead").unwrap();
    let finally = Finally::DeadLetter(DeadLetters::Queue(Arc::new(world.queues.clone()), dead));
    let failure = FailurePolicy { attempts: 3, finally, ..FailurePolicy::default() };
    let sink = Arc::new(ward.clone());
    let bot = Bot::builder("worker", Source::Queue(source), sink, world.clock.clone());
    start(bot.failure(failure).build().unwrap())
}

async fn counts(world: &World, name: &QueueName) -> (u64, u64) {
    let counts = world.queues.queue(name).await.unwrap().counts;
    (counts.visible, counts.in_flight)
}

#[tokio::test(start_paused = true)]
async fn what_is_done_is_deleted_and_what_is_not_comes_again_and_then_is_a_dead_letter() {
    let world = World::new().await;
    let name = queue(&world, &["one", "fail", "two", "refuse", "three"]).await;
    let ward = Ward::default();
    let bot = bot(&world, &name, &ward, 10);
    world.until("an empty queue", async || counts(&world, &name).await == (0, 0)).await;
    bot.stop().await;
    let mut seen: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (body, attempt) in ward.seen.lock().iter() {
        seen.entry(body.clone()).or_default().push(*attempt);
    }
    assert_eq!(seen["fail"], [1, 2, 3], "tried as often as allowed");
    assert_eq!(seen["refuse"], [1], "nobody tries what never succeeds");
    assert_eq!((&seen["one"][..], &seen["two"][..], &seen["three"][..]), (&[1][..], &[1][..], &[1][..]));
    let mut letters = world.letters().await;
    letters.sort_by_key(|letter| letter["data"].to_string());
    assert_eq!(letters.len(), 2);
    assert_eq!((&letters[0]["data"], &letters[0]["attempts"]), (&"ZmFpbA==".into(), &3.into()));
    assert_eq!((&letters[1]["data"], &letters[1]["attempts"]), (&"cmVmdXNl".into(), &1.into()));
    assert_eq!(letters[0]["queue"], "work");
    assert_eq!(letters[0]["error"], "as told");
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_panics_takes_nobody_with_it() {
    let world = World::new().await;
    let name = queue(&world, &["panic"]).await;
    let ward = Ward::default();
    let bot = bot(&world, &name, &ward, 1);
    world.until("an empty queue", async || counts(&world, &name).await == (0, 0)).await;
    world.queues.send(&name, vec![NewMessage::new("after")]).await.unwrap();
    world.until("the next", async || ward.seen.lock().iter().any(|(body, _)| body == "after")).await;
    bot.stop().await;
    assert_eq!(world.letters().await.len(), 1);
}

/// Work of many visibility timeouts: nobody else gets the message meanwhile. The store's clock is moved beside the bot's.
#[tokio::test(start_paused = true)]
async fn messages_stay_hidden_while_they_are_worked_on() {
    let world = World::new().await;
    let name = queue(&world, &["slow"]).await;
    let ward = Ward { takes: seconds(100), ..Ward::default() };
    let bot = bot(&world, &name, &ward, 30);
    for _ in 0..99 {
        pause(seconds(1)).await;
        world.queues.advance(seconds(1));
    }
    world.until("the end", async || counts(&world, &name).await == (0, 0)).await;
    bot.stop().await;
    assert_eq!(*ward.seen.lock(), [("slow".to_owned(), 1)], "received once");
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_down_costs_no_attempts() {
    let world = World::new().await;
    let name = queue(&world, &["one"]).await;
    let ward = Ward { absent: Arc::new(Mutex::new(1)), ..Ward::default() };
    let bot = bot(&world, &name, &ward, 1);
    world.until("the end", async || counts(&world, &name).await == (0, 0)).await;
    bot.stop().await;
    assert_eq!(*ward.seen.lock(), [("one".to_owned(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn stopping_finishes_what_is_under_way() {
    let world = World::new().await;
    let name = queue(&world, &["one"]).await;
    let ward = Ward { takes: seconds(10), ..Ward::default() };
    let bot = bot(&world, &name, &ward, 1);
    pause(seconds(1)).await;
    bot.stop().await;
    assert_eq!(counts(&world, &name).await, (0, 0), "deleted");
    assert_eq!(ward.seen.lock().len(), 1);
}

/// A sink that takes many is brought the messages of several receives. None of them goes before its outcome is known, all of
/// them stay hidden for as long as that takes, and each shares nobody else's fate.
#[tokio::test(start_paused = true)]
async fn messages_of_several_receives_go_through_the_line_together() {
    let world = World::new().await;
    let bodies: Vec<String> = (0..400).map(|number| number.to_string()).collect();
    let mut bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    (bodies[97], bodies[205]) = ("fail", "refuse");
    let name = queue(&world, &bodies).await;
    let ward = Ward { takes: seconds(60), many: true, ..Ward::default() };
    let bot = bot(&world, &name, &ward, 200);
    for _ in 0..55 {
        pause(seconds(1)).await;
        world.queues.advance(seconds(1));
    }
    let (visible, in_flight) = counts(&world, &name).await;
    assert_eq!(visible + in_flight, 400, "nothing is done yet");
    for _ in 0..600 {
        pause(seconds(1)).await;
        world.queues.advance(seconds(1));
    }
    world.until("an empty queue", async || counts(&world, &name).await == (0, 0)).await;
    bot.stop().await;
    let calls = ward.calls.lock().clone();
    assert!(calls.iter().all(|count| *count <= 50) && calls.contains(&50), "{calls:?}");
    let mut seen: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (body, attempt) in ward.seen.lock().iter() {
        seen.entry(body.clone()).or_default().push(*attempt);
    }
    assert_eq!(seen.len(), 400);
    assert_eq!((seen.remove("fail"), seen.remove("refuse")), (Some(vec![1, 2, 3]), Some(vec![1])));
    assert!(seen.values().all(|attempts| *attempts == [1]), "each of the others is received once: {seen:?}");
    assert_eq!(world.letters().await.len(), 2);
}

/// What is done is deleted when the bot stops, although the next messages would have been received meanwhile.
#[tokio::test(start_paused = true)]
async fn stopping_deletes_all_that_is_done() {
    let world = World::new().await;
    let bodies: Vec<String> = (0..90).map(|number| number.to_string()).collect();
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    let name = queue(&world, &bodies).await;
    let ward = Ward { takes: seconds(1), many: true, ..Ward::default() };
    let bot = bot(&world, &name, &ward, 200);
    world.until("some are done", async || !ward.seen.lock().is_empty()).await;
    bot.stop().await;
    let (visible, in_flight) = counts(&world, &name).await;
    assert_eq!(visible + in_flight, 90 - ward.seen.lock().len() as u64);
}

/// A message that becomes several events is deleted when all of them are done, and not before.
#[tokio::test(start_paused = true)]
async fn the_parts_of_a_message_share_its_fate() {
    struct Words;
    #[async_trait]
    impl Step for Words {
        fn name(&self) -> &str {
            "words"
        }

        async fn apply(&self, event: Event) -> Result<Vec<Event>, Refusal> {
            let text = String::from_utf8_lossy(&event.data).into_owned();
            Ok(text.split_whitespace().map(|word| event.clone().with_data(word.to_owned())).collect())
        }
    }
    let world = World::new().await;
    let name = queue(&world, &["a b c", "d fail e", " "]).await;
    let ward = Ward::default();
    let mut source = Queue::new(Arc::new(world.queues.clone()), name.clone());
    source.in_flight = 1;
    source.batch = 1;
    let dead = QueueName::new("dead").unwrap();
    let finally = Finally::DeadLetter(DeadLetters::Queue(Arc::new(world.queues.clone()), dead));
    let failure = FailurePolicy { attempts: 2, finally, ..FailurePolicy::default() };
    let bot = Bot::builder("worker", Source::Queue(source), Arc::new(ward.clone()), world.clock.clone());
    let bot = start(bot.step(Arc::new(Words)).failure(failure).build().unwrap());
    world.until("an empty queue", async || counts(&world, &name).await == (0, 0)).await;
    bot.stop().await;
    let seen: Vec<_> = ward.seen.lock().iter().map(|(word, _)| word.clone()).collect();
    assert_eq!(seen, ["a", "b", "c", "d", "fail", "e", "d", "fail", "e"]);
    assert_eq!(world.letters().await.len(), 1);
}

/// Without a place for dead letters a bad message would come again for ever.
#[tokio::test(start_paused = true)]
async fn a_queue_without_a_place_for_dead_letters_is_refused() {
    let world = World::new().await;
    let name = queue(&world, &[]).await;
    let source = Source::Queue(Queue::new(Arc::new(world.queues.clone()), name));
    let bot = Bot::builder("worker", source, Arc::new(Ward::default()), world.clock.clone()).build().unwrap();
    let error = bot.run().await.unwrap_err().to_string();
    assert!(error.contains("dead-letter"), "{error}");
}
