//! The one task that decides: which leases this worker takes, which pipelines run, and, if it leads, what others do.
//!
//! One round: read the leases, note how they stand, take what is due, start what is ready. Between rounds it listens to
//! its pipelines. Renewal is not its business (see `lease/renew.rs`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Error, NextMove, Result, ShardId, ShardSource};
use smol_str::SmolStr;
use tokio::task::{Id, JoinError, JoinSet};

use crate::consumer::Ending;
use crate::delivery::ShardInfo;
use crate::fetch::Memory;
use crate::flag::Flag;
use crate::lease::held::{Held, Loss};
use crate::lease::leader::Leader;
use crate::lease::renew::Book;
use crate::lease::take::{Ready, Sightings, View};
use crate::lease::worker::{self, Workers};
use crate::lease::write;
use crate::lease::{Lease, LeaseTable};
use crate::metrics::{self, LeaseEvent};
use crate::pause::pause;
use crate::pipeline::{End, Pipeline};
use crate::processor::ProcessorFactory;
use crate::settings::{Settings, StreamChoice};
use crate::upkeep;
use crate::watchdog::Progress;

/// A pipeline that panicked waits at least this long.
const RESTART_PAUSE: Duration = Duration::from_millis(500);

/// What all workers of a process share.
#[derive(Clone)]
pub(crate) struct Ports {
    pub(crate) source: Arc<dyn ShardSource>,
    pub(crate) table: LeaseTable,
    pub(crate) factory: Arc<dyn ProcessorFactory>,
    pub(crate) memory: Arc<Memory>,
}

/// The state of a worker.
pub(crate) struct Coordinator {
    pub(crate) ports: Ports,
    pub(crate) settings: Arc<Settings>,
    pub(crate) book: Arc<Book>,
    pub(crate) sightings: Sightings,
    pub(crate) leader: Leader,
    pub(crate) workers: Workers,
    pub(crate) due: upkeep::Due,
    pipelines: JoinSet<End>,
    running: BTreeMap<SmolStr, Running>,
    /// Leases that someone else holds who goes by the name of this worker.
    contested: HashSet<SmolStr>,
    /// Leases to leave alone until a moment on the stopwatch.
    avoided: HashMap<SmolStr, Duration>,
    stop: Flag,
    /// Whether it ends with its streams.
    pub(crate) to_end: bool,
    /// Set when it is over.
    pub(crate) ending: Option<Ending>,
}

struct Running {
    task: Id,
    abort: tokio::task::AbortHandle,
    progress: Arc<Progress>,
}

impl Coordinator {
    pub(crate) fn new(
        ports: Ports,
        settings: Arc<Settings>,
        book: Arc<Book>,
        stop: Flag,
        to_end: bool,
    ) -> Self {
        Coordinator {
            ports,
            settings,
            book,
            sightings: Sightings::default(),
            leader: Leader::default(),
            workers: Workers::default(),
            due: upkeep::Due::default(),
            pipelines: JoinSet::new(),
            running: BTreeMap::new(),
            contested: HashSet::new(),
            avoided: HashMap::new(),
            stop,
            to_end,
            ending: None,
        }
    }

    /// Works until the worker is stopped or has nothing left to read, and then lets every lease go.
    pub(crate) async fn run(&mut self) -> Ending {
        let stop = self.stop.clone();
        let mut wait = Duration::ZERO;
        let ending = loop {
            if let Some(ending) = self.ending {
                break ending;
            }
            tokio::select! {
                biased;
                () = stop.raised() => break Ending::Stopped,
                Some(ended) = self.pipelines.join_next_with_id() => {
                    self.on_end(ended);
                    wait = Duration::ZERO;
                    // What ended together is seen together.
                    while let Some(ended) = self.pipelines.try_join_next_with_id() {
                        self.on_end(ended);
                    }
                }
                () = pause(wait) => wait = self.round_or_complain().await,
            }
        };
        // Of a stream that is gone a shard may still be under way.
        self.stop.raise();
        self.leave().await;
        ending
    }

    async fn round_or_complain(&mut self) -> Duration {
        let longest = self.settings.look_every(self.book.len());
        match self.round().await {
            Ok(wait) => self.settings.dice.between(wait.min(longest) * 9 / 10, wait.min(longest)),
            Err(error) => {
                if matches!(error, Error::TableNotFound(_)) {
                    self.make_tables_again().await;
                }
                let serious = matches!(error.next_move(), NextMove::FixSetup | NextMove::Report);
                if serious {
                    tracing::error!(%error, "leases cannot be looked at");
                } else {
                    tracing::warn!(%error, "leases cannot be looked at");
                }
                self.settings.dice.between(longest / 2, longest)
            }
        }
    }

    /// One look at the leases and what follows from it. Says how long to wait for the next.
    async fn round(&mut self) -> Result<Duration> {
        self.bark();
        let leases = self.ports.table.leases().await?;
        let now = self.settings.clock.elapsed();
        for worker in self.sightings.silent(&leases, now, self.settings.lease_time) {
            if worker != self.settings.worker {
                self.workers.note_silent(&worker);
            }
        }
        self.sightings.note(&leases, now);
        self.avoided.retain(|_, until| now < *until);
        self.look_at_own(&leases);
        self.look_for_losses(&leases).await;
        self.upkeep(&leases).await;
        let next = self.take(&leases).await;
        self.start_ready(&leases);
        metrics::leases_held(&self.settings.application, self.book.len());
        let now = self.settings.clock.elapsed();
        // The first leases have only just been made.
        let hurry = if leases.is_empty() { 10 } else { 1 };
        let longest = self.settings.look_every(leases.len()) / hurry;
        Ok(next.map_or(longest, |next| next.saturating_sub(now).min(longest)))
    }

    /// Sees what others did to the leases of this worker without waiting for a renewal to fail.
    fn look_at_own(&mut self, leases: &[Lease]) {
        let me = Some(&self.settings.worker);
        let mut contested = std::mem::take(&mut self.contested);
        contested.retain(|key| leases.iter().any(|lease| lease.key == *key && lease.owner.as_ref() == me));
        self.contested = contested;
        for lease in leases {
            if let Some(held) = self.book.get(&lease.key) {
                held.note_handoff(lease);
                held.note_loss(lease);
            }
        }
    }

    /// Takes what is due. Returns when the next lease is.
    async fn take(&mut self, leases: &[Lease]) -> Option<Duration> {
        let now = self.settings.clock.elapsed();
        let me = self.settings.worker.as_str();
        let lease_time = self.settings.lease_time;
        let mut others = self.sightings.readers(leases, now, lease_time);
        let silent: HashSet<_> = leases.iter().filter_map(|lease| lease.reader()).collect();
        // A worker that owns something and renews nothing is dead, whatever its row says.
        let rows = self.workers.alive(now);
        others.extend(rows.into_iter().filter(|worker| !silent.contains(worker)));
        others.remove(me);
        let (book, avoided, contested) = (self.book.clone(), &self.avoided, &self.contested);
        let view = View {
            leases,
            me,
            others: &others,
            now,
            lease_time,
            modesty: self.settings.modesty(),
            leases_max: self.settings.leases_max,
            held: &|key| book.get(key).is_some(),
            contested: &|key| contested.contains(key),
            avoided: &|key| avoided.contains_key(key),
            settled: &self.due.settled,
        };
        let plan = self.sightings.plan(&view);
        let by_key: HashMap<_, _> = leases.iter().map(|lease| (&lease.key, lease)).collect();
        let wanted = plan.take.iter().map(|key| (key, LeaseEvent::Taken));
        let given = plan.adopt.iter().map(|key| (key, LeaseEvent::Adopted));
        let chosen = wanted.chain(given).filter_map(|(key, event)| Some((*by_key.get(key)?, event)));
        let results =
            futures_util::future::join_all(chosen.map(|(lease, event)| self.seize(lease, event))).await;
        for held in results.into_iter().flatten() {
            self.contested.remove(&held.info.lease);
            self.book.insert(held);
        }
        plan.next
    }

    /// Makes a lease ours with one write.
    async fn seize(&self, lease: &Lease, event: LeaseEvent) -> Option<Arc<Held>> {
        let (_, info) = self.place_of(lease)?;
        let me = self.settings.worker.as_str();
        let began = self.settings.clock.elapsed();
        let write = match event {
            // Somebody gave it to us; a renewal shows that it is still so, and that nobody else goes by our name.
            LeaseEvent::Adopted => {
                write::renew(&lease.key, lease.counter, None, lease.throughput_kbps, false)
            }
            _ => write::take(&lease.key, lease.counter, me),
        };
        match self.ports.table.write(write).await {
            Ok(item) => {
                let read = item.as_ref().and_then(|item| Lease::read(item).ok().flatten());
                let lease = read.unwrap_or_else(|| Lease {
                    owner: Some(me.into()),
                    counter: lease.counter + 1,
                    checkpoint_owner: None,
                    ..lease.clone()
                });
                metrics::lease(event);
                let event = event.word();
                tracing::info!(lease = %lease.key, event, checkpoint = %lease.checkpoint, "a lease is ours");
                let (settings, table) = (self.settings.clone(), self.ports.table.clone());
                Some(Held::new(lease, info, settings, table, began))
            }
            Err(Error::ConditionFailed { .. }) => None,
            // If it was carried out, the lease is given to us, and the next round finds it so.
            Err(error) => {
                tracing::warn!(lease = %lease.key, %error, "a lease cannot be taken");
                None
            }
        }
    }

    /// Starts the pipelines of leases that are held, whose parents are done.
    fn start_ready(&mut self, leases: &[Lease]) {
        let ready = Ready::new(leases, &self.due.settled);
        let by_key: HashMap<_, _> = leases.iter().map(|lease| (&lease.key, lease)).collect();
        let mut can_start = Vec::new();
        for held in self.book.all() {
            let key = held.info.lease.clone();
            if self.running.contains_key(&key) || self.avoided.contains_key(&key) {
                continue;
            }
            if held.is_lost() {
                self.book.remove(&key);
                continue;
            }
            if by_key.get(&key).is_none_or(|lease| ready.is_ready(lease)) {
                can_start.push(held);
            }
        }
        for held in can_start {
            self.start(held);
        }
    }

    fn start(&mut self, held: Arc<Held>) {
        let Some(choice) = self.choice_of(&held.info).cloned() else { return };
        let progress = Progress::new(self.settings.clock.clone());
        let (key, shard) = (held.info.lease.clone(), held.info.shard.clone());
        let pipeline = Pipeline {
            held,
            choice,
            source: self.ports.source.clone(),
            table: self.ports.table.clone(),
            settings: self.settings.clone(),
            factory: self.ports.factory.clone(),
            progress: progress.clone(),
            memory: self.ports.memory.clone(),
            stop: self.stop.clone(),
        };
        tracing::info!(%shard, "reading a shard");
        let abort = self.pipelines.spawn(pipeline.run());
        self.running.insert(key, Running { task: abort.id(), abort, progress });
    }

    fn on_end(&mut self, ended: std::result::Result<(Id, End), JoinError>) {
        let task = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let found = self.running.iter().find(|(_, running)| running.task == task);
        let Some(key) = found.map(|(key, _)| key.clone()) else { return };
        self.running.remove(&key);
        let now = self.settings.clock.elapsed();
        match ended {
            Ok((_, End::Finished | End::Released)) => {
                tracing::info!(lease = %key, "a lease was let go");
                self.book.remove(&key);
            }
            Ok((_, End::TooEarly)) => {
                tracing::info!(lease = %key, "what continues the shard must wait; its lease was let go");
                self.book.remove(&key);
                self.avoided.insert(key, now + self.settings.lease_time);
            }
            Ok((_, End::Lost(loss))) => {
                metrics::lease(LeaseEvent::Lost);
                tracing::warn!(lease = %key, ?loss, "a lease is lost");
                self.book.remove(&key);
                if loss == Loss::Twin {
                    tracing::error!(worker = %self.settings.worker, "another worker goes by the same name");
                    // It is somebody else's until that somebody stops renewing it.
                    self.contested.insert(key);
                }
            }
            Ok((_, End::Gone(error))) => {
                tracing::warn!(lease = %key, %error, "the shard cannot be read; its lease is let go");
                if let Some(held) = self.book.get(&key) {
                    self.pipelines.spawn(async move {
                        let _ = held.write_last(held.checkpoint(), Vec::new()).await;
                        End::Released
                    });
                }
                self.book.remove(&key);
                self.avoided.insert(key.clone(), now + self.settings.lease_time / 2);
                self.due.sync_now(key, &error);
            }
            Ok((_, End::Broken)) => {
                metrics::task_panicked("fetcher");
                tracing::error!(lease = %key, "fetching panicked; the shard begins anew");
                self.avoided.insert(key, now + RESTART_PAUSE);
            }
            Err(error) if error.is_cancelled() => tracing::warn!(lease = %key, "a shard begins anew"),
            Err(error) => {
                metrics::task_panicked("pipeline");
                tracing::error!(lease = %key, %error, "a pipeline panicked; it begins anew");
                self.avoided.insert(key, now + RESTART_PAUSE);
            }
        }
    }

    /// Restarts shards that are owned and do not advance.
    fn bark(&mut self) {
        for (key, running) in &self.running {
            let stalled = running.progress.stalled();
            if stalled < self.settings.stall_max {
                continue;
            }
            if let Some(held) = self.book.get(key) {
                metrics::stalled(&held.info);
            }
            tracing::error!(lease = %key, stalled_ms = stalled.as_millis() as u64, "a shard does not advance");
            running.progress.excuse(true);
            running.abort.abort();
        }
    }

    /// Lets everything go, so that nobody has to wait.
    async fn leave(&mut self) {
        // The pipelines see the stop by themselves; those that have not begun are let go here.
        let idle = self.book.all().into_iter().filter(|held| !self.running.contains_key(&held.info.lease));
        let idle = idle.map(|held| async move { held.write_last(held.checkpoint(), Vec::new()).await });
        futures_util::future::join_all(idle).await;
        while let Some(ended) = self.pipelines.join_next_with_id().await {
            self.on_end(ended);
        }
        let given = self.give_back().await;
        let leader = self.leader.release(&self.ports.table, &self.settings).await;
        let row = worker::withdraw(&self.ports.table, &self.settings).await;
        for error in [given, leader, row].into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "something was left behind in the tables");
        }
        metrics::leases_held(&self.settings.application, 0);
    }

    /// Lets leases go that were given to this worker and that it has not begun.
    async fn give_back(&self) -> Result<()> {
        let me = &self.settings.worker;
        for lease in self.ports.table.leases().await? {
            if lease.owner.as_ref() == Some(me)
                && lease.checkpoint_owner.is_none()
                && !self.contested.contains(&lease.key)
            {
                let progress = write::Progress::to(lease.checkpoint);
                let release = write::release(&lease.key, lease.counter, me, &progress);
                self.ports.table.unless_refused(release).await?;
            }
        }
        Ok(())
    }

    async fn make_tables_again(&mut self) {
        tracing::error!(table = %self.ports.table.names().leases, "a table is gone; it is made again");
        let (now, me) = (self.settings.clock.now().as_millis(), self.settings.worker.as_str());
        if let Err(error) = self.ports.table.make(now, me).await {
            tracing::error!(%error, "the table cannot be made");
        }
        self.put_back().await;
    }

    /// The stream and the shard of a lease; none if it is of a stream that is not read.
    pub(crate) fn place_of(&self, lease: &Lease) -> Option<(&StreamChoice, ShardInfo)> {
        let choice = self.settings.streams.iter().find(|choice| choice.identifier == lease.stream)?;
        let shard = ShardId::new(lease.shard()).ok()?;
        Some((choice, ShardInfo { stream: choice.name.clone(), shard, lease: lease.key.clone() }))
    }

    fn choice_of(&self, info: &ShardInfo) -> Option<&StreamChoice> {
        self.settings.streams.iter().find(|choice| choice.lease_key(&info.shard) == info.lease)
    }
}
