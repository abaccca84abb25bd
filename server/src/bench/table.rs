//! `bench table`: conditional updates beside appends to the same journal, and queries beside a plain redb database.

use anabranch_model::{QueueName, QueueOptions, QueueStore, TableName, TableStore};

use super::Setting;
use super::machine::{Machine, resident_mib};
use super::plain_rows::PlainRows;
use super::progress::Progress;
use super::report::{Figure, Goal, Report, Unit};
use super::scale::Scale;
use super::statistics::Spread;
use super::subject::Subject;
use super::writers::{self, Load, Payloads, RECORD_BYTES};
use super::{cycles, items};
use crate::failure::Failure;
use crate::quantity::grouped;

/// Shards of the stream that appends go to.
const SHARDS: usize = 8;
/// What updates stand beside: as many tasks, each with one record in flight.
const SINGLES: Load = Load { writers: items::UPDATERS, records: 1 };
/// The part of a round's bytes that is one, so that a run is over within two minutes.
const ROUND_DIVISOR: u64 = 2;
/// Groups that are updated and queried: they stay in the caches of both sides.
const GROUPS: usize = items::UPDATERS;
/// Cases that [`measure`] goes through.
const CASES: usize = 2;

const UPDATES_GOAL: f64 = 0.25;
const QUERY_GOAL: f64 = 0.3;
const MEMORY_GOAL_MIB: f64 = 100.0;

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>, scale: Scale) -> Result<Report, Failure> {
    let mut report = Report::new("table", Machine::with(setting.place.root()), setting.bounds);
    let bench = Bench {
        setting,
        scale,
        subject: Subject::open(&setting.place.folder("engine")?, SHARDS).await?,
        progress: Progress::new(CASES * setting.bounds.rounds),
    };
    // First of all: nothing else has grown the process yet.
    if setting.bounds.wants("memory") {
        bench.memory(&mut report).await?;
    }
    bench.progress.say("fill the segments");
    bench.subject.warm_up(setting.bounds, SHARDS).await?;
    let table = TableName::new("items")?;
    bench.subject.engine().create_table(&table, items::options()).await?;
    items::fill(bench.subject.engine(), &table, GROUPS * items::GROUP_ITEMS).await?;
    // Before the updates: the database has the items as they were put.
    if setting.bounds.wants("query") {
        bench.query(&mut report, &table).await?;
    }
    if setting.bounds.wants("updates") {
        bench.updates(&mut report, &table).await?;
    }
    report.notes.push(format!(
        "updates and query: {} groups of {} items of 1 KiB; before every round all upkeep is done",
        GROUPS,
        items::GROUP_ITEMS
    ));
    bench.subject.close().await?;
    Ok(report)
}

struct Bench<'a> {
    setting: &'a Setting<'a>,
    scale: Scale,
    subject: Subject,
    progress: Progress,
}

impl Bench<'_> {
    async fn memory(&self, report: &mut Report) -> Result<(), Failure> {
        let (engine, process) = (self.subject.engine(), std::process::id());
        let (entries, before) = (self.scale.entries(self.setting.bounds), resident_mib(process));
        self.progress.say("fill a table");
        let table = TableName::new("filled")?;
        engine.create_table(&table, items::options()).await?;
        let items = grouped(items::fill(engine, &table, entries).await? as u64);
        self.subject.upkeep().await?;
        let with_table = resident_mib(process);
        self.progress.say("fill a queue");
        let queue = QueueName::new("filled")?;
        engine.create_queue(&queue, QueueOptions::default()).await?;
        let messages = grouped(cycles::fill(engine, &queue, entries).await?);
        self.subject.upkeep().await?;
        let with_both = resident_mib(process);

        let figure = |name, what: String, value| {
            Figure::with_ratio(name, what, Unit::Mebibytes, Spread::of(vec![value]), None, None)
        };
        // The goal speaks of a million.
        let aim = |figure: Figure| {
            if self.scale.full { figure.aim(Goal::Below(MEMORY_GOAL_MIB)) } else { figure }
        };
        let what = format!("resident memory of this process with a table of {items} items");
        report.figures.push(aim(figure("memory", what, with_table)));
        let what = format!("the same with {messages} messages waiting in a queue beside it");
        report.figures.push(aim(figure("memory_of_both", what, with_both)));
        report.notes.push(format!(
            "memory: {before:.1} MiB with an empty engine, {with_table:.1} MiB with {items} items, {with_both:.1} MiB with \
             {messages} messages waiting as well; --full fills in the million of each that the goal of \
             {MEMORY_GOAL_MIB} MiB speaks of"
        ));
        Ok(())
    }

    async fn query(&self, report: &mut Report, table: &TableName) -> Result<(), Failure> {
        self.progress.say("query");
        let (bounds, folder) = (self.setting.bounds, self.setting.place.folder("plain")?);
        let plain =
            PlainRows::make(&folder, items::schema(), (0..GROUPS).map(items::group).collect()).await?;
        let steps = (bounds.bytes() as usize / RECORD_BYTES / items::GROUP_ITEMS).max(GROUPS);
        self.subject.upkeep().await?;
        // One pass of both brings everything into the caches.
        items::query(self.subject.engine(), table, GROUPS, GROUPS, bounds.duration()).await?;
        plain.read(GROUPS, bounds.duration()).await?;
        let (mut engine, mut raw) = (Vec::new(), Vec::new());
        for _ in 0..bounds.rounds {
            let queried = items::query(self.subject.engine(), table, GROUPS, steps, bounds.duration());
            engine.push(queried.await?.per_second());
            raw.push(plain.read(steps, bounds.duration()).await?.per_second());
            self.progress.step();
        }
        let what = "queries of 100 items from one task, beside redb's own range read of the same 100 rows, copied out of \
                    its cache";
        report.figures.push(beside("query", what, engine, raw).aim(Goal::RatioAtLeast(QUERY_GOAL)));
        Ok(())
    }

    async fn updates(&self, report: &mut Report, table: &TableName) -> Result<(), Failure> {
        self.progress.say("updates");
        let (subject, bounds) = (&self.subject, self.setting.bounds);
        let round_bytes = bounds.bytes() / ROUND_DIVISOR;
        let payloads = Payloads::make(SINGLES, round_bytes);
        let steps = (round_bytes as usize / RECORD_BYTES / items::UPDATERS).max(1);
        let (mut engine, mut raw) = (Vec::new(), Vec::new());
        for round in 0..bounds.rounds {
            // The records of the last round would be moved while this one is measured.
            subject.renew(SHARDS).await?;
            let revision = (round * steps) as u64;
            let updated = items::update(subject.engine(), table, revision, steps, bounds.duration()).await?;
            engine.push(updated.per_second());
            subject.upkeep().await?;
            let written = writers::write(subject.engine(), subject.stream(), &payloads, bounds.duration());
            raw.push(written.await?.records_per_second());
            self.progress.step();
        }
        let what = "updates of 1 KiB from 64 tasks, each on the condition that nobody has made a later one, beside appends \
                    of single records of the same size from as many writers to a stream of the same engine";
        report.figures.push(beside("updates", what, engine, raw).aim(Goal::RatioAtLeast(UPDATES_GOAL)));
        Ok(())
    }
}

fn beside(name: &'static str, what: &str, engine: Vec<f64>, raw: Vec<f64>) -> Figure {
    Figure::beside(name, what, Unit::OperationsPerSecond, Spread::of(engine), Spread::of(raw))
}
