//! One round of cycles of a queue, and what explains its figure.

use std::time::Duration;

use anabranch_model::QueueName;

use super::cycles;
use super::machine::processor_us;
use super::recording::Recorded;
use super::statistics::Spread;
use super::subject::Subject;
use super::tasks::Done;
use crate::failure::Failure;

/// Calls of a cycle: send, receive and delete.
const CALLS: f64 = 3.0;

/// A round.
pub(crate) struct Round {
    done: Done,
    recorded: Recorded,
    processor_us: f64,
}

impl Round {
    /// Lets every task go through so many cycles, unless the time is over before.
    pub(crate) async fn of(
        subject: &Subject,
        queue: &QueueName,
        steps: usize,
        at_most: Duration,
    ) -> Result<Round, Failure> {
        subject.recorded();
        let before_us = processor_us();
        let done = cycles::cycle(subject.engine(), queue, steps, at_most).await?;
        let processor_us = processor_us() - before_us;
        Ok(Round { done, recorded: subject.recorded(), processor_us })
    }

    /// Cycles a second.
    pub(crate) fn per_second(&self) -> f64 {
        self.done.per_second()
    }
}

/// Cycles a second of all rounds.
pub(crate) fn rates(rounds: &[Round]) -> Vec<f64> {
    rounds.iter().map(Round::per_second).collect()
}

/// Where the time of rounds went, and what checkpoints wrote meanwhile.
pub(crate) fn described(name: &str, rounds: &[Round]) -> String {
    let median = |value: &dyn Fn(&Round) -> f64| Spread::of(rounds.iter().map(value).collect()).median;
    let cycles = |round: &Round| (round.done.steps as f64).max(1.0);
    let writes = |round: &Round| (round.recorded.writes.len() as f64).max(1.0);
    format!(
        "{name}: {:.0} calls and {:.0} KiB a sync of {:.0} µs; {:.0} % of a round in these syncs; {:.1} µs of processor time a \
         cycle; checkpoints write {:.0} bytes to the state for each cycle, in {:.0} syncs a round",
        median(&|round| CALLS * cycles(round) / writes(round)),
        median(&|round| round.recorded.bytes() as f64 / 1024.0 / writes(round)),
        median(&|round| round.recorded.busy().1.as_secs_f64() * 1e6 / writes(round)),
        median(&|round| 100.0 * round.recorded.busy().1.as_secs_f64() / round.done.elapsed.as_secs_f64()),
        median(&|round| round.processor_us / cycles(round)),
        median(&|round| round.recorded.state_bytes as f64 / cycles(round)),
        median(&|round| round.recorded.state_syncs as f64),
    )
}
