//! `bench queue`: messages that are sent, received and deleted, beside appends to the same journal and beside an empty
//! queue.

use anabranch_model::{QueueName, QueueOptions, QueueStore};

use super::Setting;
use super::cycles;
use super::machine::{Machine, resident_mib};
use super::progress::Progress;
use super::queue_round::{Round, described, rates};
use super::report::{Figure, Goal, Report, Unit};
use super::scale::Scale;
use super::statistics::Spread;
use super::subject::Subject;
use super::writers::{self, Load, Payloads, RECORD_BYTES};
use crate::failure::Failure;
use crate::quantity::grouped;

/// Shards of the stream that appends go to.
const SHARDS: usize = 8;
/// What a cycle stands beside: as many tasks, each with one record in flight.
const SINGLES: Load = Load { writers: cycles::TASKS, records: 1 };
/// The part of a round's bytes that is one: a cycle waits for three syncs, and all cases are to be over soon.
const ROUND_DIVISOR: u64 = 4;
/// Cases that [`measure`] goes through.
const CASES: usize = 3;

const CYCLE_GOAL: f64 = 0.25;
const SAME_AS_EMPTY_GOAL: f64 = 0.8;
const MEMORY_GOAL_MIB: f64 = 100.0;

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>, scale: Scale) -> Result<Report, Failure> {
    let mut report = Report::new("queue", Machine::with(setting.place.root()), setting.bounds);
    let mut bench = Bench {
        setting,
        scale,
        subject: Subject::open(&setting.place.folder("engine")?, SHARDS).await?,
        progress: Progress::new(CASES * setting.bounds.rounds),
    };
    // First of all: nothing else has grown the process yet.
    let filled = if setting.bounds.wants("waiting") || setting.bounds.wants("memory") {
        Some(bench.memory(&mut report).await?)
    } else {
        None
    };
    bench.progress.say("fill the segments");
    bench.subject.warm_up(setting.bounds, SHARDS).await?;
    if setting.bounds.wants("cycle") {
        bench.cycle(&mut report).await?;
    }
    if setting.bounds.wants("after_deletions") {
        bench.after_deletions(&mut report).await?;
    }
    if let Some(filled) = filled.filter(|_| setting.bounds.wants("waiting")) {
        bench.waiting(&mut report, &filled).await?;
    }
    report.notes.push(format!(
        "{} tasks with one call in flight each, messages of 1 KiB; before every round all upkeep is done, and a queue \
         that is to be empty is made anew",
        cycles::TASKS
    ));
    bench.subject.close().await?;
    Ok(report)
}

/// A queue with messages that wait.
struct Filled {
    queue: QueueName,
    messages: u64,
}

struct Bench<'a> {
    setting: &'a Setting<'a>,
    scale: Scale,
    subject: Subject,
    progress: Progress,
}

impl Bench<'_> {
    async fn memory(&mut self, report: &mut Report) -> Result<Filled, Failure> {
        self.progress.say("fill a queue");
        let (filled, before, after) = fill(&self.subject, self.entries()).await?;
        let what =
            format!("resident memory of this process with {} messages waiting", grouped(filled.messages));
        let figure = Figure::with_ratio("memory", what, Unit::Mebibytes, Spread::of(vec![after]), None, None);
        // The goal speaks of a million.
        let goal = Goal::Below(MEMORY_GOAL_MIB);
        report.figures.push(if self.scale.full { figure.aim(goal) } else { figure });
        report.notes.push(format!(
            "memory: {before:.1} MiB with an empty engine, {after:.1} MiB with {} messages waiting; --full fills the \
             queue with the million that the goal of {MEMORY_GOAL_MIB} MiB speaks of",
            grouped(filled.messages)
        ));
        Ok(filled)
    }

    async fn cycle(&mut self, report: &mut Report) -> Result<(), Failure> {
        self.progress.say("cycle");
        let (queue, payloads) = (QueueName::new("cycle")?, Payloads::make(SINGLES, self.round_bytes()));
        let (mut engine, mut raw) = (Vec::new(), Vec::new());
        for _ in 0..self.setting.bounds.rounds {
            // The records of the last round would be moved while this one is measured.
            self.subject.renew(SHARDS).await?;
            self.renew(&queue).await?;
            engine.push(self.round(&queue).await?);
            self.subject.upkeep().await?;
            let (subject, at_most) = (&self.subject, self.setting.bounds.duration());
            let written = writers::write(subject.engine(), subject.stream(), &payloads, at_most).await?;
            raw.push(written.records_per_second());
            self.progress.step();
        }
        report.notes.push(described("cycle", &engine));
        let what = "send, receive and delete of one message, beside an append of one record of the same size to a stream \
                    of the same engine";
        report.figures.push(beside("cycle", what, rates(&engine), raw).aim(Goal::RatioAtLeast(CYCLE_GOAL)));
        Ok(())
    }

    async fn after_deletions(&mut self, report: &mut Report) -> Result<(), Failure> {
        self.progress.say("delete messages");
        let worn = QueueName::new("worn")?;
        self.renew(&worn).await?;
        let messages = cycles::wear(self.subject.engine(), &worn, self.entries()).await?;
        let what = "the cycle in a queue that many messages have gone through, beside an empty one";
        self.beside_empty("after_deletions", what, &worn, report).await?;
        report.notes.push(format!(
            "after_deletions: {} messages were sent, received and deleted before; {}",
            grouped(messages),
            self.scaled()
        ));
        Ok(())
    }

    async fn waiting(&mut self, report: &mut Report, filled: &Filled) -> Result<(), Failure> {
        let what = "the cycle in a queue with many messages waiting, beside an empty one";
        self.beside_empty("waiting", what, &filled.queue, report).await?;
        report.notes.push(format!(
            "waiting: {} messages wait all the time; {}",
            filled.messages,
            self.scaled()
        ));
        Ok(())
    }

    /// A queue and an empty one, in turn.
    async fn beside_empty(
        &mut self,
        name: &'static str,
        what: &str,
        queue: &QueueName,
        report: &mut Report,
    ) -> Result<(), Failure> {
        self.progress.say(name);
        let empty = QueueName::new("empty")?;
        self.subject.renew(SHARDS).await?;
        let (mut engine, mut raw) = (Vec::new(), Vec::new());
        for _ in 0..self.setting.bounds.rounds {
            self.subject.upkeep().await?;
            engine.push(self.round(queue).await?);
            self.renew(&empty).await?;
            raw.push(self.round(&empty).await?);
            self.progress.step();
        }
        let figure = beside(name, what, rates(&engine), rates(&raw));
        report.figures.push(figure.aim(Goal::RatioAtLeast(SAME_AS_EMPTY_GOAL)));
        report.notes.push(described(name, &engine));
        report.notes.push(described(&format!("{name}, beside it"), &raw));
        Ok(())
    }

    async fn round(&self, queue: &QueueName) -> Result<Round, Failure> {
        let steps = (self.round_bytes() as usize / RECORD_BYTES / cycles::TASKS).max(1);
        Round::of(&self.subject, queue, steps, self.setting.bounds.duration()).await
    }

    /// Makes a queue that nothing has gone through, and does all upkeep.
    async fn renew(&self, queue: &QueueName) -> Result<(), Failure> {
        match self.subject.engine().delete_queue(queue).await {
            Ok(()) | Err(anabranch_model::Error::QueueNotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
        self.subject.engine().create_queue(queue, QueueOptions::default()).await?;
        self.subject.upkeep().await?;
        Ok(())
    }

    fn round_bytes(&self) -> u64 {
        self.setting.bounds.bytes() / ROUND_DIVISOR
    }

    fn entries(&self) -> usize {
        self.scale.entries(self.setting.bounds)
    }

    fn scaled(&self) -> &'static str {
        if self.scale.full { "that is the full scale" } else { "--full takes a million" }
    }
}

/// Makes a queue with so many messages or a few more. Returns it, and the resident memory before and afterwards.
async fn fill(subject: &Subject, messages: usize) -> Result<(Filled, f64, f64), Failure> {
    let (queue, before) = (QueueName::new("filled")?, resident_mib(std::process::id()));
    subject.engine().create_queue(&queue, QueueOptions::default()).await?;
    let messages = cycles::fill(subject.engine(), &queue, messages).await?;
    subject.upkeep().await?;
    Ok((Filled { queue, messages }, before, resident_mib(std::process::id())))
}

fn beside(name: &'static str, what: &str, engine: Vec<f64>, raw: Vec<f64>) -> Figure {
    Figure::beside(name, what, Unit::OperationsPerSecond, Spread::of(engine), Spread::of(raw))
}
