//! `bench telemetry`: submissions from a queue through the telemetry bot into a stream, durable at each step, beside the same
//! steps (decode, check, take apart, encode) on the same number of cores without any store.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_bus::telemetry::{Explode, Exploder, SUBMISSION_SCHEMA, StreamRuns};
use anabranch_bus::{Bot, Queue, Source};
use anabranch_consumer::{DeadLetters, FailurePolicy, Finally};
use anabranch_engine::{Engine, SystemClock};
use anabranch_model::limits::MESSAGE_BATCH_MAX;
use anabranch_model::{Clock, NewMessage, QueueName, QueueOptions, QueueStore};
use anabranch_producer::{Producer, Settings};

use super::Setting;
use super::machine::Machine;
use super::progress::Progress;
use super::report::{Figure, Goal, Report, Unit};
use super::statistics::Spread;
use super::subject::Subject;
use super::tasks::{self, Task};
use crate::failure::Failure;
use crate::fleet::Sensors;
use crate::runtime::pause;

const SHARDS: usize = 8;
/// Submissions of a round for each MiB that a round may have.
const SUBMISSIONS_PER_MEGABYTE: usize = 64;
/// Tasks that fill the queue.
const SENDERS: usize = 32;
/// Submissions under way.
const IN_FLIGHT: usize = 600;
const GOAL: f64 = 0.5;
/// A thousand times what the program did that this replaces.
const PER_SECOND_GOAL: f64 = 10_000.0;
/// How often it is looked whether a round is over.
const LOOK: Duration = Duration::from_millis(1);

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Report, Failure> {
    let mut report = Report::new("telemetry", Machine::with(setting.place.root()), setting.bounds);
    let progress = Progress::new(setting.bounds.rounds);
    progress.say("fill the segments");
    let subject = Subject::open(&setting.place.folder("engine")?, SHARDS).await?;
    subject.warm_up(setting.bounds, SHARDS).await?;
    let count = (setting.bounds.megabytes as usize * SUBMISSIONS_PER_MEGABYTE)
        .next_multiple_of(SENDERS * MESSAGE_BATCH_MAX);
    let sensors = Sensors::new(100, Vec::new(), 1);
    let clock = SystemClock::new();
    let bodies: Arc<Vec<Vec<u8>>> = Arc::new((0..count).map(|_| sensors.next(clock.now()).body).collect());
    let (submissions, dead) = (QueueName::new("submissions")?, QueueName::new("dead")?);
    for queue in [&submissions, &dead] {
        subject.engine().create_queue(queue, QueueOptions::default()).await?;
    }
    progress.say("telemetry");
    let (mut ours, mut raw) = (Vec::new(), Vec::new());
    for _ in 0..setting.bounds.rounds {
        subject.renew(SHARDS).await?;
        fill(subject.engine(), &submissions, &bodies).await?;
        ours.push(count as f64 / process(&subject, &submissions, &dead, count as u64).await?.as_secs_f64());
        raw.push(count as f64 / steps_alone(bodies.clone()).await?.as_secs_f64());
        progress.step();
    }
    let what = format!(
        "{count} submissions from a queue into a stream of {SHARDS} shards, beside the same steps without stores"
    );
    let figure =
        Figure::beside("telemetry", what, Unit::OperationsPerSecond, Spread::of(ours), Spread::of(raw));
    let reached = figure.engine.median >= PER_SECOND_GOAL;
    report.figures.push(figure.aim(Goal::RatioAtLeast(GOAL)));
    report.notes.push(format!(
        "{PER_SECOND_GOAL} submissions a second, a thousand times what the program did that this replaces: {}",
        if reached { "reached" } else { "not reached" }
    ));
    subject.close().await?;
    Ok(report)
}

/// Fills the queue with messages that are durable.
async fn fill(engine: &Engine, queue: &QueueName, bodies: &Arc<Vec<Vec<u8>>>) -> Result<(), Failure> {
    let sender =
        |number| Sender { engine: engine.clone(), queue: queue.clone(), bodies: bodies.clone(), number };
    let steps = bodies.len() / SENDERS / MESSAGE_BATCH_MAX;
    tasks::finish((0..SENDERS).map(sender).collect(), steps).await.map(drop)
}

struct Sender {
    engine: Engine,
    queue: QueueName,
    bodies: Arc<Vec<Vec<u8>>>,
    number: usize,
}

impl Task for Sender {
    async fn step(&mut self, number: usize) -> Result<(), Failure> {
        let from = (number * SENDERS + self.number) * MESSAGE_BATCH_MAX;
        let batch = &self.bodies[from..from + MESSAGE_BATCH_MAX];
        let messages = batch.iter().map(|body| NewMessage::new(body.clone())).collect();
        for sent in self.engine.send(&self.queue, messages).await? {
            sent?;
        }
        Ok(())
    }
}

/// Lets the bot empty the queue. Returns how long that took.
async fn process(
    subject: &Subject,
    submissions: &QueueName,
    dead: &QueueName,
    count: u64,
) -> Result<Duration, Failure> {
    let (engine, clock) = (Arc::new(subject.engine().clone()), Arc::new(SystemClock::new()));
    let settings = Settings { linger: Duration::ZERO, ..Settings::default() };
    let producer = Producer::start(engine.clone(), subject.stream().clone(), clock.clone(), settings).await?;
    let sink = StreamRuns::new(producer.clone());
    let tally = sink.tally();
    let source = Queue { in_flight: IN_FLIGHT, ..Queue::new(engine.clone(), submissions.clone()) };
    let letters = DeadLetters::Queue(engine, dead.clone());
    let failure = FailurePolicy { finally: Finally::DeadLetter(letters), ..FailurePolicy::default() };
    let step = Explode::new(Exploder::new(SUBMISSION_SCHEMA, "built in")?, None, clock.clone());
    let bot = Bot::builder("telemetry", Source::Queue(source), Arc::new(sink), clock.clone());
    let bot = bot.step(Arc::new(step)).failure(failure).build()?;
    let handle = bot.handle();
    let began = clock.elapsed();
    let running = tokio::spawn(bot.run());
    while tally.submissions.load(Ordering::Relaxed) < count {
        pause(LOOK).await;
    }
    let took = clock.elapsed().saturating_sub(began);
    handle.stop();
    let ended = running
        .await
        .map_err(|error| Failure::new("bench", format!("the bot broke off: {error}"), "report this"))?;
    producer.close().await;
    ended.map_err(Failure::from).map(|()| took)
}

/// The same steps, each core with its part of the submissions.
async fn steps_alone(bodies: Arc<Vec<Vec<u8>>>) -> Result<Duration, Failure> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let clock = SystemClock::new();
    let began = clock.elapsed();
    let part = |core: usize| {
        let bodies = bodies.clone();
        tokio::task::spawn_blocking(move || {
            let (exploder, clock) = (Exploder::new(SUBMISSION_SCHEMA, "built in")?, SystemClock::new());
            let mut events = 0;
            for body in bodies.iter().skip(core).step_by(cores) {
                let made = exploder.explode(body, clock.now());
                events += made.map_or(0, |submission| submission.events.len());
            }
            Ok::<usize, anabranch_model::Error>(events)
        })
    };
    for running in (0..cores).map(part).collect::<Vec<_>>() {
        let events =
            running.await.map_err(|error| Failure::new("bench", error.to_string(), "report this"))??;
        debug_assert!(events > 0);
    }
    Ok(clock.elapsed().saturating_sub(began))
}
