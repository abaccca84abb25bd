//! Everything that a store holds, as its readers see it.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_engine::Engine;
use anabranch_model::{
    HashKey, Next, Position, ReadLimit, Record, Result, SequenceNumber, Shard, ShardId, ShardSource,
    StreamName, StreamStore, Timestamp,
};

/// More pages and batches than any test has: beyond it a reading goes round in circles.
const STEPS_MAX: usize = 10_000;

/// All streams.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct World {
    pub streams: BTreeMap<StreamName, StreamState>,
}

/// One stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamState {
    pub created_at: Timestamp,
    pub retention: Duration,
    pub shards: BTreeMap<ShardId, ShardState>,
}

/// One shard with its records.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardState {
    pub listed: Shard,
    /// Where a reader goes on behind the last record.
    pub children: Vec<ShardId>,
    pub records: Vec<Record>,
}

impl World {
    /// Reads everything there is.
    pub async fn read(engine: &Engine) -> Result<World> {
        let mut world = World::default();
        let mut after = None;
        for _ in 0..STEPS_MAX {
            let page = engine.streams(after.as_ref(), 3).await?;
            for summary in page.entries {
                let shards = read_shards(engine, &summary.name).await?;
                let state =
                    StreamState { created_at: summary.created_at, retention: summary.retention, shards };
                after = Some(summary.name.clone());
                world.streams.insert(summary.name, state);
            }
            if !page.more {
                return Ok(world);
            }
        }
        panic!("a listing of streams does not end");
    }

    /// What is wrong with this world on its own, whatever was done to it.
    pub fn flaw(&self) -> Option<String> {
        self.streams
            .iter()
            .find_map(|(name, stream)| stream.flaw().map(|flaw| format!("stream {name}: {flaw}")))
    }

    /// The largest number of any record.
    pub fn last_number(&self) -> SequenceNumber {
        let shards = self.streams.values().flat_map(|stream| stream.shards.values());
        shards
            .filter_map(|shard| shard.records.last())
            .map(|record| record.sequence)
            .fold(SequenceNumber::MIN, SequenceNumber::max)
    }

    /// How many records there are.
    pub fn records(&self) -> usize {
        let shards = self.streams.values().flat_map(|stream| stream.shards.values());
        shards.map(|shard| shard.records.len()).sum()
    }

    /// The first difference to another world, in words.
    pub fn difference(&self, other: &World) -> Option<String> {
        let names = |world: &World| world.streams.keys().cloned().collect::<Vec<_>>();
        if names(self) != names(other) {
            return Some(format!("streams {:?}, not {:?}", names(self), names(other)));
        }
        self.streams.iter().find_map(|(name, stream)| {
            let difference = stream.difference(&other.streams[name]);
            difference.map(|text| format!("stream {name}: {text}"))
        })
    }
}

impl StreamState {
    /// The open shards in the order of their ranges.
    pub fn open(&self) -> Vec<&ShardState> {
        let mut open: Vec<_> = self.shards.values().filter(|shard| shard.listed.is_open()).collect();
        open.sort_by_key(|shard| shard.range_first());
        open
    }

    fn flaw(&self) -> Option<String> {
        let mut next = Some(HashKey::MIN);
        for shard in self.open() {
            let range = shard.listed.range?;
            if next != Some(range.first()) {
                return Some(format!("the open ranges have a gap or an overlap at {}", shard.listed.id));
            }
            next = range.last().get().checked_add(1).map(HashKey::new);
        }
        if next.is_some() {
            return Some("the open ranges do not reach the end".into());
        }
        self.shards.values().find_map(ShardState::flaw)
    }

    fn difference(&self, other: &StreamState) -> Option<String> {
        if (self.created_at, self.retention) != (other.created_at, other.retention) {
            return Some(format!(
                "made {:?} with retention {:?}, not {:?} with {:?}",
                self.created_at, self.retention, other.created_at, other.retention
            ));
        }
        let ids = |stream: &StreamState| stream.shards.keys().cloned().collect::<Vec<_>>();
        if ids(self) != ids(other) {
            return Some(format!("shards {:?}, not {:?}", ids(self), ids(other)));
        }
        self.shards
            .iter()
            .find_map(|(id, shard)| shard.difference(&other.shards[id]).map(|text| format!("{id}: {text}")))
    }
}

impl ShardState {
    pub fn range_first(&self) -> HashKey {
        self.listed.range.map_or(HashKey::MIN, |range| range.first())
    }

    fn flaw(&self) -> Option<String> {
        let pairs = self.records.windows(2);
        let disordered = pairs
            .into_iter()
            .find(|pair| pair[0].sequence >= pair[1].sequence || pair[0].arrival > pair[1].arrival);
        disordered.map(|pair| format!("{} stands before {}", pair[0].sequence, pair[1].sequence))
    }

    fn difference(&self, other: &ShardState) -> Option<String> {
        if (&self.listed, &self.children) != (&other.listed, &other.children) {
            return Some(format!(
                "{:?} and then {:?}, not {:?} and then {:?}",
                self.listed, self.children, other.listed, other.children
            ));
        }
        let (have, want) = (self.records.len(), other.records.len());
        let place = (0..have.max(want)).find(|&at| self.records.get(at) != other.records.get(at))?;
        let (have_at, want_at) = (self.records.get(place).map(brief), other.records.get(place).map(brief));
        Some(format!("{have} records, not {want}; at {place} stands {have_at:?}, not {want_at:?}"))
    }
}

/// A record for a message.
pub fn brief(record: &Record) -> String {
    let start: String = String::from_utf8_lossy(&record.data).chars().take(24).collect();
    let key = String::from_utf8_lossy(&record.partition_key);
    format!("{} at {:?} `{key}` `{start}` ({} bytes)", record.sequence, record.arrival, record.data.len())
}

async fn read_shards(engine: &Engine, stream: &StreamName) -> Result<BTreeMap<ShardId, ShardState>> {
    let (mut shards, mut after) = (BTreeMap::new(), None);
    for _ in 0..STEPS_MAX {
        let page = engine.shards(stream, after.as_ref(), 7).await?;
        for listed in page.entries {
            after = Some(listed.id.clone());
            let (records, children) = read_shard(engine, stream, &listed.id).await?;
            shards.insert(listed.id.clone(), ShardState { listed, children, records });
        }
        if !page.more {
            return Ok(shards);
        }
    }
    panic!("a listing of shards does not end");
}

/// All records of a shard, and the shards that continue it.
pub async fn read_shard(
    engine: &Engine,
    stream: &StreamName,
    shard: &ShardId,
) -> Result<(Vec<Record>, Vec<ShardId>)> {
    let (mut records, mut from) = (Vec::new(), Position::TrimHorizon);
    for _ in 0..STEPS_MAX {
        let batch = engine.read(stream, shard, from, ReadLimit::default()).await?;
        let caught_up = batch.records.is_empty();
        records.extend(batch.records);
        match batch.next {
            Next::Ended(children) => return Ok((records, children)),
            Next::At(_) if caught_up => return Ok((records, Vec::new())),
            Next::At(next) => from = next,
        }
    }
    panic!("a reading of {shard} does not end");
}
