//! What is done now and then beside reading: saying that this worker lives, leading, spreading the leases, and looking
//! for shards without a lease and leases without a shard.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anabranch_model::{Error, NextMove, Result, ShardGraph, ShardId};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use smol_str::SmolStr;

use crate::consumer::Ending;
use crate::coordinator::Coordinator;
use crate::lease::take::Ready;
use crate::lease::{Checkpoint, Lease, balance, worker, write};
use crate::metrics;
use crate::settings::StreamChoice;
use crate::shards;

/// How often in a row a lease must contradict its shard before it is believed to be of an earlier stream.
const CONTRADICTIONS_MIN: u32 = 3;

/// Leases that are made side by side. A stream may have thousands of shards, and a write takes milliseconds; more at once
/// would only wait for each other.
const CREATIONS_MAX: usize = 32;
/// How often in a row a stream must not be found before it is believed to be gone.
const ABSENCES_MIN: u32 = 3;

/// When the next of each is due, on the stopwatch.
#[derive(Default)]
pub(crate) struct Due {
    report: Duration,
    lead: Duration,
    balance: Duration,
    sync: Duration,
    /// When the shards are looked at again for the sake of leases that wait for parents without one.
    settle: Duration,
    /// Shards that were found to be gone.
    gone: Vec<SmolStr>,
    /// A shard could not be read because its stream was not found.
    streamless: bool,
    /// How often in a row a stream was not found.
    absences: u32,
    /// How often a lease has contradicted its shard in a row.
    contradicted: HashMap<SmolStr, u32>,
    /// Keys of leases that are not there and need not be, as the last look at the shards showed.
    pub(crate) settled: HashSet<SmolStr>,
    /// The leases that were there in the last round and not at their end.
    unfinished: HashSet<SmolStr>,
    /// When leases may be made again, after some have vanished.
    make: Duration,
}

impl Due {
    /// The shards are looked at in the next round: the one of this lease could not be read.
    pub(crate) fn sync_now(&mut self, lease: SmolStr, error: &Error) {
        self.sync = Duration::ZERO;
        match error {
            Error::ShardNotFound(..) => self.gone.push(lease),
            _ => self.streamless = true,
        }
    }
}

impl Coordinator {
    /// Does what is due. What fails is tried again in the next round; reading does not depend on it.
    pub(crate) async fn upkeep(&mut self, leases: &[Lease]) {
        if let Err(error) = self.do_upkeep(leases).await {
            if worker::is_missing(&error) {
                tracing::warn!(%error, "a table is missing");
                let (now, me) = (self.settings.clock.now().as_millis(), self.settings.worker.clone());
                if let Err(error) = self.ports.table.make(now, &me).await {
                    tracing::error!(%error, "the table cannot be made");
                }
            } else {
                tracing::warn!(%error, "upkeep failed");
            }
        }
    }

    /// Notices leases that have vanished before their end: somebody deleted them, or the whole table.
    pub(crate) async fn look_for_losses(&mut self, leases: &[Lease]) {
        let there: HashSet<_> = leases.iter().map(|lease| &lease.key).collect();
        if self.due.unfinished.iter().any(|key| !there.contains(key)) {
            self.put_back().await;
        }
        let unfinished = leases.iter().filter(|lease| lease.checkpoint != Checkpoint::ShardEnd);
        self.due.unfinished = unfinished.map(|lease| lease.key.clone()).collect();
    }

    /// Puts the leases back that this worker holds. The others put back theirs when they renew them; until each has, nobody
    /// makes a lease, for a new one does not know how far its shard is processed.
    pub(crate) async fn put_back(&mut self) {
        self.due.make = self.settings.clock.elapsed() + self.settings.lease_time;
        let renewals = self.book.all().into_iter().map(|held| async move { held.renew(Duration::MAX).await });
        futures_util::future::join_all(renewals).await;
    }

    async fn do_upkeep(&mut self, leases: &[Lease]) -> Result<()> {
        let now = self.settings.clock.elapsed();
        if now >= self.due.report {
            self.due.report = now + self.settings.report_every();
            worker::report(&self.ports.table, &self.settings).await?;
        }
        if now >= self.due.lead {
            self.due.lead = now + self.settings.leader_time() / 6;
            self.leader.tick(&self.ports.table, &self.settings).await?;
            metrics::leads(&self.settings.application, self.leader.leads(&self.settings));
        }
        let leads = self.leader.leads(&self.settings);
        // An application without leases cannot wait for a leader, and whoever found a shard gone says so at once.
        let ready = Ready::new(leases, &self.due.settled);
        let own: Vec<_> = leases.iter().filter(|lease| self.place_of(lease).is_some()).collect();
        let doubtful = own.iter().any(|lease| ready.is_in_doubt(lease));
        let maybe_over = self.to_end
            && (self.due.streamless || own.iter().all(|lease| lease.checkpoint == Checkpoint::ShardEnd));
        if (doubtful || maybe_over) && now >= self.due.settle {
            self.due.settle = now + self.settings.lease_time / 10;
            self.due.sync = Duration::ZERO;
        }
        let urgent = own.is_empty() || !self.due.gone.is_empty() || doubtful || maybe_over;
        if (leads || urgent) && now >= self.due.sync.max(self.due.make) {
            self.due.sync = now + self.settings.sync_every;
            if let Err(error) = self.sync(leads).await {
                self.due.sync = now + self.settings.sync_every.min(self.settings.lease_time / 10);
                return Err(error);
            }
        }
        if now >= self.due.balance {
            self.due.balance = now + self.settings.balance_every();
            self.workers.look(&self.ports.table, &self.settings, leads).await?;
            if leads {
                self.balance(leases).await?;
            }
        }
        Ok(())
    }

    /// Asks workers with more than their share to hand leases over.
    async fn balance(&self, leases: &[Lease]) -> Result<()> {
        let (now, lease_time) = (self.settings.clock.elapsed(), self.settings.lease_time);
        let mut alive = self.workers.alive(now);
        // A worker that owns something and renews nothing does not get more.
        let readers = self.sightings.readers(leases, now, lease_time);
        let owns = |worker: &SmolStr| leases.iter().any(|lease| lease.reader() == Some(worker));
        alive.retain(|worker| readers.contains(worker) || !owns(worker));
        for lease in leases {
            let (Some(owner), Some(reader)) = (&lease.owner, &lease.checkpoint_owner) else { continue };
            if self.sightings.asked_for(lease, now) < self.settings.handoff_max() {
                continue;
            }
            if self.ports.table.unless_refused(write::assign(&lease.key, owner, reader)).await? {
                tracing::warn!(lease = %lease.key, from = %reader, to = %owner, "a handoff took too long");
            }
        }
        for step in balance::plan(leases, &alive, self.settings.balance) {
            let write = write::ask_for_handoff(&step.lease, &step.from, &step.to);
            if self.ports.table.unless_refused(write).await? {
                tracing::info!(lease = %step.lease, from = %step.from, to = %step.to, "asked for a handoff");
            }
        }
        Ok(())
    }

    /// Brings leases and shards together.
    async fn sync(&mut self, leads: bool) -> Result<()> {
        let (mut settled, mut is_over, mut is_absent) = (HashSet::new(), true, false);
        for choice in self.settings.clone().streams.iter() {
            // The shards first: see `shards::missing`.
            let graph = match shards::list(&self.ports.source, choice).await {
                Ok(graph) => graph,
                Err(error @ (Error::StreamNotFound(_) | Error::StreamBusy(_))) => {
                    tracing::warn!(%error, "the stream cannot be read yet");
                    (is_over, is_absent) = (false, is_absent || matches!(error, Error::StreamNotFound(_)));
                    self.due.sync = self.settings.clock.elapsed() + self.settings.lease_time / 10;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let leases = self.ports.table.leases().await?;
            let leases: HashMap<_, _> = leases.into_iter().map(|lease| (lease.key.clone(), lease)).collect();
            self.bury(&graph, &leases, choice).await?;
            self.create(shards::missing(&graph, &leases, choice, self.settings.initial)).await?;
            if leads {
                self.tidy(&graph, &leases, choice).await?;
            }
            let leases = self.ports.table.leases().await?;
            let leases = leases.into_iter().map(|lease| (lease.key.clone(), lease)).collect();
            settled.extend(shards::settled(&graph, &leases, choice, self.settings.initial));
            is_over &= shards::is_over(&graph, &leases, choice, self.settings.initial);
        }
        self.due.settled = settled;
        self.due.gone.clear();
        self.due.streamless &= is_absent;
        self.due.absences = if is_absent { self.due.absences + 1 } else { 0 };
        if self.to_end && is_over {
            self.ending = Some(Ending::Finished);
        } else if self.to_end && self.due.absences >= ABSENCES_MIN {
            self.ending = Some(Ending::Gone);
        }
        Ok(())
    }

    /// Makes leases, in no particular order: none of them waits for another. What somebody else was quicker to make is there as
    /// well. One that a busy table refuses keeps nobody else waiting; behind any other failure no further ones are begun.
    async fn create(&self, leases: Vec<Lease>) -> Result<()> {
        let found = Mutex::new(None);
        let failure = &found;
        let is_final = |error: &Error| error.next_move() != NextMove::Retry;
        let create = |lease: Lease| async move {
            if failure.lock().as_ref().is_some_and(is_final) {
                return;
            }
            let lease = Lease { counter: self.settings.first_counter(), ..lease };
            match self.ports.table.create(&lease).await {
                Ok(true) => {
                    tracing::info!(lease = %lease.key, checkpoint = %lease.checkpoint, "made a lease");
                }
                Ok(false) => {}
                Err(error) => {
                    let mut failure = failure.lock();
                    if failure.is_none() || is_final(&error) {
                        *failure = Some(error);
                    }
                }
            }
        };
        stream::iter(leases).for_each_concurrent(CREATIONS_MAX, create).await;
        found.into_inner().map_or(Ok(()), Err)
    }

    /// Shards that retention removed before they were read: their children begin, and their leases go.
    async fn bury(
        &self,
        graph: &ShardGraph,
        leases: &HashMap<SmolStr, Lease>,
        choice: &StreamChoice,
    ) -> Result<()> {
        for key in &self.due.gone {
            let Some(lease) = leases.get(key).filter(|lease| lease.stream == choice.identifier) else {
                continue;
            };
            let Ok(shard) = ShardId::new(lease.shard()) else { continue };
            if graph.get(&shard).is_some() || lease.checkpoint == Checkpoint::ShardEnd {
                continue;
            }
            for child in graph.children_of(&shard) {
                if let Some(child) = graph.get(child) {
                    let child = shards::lease_of(child, choice, Checkpoint::TrimHorizon);
                    let child = Lease { counter: self.settings.first_counter(), ..child };
                    self.ports.table.create(&child).await?;
                }
            }
            if self.ports.table.unless_refused(write::remove(lease)).await? {
                if let Some((_, info)) = self.place_of(lease) {
                    metrics::trimmed(&info);
                }
                tracing::warn!(stream = %choice.name, %shard, checkpoint = %lease.checkpoint,
                    "a shard was removed before it was read to its end: what is behind the checkpoint is lost");
            }
        }
        Ok(())
    }

    /// Removes leases that nobody needs, and those of an earlier stream of the same name.
    async fn tidy(
        &mut self,
        graph: &ShardGraph,
        leases: &HashMap<SmolStr, Lease>,
        choice: &StreamChoice,
    ) -> Result<()> {
        for lease in shards::removable(graph, leases, choice) {
            if self.ports.table.unless_refused(write::remove(lease)).await? {
                tracing::info!(lease = %lease.key, "removed the lease of a shard that is read to its end");
            }
        }
        let strange = shards::contradicted(graph, leases, choice);
        let counts = |key: &SmolStr| self.due.contradicted.get(key).copied().unwrap_or(0) + 1;
        let counted: HashMap<_, _> =
            strange.iter().map(|lease| (lease.key.clone(), counts(&lease.key))).collect();
        for lease in strange.iter().filter(|lease| counted[&lease.key] >= CONTRADICTIONS_MIN) {
            if self.ports.table.unless_refused(write::remove(lease)).await? {
                tracing::warn!(lease = %lease.key, "removed the lease of an earlier stream of the same name");
                self.due.sync = Duration::ZERO;
            }
        }
        self.due.contradicted = counted;
        Ok(())
    }
}
