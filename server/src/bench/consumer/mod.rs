//! `bench consumer`: what reading with leases costs, and how soon a worker begins, hands a shard over and is replaced.
//!
//! Costs stand beside bare reads of the same shards. Times are those of leases, which are waited for, so they have goals of
//! their own and no limit of the machine.
//!
//! | file | what it owns |
//! |---|---|
//! | `cost` | records by processor time, writes to the table, memory of a process |
//! | `times` | the first record, handovers, the replacement of a worker that died |
//! | `worker` | workers in this process, and what they saw |

mod cost;
mod times;
mod worker;

use super::Setting;
use super::machine::Machine;
use super::progress::Progress;
use super::report::Report;
use crate::failure::Failure;

/// Rounds of what waits for leases to run out: they differ little, and each takes seconds.
const ROUNDS_MAX: usize = 7;

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Report, Failure> {
    let mut report = Report::new("consumer", Machine::with(setting.place.root()), setting.bounds);
    let rounds = setting.bounds.rounds.min(ROUNDS_MAX);
    let progress = Progress::new(setting.bounds.rounds + 4 * rounds + 1);
    let wants = |case: &str| {
        let wanted = setting.bounds.wants(case);
        if wanted {
            progress.say(case);
        }
        wanted
    };
    if wants("records") {
        report.figures.push(cost::records(setting, &progress).await?);
    }
    if wants("first_record") {
        report.figures.push(times::first_record(setting, &progress, rounds).await?);
    }
    if wants("handover") {
        report.figures.push(times::handover(setting, &progress, rounds).await?);
    }
    if wants("replacement") {
        report.figures.push(times::replacement(setting, &progress, rounds).await?);
    }
    if wants("writes") {
        report.figures.push(cost::writes(setting, &progress, rounds).await?);
    }
    if wants("memory") {
        report.figures.push(cost::memory(setting).await?);
        progress.step();
    }
    report.notes.push(format!(
        "what waits for leases is measured in {rounds} rounds; a handover or a replacement that delivers a record to nobody, \
         and a handover that delivers one twice, fails the bench"
    ));
    Ok(report)
}
