//! A lease as an item of the table. Attributes that are not known here stay as they are: a lease is made once as a
//! whole and from then on only updated.

use anabranch_model::table::{Item, Number, Value};
use anabranch_model::{Error, HashKey, HashRange, ShardId, StreamName, Timestamp};
use smol_str::SmolStr;

use super::checkpoint::Checkpoint;
use super::layout::Layout;

pub(crate) const LEASE_KEY: &str = "leaseKey";
pub(crate) const OWNER: &str = "leaseOwner";
pub(crate) const COUNTER: &str = "leaseCounter";
pub(crate) const CHECKPOINT: &str = "checkpoint";
pub(crate) const SUB_SEQUENCE: &str = "checkpointSubSequenceNumber";
pub(crate) const OWNER_SWITCHES: &str = "ownerSwitchesSinceCheckpoint";
pub(crate) const PARENTS: &str = "parentShardId";
pub(crate) const CHILDREN: &str = "childShardIds";
pub(crate) const FIRST_HASH_KEY: &str = "startingHashKey";
pub(crate) const LAST_HASH_KEY: &str = "endingHashKey";
pub(crate) const THROUGHPUT: &str = "throughputKBps";
pub(crate) const CHECKPOINT_OWNER: &str = "checkpointOwner";
pub(crate) const PENDING: &str = "pendingCheckpoint";
pub(crate) const PENDING_SUB_SEQUENCE: &str = "pendingCheckpointSubSequenceNumber";
pub(crate) const PENDING_STATE: &str = "pendingCheckpointState";
pub(crate) const ENTITY: &str = "entityType";
pub(crate) const STREAM: &str = "streamName";
pub(crate) const SHARD: &str = "shardId";
/// Ours; the client library leaves it alone.
pub(crate) const LATEST_SINCE: &str = "latestSinceMillis";

/// What `entityType` says of a lease. Without the attribute an item is one too.
pub(crate) const ENTITY_LEASE: &str = "LEASE";

/// A lease as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    /// The shard, or stream and shard where an application reads several streams.
    pub key: SmolStr,
    /// Who reads the shard; during a handoff, who reads it next.
    pub owner: Option<SmolStr>,
    /// It grows with each write of an owner.
    pub counter: u64,
    /// How far the shard is processed.
    pub checkpoint: Checkpoint,
    /// How often the owner changed since the last checkpoint.
    pub owner_switches: u64,
    /// The shards that this one continues.
    pub parents: Vec<ShardId>,
    /// The shards that continue this one; known at its end.
    pub children: Vec<ShardId>,
    /// The keys that the shard takes, if it has any.
    pub range: Option<HashRange>,
    /// Kilobytes a second, as its owner measured.
    pub throughput_kbps: f64,
    /// Who still reads the shard during a handoff.
    pub checkpoint_owner: Option<SmolStr>,
    /// The stream, where an application reads several: `account:name:epoch`.
    pub stream: Option<SmolStr>,
    /// The moment that `LATEST` stands for, where the source has no number for the end of a shard: nothing arrived
    /// between it and the look at the end.
    pub latest_since: Option<Timestamp>,
}

impl Lease {
    /// A lease that nobody has had yet.
    pub fn new(key: impl Into<SmolStr>, checkpoint: Checkpoint) -> Self {
        Lease {
            key: key.into(),
            owner: None,
            counter: 0,
            checkpoint,
            owner_switches: 0,
            parents: Vec::new(),
            children: Vec::new(),
            range: None,
            throughput_kbps: 0.0,
            checkpoint_owner: None,
            stream: None,
            latest_since: None,
        }
    }

    /// Who reads the shard now.
    pub fn reader(&self) -> Option<&SmolStr> {
        self.checkpoint_owner.as_ref().or(self.owner.as_ref())
    }

    /// Whether nothing of the shard is processed, although it begins with its oldest records: its parents come first.
    pub(crate) fn is_untouched(&self) -> bool {
        self.checkpoint <= Checkpoint::TrimHorizon
    }

    /// The key of the lease of another shard of the same stream.
    pub(crate) fn key_beside(&self, shard: &ShardId) -> SmolStr {
        match &self.stream {
            Some(stream) => format!("{stream}:{shard}").into(),
            None => shard.as_str().into(),
        }
    }

    /// The shard: what stands behind the stream in the key.
    pub fn shard(&self) -> &str {
        match &self.stream {
            Some(stream) => self.key.strip_prefix(stream.as_str()).map_or(&self.key, |rest| &rest[1..]),
            None => &self.key,
        }
    }

    /// The name of the stream, where an application reads several; the lease of an only stream does not say it.
    pub fn stream_name(&self) -> Option<StreamName> {
        let mut parts = self.stream.as_deref()?.split(':');
        StreamName::new(parts.nth(1)?).ok()
    }

    /// The lease that an item holds; none if it holds something else.
    pub fn read(item: &Item) -> Result<Option<Self>, Error> {
        if text(item, ENTITY)?.is_some_and(|entity| entity != ENTITY_LEASE) {
            return Ok(None);
        }
        let (Some(key), Some(checkpoint)) = (text(item, LEASE_KEY)?, text(item, CHECKPOINT)?) else {
            return Ok(None);
        };
        let range = match (text(item, FIRST_HASH_KEY)?, text(item, LAST_HASH_KEY)?) {
            (Some(first), Some(last)) => {
                Some(HashRange::new(first.parse::<HashKey>()?, last.parse::<HashKey>()?)?)
            }
            _ => None,
        };
        let checkpoint = Checkpoint::parse(checkpoint, whole(item, SUB_SEQUENCE)?)?;
        Ok(Some(Lease {
            key: key.into(),
            owner: text(item, OWNER)?.map(SmolStr::from),
            counter: whole(item, COUNTER)?,
            checkpoint,
            owner_switches: whole(item, OWNER_SWITCHES)?,
            parents: shards(item, PARENTS)?,
            children: shards(item, CHILDREN)?,
            range,
            throughput_kbps: decimal(item, THROUGHPUT)?,
            checkpoint_owner: text(item, CHECKPOINT_OWNER)?.map(SmolStr::from),
            stream: text(item, STREAM)?.map(SmolStr::from),
            latest_since: moment(item, LATEST_SINCE)?,
        }))
    }

    /// The item of a lease that is made.
    pub fn item(&self, layout: Layout) -> Item {
        let mut item = Item::new()
            .with(LEASE_KEY, self.key.as_str())
            .with(COUNTER, self.counter)
            .with(CHECKPOINT, self.checkpoint.text())
            .with(SUB_SEQUENCE, self.checkpoint.sub_sequence())
            .with(OWNER_SWITCHES, self.owner_switches);
        for (name, ids) in [(PARENTS, &self.parents), (CHILDREN, &self.children)] {
            if let Some(set) = shard_set(ids) {
                item.insert(name, set);
            }
        }
        if let Some(range) = self.range {
            item.insert(FIRST_HASH_KEY, range.first().to_string());
            item.insert(LAST_HASH_KEY, range.last().to_string());
        }
        for (name, text) in [(OWNER, &self.owner), (CHECKPOINT_OWNER, &self.checkpoint_owner)] {
            if let Some(text) = text {
                item.insert(name, text.as_str());
            }
        }
        if let Some(stream) = &self.stream {
            item.insert(STREAM, stream.as_str());
            item.insert(SHARD, self.shard());
        }
        if let Some(moment) = self.latest_since {
            item.insert(LATEST_SINCE, moment.as_millis());
        }
        if layout == Layout::One {
            item.insert(ENTITY, ENTITY_LEASE);
        }
        item
    }
}

/// A set of shards as a value; none without any, for a set cannot be empty.
pub(crate) fn shard_set(ids: &[ShardId]) -> Option<Value> {
    Value::text_set(ids.iter().map(|id| id.as_str())).ok()
}

/// Kilobytes a second as the table holds them, to six places.
pub(crate) fn throughput(kbps: f64) -> Number {
    let text = format!("{:.6}", if kbps.is_finite() { kbps.clamp(0.0, 1e12) } else { 0.0 });
    text.parse().unwrap_or(Number::ZERO)
}

pub(crate) fn text<'a>(item: &'a Item, name: &str) -> Result<Option<&'a str>, Error> {
    match item.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text)),
        Some(_) => Err(strange(item, name, "a text")),
    }
}

pub(crate) fn whole(item: &Item, name: &str) -> Result<u64, Error> {
    match item.get(name) {
        None => Ok(0),
        Some(Value::Number(number)) => number
            .as_i128()
            .and_then(|number| u64::try_from(number).ok())
            .ok_or_else(|| strange(item, name, "a whole number")),
        Some(_) => Err(strange(item, name, "a number")),
    }
}

fn moment(item: &Item, name: &str) -> Result<Option<Timestamp>, Error> {
    item.get(name).map(|_| whole(item, name).map(Timestamp::from_millis)).transpose()
}

fn decimal(item: &Item, name: &str) -> Result<f64, Error> {
    match item.get(name) {
        None => Ok(0.0),
        Some(Value::Number(number)) => Ok(number.to_string().parse().unwrap_or(0.0)),
        Some(_) => Err(strange(item, name, "a number")),
    }
}

fn shards(item: &Item, name: &str) -> Result<Vec<ShardId>, Error> {
    match item.get(name) {
        None => Ok(Vec::new()),
        Some(Value::TextSet(ids)) => ids.iter().map(|id| ShardId::new(id)).collect(),
        Some(_) => Err(strange(item, name, "a set of texts")),
    }
}

fn strange(item: &Item, name: &str, expected: &str) -> Error {
    let key = item.get(LEASE_KEY).map(|key| format!("{key:?}")).unwrap_or_default();
    Error::Invalid(format!("attribute `{name}` of lease {key} is not {expected}"))
}
