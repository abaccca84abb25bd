//! Does what was decided: looks, plans, and if this process holds the lease, splits and merges.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{
    Clock, Dice, Error, HashKey, HashRange, Result, Shard, ShardGraph, ShardId, StreamName, StreamStore,
};

use super::backlog;
use super::decision::{Action, Decision};
use super::lease::{LEASE_TIME, Lease};
use super::plan::{Observed, ObservedShard, plan};
use super::settings::ScalerSettings;
use super::table::ScalerTable;
use crate::map;
use crate::metrics;
use crate::pause::pause;
use crate::traffic::ShardSnapshot;

/// Five operations a second: what an account may do.
const BETWEEN_OPERATIONS: Duration = Duration::from_millis(200);
/// What a process said is old after this many intervals, and after this time in any case.
const STALE_INTERVALS: u32 = 5;
const STALE_MIN: Duration = Duration::from_secs(5);

/// Scales one stream.
pub struct Scaler {
    store: Arc<dyn StreamStore>,
    table: ScalerTable,
    stream: StreamName,
    process: String,
    settings: ScalerSettings,
    clock: Arc<dyn Clock>,
    dice: Dice,
    lease: Lease,
    /// When shards were seen first, by the stopwatch; those that were there from the beginning have none.
    seen: HashMap<ShardId, Option<Duration>>,
    looked: bool,
    /// What the last pass said about shards that stay as they are, so that it is recorded once.
    said: Vec<Action>,
    /// What is being done, and not recorded yet.
    begun: Option<(usize, Decision)>,
}

impl Scaler {
    /// A scaler for a stream. `process` names it to the others.
    pub fn new(
        store: Arc<dyn StreamStore>,
        table: ScalerTable,
        stream: StreamName,
        process: &str,
        settings: ScalerSettings,
        clock: Arc<dyn Clock>,
        seed: u64,
    ) -> Result<Self> {
        settings.check()?;
        Ok(Scaler {
            store,
            table,
            stream,
            process: process.to_owned(),
            settings,
            clock,
            dice: Dice::new(seed),
            lease: Lease::default(),
            seen: HashMap::new(),
            looked: false,
            said: Vec::new(),
            begun: None,
        })
    }

    /// Looks and acts at every interval until `stop` is done, and then gives the lease back. What the stream takes a minute
    /// for is not waited for.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let working = async {
            loop {
                if let Err(error) = self.pass().await {
                    tracing::warn!(stream = %self.stream, %error, "the scaler could not look or act");
                }
                pause(self.settings.interval_length).await;
            }
        };
        tokio::select! {
            biased;
            () = stop => {}
            () = working => {}
        }
        if let Err(error) = self.leave().await {
            tracing::warn!(stream = %self.stream, %error, "the lease of the scaler stays until it expires");
        }
    }

    /// Gives the lease back, unless a change is under way: that is recorded, and the lease stays until it expires, since
    /// whoever has it next cannot do anything before the change has ended.
    async fn leave(&mut self) -> Result<()> {
        let Some((number, decision)) = self.begun.take() else { return self.release().await };
        let told = "begun, and not waited for: the process was stopped";
        tracing::info!(stream = %self.stream, decision = %decision, result = told, "the scaler decided");
        self.table.record(&self.stream, number, &decision, told, self.clock.now()).await
    }

    /// Gives the lease back, so that another process can act at once.
    pub async fn release(&mut self) -> Result<()> {
        self.lease.release(&self.table, &self.stream).await
    }

    /// One round: takes or keeps the lease, and if this process holds it, does what is to be done. Returns what was
    /// decided; none if another process holds the lease.
    pub async fn pass(&mut self) -> Result<Option<Vec<Decision>>> {
        if !self.keep_lease().await? {
            return Ok(None);
        }
        let decisions = self.decide().await?;
        if decisions.iter().any(|decision| decision.action.changes()) {
            self.may_change().await?;
        }
        for (number, decision) in decisions.iter().enumerate() {
            self.carry_out(number, decision).await?;
        }
        self.said = decisions.iter().map(|decision| decision.action.clone()).collect();
        Ok(Some(decisions))
    }

    /// Fails while somebody changes the stream. A change would wait for that, and the decision would be old by then.
    async fn may_change(&self) -> Result<()> {
        match self.store.stream(&self.stream).await?.active {
            true => Ok(()),
            false => Err(Error::StreamBusy(self.stream.clone())),
        }
    }

    /// What would be done now. Nothing is changed, and no lease is needed.
    pub async fn decide(&mut self) -> Result<Vec<Decision>> {
        let observed = self.observe().await?;
        for shard in &observed.shards {
            if let Some(traffic) = &shard.traffic {
                let seconds = self.settings.observation_period.as_secs().max(1);
                let sum = traffic.sum(seconds as usize);
                let usage = sum.usage(self.settings.capacity()) / seconds as f64;
                metrics::usage(&self.stream, shard.shard.as_str(), usage);
            }
        }
        Ok(plan(&observed, &self.settings))
    }

    /// The open shards with what all processes say about them.
    pub async fn observe(&mut self) -> Result<Observed> {
        let shards = map::list(&*self.store, &self.stream).await?;
        let (now, wall) = (self.clock.elapsed(), self.clock.now());
        let stale = (self.settings.interval_length * STALE_INTERVALS).max(STALE_MIN);
        let mut traffic: HashMap<ShardId, ShardSnapshot> = HashMap::new();
        let mut waiting = Vec::new();
        for told in self.table.told(&self.stream, wall.minus(stale)).await? {
            waiting.extend(told.backlog);
            for snapshot in told.shards {
                match traffic.get_mut(&snapshot.shard) {
                    Some(known) => known.add(&snapshot),
                    None => drop(traffic.insert(snapshot.shard.clone(), snapshot)),
                }
            }
        }
        let graph = ShardGraph::new(shards);
        let looked = std::mem::replace(&mut self.looked, true);
        let open: Vec<&Shard> = graph.open().collect();
        self.seen.retain(|id, _| open.iter().any(|shard| shard.id == *id));
        let mut observed = Observed { backlog: backlog::total(waiting), ..Observed::default() };
        for shard in open {
            let Some(range) = shard.range else { continue };
            let seen = *self.seen.entry(shard.id.clone()).or_insert_with(|| looked.then_some(now));
            // A parent that was closed says when; otherwise it is when this process saw the child first.
            let closed = shard.parents.iter().filter_map(|parent| graph.get(parent)?.closed_at).max();
            let age = closed.map(|closed| wall.since(closed)).or(seen.map(|seen| now.saturating_sub(seen)));
            let traffic = traffic.remove(&shard.id).filter(|snapshot| snapshot.range == range);
            observed.shards.push(ObservedShard { shard: shard.id.clone(), range, age, traffic });
        }
        Ok(observed)
    }

    async fn keep_lease(&mut self) -> Result<bool> {
        let before = self.lease.holds(&*self.clock);
        let (clock, dice) = (self.clock.clone(), &self.dice);
        let holds = self.lease.tick(&self.table, &self.stream, &self.process, &*clock, dice).await?;
        if before != holds {
            tracing::info!(stream = %self.stream, process = %self.process, holds, "the lease of the scaler changed");
        }
        Ok(holds)
    }

    async fn carry_out(&mut self, number: usize, decision: &Decision) -> Result<()> {
        if !decision.action.changes() && self.said.contains(&decision.action) {
            return Ok(());
        }
        self.begun = decision.action.changes().then(|| (number, decision.clone()));
        let result = match &decision.action {
            Action::Split { shard, at } => self.split(shard, at).await,
            Action::Merge { lower, upper } => self.merge(lower, upper).await,
            Action::HotKey { .. } | Action::Hold { .. } => Ok("nothing changed".to_owned()),
        };
        metrics::decision(&self.stream, decision.action.word());
        let told = match &result {
            Ok(told) => told.clone(),
            Err(error) => format!("failed: {error}"),
        };
        tracing::info!(stream = %self.stream, decision = %decision, result = told, "the scaler decided");
        self.begun = None;
        self.table.record(&self.stream, number, decision, &told, self.clock.now()).await?;
        match result {
            // Somebody else resharded, or the stream is being changed: the next look shows what is left to do.
            Err(error @ (Error::StreamBusy(_) | Error::ShardClosed(_) | Error::ShardNotFound(..))) => {
                Err(error)
            }
            Err(error) if error.next_move() != anabranch_model::NextMove::Retry => {
                tracing::warn!(stream = %self.stream, %error, "a decision cannot be carried out");
                Ok(())
            }
            other => other.map(drop),
        }
    }

    async fn split(&mut self, shard: &ShardId, at: &[HashKey]) -> Result<String> {
        let mut parts: Vec<(ShardId, Option<HashRange>)> = vec![(shard.clone(), None)];
        for at in middle_first(at) {
            self.turn().await?;
            let place = parts.iter().position(|(_, range)| range.is_none_or(|range| range.contains(at)));
            let place = place.unwrap_or_default();
            let (id, range) = parts[place].clone();
            let (store, stream) = (self.store.clone(), self.stream.clone());
            let [lower, upper] = self.holding(store.split(&stream, &id, at)).await?;
            let [below, above] = match range.unwrap_or(HashRange::ALL).split_at(at) {
                Ok(ranges) => ranges.map(Some),
                Err(_) => [None, None],
            };
            parts.splice(place..=place, [(lower, below), (upper, above)]);
        }
        let names: Vec<_> = parts.iter().map(|(id, _)| id.as_str()).collect();
        Ok(format!("split into {}", names.join(", ")))
    }

    async fn merge(&mut self, lower: &ShardId, upper: &ShardId) -> Result<String> {
        self.turn().await?;
        let (store, stream) = (self.store.clone(), self.stream.clone());
        let child = self.holding(store.merge(&stream, lower, upper)).await?;
        Ok(format!("merged into {child}"))
    }

    /// What a change comes to. The lease is kept meanwhile: a stream may take longer over it than a lease holds, and whoever
    /// took over would decide about a stream that is being changed.
    async fn holding<T>(&mut self, change: impl Future<Output = Result<T>>) -> Result<T> {
        let mut change = pin!(change);
        loop {
            tokio::select! {
                biased;
                changed = &mut change => return changed,
                () = pause(LEASE_TIME / 3) => {}
            }
            // What was begun is waited for without a lease as well; the next operation asks for it.
            if let Err(error) = self.keep_lease().await {
                tracing::warn!(stream = %self.stream, %error, "the lease of the scaler could not be renewed");
            }
        }
    }

    /// Waits until the next operation may begin, and makes sure that this process may still make it. The lease has all of its
    /// time then.
    async fn turn(&mut self) -> Result<()> {
        pause(BETWEEN_OPERATIONS).await;
        if !self.keep_lease().await? {
            let seconds = LEASE_TIME.as_secs();
            return Err(Error::Unavailable(format!("the lease of {seconds} s was lost on the way")));
        }
        Ok(())
    }
}

/// The keys with those in the middle first, so that the parts of a shard do not descend from one another in a row.
fn middle_first(keys: &[HashKey]) -> Vec<HashKey> {
    let mut ordered = Vec::with_capacity(keys.len());
    let mut waiting = std::collections::VecDeque::from([keys]);
    while let Some(keys) = waiting.pop_front() {
        if let Some(middle) = keys.get(keys.len() / 2) {
            ordered.push(*middle);
            waiting.push_back(&keys[..keys.len() / 2]);
            waiting.push_back(&keys[keys.len() / 2 + 1..]);
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_cut_first_and_nothing_is_left_out() {
        let keys: Vec<_> = (1..=7).map(HashKey::new).collect();
        let ordered: Vec<u128> = middle_first(&keys).into_iter().map(HashKey::get).collect();
        assert_eq!(ordered, [4, 2, 6, 1, 3, 5, 7]);
        assert!(middle_first(&[]).is_empty());
    }
}
