//! A stream in memory that is far away, refuses records in the middle, and is not always honest about what it did; with
//! time that jumps to the next event.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_model::aggregate::{deaggregate, is_aggregate};
use anabranch_model::laws::reference::SimpleStreams;
use anabranch_model::{
    Appended, Batch, Capabilities, Clock, Dice, Error, Follow, HashKey, NewRecord, Next, Page, Position,
    ReadLimit, Result, SequenceNumber, Shard, ShardId, ShardSource, StreamName, StreamOptions, StreamStore,
    StreamSummary, Timestamp,
};
use async_trait::async_trait;
use parking_lot::Mutex;

/// The clock of the runtime, which jumps when everybody waits.
pub struct RuntimeClock(tokio::time::Instant);

impl RuntimeClock {
    #[expect(clippy::disallowed_methods, reason = "the runtime's clock is the one that the test moves")]
    pub fn new() -> Arc<Self> {
        Arc::new(RuntimeClock(tokio::time::Instant::now()))
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000).plus(self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[expect(clippy::disallowed_methods, reason = "time is simulated")]
pub async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// What is wrong, in percent of the calls or records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// Records that are refused although those behind them are stored.
    pub throttled: u64,
    /// Appends that are carried out and whose answer is lost.
    pub lost_answers: u64,
    /// Appends that are not carried out, and nobody can tell.
    pub lost_calls: u64,
    /// Appends that are refused as a whole.
    pub refused: u64,
    /// Longest way there and back.
    pub delay: Duration,
}

/// The stream as a producer sees it.
pub struct Faulty {
    pub inner: SimpleStreams,
    pub weather: Mutex<Weather>,
    pub dice: Dice,
    /// A payload that is never taken.
    pub poison: Mutex<Option<&'static str>>,
    /// Records in each append that was carried out.
    pub appends: Mutex<Vec<usize>>,
    /// How long a split or a merge takes.
    pub change_takes: Mutex<Duration>,
    /// Whether one is under way.
    changing: Arc<AtomicBool>,
    /// How many were asked for while one was under way.
    pub too_early: AtomicUsize,
    /// A refused record takes those of its hash key behind it along.
    keeps_runs: bool,
}

/// Makes a store.
type Make = fn(SimpleStreams, Weather, u64) -> Arc<Faulty>;

/// How a store is made that does not keep runs, and one that does: what must hold for records holds for both.
pub const BOTH: [Make; 2] = [Faulty::new, Faulty::keeping_runs];

impl Faulty {
    pub fn new(inner: SimpleStreams, weather: Weather, seed: u64) -> Arc<Self> {
        Arc::new(Faulty {
            inner,
            weather: Mutex::new(weather),
            dice: Dice::new(seed),
            poison: Mutex::new(None),
            appends: Mutex::default(),
            change_takes: Mutex::default(),
            changing: Arc::default(),
            too_early: AtomicUsize::new(0),
            keeps_runs: false,
        })
    }

    /// The same, but it keeps runs.
    pub fn keeping_runs(inner: SimpleStreams, weather: Weather, seed: u64) -> Arc<Self> {
        let mut faulty = Arc::into_inner(Faulty::new(inner, weather, seed)).unwrap();
        faulty.keeps_runs = true;
        Arc::new(faulty)
    }

    /// Of each record why it is refused.
    fn refusals(&self, records: &[NewRecord]) -> Vec<Option<Error>> {
        let mut broken: BTreeMap<u128, Error> = BTreeMap::new();
        let refusal = |record: &NewRecord| {
            let key = record.hash_key().get();
            let refusal = broken.get(&key).cloned().or_else(|| self.refusal(record));
            if let Some(error) = refusal.as_ref().filter(|_| self.keeps_runs) {
                broken.insert(key, error.clone());
            }
            refusal
        };
        records.iter().map(refusal).collect()
    }

    fn happens(&self, percent: u64) -> bool {
        self.dice.roll() % 100 < percent
    }

    async fn travel(&self) {
        let delay = self.weather.lock().delay;
        if !delay.is_zero() {
            pause(self.dice.between(Duration::ZERO, delay)).await;
        }
    }

    /// Says no while a change is under way.
    fn may_change(&self) -> Result<()> {
        if !self.changing.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.too_early.fetch_add(1, Ordering::SeqCst);
        Err(Error::StreamBusy(stream()))
    }

    /// Waits until a change has ended, which it does whoever waits for it.
    async fn until_changed(&self) {
        let takes = *self.change_takes.lock();
        if takes.is_zero() {
            return;
        }
        self.changing.store(true, Ordering::SeqCst);
        let changing = self.changing.clone();
        let changed = tokio::spawn(async move {
            pause(takes).await;
            changing.store(false, Ordering::SeqCst);
        });
        changed.await.unwrap();
    }

    fn refusal(&self, record: &NewRecord) -> Option<Error> {
        if self.poison.lock().is_some_and(|poison| record.data == poison.as_bytes()) {
            return Some(Error::Invalid("poison".to_owned()));
        }
        let weather = *self.weather.lock();
        self.happens(weather.throttled).then(|| Error::Throttled {
            shard: ShardId::numbered(0),
            limit: "nothing at all",
            retry_after: Duration::from_millis(20),
        })
    }
}

#[async_trait]
impl ShardSource for Faulty {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn shards(
        &self,
        stream: &StreamName,
        after: Option<&ShardId>,
        limit: usize,
    ) -> Result<Page<Shard>> {
        self.travel().await;
        self.inner.shards(stream, after, limit).await
    }

    async fn read(
        &self,
        stream: &StreamName,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        self.inner.read(stream, shard, from, limit).await
    }

    async fn follow(&self, stream: &StreamName, shard: &ShardId, from: Position) -> Result<Follow> {
        self.inner.follow(stream, shard, from).await
    }
}

#[async_trait]
impl StreamStore for Faulty {
    async fn create_stream(&self, stream: &StreamName, options: StreamOptions) -> Result<()> {
        self.inner.create_stream(stream, options).await
    }

    async fn delete_stream(&self, stream: &StreamName) -> Result<()> {
        self.inner.delete_stream(stream).await
    }

    async fn streams(&self, after: Option<&StreamName>, limit: usize) -> Result<Page<StreamSummary>> {
        self.inner.streams(after, limit).await
    }

    async fn stream(&self, stream: &StreamName) -> Result<StreamSummary> {
        let active = !self.changing.load(Ordering::SeqCst);
        Ok(StreamSummary { active, ..self.inner.stream(stream).await? })
    }

    async fn set_retention(&self, stream: &StreamName, retention: Duration) -> Result<()> {
        self.inner.set_retention(stream, retention).await
    }

    fn keeps_runs(&self) -> bool {
        self.keeps_runs
    }

    async fn append(&self, stream: &StreamName, records: Vec<NewRecord>) -> Result<Vec<Result<Appended>>> {
        let weather = *self.weather.lock();
        self.travel().await;
        if self.happens(weather.refused) {
            return Err(Error::SlowDown {
                what: "too fast".to_owned(),
                retry_after: Duration::from_millis(10),
            });
        }
        if self.happens(weather.lost_calls) {
            return Err(Error::Unavailable("the call was lost".to_owned()));
        }
        let refusals = self.refusals(&records);
        let taken = records.into_iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none());
        let taken: Vec<_> = taken.map(|(record, _)| record).collect();
        let mut stored = Vec::new();
        if !taken.is_empty() {
            self.appends.lock().push(taken.len());
            stored = self.inner.append(stream, taken).await?;
        }
        let mut stored = stored.into_iter();
        let results = refusals.into_iter().map(|refusal| match refusal {
            Some(error) => Err(error),
            None => stored.next().expect("a result"),
        });
        let results = results.collect();
        self.travel().await;
        match self.happens(weather.lost_answers) {
            true => Err(Error::Unavailable("the answer was lost".to_owned())),
            false => Ok(results),
        }
    }

    async fn split(&self, stream: &StreamName, shard: &ShardId, at: HashKey) -> Result<[ShardId; 2]> {
        self.may_change()?;
        let parts = self.inner.split(stream, shard, at).await?;
        self.until_changed().await;
        Ok(parts)
    }

    async fn merge(&self, stream: &StreamName, shard: &ShardId, neighbour: &ShardId) -> Result<ShardId> {
        self.may_change()?;
        let whole = self.inner.merge(stream, shard, neighbour).await?;
        self.until_changed().await;
        Ok(whole)
    }
}

/// A record as a reader sees it.
#[derive(Clone, Debug)]
pub struct Sight {
    pub shard: ShardId,
    pub sequence: SequenceNumber,
    pub key: String,
    pub data: String,
    /// Whether the shard owns the place of the record; readers may pass over what it does not own.
    pub owned: bool,
}

pub fn stream() -> StreamName {
    StreamName::new("orders").unwrap()
}

pub async fn streams(shards: usize) -> SimpleStreams {
    let streams = SimpleStreams::new();
    streams.create_stream(&stream(), StreamOptions { shards, ..StreamOptions::default() }).await.unwrap();
    streams
}

/// Everything in the stream, aggregates opened, in the order of the sequence numbers.
pub async fn sights(streams: &SimpleStreams) -> Vec<Sight> {
    let mut sights = Vec::new();
    for shard in streams.shards(&stream(), None, 1000).await.unwrap().entries {
        let mut from = Position::TrimHorizon;
        loop {
            let batch = streams.read(&stream(), &shard.id, from, ReadLimit::default()).await.unwrap();
            let empty = batch.records.is_empty();
            for record in batch.records {
                let parts = match is_aggregate(&record.data) {
                    true => deaggregate(&record.data).unwrap(),
                    false => vec![],
                };
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let sight = |key: &[u8], data: &[u8], owned: bool| Sight {
                    shard: shard.id.clone(),
                    sequence: record.sequence,
                    key: text(key),
                    data: text(data),
                    owned,
                };
                if parts.is_empty() {
                    sights.push(sight(&record.partition_key, &record.data, true));
                }
                sights.extend(parts.iter().map(|part| {
                    let owned = shard.range.unwrap().contains(part.hash_key());
                    sight(&part.partition_key, &part.data, owned)
                }));
            }
            match batch.next {
                Next::At(next) if !empty => from = next,
                _ => break,
            }
        }
    }
    sights.sort_by_key(|sight| sight.sequence);
    sights
}

/// Per key the data in the order of their first sight. Only what its shard owns counts.
pub fn first_sights(sights: &[Sight]) -> BTreeMap<String, Vec<String>> {
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for sight in sights.iter().filter(|sight| sight.owned) {
        let seen = keys.entry(sight.key.clone()).or_default();
        if !seen.contains(&sight.data) {
            seen.push(sight.data.clone());
        }
    }
    keys
}

/// Splits and merges at random for as long as it is not dropped.
pub async fn reshard_for_ever(streams: SimpleStreams, dice: Dice, every: Duration) {
    loop {
        pause(dice.between(Duration::ZERO, every)).await;
        let shards = streams.shards(&stream(), None, 1000).await.unwrap().entries;
        let mut open: Vec<_> = shards.into_iter().filter(Shard::is_open).collect();
        open.sort_by_key(|shard| shard.range.unwrap().first());
        let place = (dice.roll() % open.len() as u64) as usize;
        if dice.roll().is_multiple_of(2) && open.len() > 1 && place + 1 < open.len() {
            streams.merge(&stream(), &open[place].id, &open[place + 1].id).await.unwrap();
        } else if open.len() < 12
            && let Some(at) = open[place].range.unwrap().midpoint()
        {
            streams.split(&stream(), &open[place].id, at).await.unwrap();
        }
    }
}
