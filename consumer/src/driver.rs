//! Runs a processor without any store, for the tests of whoever writes one.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Clock, Dice, NewRecord, SequenceNumber, ShardId, StreamName, Timestamp};
use smol_str::SmolStr;

use crate::delivery::{Received, ShardInfo};
use crate::failure::FailurePolicy;
use crate::lease::Checkpoint;
use crate::processor::ProcessorFactory;
use crate::settings::{BalanceBy, InitialPosition, Reading, Settings};
use crate::watchdog::Progress;
use crate::work::Work;

/// What became of the records of a [`Driver`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How many of the records were acknowledged, or became dead letters, without a gap from the first on.
    pub acknowledged: u64,
    /// Why the shard stands still, if it does.
    pub halted: Option<String>,
}

/// A shard that exists only in a test. Records are delivered, tried again, bisected and given up as a consumer does it.
///
/// ```
/// use anabranch_consumer::{Driver, process_fn};
/// use anabranch_model::NewRecord;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let processor = process_fn(|delivery| async move { delivery.done() });
/// let mut driver = Driver::new(processor).await;
/// let report = driver.deliver(vec![NewRecord::new("key", "data")]).await;
/// assert_eq!(report.acknowledged, 1);
/// # }
/// ```
pub struct Driver {
    work: Work,
    next: u64,
    halted: Option<String>,
}

/// A clock that stands still: a driver does everything at once.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::EPOCH
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

impl Driver {
    /// A shard with the processor that the factory makes. A record that fails is tried three times, and then the shard
    /// halts.
    pub async fn new(factory: impl ProcessorFactory) -> Self {
        let policy = FailurePolicy { attempts: 3, pause_first: Duration::ZERO, ..FailurePolicy::default() };
        Driver::with_policy(factory, policy).await
    }

    /// A shard with another policy.
    pub async fn with_policy(factory: impl ProcessorFactory, failure: FailurePolicy) -> Self {
        let settings = Arc::new(settings(failure));
        let shard = ShardInfo {
            stream: only(StreamName::new("driver")),
            shard: ShardId::numbered(0),
            lease: SmolStr::new_static("driver"),
        };
        let progress = Progress::new(settings.clock.clone());
        let work = Work::begin(shard, Checkpoint::TrimHorizon, settings, Arc::new(factory), progress).await;
        Driver { work, next: 0, halted: None }
    }

    /// Delivers records in one call, and returns when each is done with or deferred.
    pub async fn deliver(&mut self, records: Vec<NewRecord>) -> Report {
        if self.halted.is_none() && !records.is_empty() {
            let records = records.into_iter().map(|record| self.number(record)).collect();
            let delivered = self.work.deliver(records, Duration::ZERO).await;
            self.halted = delivered.err().map(|halted| halted.why);
        }
        self.report().await
    }

    /// What became of the records so far. Deferred ones that failed are delivered again before.
    pub async fn report(&mut self) -> Report {
        if self.halted.is_none() {
            let redelivered = self.work.redeliver_failed().await;
            self.halted = redelivered.err().map(|halted| halted.why);
        }
        let acknowledged = match self.work.tracker.watermark() {
            Checkpoint::At { sequence, .. } => sequence.as_u128().unwrap_or(0) as u64,
            _ => 0,
        };
        Report { acknowledged, halted: self.halted.clone() }
    }

    /// The shard ends.
    pub async fn end(mut self) -> Report {
        let report = self.report().await;
        self.work.shard_ended().await;
        report
    }

    /// The worker stops.
    pub async fn shutdown(mut self) -> Report {
        self.work.shutdown().await;
        self.report().await
    }

    fn number(&mut self, record: NewRecord) -> Received {
        self.next += 1;
        Received {
            sequence: SequenceNumber::from_u128(u128::from(self.next)),
            sub_sequence: 0,
            arrival: Timestamp::EPOCH,
            partition_key: record.partition_key,
            explicit_hash_key: record.explicit_hash_key,
            data: record.data,
            attempt: 1,
            seat: None,
        }
    }
}

fn settings(failure: FailurePolicy) -> Settings {
    Settings {
        application: SmolStr::new_static("driver"),
        worker: SmolStr::new_static("driver"),
        streams: Vec::new(),
        initial: InitialPosition::TrimHorizon,
        clock: Arc::new(Still),
        dice: Dice::new(0),
        lease_time: Duration::from_secs(10),
        leases_max: usize::MAX,
        checkpoint_every: Duration::from_secs(10),
        drain_max: Duration::from_secs(30),
        process_max: Duration::from_secs(300),
        stall_max: Duration::from_secs(300),
        sync_every: Duration::from_secs(60),
        in_flight_records: usize::MAX,
        in_flight_bytes: usize::MAX,
        batch_records: usize::MAX,
        memory_bytes: usize::MAX,
        poll_idle: Duration::ZERO,
        reading: Reading::Poll,
        balance: BalanceBy::Count,
        failure,
        payloads: None,
    }
}

/// A name that is known to be good.
fn only<T>(name: anabranch_model::Result<T>) -> T {
    name.unwrap_or_else(|error| unreachable!("{error}"))
}
