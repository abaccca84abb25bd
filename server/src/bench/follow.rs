//! `bench follow`: the time from a put to its follower, beside a plain write and sync of the same size.
//!
//! One put is in flight: what a lone writer waits for cannot hide behind others. A raw write follows every put, so both
//! sides see the same disk at the same time.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::SystemClock;
use anabranch_model::{Clock, NewRecord, Position, ShardSource, StreamStore};
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Setting;
use super::machine::Machine;
use super::progress::Progress;
use super::raw::RawThread;
use super::report::{Figure, Goal, Report, Unit};
use super::statistics::{Spread, percentile, sorted};
use super::subject::Subject;
use super::writers::{RECORD_BYTES, incompressible};
use crate::failure::Failure;

const SHARDS: usize = 8;
/// Puts of a round, unless its time is over before.
const PUTS: usize = 2_000;
/// Puts before the first round, so that every follower has caught up.
const WARM_UP_PUTS: usize = 256;
/// What following may cost beyond two syncs.
const ALLOWANCE_MS: f64 = 5.0;
/// The raw files. Small writes never get through them.
const RAW_SEGMENTS: usize = 1;
const SEGMENT_BYTES: u64 = 64 << 20;

/// Times of one round in milliseconds, sorted.
struct Round {
    follow: Vec<f64>,
    raw: Vec<f64>,
}

/// Runs the bench.
pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Report, Failure> {
    let mut report = Report::new("follow", Machine::with(setting.place.root()), setting.bounds);
    let progress = Progress::new(setting.bounds.rounds);
    progress.say("fill the segments");
    let raw = RawThread::start(&setting.place.folder("raw")?, RAW_SEGMENTS, SEGMENT_BYTES).await?;
    let subject = Subject::open(&setting.place.folder("engine")?, SHARDS).await?;
    subject.warm_up(setting.bounds, SHARDS).await?;

    progress.say("put and follow");
    let mut pair = Pair::start(subject, raw).await?;
    pair.round(WARM_UP_PUTS, setting.bounds.duration()).await?;
    let mut rounds = Vec::new();
    for _ in 0..setting.bounds.rounds {
        rounds.push(pair.round(PUTS, setting.bounds.duration()).await?);
        progress.step();
    }
    pair.stop().await?;

    report.figures = figures(&rounds);
    report.notes.push(format!(
        "one put in flight, a follower on each of {SHARDS} shards, a raw write after every put; {} puts a round",
        rounds.iter().map(|round| round.follow.len()).min().unwrap_or(0)
    ));
    report.notes.push(format!(
        "the ratio of p99 is p99 / (2 × raw p99 + {ALLOWANCE_MS} ms); the others are plain ratios"
    ));
    Ok(report)
}

fn figures(rounds: &[Round]) -> Vec<Figure> {
    let at = |percent: f64| {
        let side = |pick: fn(&Round) -> &Vec<f64>| {
            Spread::of(rounds.iter().map(|round| percentile(pick(round), percent)).collect())
        };
        (side(|round| &round.follow), side(|round| &round.raw))
    };
    let plain = |name, what: &str, percent| {
        let (follow, raw) = at(percent);
        Figure::beside(name, what, Unit::Milliseconds, follow, raw)
    };
    let (follow, raw) = at(99.0);
    let pairs = follow.rounds.iter().zip(&raw.rounds);
    let ratio = Spread::of(pairs.map(|(follow, raw)| within(*follow, *raw)).collect());
    let what = "99 of 100 records reach their follower within this time of the put, beside a write and fdatasync of the \
                same size";
    let p99 = Figure::with_ratio("p99", what, Unit::Milliseconds, follow, Some(raw), Some(ratio));
    vec![
        plain("p50", "half of them do within this", 50.0),
        p99.aim(Goal::RatioAtMost(1.0)),
        plain("max", "all of them do within this", 100.0),
    ]
}

/// How much of what it may take a follower takes.
fn within(follow_ms: f64, raw_ms: f64) -> f64 {
    follow_ms / (2.0 * raw_ms + ALLOWANCE_MS)
}

/// The engine with its followers, and the limit.
struct Pair {
    subject: Subject,
    raw: RawThread,
    /// Tells when a follower got a record.
    arrivals: mpsc::Receiver<Duration>,
    followers: JoinSet<Result<(), anabranch_model::Error>>,
    clock: Arc<SystemClock>,
    puts: u64,
}

impl Pair {
    /// Follows every shard.
    async fn start(subject: Subject, raw: RawThread) -> Result<Pair, Failure> {
        let clock = Arc::new(SystemClock::new());
        let (arrived, arrivals) = mpsc::channel(1024);
        let mut followers = JoinSet::new();
        for shard in subject.shards().await? {
            let mut follow = subject.engine().follow(subject.stream(), &shard, Position::Latest).await?;
            let (arrived, clock) = (arrived.clone(), clock.clone());
            followers.spawn(async move {
                while let Some(batch) = follow.next().await {
                    let now = clock.elapsed();
                    for _ in batch?.records {
                        // Nobody listens any more once the bench is over.
                        let _ = arrived.send(now).await;
                    }
                }
                Ok(())
            });
        }
        Ok(Pair { subject, raw, arrivals, followers, clock, puts: 0 })
    }

    /// Puts and raw writes in turn, until there were `puts` or the time is over.
    async fn round(&mut self, puts: usize, at_most: Duration) -> Result<Round, Failure> {
        let (mut follow, mut raw) = (Vec::with_capacity(puts), Vec::with_capacity(puts));
        let start = self.clock.elapsed();
        while follow.len() < puts && self.clock.elapsed() - start < at_most {
            self.subject.recorded();
            follow.push(milliseconds(self.put().await?));
            let written = self.subject.recorded().bytes() as usize;
            raw.push(milliseconds(self.raw.run(move |raw| raw.timed(written)).await?));
        }
        Ok(Round { follow: sorted(&follow), raw: sorted(&raw) })
    }

    /// One put, timed until its follower has it.
    async fn put(&mut self) -> Result<Duration, Failure> {
        self.puts += 1;
        let record = NewRecord::new(format!("key-{:08}", self.puts), incompressible(self.puts, RECORD_BYTES));
        let start = self.clock.elapsed();
        for result in self.subject.engine().append(self.subject.stream(), vec![record]).await? {
            result?;
        }
        match self.arrivals.recv().await {
            Some(arrived) => Ok(arrived.saturating_sub(start)),
            None => Err(Failure::new("bench", "all followers ended", "report this")),
        }
    }

    async fn stop(mut self) -> Result<(), Failure> {
        self.followers.shutdown().await;
        self.subject.close().await
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_syncs_and_the_allowance_are_all_there_is() {
        assert_eq!(within(6.0, 0.5), 1.0);
        assert!(within(6.1, 0.5) > 1.0);
        assert!(within(1.0, 0.5) < 0.2);
    }

    #[test]
    fn the_figure_with_a_goal_is_the_99th_percentile() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let rounds: Vec<Round> =
            (0..5).map(|_| Round { follow: values.clone(), raw: vec![1.0; 100] }).collect();
        let figures = figures(&rounds);
        let p99 = figures.iter().find(|figure| figure.name == "p99").unwrap();
        assert_eq!((p99.engine.median, p99.met), (99.0, Some(false)));
        assert!(figures.iter().filter(|figure| figure.goal.is_some()).count() == 1);
    }
}
