//! One engine on a simulated disk, driven by hand so that the same script makes the same operations, and the ledger
//! of what it did.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use anabranch_engine::{Drive, Engine, Options};
use anabranch_model::{
    Appended, Clock, Disk, Error, HashKey, NewRecord, Record, Result, Shard, ShardId, ShardSource,
    StreamName, StreamOptions, StreamStore, Timestamp,
};
use anabranch_sim::{SimClock, SimDisk};
use tokio::runtime::Runtime;

use super::ledger::Ledger;
use super::world::World;

/// As small as segments can be, so that short runs roll, clean and recycle many.
pub const SEGMENT_BYTES: u64 = 16 << 10;
/// The calendar when a run begins.
pub const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// How the engines of these tests are opened.
pub fn options() -> Options {
    Options { segment_bytes: SEGMENT_BYTES, drive: Drive::Caller, ..Options::default() }
}

/// A name that is known to be good.
pub fn name(text: &str) -> StreamName {
    StreamName::new(text).expect("a good name")
}

/// A call to the store.
#[derive(Clone, Debug)]
pub enum Call {
    Create { stream: &'static str, shards: usize, retention: Duration },
    Delete { stream: &'static str },
    Retain { stream: &'static str, retention: Duration },
    Split { stream: &'static str, shard: ShardId, at: HashKey },
    Merge { stream: &'static str, shard: ShardId, neighbour: ShardId },
    Append { stream: &'static str, records: Vec<NewRecord> },
}

enum Answer {
    Done,
    Appended(Vec<Appended>),
    Children(Vec<ShardId>),
}

type Started = Pin<Box<dyn Future<Output = Result<Answer>>>>;

/// A run.
pub struct Run {
    pub disk: SimDisk,
    pub clock: SimClock,
    pub ledger: Ledger,
    /// What the engine sees of the disk.
    seen: Arc<dyn Disk>,
    engine: Option<Engine>,
    runtime: Arc<Runtime>,
    appended: usize,
}

impl Run {
    /// Opens an engine on an empty disk.
    pub fn start(runtime: &Arc<Runtime>) -> Run {
        let disk = SimDisk::new();
        Run::on(runtime, disk.clone(), Arc::new(disk)).expect("an empty disk opens")
    }

    /// Opens an engine on an empty disk of which it sees what `seen` shows.
    pub fn on(runtime: &Arc<Runtime>, disk: SimDisk, seen: Arc<dyn Disk>) -> Result<Run> {
        let clock = SimClock::new(START);
        let engine = Engine::open(seen.clone(), Arc::new(clock.clone()), options())?;
        Ok(Run { seen, ..Run::resume(runtime, disk, clock, engine, World::default()) })
    }

    /// Goes on with an engine that holds a world.
    pub fn resume(
        runtime: &Arc<Runtime>,
        disk: SimDisk,
        clock: SimClock,
        engine: Engine,
        world: World,
    ) -> Run {
        Run {
            seen: Arc::new(disk.clone()),
            disk,
            clock,
            ledger: Ledger::new(world),
            engine: Some(engine),
            runtime: runtime.clone(),
            appended: 0,
        }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("the engine is open")
    }

    /// The world as readers see it now.
    pub fn world(&self) -> Result<World> {
        self.runtime.block_on(World::read(self.engine()))
    }

    /// Waits for a future of the engine that needs nothing to be committed.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// One call, committed alone.
    pub fn call(&mut self, call: Call) -> Result<()> {
        self.group(vec![call])
    }

    /// Calls that are asked for in this order and committed together.
    pub fn group(&mut self, calls: Vec<Call>) -> Result<()> {
        let engine = self.engine().clone();
        let mut started: Vec<(usize, Started)> = Vec::new();
        for call in &calls {
            let asked = self.disk.operations();
            let mut future = start(engine.clone(), call.clone());
            enqueue(&engine, &mut future)?;
            started.push((asked, future));
        }
        let mut answers: Vec<Option<(usize, Answer)>> = calls.iter().map(|_| None).collect();
        while answers.iter().any(Option::is_none) {
            if !engine.commit() {
                return Err(Error::Unavailable("calls wait although nothing is left to commit".into()));
            }
            let answered = self.disk.operations();
            for (slot, (_, future)) in answers.iter_mut().zip(&mut started) {
                if slot.is_none()
                    && let Poll::Ready(answer) = poll(future)
                {
                    *slot = Some((answered, answer?));
                }
            }
        }
        for ((call, (asked, _)), answer) in calls.into_iter().zip(started).zip(answers) {
            let (answered, answer) = answer.expect("every call was answered");
            self.note(asked, answered, call, answer)?;
        }
        Ok(())
    }

    /// Trims, stores a checkpoint, retires and cleans.
    pub fn upkeep(&mut self) {
        let asked = self.disk.operations();
        self.engine().upkeep();
        let mut world = self.ledger.now().clone();
        if world.trim(self.clock.now()) {
            // The checkpoint comes when the trim is durable, and not before.
            let mut done = asked..self.disk.operations();
            let checkpoint = done.find(|at| self.disk.describe(*at).starts_with("write state.redb"));
            let answered = checkpoint.unwrap_or_else(|| self.disk.operations());
            self.ledger.add(asked, answered, "trim".into(), |now| *now = world);
        }
    }

    /// Shuts the engine down.
    pub fn close(&mut self) -> Result<()> {
        let engine = self.engine.take().expect("the engine is open");
        self.runtime.block_on(engine.close())
    }

    /// Shuts the engine down and opens the directory again.
    pub fn reopen(&mut self) -> Result<()> {
        self.close()?;
        self.open()
    }

    /// Drops the engine without a word and opens the directory again.
    pub fn reopen_after_kill(&mut self) -> Result<()> {
        self.engine = None;
        self.open()
    }

    fn open(&mut self) -> Result<()> {
        self.engine = Some(Engine::open(self.seen.clone(), Arc::new(self.clock.clone()), options())?);
        Ok(())
    }

    /// Records that no other append of this run has.
    pub fn records(&mut self, count: usize, bytes: usize) -> Vec<NewRecord> {
        (0..count)
            .map(|_| {
                self.appended += 1;
                let mut data = format!("record {} ", self.appended).into_bytes();
                data.resize(data.len().max(bytes), b'a' + (self.appended % 26) as u8);
                NewRecord::new(format!("key-{}", self.appended * 7 % 31), data)
            })
            .collect()
    }

    /// An append of `count` records of `bytes` bytes.
    pub fn append(&mut self, stream: &'static str, count: usize, bytes: usize) -> Call {
        Call::Append { stream, records: self.records(count, bytes) }
    }

    /// A split of the open shard at `index`, in its middle.
    pub fn split(&self, stream: &'static str, index: usize) -> Call {
        let open = self.ledger.now().streams[&name(stream)].open()[index];
        let range = open.listed.range.expect("shards have ranges");
        let at = range.midpoint().expect("ranges of these tests are wide");
        Call::Split { stream, shard: open.listed.id.clone(), at }
    }

    /// A merge of the open shard at `index` with the one above it.
    pub fn merge(&self, stream: &'static str, index: usize) -> Call {
        let open = self.ledger.now().streams[&name(stream)].open();
        let [shard, neighbour] = [index, index + 1].map(|at| open[at].listed.id.clone());
        Call::Merge { stream, shard, neighbour }
    }

    /// Enters a call and its answer into the ledger.
    fn note(&mut self, asked: usize, answered: usize, call: Call, answer: Answer) -> Result<()> {
        let now = self.clock.now();
        match (call, answer) {
            (Call::Create { stream, retention, .. }, _) => {
                let shards = self.listed(stream)?.into_values().collect();
                self.ledger.add(asked, answered, format!("create {stream}"), |world| {
                    world.create(&name(stream), now, retention, shards);
                });
            }
            (Call::Delete { stream }, _) => {
                self.ledger.add(asked, answered, format!("delete {stream}"), |world| {
                    world.streams.remove(&name(stream));
                });
            }
            (Call::Retain { stream, retention }, _) => {
                self.ledger.add(asked, answered, format!("retain {stream}"), |world| {
                    world.stream_mut(&name(stream)).retention = retention;
                });
            }
            (Call::Split { stream, shard, .. }, Answer::Children(children)) => {
                self.note_reshard(asked, answered, stream, vec![shard], children)?;
            }
            (Call::Merge { stream, shard, neighbour, .. }, Answer::Children(children)) => {
                self.note_reshard(asked, answered, stream, vec![shard, neighbour], children)?;
            }
            (Call::Append { stream, records }, Answer::Appended(places)) => {
                self.note_append(asked, answered, stream, records, places);
            }
            (call, _) => panic!("the answer does not fit {call:?}"),
        }
        Ok(())
    }

    fn note_reshard(
        &mut self,
        asked: usize,
        answered: usize,
        stream: &'static str,
        parents: Vec<ShardId>,
        children: Vec<ShardId>,
    ) -> Result<()> {
        let listed = self.listed(stream)?;
        let pick = |ids: &[ShardId]| ids.iter().map(|id| listed[id].clone()).collect::<Vec<Shard>>();
        let (parents, opened) = (pick(&parents), pick(&children));
        self.ledger.add(asked, answered, format!("reshard {stream}"), |world| {
            world.reshard(&name(stream), parents, opened);
        });
        Ok(())
    }

    /// Each shard gets its records in a step of its own: a crash may come between two shards of one append.
    fn note_append(
        &mut self,
        asked: usize,
        answered: usize,
        stream: &'static str,
        records: Vec<NewRecord>,
        places: Vec<Appended>,
    ) {
        let shards = &self.ledger.now().streams[&name(stream)].shards;
        let mut shares: BTreeMap<HashKey, (ShardId, Vec<Record>)> = BTreeMap::new();
        for (record, place) in records.into_iter().zip(places) {
            let share = shares.entry(shards[&place.shard].range_first());
            let (_, share) = share.or_insert_with(|| (place.shard.clone(), Vec::new()));
            share.push(Record {
                sequence: place.sequence,
                arrival: self.clock.now(),
                partition_key: record.partition_key,
                data: record.data,
            });
        }
        for (shard, records) in shares.into_values() {
            self.ledger.add(asked, answered, format!("append to {stream} {shard}"), |world| {
                world.append(&name(stream), &shard, records);
            });
        }
    }

    fn listed(&self, stream: &str) -> Result<BTreeMap<ShardId, Shard>> {
        let page = self.runtime.block_on(self.engine().shards(&name(stream), None, 1_000))?;
        Ok(page.entries.into_iter().map(|shard| (shard.id.clone(), shard)).collect())
    }
}

fn start(engine: Engine, call: Call) -> Started {
    Box::pin(async move {
        match call {
            Call::Create { stream, shards, retention } => {
                let options = StreamOptions { shards, retention };
                engine.create_stream(&name(stream), options).await.map(|()| Answer::Done)
            }
            Call::Delete { stream } => engine.delete_stream(&name(stream)).await.map(|()| Answer::Done),
            Call::Retain { stream, retention } => {
                engine.set_retention(&name(stream), retention).await.map(|()| Answer::Done)
            }
            Call::Split { stream, shard, at } => {
                let children = engine.split(&name(stream), &shard, at).await?;
                Ok(Answer::Children(children.to_vec()))
            }
            Call::Merge { stream, shard, neighbour } => {
                let child = engine.merge(&name(stream), &shard, &neighbour).await?;
                Ok(Answer::Children(vec![child]))
            }
            Call::Append { stream, records } => {
                let results = engine.append(&name(stream), records).await?;
                Ok(Answer::Appended(results.into_iter().collect::<Result<_>>()?))
            }
        }
    })
}

/// Asks until the call has its place in the journal, making segments ready in between: so the order of the calls is
/// the order of the journal.
fn enqueue(engine: &Engine, call: &mut Started) -> Result<()> {
    let before = engine.status().frames_waiting;
    for _ in 0..4 {
        if let Poll::Ready(answer) = poll(call) {
            let text = "a call was answered before anything was committed";
            return Err(answer.err().unwrap_or_else(|| Error::Unavailable(text.into())));
        }
        if engine.status().frames_waiting > before {
            return Ok(());
        }
        engine.prepare();
    }
    Err(Error::Unavailable("a call gets no place in the journal".into()))
}

fn poll(call: &mut Started) -> Poll<Result<Answer>> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}
