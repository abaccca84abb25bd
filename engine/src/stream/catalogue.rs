//! Streams and shards, twice: as *accepted*, which is the order of the journal and decides what the next operation may
//! do, and as *visible*, which is what readers are shown and contains only what is durable.
//!
//! An operation is accepted under the lock of its stream, inside a turn of the journal, and yields an [`Effect`]; the
//! effect is applied to the visible side when its frame is durable. Recovery does both at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anabranch_model::{Error, HashKey, HashRange, Result, ShardId, StreamName};
use parking_lot::{Mutex, MutexGuard, RwLock};

use super::operation::{Operation, Trim};
use super::shard::{Log, Shard};
use crate::encoding::Malformed;
use crate::rows::write::Written;
use crate::state::{ClosedRow, ShardKey, StreamRow};

/// What happens to the visible side when a frame is durable.
pub enum Effect {
    /// A stream appears.
    Created(Arc<Stream>),
    /// A stream disappears.
    Deleted(Arc<Stream>),
    /// Shards are closed and others opened in their place.
    Resharded {
        /// Their stream.
        stream: Arc<Stream>,
        /// Parents.
        closed: Vec<Arc<Shard>>,
        /// Children.
        opened: Vec<Arc<Shard>>,
        /// When, in milliseconds.
        time: u64,
    },
    /// A stream keeps its records for another time.
    Retained(Arc<Stream>, u64),
    /// Records are trimmed, and closed shards with them.
    Trimmed(Vec<(Arc<Stream>, Arc<Shard>, Trim)>),
    /// Records were added to a shard.
    Appended {
        /// The shard.
        shard: Arc<Shard>,
        /// How many.
        count: u32,
        /// When they arrived.
        arrival: u64,
    },
    /// Rows were changed.
    Rows(Box<Written>),
    /// The cleaner wrote a frame of records again.
    Moved {
        /// The shard.
        shard: Arc<Shard>,
        /// What the numbers of its records derive from.
        origin: u64,
        /// How many.
        count: u32,
        /// When they arrived.
        arrival: u64,
    },
}

/// One stream.
pub struct Stream {
    /// The position of the frame that made it.
    pub id: u64,
    /// Its name.
    pub name: StreamName,
    /// When it was made, in milliseconds.
    pub created_at: u64,
    /// What operations are checked against.
    pub accepted: Mutex<Accepted>,
    /// What readers are shown.
    pub visible: RwLock<View>,
}

impl Stream {
    fn row(&self, view: &View) -> StreamRow {
        StreamRow {
            name: self.name.as_str().to_owned(),
            created_at: self.created_at,
            retention_ms: view.retention_ms,
            next_shard: view.next_shard,
        }
    }
}

/// A stream in the order of the journal.
pub struct Accepted {
    /// A delete has its place in the journal.
    pub deleted: bool,
    /// The open shards in the order of their ranges. Replaced, never changed: whoever holds an old one can tell.
    pub routes: Arc<Vec<Arc<Shard>>>,
    /// The number of the next shard.
    pub next_shard: u32,
}

impl Accepted {
    /// The index of the open shard that takes a key.
    pub fn route(routes: &[Arc<Shard>], key: HashKey) -> usize {
        routes.partition_point(|shard| shard.range.last() < key)
    }

    /// The index of an open shard, or why it has none.
    pub fn open_shard(&self, stream: &Stream, id: &ShardId) -> Result<usize> {
        if self.deleted {
            return Err(Error::StreamNotFound(stream.name.clone()));
        }
        if let Some(index) = self.routes.iter().position(|shard| shard.id == *id) {
            return Ok(index);
        }
        match id.number() {
            Some(number) if number < u64::from(self.next_shard) => Err(Error::ShardClosed(id.clone())),
            _ => Err(Error::ShardNotFound(stream.name.clone(), id.clone())),
        }
    }
}

/// A stream as readers see it.
pub struct View {
    /// How long records are kept, in milliseconds.
    pub retention_ms: u64,
    /// The number of the next shard.
    pub next_shard: u32,
    /// All shards by number.
    pub shards: BTreeMap<u32, Arc<Shard>>,
}

/// All streams.
#[derive(Default)]
pub struct Catalogue {
    /// In the order of the journal.
    pub accepted: Mutex<HashMap<StreamName, Arc<Stream>>>,
    visible: RwLock<Visible>,
    dirty: Mutex<Dirty>,
}

#[derive(Default)]
struct Visible {
    by_name: BTreeMap<StreamName, Arc<Stream>>,
    by_id: HashMap<u64, Arc<Stream>>,
}

/// What changed since the last checkpoint.
#[derive(Default)]
pub struct Dirty {
    /// Streams by identifier.
    pub streams: BTreeMap<u64, Option<StreamRow>>,
    /// Shards.
    pub shards: BTreeMap<ShardKey, Arc<Shard>>,
}

impl Catalogue {
    /// The visible stream of this name.
    pub fn stream(&self, name: &StreamName) -> Result<Arc<Stream>> {
        self.visible.read().by_name.get(name).cloned().ok_or_else(|| Error::StreamNotFound(name.clone()))
    }

    /// The visible shard of this name.
    pub fn shard(&self, name: &StreamName, id: &ShardId) -> Result<(Arc<Stream>, Arc<Shard>)> {
        let stream = self.stream(name)?;
        let shard = id.number().and_then(|number| u32::try_from(number).ok());
        let shard = shard.and_then(|number| stream.visible.read().shards.get(&number).cloned());
        match shard {
            Some(shard) => Ok((stream, shard)),
            None => Err(Error::ShardNotFound(name.clone(), id.clone())),
        }
    }

    /// The visible shard with this key.
    pub fn shard_by_key(&self, key: ShardKey) -> Option<(Arc<Stream>, Arc<Shard>)> {
        let stream = self.visible.read().by_id.get(&key.stream).cloned()?;
        let shard = stream.visible.read().shards.get(&key.number).cloned()?;
        Some((stream, shard))
    }

    /// Visible streams in the order of their names, those behind `after`.
    pub fn streams(&self, after: Option<&StreamName>, limit: usize) -> (Vec<Arc<Stream>>, bool) {
        let visible = self.visible.read();
        let mut behind: Box<dyn Iterator<Item = &Arc<Stream>>> = match after {
            Some(after) => Box::new(
                visible
                    .by_name
                    .range::<StreamName, _>((std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded))
                    .map(|(_, stream)| stream),
            ),
            None => Box::new(visible.by_name.values()),
        };
        let page = behind.by_ref().take(limit).cloned().collect();
        (page, behind.next().is_some())
    }

    /// Takes the list of changes; collecting them is up to the caller.
    pub fn take_dirty(&self) -> Dirty {
        std::mem::take(&mut *self.dirty.lock())
    }

    /// Whether anything waits for a checkpoint.
    pub fn is_dirty(&self) -> bool {
        let dirty = self.dirty.lock();
        !dirty.streams.is_empty() || !dirty.shards.is_empty()
    }

    /// Remembers that a shard changed.
    pub fn mark(&self, shard: &Arc<Shard>) {
        self.mark_locked(shard, shard.log());
    }

    /// The same for whoever has the lock of the shard already.
    pub fn mark_locked(&self, shard: &Arc<Shard>, mut log: MutexGuard<'_, Log>) {
        if !log.dirty {
            log.dirty = true;
            drop(log);
            self.dirty.lock().shards.insert(shard.key, shard.clone());
        }
    }

    fn mark_stream(&self, stream: &Arc<Stream>, view: &View) {
        self.dirty.lock().streams.insert(stream.id, Some(stream.row(view)));
    }

    /// The rows of all visible streams, in the order of their names: the same state has the same bytes.
    pub fn all_rows(&self) -> Vec<(u64, StreamRow)> {
        let visible = self.visible.read();
        visible.by_name.values().map(|stream| (stream.id, stream.row(&stream.visible.read()))).collect()
    }

    /// Adds a stream that the state has.
    pub fn load(&self, id: u64, row: StreamRow, shards: Vec<Arc<Shard>>) -> Result<()> {
        let open = shards.iter().filter(|shard| shard.log().closed.is_none()).cloned().collect();
        let stream = Arc::new(Stream {
            id,
            name: StreamName::new(&row.name)?,
            created_at: row.created_at,
            accepted: Mutex::new(Accepted {
                deleted: false,
                routes: routes(open),
                next_shard: row.next_shard,
            }),
            visible: RwLock::new(View {
                retention_ms: row.retention_ms,
                next_shard: row.next_shard,
                shards: shards.into_iter().map(|shard| (shard.key.number, shard)).collect(),
            }),
        });
        self.accepted.lock().insert(stream.name.clone(), stream.clone());
        self.show(stream);
        Ok(())
    }

    fn show(&self, stream: Arc<Stream>) {
        let mut visible = self.visible.write();
        visible.by_id.insert(stream.id, stream.clone());
        visible.by_name.insert(stream.name.clone(), stream);
    }

    /// Applies an effect that is not about records to the visible side.
    pub fn publish(&self, effect: Effect) {
        match effect {
            Effect::Created(stream) => {
                self.mark_stream(&stream, &stream.visible.read());
                stream.visible.read().shards.values().for_each(|shard| self.mark(shard));
                self.show(stream);
            }
            Effect::Deleted(stream) => {
                self.hide(&stream);
                self.dirty.lock().streams.insert(stream.id, None);
                stream.visible.read().shards.values().for_each(|shard| self.doom(shard));
            }
            Effect::Resharded { stream, closed, opened, time } => {
                self.publish_resharding(&stream, closed, opened, time);
            }
            Effect::Retained(stream, retention_ms) => {
                let mut view = stream.visible.write();
                view.retention_ms = retention_ms;
                self.mark_stream(&stream, &view);
            }
            Effect::Trimmed(trims) => {
                for (stream, shard, trim) in trims {
                    shard.log().horizon = trim.horizon;
                    if trim.gone {
                        stream.visible.write().shards.remove(&trim.shard.number);
                        self.doom(&shard);
                    }
                    self.mark(&shard);
                }
            }
            Effect::Appended { .. } | Effect::Moved { .. } | Effect::Rows(_) => {
                unreachable!("records and rows are published by `stream::publish`")
            }
        }
    }

    fn hide(&self, stream: &Arc<Stream>) {
        let mut visible = self.visible.write();
        visible.by_id.remove(&stream.id);
        // A younger stream may have the name already, if recovery shows it before this one goes.
        if visible.by_name.get(&stream.name).is_some_and(|other| other.id == stream.id) {
            visible.by_name.remove(&stream.name);
        }
    }

    fn doom(&self, shard: &Arc<Shard>) {
        let mut log = shard.log();
        log.doomed = true;
        log.followers.drain(..).for_each(|follower| follower.wake());
        drop(log);
        self.mark(shard);
    }

    fn publish_resharding(
        &self,
        stream: &Arc<Stream>,
        closed: Vec<Arc<Shard>>,
        opened: Vec<Arc<Shard>>,
        time: u64,
    ) {
        let children: Vec<u32> = opened.iter().map(|shard| shard.key.number).collect();
        let mut view = stream.visible.write();
        for shard in &opened {
            view.next_shard = view.next_shard.max(shard.key.number + 1);
            view.shards.insert(shard.key.number, shard.clone());
            self.mark(shard);
        }
        for shard in &closed {
            let mut log = shard.log();
            log.closed = Some(ClosedRow { position: opened[0].opened, time, children: children.clone() });
            log.followers.iter().for_each(|follower| follower.wake());
            drop(log);
            self.mark(shard);
        }
        self.mark_stream(stream, &view);
    }

    /// Accepts and publishes an operation that recovery finds in the journal.
    pub fn replay(&self, operation: Operation, position: u64) -> std::result::Result<(), Malformed> {
        let effect = match operation {
            Operation::Create { name, created_at, retention_ms, ranges } => {
                let name = StreamName::new(&name).map_err(|_| Malformed)?;
                accept_create(&mut self.accepted.lock(), &name, created_at, retention_ms, &ranges, position)
            }
            Operation::Delete { stream } => {
                let stream = self.by_id(stream)?;
                accept_delete(&mut self.accepted.lock(), &stream)
            }
            Operation::Split { shard, at, children, time } => {
                let stream = self.by_id(shard.stream)?;
                let mut accepted = stream.accepted.lock();
                let index = accepted.routes.iter().position(|s| s.key == shard).ok_or(Malformed)?;
                let ranges = accepted.routes[index].range.split_at(at).map_err(|_| Malformed)?;
                accept_split(&stream, &mut accepted, index, ranges, children, time, position)
            }
            Operation::Merge { stream, parents, child, time } => {
                let stream = self.by_id(stream)?;
                let mut accepted = stream.accepted.lock();
                let lower =
                    accepted.routes.iter().position(|s| s.key.number == parents[0]).ok_or(Malformed)?;
                accept_merge(&stream, &mut accepted, lower, child, time, position)
            }
            Operation::Retain { stream, retention_ms } => Effect::Retained(self.by_id(stream)?, retention_ms),
            Operation::Trim(trims) => Effect::Trimmed(self.resolve(trims)),
        };
        self.publish(effect);
        Ok(())
    }

    /// The shards of these trims; those that are gone meanwhile are left out.
    pub fn resolve(&self, trims: Vec<Trim>) -> Vec<(Arc<Stream>, Arc<Shard>, Trim)> {
        let shard = |trim: Trim| self.shard_by_key(trim.shard).map(|(stream, shard)| (stream, shard, trim));
        trims.into_iter().filter_map(shard).collect()
    }

    fn by_id(&self, id: u64) -> std::result::Result<Arc<Stream>, Malformed> {
        self.visible.read().by_id.get(&id).cloned().ok_or(Malformed)
    }

    /// Every visible shard with its stream.
    pub fn all_shards(&self) -> Vec<(Arc<Stream>, Arc<Shard>)> {
        let streams: Vec<_> = self.visible.read().by_name.values().cloned().collect();
        let shards = |stream: Arc<Stream>| {
            let shards: Vec<_> = stream.visible.read().shards.values().cloned().collect();
            shards.into_iter().map(move |shard| (stream.clone(), shard))
        };
        streams.into_iter().flat_map(shards).collect()
    }
}

/// Accepts a new stream.
pub fn accept_create(
    names: &mut HashMap<StreamName, Arc<Stream>>,
    name: &StreamName,
    created_at: u64,
    retention_ms: u64,
    ranges: &[HashRange],
    position: u64,
) -> Effect {
    let shard = |(number, range): (usize, &HashRange)| {
        let key = ShardKey { stream: position, number: number as u32 };
        Arc::new(Shard::new(key, *range, Vec::new(), position, created_at))
    };
    let shards: Vec<Arc<Shard>> = ranges.iter().enumerate().map(shard).collect();
    let next_shard = shards.len() as u32;
    let stream = Arc::new(Stream {
        id: position,
        name: name.clone(),
        created_at,
        accepted: Mutex::new(Accepted { deleted: false, routes: routes(shards.clone()), next_shard }),
        visible: RwLock::new(View {
            retention_ms,
            next_shard,
            shards: shards.into_iter().map(|shard| (shard.key.number, shard)).collect(),
        }),
    });
    names.insert(name.clone(), stream.clone());
    Effect::Created(stream)
}

/// Accepts the deletion of a stream.
pub fn accept_delete(names: &mut HashMap<StreamName, Arc<Stream>>, stream: &Arc<Stream>) -> Effect {
    stream.accepted.lock().deleted = true;
    if names.get(&stream.name).is_some_and(|other| other.id == stream.id) {
        names.remove(&stream.name);
    }
    Effect::Deleted(stream.clone())
}

/// Accepts a split of the open shard at `index`.
pub fn accept_split(
    stream: &Arc<Stream>,
    accepted: &mut Accepted,
    index: usize,
    ranges: [HashRange; 2],
    children: [u32; 2],
    time: u64,
    position: u64,
) -> Effect {
    let parent = accepted.routes[index].clone();
    let opened: Vec<Arc<Shard>> = ranges
        .into_iter()
        .zip(children)
        .map(|(range, number)| child(stream, number, range, std::slice::from_ref(&parent), time, position))
        .collect();
    replace(accepted, index..index + 1, &opened);
    Effect::Resharded { stream: stream.clone(), closed: vec![parent], opened, time }
}

/// Accepts a merge of the open shard at `lower` with the one above it.
pub fn accept_merge(
    stream: &Arc<Stream>,
    accepted: &mut Accepted,
    lower: usize,
    number: u32,
    time: u64,
    position: u64,
) -> Effect {
    let closed = accepted.routes[lower..lower + 2].to_vec();
    let range = closed[0].range.merge(closed[1].range).expect("shards that follow each other are neighbours");
    let opened = vec![child(stream, number, range, &closed, time, position)];
    replace(accepted, lower..lower + 2, &opened);
    Effect::Resharded { stream: stream.clone(), closed, opened, time }
}

fn child(
    stream: &Stream,
    number: u32,
    range: HashRange,
    parents: &[Arc<Shard>],
    time: u64,
    position: u64,
) -> Arc<Shard> {
    let numbers = parents.iter().map(|parent| parent.key.number).collect();
    // A child never gives an earlier arrival than its parents did, so that time goes forward along the lineage.
    let arrival = parents.iter().map(|parent| *parent.arrival_accepted.lock()).fold(time, u64::max);
    Arc::new(Shard::new(ShardKey { stream: stream.id, number }, range, numbers, position, arrival))
}

fn replace(accepted: &mut Accepted, closed: std::ops::Range<usize>, opened: &[Arc<Shard>]) {
    let mut open = accepted.routes.to_vec();
    open.splice(closed, opened.iter().cloned());
    accepted.next_shard = opened.iter().map(|shard| shard.key.number + 1).fold(accepted.next_shard, u32::max);
    accepted.routes = routes(open);
}

fn routes(mut open: Vec<Arc<Shard>>) -> Arc<Vec<Arc<Shard>>> {
    open.sort_by_key(|shard| shard.range.first());
    Arc::new(open)
}
