//! What a sender holds in hand.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{
    Clock, Dice, Error, NewRecord, PartitionKey, Pointer, Result, ShardId, StreamName, StreamStore,
};
use bytes::Bytes;
use futures_util::future::join_all;
use parking_lot::RwLock;
use tokio::sync::{Semaphore, SemaphorePermit, TryAcquireError, oneshot, watch};

use crate::intake::Intake;
use crate::lane::{Entry, Run};
use crate::large;
use crate::map::{self, ShardMap};
use crate::outcome::{Lost, Outcome, Ticket, Why};
use crate::pause::pause;
use crate::place::Place;
use crate::runs::{self, NewRun, Runs};
use crate::settings::Settings;
use crate::strand::{Runner, Strands};
use crate::traffic::ShardSnapshot;
use crate::worker::Worker;

/// What a record takes of the buffer beside its bytes.
const ENTRY_BYTES: usize = 256;
/// How often blobs are looked for that no record points to.
const COLLECT_EVERY: Duration = Duration::from_secs(3600);

/// Writes records to one stream. Clones share everything.
#[derive(Clone)]
pub struct Producer {
    shared: Arc<Shared>,
    close: watch::Sender<bool>,
    /// Changes for the last time when the task has ended.
    ended: watch::Receiver<()>,
}

/// What the task and those who hold a producer share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn StreamStore>,
    pub(crate) stream: StreamName,
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) dice: Dice,
    pub(crate) intake: Intake,
    /// Bytes of the buffer that are free. The worker gives back what a record took when it is concluded.
    pub(crate) room: Semaphore,
    /// Replaced when the stream was resharded.
    map: RwLock<Arc<ShardMap>>,
    pub(crate) runs: Runs,
    /// Where single records go if they need no lanes.
    pub(crate) strands: Strands,
}

impl Shared {
    pub(crate) fn map(&self) -> Arc<ShardMap> {
        self.map.read().clone()
    }

    pub(crate) fn set_map(&self, map: Arc<ShardMap>) {
        *self.map.write() = map;
    }
}

/// Why a record was not taken at once.
#[derive(Debug, thiserror::Error)]
pub enum TrySendError {
    /// The buffer has no room for it; here it is again.
    #[error("the buffer of the producer is full")]
    Full(NewRecord),
    /// It cannot be sent like this.
    #[error(transparent)]
    Refused(#[from] Error),
}

impl Producer {
    /// A producer for a stream, which must exist.
    pub async fn start(
        store: Arc<dyn StreamStore>,
        stream: StreamName,
        clock: Arc<dyn Clock>,
        settings: Settings,
    ) -> Result<Producer> {
        settings.check()?;
        let dice = Dice::new(match settings.seed {
            Some(seed) => seed,
            None => random()?,
        });
        let shards = map::list(&*store, &stream).await?;
        let map = ShardMap::new(shards, &ShardMap::default(), settings.pace, clock.elapsed());
        let (intake, room) = (Intake::new(), Semaphore::new(settings.buffer_bytes));
        let (map, runs) = (RwLock::new(Arc::new(map)), Runs::new(&*store, &settings));
        // A shard that is paced needs the lanes of its records.
        let strands = if runs.share_appends && settings.pace.is_none() { settings.appends_max } else { 0 };
        let strands = Strands::new(strands, settings.batch_records, settings.batch_bytes);
        let shared =
            Arc::new(Shared { store, stream, settings, clock, dice, intake, room, map, runs, strands });
        let (close, closing) = (watch::Sender::new(false), watch::Sender::new(()));
        let ended = closing.subscribe();
        for number in 0..shared.strands.len() {
            let (runner, closing) = (Runner::new(shared.clone(), number), closing.clone());
            tokio::spawn(async move {
                runner.run().await;
                drop(closing);
            });
        }
        let (worker, stop) = (Worker::new(shared.clone()), close.subscribe());
        tokio::spawn(async move {
            worker.run(stop).await;
            drop(closing);
        });
        if shared.settings.large.is_some() {
            tokio::spawn(collect(shared.clone(), ended.clone()));
        }
        Ok(Producer { shared, close, ended })
    }

    /// The stream.
    pub fn stream(&self) -> &StreamName {
        &self.shared.stream
    }

    /// Sends a record. It waits while the buffer is full; the ticket says what became of the record.
    pub fn send(&self, record: NewRecord) -> impl Future<Output = Result<Ticket>> + Send {
        self.send_within(record, self.shared.settings.lifetime)
    }

    /// Sends a record that is given up after this time.
    pub fn send_within(
        &self,
        record: NewRecord,
        lifetime: Duration,
    ) -> impl Future<Output = Result<Ticket>> + Send {
        // A future inside of another one would be one more place that the record is moved to.
        self.enqueue(record, self.shared.clock.elapsed() + lifetime, None)
    }

    /// Sends a record if the buffer has room for it. A payload that goes to a blob cannot be sent like this.
    pub fn try_send(&self, record: NewRecord) -> std::result::Result<Ticket, TrySendError> {
        if large::is_large(self.shared.settings.large.as_ref(), &record.data) {
            let why = "the payload goes to a blob, which takes time: use `send`";
            return Err(Error::Invalid(why.to_owned()).into());
        }
        record.check()?;
        let room = match self.shared.room.try_acquire_many(self.permits(record.size())) {
            Ok(room) => room,
            Err(TryAcquireError::NoPermits) => return Err(TrySendError::Full(record)),
            Err(TryAcquireError::Closed) => return Err(closed().into()),
        };
        let deadline = self.shared.clock.elapsed() + self.shared.settings.lifetime;
        Ok(self.leave(record, deadline, None, None, room)?)
    }

    /// Sends payloads as one run: they are stored in this order in one place, and when one is lost, none behind it is
    /// stored. The time of a record begins when the one before it is stored. Returns what became of each. Sent again from the first on, readers who drop what they have seen get
    /// every one in order.
    pub async fn send_run(&self, place: &Place, key: &PartitionKey, payloads: Vec<Bytes>) -> Vec<Outcome> {
        if self.shared.runs.share_appends {
            let run = NewRun { place: place.same(), key: key.clone(), payloads };
            return runs::send(&self.shared, vec![run]).await.swap_remove(0);
        }
        let lifetime = self.shared.settings.lifetime;
        let run = Run::new(lifetime);
        let mut sent = Vec::with_capacity(payloads.len());
        for data in payloads {
            let explicit_hash_key = Some(place.hash_key());
            let record = NewRecord { partition_key: key.clone(), explicit_hash_key, data };
            let deadline = self.shared.clock.elapsed() + lifetime;
            match self.enqueue(record, deadline, Some(run.clone())).await {
                Ok(ticket) => sent.push(Ok(ticket)),
                Err(error) => {
                    run.break_off();
                    sent.push(Err(Lost::NotStored(Why::Refused(error))));
                }
            }
        }
        let mut outcomes = Vec::with_capacity(sent.len());
        for sent in sent {
            outcomes.push(match sent {
                Ok(ticket) => ticket.await,
                Err(lost) => Err(lost),
            });
        }
        outcomes
    }

    /// Sends several runs, each as [`send_run`](Self::send_run) does. Where the store keeps runs and nothing else is asked of
    /// the records on their way, they share appends; a run is then given up when none of its records was stored for the
    /// lifetime of one. Dropped, it may have stored a part of each.
    pub async fn send_runs(&self, runs: Vec<NewRun>) -> Vec<Vec<Outcome>> {
        if self.shared.runs.share_appends {
            return runs::send(&self.shared, runs).await;
        }
        let one_by_one = runs.into_iter().map(|run| async move {
            let NewRun { place, key, payloads } = run;
            self.send_run(&place, &key, payloads).await
        });
        join_all(one_by_one).await
    }

    /// Whether runs share appends, so that many together take about as long as one.
    pub fn shares_appends(&self) -> bool {
        self.shared.runs.share_appends
    }

    /// A place for records that may go anywhere as long as they stay together: in the less loaded of two shards that
    /// chance picks.
    pub fn place(&self) -> Place {
        let (map, now) = (self.shared.map(), self.shared.clock.elapsed());
        Place::choose(&map, &self.shared.dice, now, self.shared.settings.capacity)
    }

    /// A place in one shard, if it is open.
    pub fn place_in(&self, shard: &ShardId) -> Option<Place> {
        self.shared.map().by_id(shard).map(|traffic| Place::within(traffic.clone(), &self.shared.dice))
    }

    /// The traffic of each shard as this producer sees it.
    pub fn traffic(&self) -> Vec<ShardSnapshot> {
        let now = self.shared.clock.elapsed();
        self.shared.map().shards().iter().map(|shard| shard.snapshot(now)).collect()
    }

    /// Takes no more records, and returns when everything that was sent is concluded.
    pub async fn close(&self) {
        self.shared.room.close();
        self.shared.strands.close();
        self.close.send_replace(true);
        self.shared.runs.close().await;
        let mut ended = self.ended.clone();
        while ended.changed().await.is_ok() {}
    }

    async fn enqueue(&self, mut record: NewRecord, deadline: Duration, run: Option<Run>) -> Result<Ticket> {
        // Whoever sends without end lets others run from time to time, the worker above all.
        tokio::task::coop::consume_budget().await;
        // The room is taken first, so that large payloads on their way are bounded as well.
        let permits = self.permits(record.size());
        let room = match self.shared.room.try_acquire_many(permits) {
            Ok(room) => room,
            Err(_) => self.shared.room.acquire_many(permits).await.map_err(|_| closed())?,
        };
        let mut pointer = None;
        if let Some(large) = &self.shared.settings.large
            && large::is_large(Some(large), &record.data)
        {
            let put = large::put(large, &self.shared.stream, &record.data, &self.shared.dice).await?;
            record.data = put.encode();
            pointer = Some(put);
        }
        if let Err(error) = record.check() {
            if let (Some(pointer), Some(large)) = (&pointer, &self.shared.settings.large) {
                large::discard(large, pointer).await;
            }
            return Err(error);
        }
        self.leave(record, deadline, run, pointer, room)
    }

    /// Leaves a record for the worker, which has its room from now on.
    fn leave(
        &self,
        record: NewRecord,
        deadline: Duration,
        run: Option<Run>,
        pointer: Option<Pointer>,
        room: SemaphorePermit<'_>,
    ) -> Result<Ticket> {
        if !self.shared.strands.is_empty() {
            let ticket = self.shared.strands.leave(record, deadline, room.num_permits() as u32);
            let ticket = ticket.ok_or_else(closed)?;
            room.forget();
            return Ok(ticket);
        }
        let (answer, ticket) = oneshot::channel();
        let entry = Entry {
            hash_key: record.hash_key(),
            record,
            deadline,
            attempts: 0,
            room: room.num_permits() as u32,
            doubtful: false,
            last_error: None,
            run,
            pointer: pointer.map(Box::new),
            answer,
        };
        if !self.shared.intake.leave(entry) {
            return Err(closed());
        }
        room.forget();
        Ok(Ticket::alone(ticket))
    }

    fn permits(&self, bytes: usize) -> u32 {
        // A record larger than the buffer has it for itself.
        (bytes + ENTRY_BYTES).min(self.shared.settings.buffer_bytes) as u32
    }
}

fn closed() -> Error {
    Error::Stopped("the producer has ended".to_owned())
}

/// Removes blobs of this stream that no record can point to any more, from time to time.
async fn collect(shared: Arc<Shared>, mut ended: watch::Receiver<()>) {
    loop {
        tokio::select! {
            biased;
            _ = ended.changed() => return,
            () = pause(COLLECT_EVERY) => {}
        }
        let Some(large) = &shared.settings.large else { return };
        let removed = match shared.store.stream(&shared.stream).await {
            Ok(summary) => large::collect(large, &shared.stream, summary.retention, shared.clock.now()).await,
            Err(error) => Err(error),
        };
        match removed {
            Ok(removed) => {
                tracing::debug!(stream = %shared.stream, removed, "payloads without records collected")
            }
            Err(error) => tracing::warn!(stream = %shared.stream, %error, "payloads cannot be collected"),
        }
    }
}

pub(crate) fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::Misconfigured(format!("the system gives no random numbers: {error}")))?;
    Ok(u64::from_le_bytes(bytes))
}
