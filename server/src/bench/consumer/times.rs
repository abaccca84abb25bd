//! How soon a worker begins, hands over, and is replaced.

use std::collections::HashSet;
use std::time::Duration;

use anabranch_consumer::Lease;
use anabranch_model::table::expression::missing;
use anabranch_model::table::{Item, Update, Write, path};
use anabranch_model::{Clock, NewRecord, StreamStore, TableName, TableStore};

use super::super::Setting;
use super::super::progress::Progress;
use super::super::report::{Figure, Goal, Unit};
use super::super::statistics::{Spread, percentile, sorted};
use super::super::subject::Subject;
use super::ROUNDS_MAX;
use super::worker::{Fleet, late, milliseconds, of};
use crate::failure::Failure;

/// The default of the library.
const LEASE_TIME: Duration = Duration::from_secs(10);
/// Short, so that a round is.
const LEASE_TIME_SHORT: Duration = Duration::from_secs(2);
/// What a replacement may take beyond the time of a lease.
const ALLOWANCE: Duration = Duration::from_secs(1);
/// Workers that follow each other; nobody comes back.
const NAMES: [&str; ROUNDS_MAX + 1] = ["one", "two", "three", "four", "five", "six", "seven", "eight"];
/// Odd, so that two workers are even whichever of them has one more.
const SHARDS: usize = 9;
/// Handovers of a round.
const HANDOVERS: usize = 20;

const FIRST_RECORD_GOAL_MS: f64 = 2_000.0;
const HANDOVER_GOAL_MS: f64 = 1_000.0;

/// From the start of a worker of a new application to its first record.
pub(super) async fn first_record(
    setting: &Setting<'_>,
    progress: &Progress,
    rounds: usize,
) -> Result<Figure, Failure> {
    let subject = Subject::open(&setting.place.folder("first_record")?, SHARDS).await?;
    let records = (0..100).map(|n| NewRecord::new(format!("key-{n}"), "a record")).collect();
    for stored in subject.engine().append(subject.stream(), records).await? {
        stored?;
    }
    let mut took = Vec::new();
    for round in 0..rounds {
        let application = format!("first-{round}");
        let mut fleet = Fleet::new(subject.engine(), subject.stream(), &application, LEASE_TIME);
        let began = fleet.clock.elapsed();
        let worker = fleet.start("one")?;
        took.push(milliseconds(fleet.sight().await?.at - began));
        worker.stop().await?;
        progress.step();
    }
    subject.close().await?;
    let what = format!(
        "from the start of a worker to its first record, with tables and the leases of {SHARDS} shards made before it"
    );
    let figure = Figure::with_ratio("first_record", what, Unit::Milliseconds, Spread::of(took), None, None);
    Ok(figure.aim(Goal::Below(FIRST_RECORD_GOAL_MS)))
}

/// From the wish that a shard changes hands to the first record that its new owner sees, under load.
pub(super) async fn handover(
    setting: &Setting<'_>,
    progress: &Progress,
    rounds: usize,
) -> Result<Figure, Failure> {
    let subject = Subject::open(&setting.place.folder("handover")?, SHARDS).await?;
    let mut fleet = Fleet::new(subject.engine(), subject.stream(), "handover", LEASE_TIME);
    let load = fleet.load();
    let workers = [fleet.start("one")?, fleet.start("two")?];
    let even = |leases: &[Lease]| of(leases, "one").min(of(leases, "two")) == SHARDS / 2;
    let mut took = Vec::new();
    for _ in 0..rounds {
        let mut round = Vec::new();
        for _ in 0..HANDOVERS {
            let leases = fleet.until(even).await?;
            round.push(milliseconds(hand_over(&mut fleet, &leases).await?));
        }
        took.push(percentile(&sorted(&round), 99.0));
        progress.step();
    }
    drop(load);
    for worker in workers {
        worker.stop().await?;
    }
    if fleet.repeated > 0 {
        let what = format!("{} records were delivered twice by handovers", fleet.repeated);
        return Err(Failure::new("bench", what, "report this"));
    }
    subject.close().await?;
    let what = format!(
        "p99 of {HANDOVERS} handovers a round: from the wish in the table to the first record of the new owner, leases of \
         {} s, {SHARDS} shards under load; no record comes twice",
        LEASE_TIME.as_secs()
    );
    let figure = Figure::with_ratio("handover", what, Unit::Milliseconds, Spread::of(took), None, None);
    Ok(figure.aim(Goal::Below(HANDOVER_GOAL_MS)))
}

/// Asks for a handover as a leader does, from the one with more leases to the other.
async fn hand_over(fleet: &mut Fleet, leases: &[Lease]) -> Result<Duration, Failure> {
    let (from, to) = if of(leases, "one") > of(leases, "two") { ("one", "two") } else { ("two", "one") };
    let lease = leases.iter().find(|lease| lease.owner.as_deref() == Some(from));
    let lease = lease.ok_or_else(|| late("nobody has a lease"))?;
    let key = Item::new().with("leaseKey", lease.key.as_str());
    let ask = Update::new().set("leaseOwner", to).set("checkpointOwner", from);
    let still = path("leaseOwner").equals(from).and(missing("checkpointOwner"));
    let began = fleet.clock.elapsed();
    let table = TableName::new(&fleet.application)?;
    fleet.engine.write(&table, Write::update(key, ask).when(still)).await?;
    loop {
        let sight = fleet.sight().await?;
        if sight.worker == to && sight.shard.as_str() == lease.key && sight.at >= began {
            return Ok(sight.at - began);
        }
    }
}

/// From the death of a worker to the moment at which another one has seen a record of each of its shards, under load.
pub(super) async fn replacement(
    setting: &Setting<'_>,
    progress: &Progress,
    rounds: usize,
) -> Result<Figure, Failure> {
    let subject = Subject::open(&setting.place.folder("replacement")?, SHARDS).await?;
    let mut fleet = Fleet::new(subject.engine(), subject.stream(), "replacement", LEASE_TIME_SHORT);
    let load = fleet.load();
    let mut survivor = fleet.start(NAMES[0])?;
    let mut took = Vec::new();
    for pair in NAMES.windows(2).take(rounds) {
        let (old, new) = (pair[0], pair[1]);
        let next = fleet.start(new)?;
        // The older one is the leader: it is the one that dies.
        let leases = fleet.until(|leases| of(leases, old).min(of(leases, new)) == SHARDS / 2).await?;
        let of_old = leases.iter().filter(|lease| lease.owner.as_deref() == Some(old));
        let mut orphans: HashSet<String> = of_old.map(|lease| lease.key.to_string()).collect();
        let died = fleet.clock.elapsed();
        std::mem::replace(&mut survivor, next).kill().await;
        let mut last = died;
        while !orphans.is_empty() {
            let sight = fleet.sight().await?;
            if sight.worker == new && sight.at >= died && orphans.remove(sight.shard.as_str()) {
                last = sight.at;
            }
        }
        took.push(milliseconds(last - died));
        progress.step();
    }
    drop(load);
    survivor.stop().await?;
    subject.close().await?;
    let what = format!(
        "from the death of the leader to a record of each of its shards in the hands of the other worker, beside the lease \
         time of {} s and {} s",
        LEASE_TIME_SHORT.as_secs(),
        ALLOWANCE.as_secs()
    );
    let allowed = vec![milliseconds(LEASE_TIME_SHORT + ALLOWANCE); took.len()];
    let (took, allowed) = (Spread::of(took), Spread::of(allowed));
    let figure = Figure::beside("replacement", what, Unit::Milliseconds, took, allowed);
    Ok(figure.aim(Goal::RatioAtMost(1.0)))
}
