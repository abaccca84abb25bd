//! Bots on queues: deleted only when done, visible again at once, dead letters in full.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_bus::{Bot, Event, Outcome, Queue, Refusal, Sink, Source, Step};
use anabranch_consumer::{DeadLetters, FailurePolicy, Finally};
use anabranch_model::queue::{Attribute, AttributeValue};
use anabranch_model::{NewMessage, QueueName, QueueOptions, QueueStore};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use world::slow::{Call, SlowQueues};
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
    /// Whether it refuses whatever it is given.
    refuses_all: bool,
    /// How many it was given with each call.
    calls: Arc<Mutex<Vec<usize>>>,
    /// How many bytes are with it, and the most there were at once.
    bytes: Arc<Mutex<(usize, usize)>>,
}

#[async_trait]
impl Sink for Ward {
    async fn write(&self, events: &[Event]) -> Vec<Outcome> {
        let bytes: usize = events.iter().map(|event| event.data.len()).sum();
        {
            let (now, most) = &mut *self.bytes.lock();
            *now += bytes;
            *most = (*most).max(*now);
        }
        pause(self.takes).await;
        self.bytes.lock().0 -= bytes;
        self.calls.lock().push(events.len());
        if std::mem::replace(&mut *self.absent.lock(), 0) > 0 {
            return vec![Outcome::Unavailable("nobody there".to_owned()); events.len()];
        }
        let text = |event: &Event| String::from_utf8_lossy(&event.data).into_owned();
        self.seen.lock().extend(events.iter().map(|event| (text(event), event.attempt)));
        assert!(events.iter().all(|event| text(event) != "panic"), "as told");
        let outcomes = events.iter().map(|event| match text(event).as_str() {
            _ if self.refuses_all => Outcome::Refused("as told".to_owned()),
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
    bot_on(Arc::new(world.queues.clone()), world, name, ward, in_flight)
}

fn bot_on(
    queues: Arc<dyn QueueStore>,
    world: &World,
    name: &QueueName,
    ward: &Ward,
    in_flight: usize,
) -> Running {
    let mut source = Queue::new(queues, name.clone());
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

async fn numbered(world: &World, count: usize) -> QueueName {
    let bodies: Vec<String> = (0..count).map(|number| number.to_string()).collect();
    queue(world, &bodies.iter().map(String::as_str).collect::<Vec<_>>()).await
}

/// Lets the bot's clock and the store's run beside each other.
async fn let_pass(world: &World, most: u64) {
    for _ in 0..most {
        pause(seconds(1)).await;
        world.queues.advance(seconds(1));
    }
}

fn attempts(ward: &Ward) -> BTreeMap<u32, usize> {
    let mut attempts = BTreeMap::new();
    for (_, attempt) in ward.seen.lock().iter() {
        *attempts.entry(*attempt).or_default() += 1;
    }
    attempts
}

/// Receivers that wait for memory, and a sink that is away for good: a stop has an end, and nobody takes more meanwhile.
#[tokio::test(start_paused = true)]
async fn stopping_has_an_end_although_the_sink_is_away() {
    let world = World::new().await;
    let name = queue(&world, &[]).await;
    let large = "x".repeat(1 << 20);
    for _ in 0..120 {
        world.queues.send(&name, vec![NewMessage::new(large.clone())]).await.unwrap();
    }
    let ward = Ward { takes: seconds(1_000_000), many: true, ..Ward::default() };
    let bot = bot(&world, &name, &ward, 200);
    pause(seconds(5)).await;
    let (_, before) = counts(&world, &name).await;
    let began = world.clock.elapsed();
    bot.stop().await;
    assert!(world.clock.elapsed() - began <= seconds(21), "{:?}", world.clock.elapsed() - began);
    assert_eq!(counts(&world, &name).await.1, before, "nothing more was taken");
    assert!((1..120).contains(&before), "some wait for memory: {before}");
}

/// Large messages make a bot work on fewer at a time, and not one after the other.
#[tokio::test(start_paused = true)]
async fn large_messages_fit_the_memory_and_go_side_by_side() {
    let world = World::new().await;
    let name = queue(&world, &[]).await;
    let large = "x".repeat(1 << 20);
    for _ in 0..160 {
        world.queues.send(&name, vec![NewMessage::new(large.clone())]).await.unwrap();
    }
    let ward = Ward { takes: seconds(1), many: true, ..Ward::default() };
    // The first receives of all four receivers are made before anybody knows how large messages are.
    let bot = bot(&world, &name, &ward, 200);
    world.until("the first", async || ward.calls.lock().len() >= 4).await;
    ward.bytes.lock().1 = 0;
    world.until("an empty queue", async || counts(&world, &name).await == (0, 0)).await;
    bot.stop().await;
    let most = ward.bytes.lock().1;
    assert!(most <= 32 << 20, "{most} bytes at once");
    assert!(most > 10 << 20, "one at a time: {most} bytes at once");
}

/// What is done stays hidden until it is deleted, however long the store takes for that.
#[tokio::test(start_paused = true)]
async fn what_is_done_stays_hidden_until_it_is_deleted() {
    let world = World::new().await;
    let name = numbered(&world, 60).await;
    let rule = |call| if call == Call::Delete { seconds(60) } else { Duration::ZERO };
    let ward = Ward { many: true, ..Ward::default() };
    let queues = Arc::new(SlowQueues::new(&world.queues, rule));
    let bot = bot_on(queues, &world, &name, &ward, 200);
    let_pass(&world, 600).await;
    bot.stop().await;
    assert_eq!(counts(&world, &name).await, (0, 0));
    assert_eq!(attempts(&ward), BTreeMap::from([(1, 60)]));
}

/// One of several receives takes longer than messages are hidden. What the others have brought stays hidden meanwhile.
#[tokio::test(start_paused = true)]
async fn what_some_receives_bring_stays_hidden_while_another_takes_its_time() {
    let world = World::new().await;
    let name = numbered(&world, 400).await;
    let mut receives = 0;
    let rule = move |call| {
        receives += usize::from(call == Call::Receive);
        // After a first round of single receives: one in every five.
        if call == Call::Receive && receives > 4 && receives % 5 == 2 { seconds(40) } else { Duration::ZERO }
    };
    let ward = Ward { many: true, ..Ward::default() };
    let queues = Arc::new(SlowQueues::new(&world.queues, rule));
    let bot = bot_on(queues, &world, &name, &ward, 200);
    let_pass(&world, 1200).await;
    bot.stop().await;
    assert_eq!(counts(&world, &name).await, (0, 0));
    assert_eq!(attempts(&ward), BTreeMap::from([(1, 400)]));
    let calls = ward.calls.lock().clone();
    assert!(calls.iter().any(|count| *count > 10), "several receives went together: {calls:?}");
}

/// A message so large that its letter is larger than a message may be lies in parts, which are the letter when joined.
#[tokio::test(start_paused = true)]
async fn a_dead_letter_larger_than_a_message_lies_in_parts() {
    let world = World::new().await;
    let name = queue(&world, &[]).await;
    let text =
        Attribute { kind: "String".to_owned(), value: AttributeValue::Text("\"quoted\"".repeat(20_000)) };
    let mut message = NewMessage::new("fail".repeat(200 << 10));
    message.attributes.insert("note".to_owned(), text);
    let sent = world.queues.send(&name, vec![message]).await.unwrap();
    assert!(sent[0].is_ok(), "{sent:?}");
    let ward = Ward { refuses_all: true, ..Ward::default() };
    let bot = bot(&world, &name, &ward, 10);
    world.until("an empty queue", async || counts(&world, &name).await == (0, 0)).await;
    bot.stop().await;
    let mut parts = world.letters().await;
    parts.sort_by_key(|part| part["part"].as_u64());
    assert!(parts.len() > 1);
    let mut letter = String::new();
    for (index, part) in parts.iter().enumerate() {
        assert_eq!((&part["part"], &part["parts"]), (&(index + 1).into(), &parts.len().into()));
        letter += part["letter"].as_str().unwrap();
    }
    let letter: serde_json::Value = serde_json::from_str(&letter).unwrap();
    assert_eq!(letter["queue"], "work");
    assert_eq!(letter["attributes"]["note"]["text"].as_str().map(str::len), Some(160_000));
    let data = STANDARD.decode(letter["data"].as_str().unwrap()).unwrap();
    assert_eq!(data, "fail".repeat(200 << 10).into_bytes());
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
