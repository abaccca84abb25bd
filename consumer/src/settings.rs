//! How a consumer is set up. What can be derived from something else is not an option.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{BlobStore, Clock, Dice, Error, Result, ShardId, StreamName, Timestamp};
use smol_str::SmolStr;

use crate::failure::FailurePolicy;

/// Where reading starts in a stream that the application has not read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum InitialPosition {
    /// With the oldest record.
    #[default]
    TrimHorizon,
    /// Behind the newest record.
    Latest,
    /// With the first record that arrived at this moment or later.
    AtTimestamp(Timestamp),
}

/// What the load of a worker is, when leases are spread evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BalanceBy {
    /// How many leases it has.
    #[default]
    Count,
    /// How many bytes a second come through its leases.
    Throughput,
}

/// How records are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reading {
    /// Pushed where the source can push, and polled elsewhere.
    #[default]
    Auto,
    /// Polled in any case.
    Poll,
}

/// A stream that an application reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamChoice {
    /// Its name.
    pub name: StreamName,
    /// `account:name:epoch`, in front of the shard in the key of a lease. None if the application reads one stream.
    pub identifier: Option<SmolStr>,
}

impl StreamChoice {
    /// The only stream of an application.
    pub fn only(name: StreamName) -> Self {
        StreamChoice { name, identifier: None }
    }

    /// One of several streams. The account and the second of its creation tell it from others of the same name.
    pub fn one_of_many(name: StreamName, account: &str, created_at: Timestamp) -> Self {
        let identifier = format!("{account}:{name}:{}", created_at.as_millis() / 1000);
        StreamChoice { name, identifier: Some(identifier.into()) }
    }

    /// The key of the lease of a shard.
    pub fn lease_key(&self, shard: &ShardId) -> SmolStr {
        match &self.identifier {
            Some(identifier) => format!("{identifier}:{shard}").into(),
            None => shard.as_str().into(),
        }
    }
}

/// Everything that the parts of a consumer share and nobody changes.
pub(crate) struct Settings {
    pub(crate) application: SmolStr,
    pub(crate) worker: SmolStr,
    pub(crate) streams: Vec<StreamChoice>,
    pub(crate) initial: InitialPosition,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) dice: Dice,
    pub(crate) lease_time: Duration,
    pub(crate) leases_max: usize,
    pub(crate) checkpoint_every: Duration,
    pub(crate) drain_max: Duration,
    pub(crate) process_max: Duration,
    pub(crate) stall_max: Duration,
    pub(crate) sync_every: Duration,
    pub(crate) in_flight_records: usize,
    pub(crate) in_flight_bytes: usize,
    pub(crate) batch_records: usize,
    pub(crate) memory_bytes: usize,
    pub(crate) poll_idle: Duration,
    pub(crate) reading: Reading,
    pub(crate) balance: BalanceBy,
    pub(crate) failure: FailurePolicy,
    /// Where payloads lie that were too large for a record.
    pub(crate) payloads: Option<Arc<dyn BlobStore>>,
}

/// Shortest time of a lease: below it the derived intervals make no sense.
pub(crate) const LEASE_TIME_MIN: Duration = Duration::from_millis(500);
/// Rows of workers are as old as this before their worker counts as gone; the other library's leader thinks so too.
pub(crate) const WORKER_ROW_AGE_MAX: Duration = Duration::from_secs(60);

impl Settings {
    /// A little more often than three times in the time of a lease, so that two failed renewals do not lose it.
    pub(crate) fn renew_every(&self) -> Duration {
        (self.lease_time / 3).saturating_sub(Duration::from_millis(25))
    }

    /// How often the leases are looked at. It bounds how late an expired lease is noticed. Large tables are looked at
    /// less often, or reading them would cost more than it gives.
    pub(crate) fn look_every(&self, leases: usize) -> Duration {
        self.lease_time / 20 * (1 + u32::try_from(leases / 2_000).unwrap_or(u32::MAX))
    }

    /// How long a lease that is more than this worker's share is left to others.
    pub(crate) fn modesty(&self) -> Duration {
        self.lease_time / 40
    }

    /// How long one call to the table may take.
    pub(crate) fn call_max(&self) -> Duration {
        self.lease_time / 3
    }

    /// How long the leader's lock holds without a heartbeat. Short, because it is in the way of nothing but balance.
    pub(crate) fn leader_time(&self) -> Duration {
        self.lease_time * 3
    }

    /// How often a worker says that it lives.
    pub(crate) fn report_every(&self) -> Duration {
        (WORKER_ROW_AGE_MAX / 2).min(self.lease_time * 3)
    }

    /// How often the leader spreads the leases.
    pub(crate) fn balance_every(&self) -> Duration {
        self.lease_time / 2
    }

    /// How long a worker may take to hand a lease over. It may drain twice: the call that is under way, and what it
    /// deferred.
    pub(crate) fn handoff_max(&self) -> Duration {
        self.drain_max * 2 + self.lease_time
    }

    /// The counter of a lease that is made. It begins with the time, so that a lease which is deleted and made again does
    /// not repeat a counter that somebody still has in mind.
    pub(crate) fn first_counter(&self) -> u64 {
        self.clock.now().as_millis()
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.lease_time < LEASE_TIME_MIN {
            return Err(Error::Invalid(format!(
                "a lease time of {} ms is not allowed: at least {}",
                self.lease_time.as_millis(),
                LEASE_TIME_MIN.as_millis()
            )));
        }
        if self.streams.is_empty() {
            return Err(Error::Invalid("a consumer needs at least one stream".to_owned()));
        }
        if self.streams.len() > 1 && self.streams.iter().any(|stream| stream.identifier.is_none()) {
            return Err(Error::Invalid(
                "with several streams each needs its account and the time of its creation".to_owned(),
            ));
        }
        let positive = [self.in_flight_records, self.in_flight_bytes, self.batch_records, self.memory_bytes];
        if positive.contains(&0) || self.leases_max == 0 {
            return Err(Error::Invalid("a limit of zero lets nothing through".to_owned()));
        }
        Ok(())
    }
}
