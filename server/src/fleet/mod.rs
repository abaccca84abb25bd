//! `anabranch fleet`: plays a fleet of sensors that send submissions to a queue.

mod submission;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anabranch_engine::SystemClock;
use anabranch_model::limits::{MESSAGE_BATCH_MAX, MESSAGE_BYTES_MAX};
use anabranch_model::{Clock, NewMessage, QueueName, QueueStore};
use clap::Args;
use futures_util::stream::{FuturesUnordered, StreamExt};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

pub(crate) use self::submission::Sensors;
use self::submission::{Fault, Share, Submission};
use crate::command::DataArgs;
use crate::connect::{Connection, Missing};
use crate::failure::Failure;
use crate::quantity::{Span, grouped};
use crate::runtime::pause;

/// How often the fleet looks at the clock.
const TICK: Duration = Duration::from_millis(20);
/// What the exercise's own generator breaks: an hundredth of each.
const FAULTS_DEFAULT: [Fault; 4] = [Fault::SubmissionId, Fault::DeviceId, Fault::Command, Fault::Address];

/// Arguments of `anabranch fleet`.
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The queue that the submissions go to
    queue: String,
    /// How many sensors there are
    #[arg(long, default_value_t = 10, value_name = "N")]
    devices: usize,
    /// Submissions a second, of all sensors together
    #[arg(long, default_value_t = 10.0, value_name = "N")]
    rate: f64,
    /// How long they send
    #[arg(long, default_value = "60s", value_name = "DURATION")]
    duration: Span,
    /// The share of submissions that are broken in a way, for instance json=0.01; may be given several times
    ///
    /// Ways: base64, utf8, json, submission-id, device-id, time, command, address. Without it a hundredth of each of
    /// submission-id, device-id, command and address.
    #[arg(long = "broken", value_name = "WAY=SHARE")]
    broken: Vec<Share>,
    /// A time of higher load: when it begins, how long it lasts, how many times the rate; may be given several times
    #[arg(long = "burst", value_name = "BEGIN:LENGTH:TIMES")]
    bursts: Vec<Burst>,
    /// Calls under way at once
    #[arg(long, default_value_t = 16, value_name = "N")]
    calls: usize,
    /// The beginning of all chance, for a fleet that sends the same again
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// A time of higher load.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Burst {
    begin: Duration,
    length: Duration,
    times: f64,
}

impl FromStr for Burst {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let [begin, length, times] = text.split(':').collect::<Vec<_>>()[..] else {
            return Err("a burst is written like 10s:20s:10: its beginning, its length, and how many times"
                .to_owned());
        };
        let times: f64 = times.parse().map_err(|_| format!("`{times}` is no number"))?;
        if !times.is_finite() || times < 0.0 {
            return Err(format!("`{times}` times the rate is not possible"));
        }
        Ok(Burst { begin: begin.parse::<Span>()?.0, length: length.parse::<Span>()?.0, times })
    }
}

/// Submissions that are due after a time.
fn due(elapsed: Duration, rate: f64, bursts: &[Burst]) -> f64 {
    let mut due = elapsed.as_secs_f64() * rate;
    for burst in bursts {
        let inside = elapsed.saturating_sub(burst.begin).min(burst.length);
        due += inside.as_secs_f64() * rate * (burst.times - 1.0);
    }
    due.max(0.0)
}

/// What a fleet has done.
#[derive(Debug, Default, Serialize)]
struct FleetReport {
    queue: String,
    sent: u64,
    valid: u64,
    /// Events in the valid ones.
    events: u64,
    broken: u64,
    broken_by_kind: BTreeMap<Fault, u64>,
    /// Submissions that the queue did not take, which count nowhere else.
    failed: u64,
    seconds: f64,
    per_second: f64,
}

/// Runs a fleet.
pub(crate) fn run(args: &FleetArgs) -> Result<(), Failure> {
    if args.devices == 0 || args.calls == 0 || !args.rate.is_finite() || args.rate <= 0.0 {
        return Err(Failure::usage(
            "a fleet needs devices, calls and a rate of more than zero",
            "give it some",
        ));
    }
    args.data.run("anabranch fleet", Missing::Refuse, async |connection| run_fleet(args, connection).await)
}

async fn run_fleet(args: &FleetArgs, connection: &Connection) -> Result<(), Failure> {
    let (queues, name) = (connection.stores().queues()?, QueueName::new(&args.queue)?);
    queues.queue(&name).await?;
    let clock = SystemClock::new();
    let seed = args.seed.unwrap_or_else(|| clock.now().as_millis());
    let faults = match args.broken.is_empty() {
        true => FAULTS_DEFAULT.map(|fault| Share { fault, share: 0.01 }).to_vec(),
        false => args.broken.clone(),
    };
    let mut fleet = Fleet {
        queues,
        name: &name,
        sensors: Sensors::new(args.devices, faults, seed),
        clock: &clock,
        report: FleetReport { queue: name.to_string(), ..FleetReport::default() },
    };
    let began = clock.elapsed();
    fleet.send(args).await;
    let seconds = clock.elapsed().saturating_sub(began).as_secs_f64();
    fleet.report.seconds = seconds;
    fleet.report.per_second = fleet.report.sent as f64 / seconds.max(1e-9);
    args.data.output().print(&fleet.report)
}

struct Fleet<'a> {
    queues: &'a dyn QueueStore,
    name: &'a QueueName,
    sensors: Sensors,
    clock: &'a dyn Clock,
    report: FleetReport,
}

impl Fleet<'_> {
    async fn send(&mut self, args: &FleetArgs) {
        let (began, duration) = (self.clock.elapsed(), args.duration.0);
        let total = due(duration, args.rate, &args.bursts).round() as u64;
        let bar = bar(total);
        let mut calls = FuturesUnordered::new();
        let mut made = 0u64;
        loop {
            let elapsed = self.clock.elapsed().saturating_sub(began).min(duration);
            let due = (due(elapsed, args.rate, &args.bursts).round() as u64).min(total);
            while made < due && calls.len() < args.calls {
                let count = (due - made).min(MESSAGE_BATCH_MAX as u64);
                let now = self.clock.now();
                let batch = (0..count).map(|_| self.sensors.next(now)).collect();
                made += count;
                calls.push(send(self.queues, self.name, batch));
            }
            if made >= total && calls.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                Some(sent) = calls.next() => self.count(sent),
                () = pause(TICK), if made < total && calls.len() < args.calls => {}
            }
            bar.set_position(self.report.sent + self.report.failed);
            bar.set_message(format!(
                "{} valid, {} broken",
                grouped(self.report.valid),
                grouped(self.report.broken)
            ));
        }
        bar.finish_and_clear();
    }

    fn count(&mut self, sent: Vec<(Submission, bool)>) {
        for (submission, taken) in sent {
            if !taken {
                self.report.failed += 1;
                continue;
            }
            self.report.sent += 1;
            match submission.fault {
                None => {
                    self.report.valid += 1;
                    self.report.events += submission.events as u64;
                }
                Some(fault) => {
                    self.report.broken += 1;
                    *self.report.broken_by_kind.entry(fault).or_default() += 1;
                }
            }
        }
    }
}

/// Sends submissions and says of each whether it was taken. What cannot be sent is not tried again: a sensor would not either.
async fn send(queues: &dyn QueueStore, name: &QueueName, batch: Vec<Submission>) -> Vec<(Submission, bool)> {
    debug_assert!(batch.iter().map(|submission| submission.body.len()).sum::<usize>() < MESSAGE_BYTES_MAX);
    let messages = batch.iter().map(|submission| NewMessage::new(submission.body.clone())).collect();
    let results = match queues.send(name, messages).await {
        Ok(results) => results.into_iter().map(|result| result.is_ok()).collect(),
        Err(error) => {
            tracing::warn!(%error, "submissions were not taken");
            vec![false; batch.len()]
        }
    };
    batch.into_iter().zip(results).collect()
}

fn bar(total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    // A template that does not parse is a mistake of this file; the plain style shows the same figures.
    let style = ProgressStyle::with_template(
        "{bar:30} {percent:>3} %  {pos} of {len} submissions, {msg}, {eta} left",
    )
    .unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style)
}

impl fmt::Display for FleetReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "sent {} submissions to queue {} in {:.1} s ({:.0} a second)",
            grouped(self.sent),
            self.queue,
            self.seconds,
            self.per_second
        )?;
        writeln!(f, "  valid   {} with {} events", grouped(self.valid), grouped(self.events))?;
        let kinds: Vec<_> =
            self.broken_by_kind.iter().map(|(fault, count)| format!("{fault} {count}")).collect();
        let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        writeln!(f, "  broken  {}{kinds}", grouped(self.broken))?;
        if self.failed > 0 {
            writeln!(f, "  failed  {} were not taken by the queue", grouped(self.failed))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_add_to_the_rate() {
        let bursts = ["10s:20s:10".parse::<Burst>().unwrap()];
        let seconds = |seconds| due(Duration::from_secs(seconds), 5.0, &bursts);
        assert_eq!(
            [seconds(0), seconds(10), seconds(11), seconds(30), seconds(40)],
            [0.0, 50.0, 100.0, 1050.0, 1100.0]
        );
        for text in ["10s", "10s:20s", "10s:20s:-1", "x:20s:2", "1s:1s:nan"] {
            text.parse::<Burst>().unwrap_err();
        }
    }
}
