//! `bench telemetry`: submissions from a queue through the telemetry bot into a stream, durable at each step, beside the same
//! steps (decode, check, take apart, encode) on the same number of cores without any store.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_bus::telemetry::{Explode, Exploder, SUBMISSION_SCHEMA, StreamRuns, Tally};
use anabranch_bus::{Bot, Event, Handle, Outcome, Queue, Sink, Source};
use anabranch_consumer::{DeadLetters, FailurePolicy, Finally};
use anabranch_engine::{Engine, SystemClock};
use anabranch_model::limits::MESSAGE_BATCH_MAX;
use anabranch_model::{Clock, NewMessage, QueueName, QueueOptions, QueueStore};
use anabranch_producer::{Producer, Settings};
use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::Setting;
use super::machine::{Machine, processor_time, resident_mib};
use super::progress::Progress;
use super::report::{Figure, Goal, Report, Unit};
use super::scale::Scale;
use super::statistics::{Spread, percentile, sorted};
use super::subject::Subject;
use super::tasks::{self, Task};
use crate::failure::Failure;
use crate::fleet::Sensors;
use crate::runtime::pause;

const SHARDS: usize = 8;
/// Submissions of a round for each MiB that a round may have: the events of one take about 4 KiB.
const SUBMISSIONS_PER_MEGABYTE: usize = 256;
/// Tasks that fill the queue.
const SENDERS: usize = 32;
/// Submissions under way.
const IN_FLIGHT: usize = 600;
const GOAL: f64 = 0.5;
/// A thousand times what the program did that this replaces.
const PER_SECOND_GOAL: f64 = 10_000.0;
/// How often it is looked whether a round is over.
const LOOK: Duration = Duration::from_millis(1);
/// The share of what a bot takes at most at which it is not saturated.
const CALM: f64 = 0.25;
/// How often somebody sends while the latency is measured.
const TICK: Duration = Duration::from_millis(10);
/// For how long.
const CALM_TICKS: usize = 100;
const LATENCY_GOAL_MS: f64 = 50.0;

/// Submissions that are sent again and again where only their number counts.
const STOCK: usize = 640;
/// For how long the bot works on a queue with many messages.
const MEMORY_TIME: Duration = Duration::from_secs(10);
const MEMORY_GOAL_MIB: f64 = 100.0;

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>, scale: Scale) -> Result<Report, Failure> {
    let mut report = Report::new("telemetry", Machine::with(setting.place.root()), setting.bounds);
    let progress = Progress::new(setting.bounds.rounds);
    // First, for memory that was used once is not given back in full.
    if setting.bounds.wants("memory") {
        progress.say("memory");
        memory(setting, scale, &mut report).await?;
    }
    if setting.bounds.wants("telemetry") {
        rounds(setting, &progress, &mut report).await?;
    }
    Ok(report)
}

/// The memory of this process, with the engine and the bot in it, while the bot works on a queue with very many messages.
async fn memory(setting: &Setting<'_>, scale: Scale, report: &mut Report) -> Result<(), Failure> {
    let subject = Subject::open(&setting.place.folder("memory")?, SHARDS).await?;
    let (submissions, dead) = queues(&subject).await?;
    let count = scale.entries(setting.bounds).next_multiple_of(SENDERS * MESSAGE_BATCH_MAX);
    fill(subject.engine(), &submissions, &bodies(STOCK), count).await?;
    subject.upkeep().await?;
    let process = std::process::id();
    let (idle, clock) = (resident_mib(process), SystemClock::new());
    let running = Running::start(&subject, &submissions, &dead).await?;
    let (began, mut most) = (clock.elapsed(), idle);
    while clock.elapsed().saturating_sub(began) < MEMORY_TIME && running.stored() < count as u64 {
        pause(LOOK * 20).await;
        most = most.max(resident_mib(process));
    }
    let stored = running.stored();
    running.stop().await?;
    subject.close().await?;
    let what = format!("most resident memory of engine and bot with {count} submissions waiting");
    let figure = Figure::with_ratio("memory", &what, Unit::Mebibytes, Spread::of(vec![most]), None, None);
    // The goal speaks of a million.
    let goal = Goal::Below(MEMORY_GOAL_MIB);
    report.figures.push(if scale.full { figure.aim(goal) } else { figure });
    report.notes.push(format!(
        "memory: {idle:.1} MiB before the bot begins, {most:.1} MiB at most while it takes {stored} of {count} submissions; \
         --full fills the queue with the million that the goal of {MEMORY_GOAL_MIB} MiB speaks of"
    ));
    Ok(())
}

async fn queues(subject: &Subject) -> Result<(QueueName, QueueName), Failure> {
    let (submissions, dead) = (QueueName::new("submissions")?, QueueName::new("dead")?);
    for queue in [&submissions, &dead] {
        subject.engine().create_queue(queue, QueueOptions::default()).await?;
    }
    Ok((submissions, dead))
}

/// So many submissions.
fn bodies(count: usize) -> Arc<Vec<Vec<u8>>> {
    let (sensors, clock) = (Sensors::new(100, Vec::new(), 1), SystemClock::new());
    Arc::new((0..count).map(|_| sensors.next(clock.now()).body).collect())
}

async fn rounds(setting: &Setting<'_>, progress: &Progress, report: &mut Report) -> Result<(), Failure> {
    progress.say("fill the segments");
    let subject = Subject::open(&setting.place.folder("engine")?, SHARDS).await?;
    subject.warm_up(setting.bounds, SHARDS).await?;
    let count = (setting.bounds.megabytes as usize * SUBMISSIONS_PER_MEGABYTE)
        .next_multiple_of(SENDERS * MESSAGE_BATCH_MAX);
    let bodies = bodies(count);
    let (submissions, dead) = queues(&subject).await?;
    progress.say("telemetry");
    let (mut ours, mut raw, mut costs) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..setting.bounds.rounds {
        subject.renew(SHARDS).await?;
        fill(subject.engine(), &submissions, &bodies, count).await?;
        let before = processor_time();
        ours.push(count as f64 / process(&subject, &submissions, &dead, count as u64).await?.as_secs_f64());
        let between = processor_time();
        raw.push(count as f64 / steps_alone(bodies.clone()).await?.as_secs_f64());
        let micros = |spent: Duration| spent.as_secs_f64() * 1_000_000.0 / count as f64;
        costs[0].push(micros(between.saturating_sub(before)));
        costs[1].push(micros(processor_time().saturating_sub(between)));
        progress.step();
    }
    let what = format!(
        "{count} submissions from a queue into a stream of {SHARDS} shards, beside the same steps without stores"
    );
    let figure =
        Figure::beside("telemetry", what, Unit::OperationsPerSecond, Spread::of(ours), Spread::of(raw));
    let reached = figure.engine.median >= PER_SECOND_GOAL;
    let calm = figure.engine.median * CALM;
    report.figures.push(figure.aim(Goal::RatioAtLeast(GOAL)));
    report.notes.push(format!(
        "{PER_SECOND_GOAL} submissions a second, a thousand times what the program did that this replaces: {}",
        if reached { "reached" } else { "not reached" }
    ));
    let [ours, alone] = costs.map(|costs| Spread::of(costs).median);
    report.notes.push(format!(
        "processor time a submission: {ours:.1} µs, all threads together; {alone:.1} µs of the steps without stores"
    ));
    progress.say("latency");
    let mut tails = Vec::new();
    for _ in 0..setting.bounds.rounds {
        subject.renew(SHARDS).await?;
        let times = latencies(&subject, &submissions, &dead, &bodies, calm).await?;
        tails.push(percentile(&sorted(&times), 99.0));
    }
    let what =
        format!("99 of 100 submissions are in the stream within this, at {calm:.0} submissions a second");
    let figure = Figure::with_ratio("latency_p99", &what, Unit::Milliseconds, Spread::of(tails), None, None);
    report.figures.push(figure.aim(Goal::Below(LATENCY_GOAL_MS)));
    subject.close().await
}

/// Fills the queue with so many messages that are durable.
async fn fill(
    engine: &Engine,
    queue: &QueueName,
    bodies: &Arc<Vec<Vec<u8>>>,
    count: usize,
) -> Result<(), Failure> {
    let sender =
        |number| Sender { engine: engine.clone(), queue: queue.clone(), bodies: bodies.clone(), number };
    let steps = count / SENDERS / MESSAGE_BATCH_MAX;
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
        let body = |number: usize| NewMessage::new(self.bodies[number % self.bodies.len()].clone());
        let messages = (from..from + MESSAGE_BATCH_MAX).map(body).collect();
        for sent in self.engine.send(&self.queue, messages).await? {
            sent?;
        }
        Ok(())
    }
}

/// The bot under test.
struct Running {
    handle: Handle,
    bot: JoinHandle<anabranch_model::Result<()>>,
    producer: Producer,
    tally: Arc<Tally>,
    /// From when each submission was sent to when it was in the stream, in milliseconds.
    times: Arc<Mutex<Vec<f64>>>,
}

impl Running {
    async fn start(subject: &Subject, submissions: &QueueName, dead: &QueueName) -> Result<Self, Failure> {
        let (engine, clock) = (Arc::new(subject.engine().clone()), Arc::new(SystemClock::new()));
        let settings = Settings { linger: Duration::ZERO, ..Settings::default() };
        let producer =
            Producer::start(engine.clone(), subject.stream().clone(), clock.clone(), settings).await?;
        let sink = StreamRuns::new(producer.clone());
        let (tally, times) = (sink.tally(), Arc::default());
        let sink = Arc::new(Timed { sink, times: Arc::clone(&times), clock: clock.clone() });
        let source = Queue { in_flight: IN_FLIGHT, ..Queue::new(engine.clone(), submissions.clone()) };
        let letters = DeadLetters::Queue(engine, dead.clone());
        let failure = FailurePolicy { finally: Finally::DeadLetter(letters), ..FailurePolicy::default() };
        let step = Explode::new(Exploder::new(SUBMISSION_SCHEMA, "built in")?, None, clock.clone());
        let bot = Bot::builder("telemetry", Source::Queue(source), sink, clock);
        let bot = bot.step(Arc::new(step)).failure(failure).build()?;
        let handle = bot.handle();
        Ok(Running { handle, bot: tokio::spawn(bot.run()), producer, tally, times })
    }

    /// Submissions that are in the stream.
    fn stored(&self) -> u64 {
        self.tally.submissions.load(Ordering::Relaxed)
    }

    async fn until_stored(&self, count: u64) {
        while self.stored() < count {
            pause(LOOK).await;
        }
    }

    async fn stop(self) -> Result<(), Failure> {
        self.handle.stop();
        let ended = self
            .bot
            .await
            .map_err(|error| Failure::new("bench", format!("the bot broke off: {error}"), "report this"))?;
        self.producer.close().await;
        ended.map_err(Failure::from)
    }
}

/// A sink that notes how long submissions took.
struct Timed {
    sink: StreamRuns,
    times: Arc<Mutex<Vec<f64>>>,
    clock: Arc<SystemClock>,
}

#[async_trait]
impl Sink for Timed {
    async fn write(&self, events: &[Event]) -> Vec<Outcome> {
        let outcomes = self.sink.write(events).await;
        let now = self.clock.now();
        let submissions = events.chunk_by(|one, other| one.origin == other.origin);
        let times: Vec<f64> =
            submissions.map(|events| now.since(events[0].at).as_secs_f64() * 1_000.0).collect();
        self.times.lock().await.extend(times);
        outcomes
    }

    fn takes_many(&self) -> bool {
        self.sink.takes_many()
    }
}

/// Lets the bot empty the queue. Returns how long that took.
async fn process(
    subject: &Subject,
    submissions: &QueueName,
    dead: &QueueName,
    count: u64,
) -> Result<Duration, Failure> {
    let clock = SystemClock::new();
    let began = clock.elapsed();
    let running = Running::start(subject, submissions, dead).await?;
    running.until_stored(count).await;
    let took = clock.elapsed().saturating_sub(began);
    running.stop().await.map(|()| took)
}

/// Sends so many submissions a second, and returns how long each took.
async fn latencies(
    subject: &Subject,
    submissions: &QueueName,
    dead: &QueueName,
    bodies: &[Vec<u8>],
    per_second: f64,
) -> Result<Vec<f64>, Failure> {
    let clock = SystemClock::new();
    let running = Running::start(subject, submissions, dead).await?;
    let (began, mut sent) = (clock.elapsed(), 0);
    for tick in 1..=CALM_TICKS {
        pause((began + TICK * tick as u32).saturating_sub(clock.elapsed())).await;
        let due = (per_second * TICK.as_secs_f64() * tick as f64) as usize;
        while sent < due {
            let batch = (due - sent).min(MESSAGE_BATCH_MAX);
            let body = |number: usize| NewMessage::new(bodies[number % bodies.len()].clone());
            for result in subject.engine().send(submissions, (sent..sent + batch).map(body).collect()).await?
            {
                result?;
            }
            sent += batch;
        }
    }
    running.until_stored(sent as u64).await;
    let times = running.times.lock().await.clone();
    running.stop().await.map(|()| times)
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
