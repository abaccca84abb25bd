//! Streams of changes: records of what happened to the items of a table, written in the frame of the write itself.
//!
//! A stream has a fixed number of shards, chosen by the hash of an item's hash value, so that the changes of one item
//! stay in order. It ends when changes are turned off or its table is deleted, and is removed a day later.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anabranch_model::table::{Change, Key};
use anabranch_model::{
    Batch, Error, Follow, Next, Position, ReadLimit, Record, Result, SequenceNumber, Shard, ShardId,
    StreamName, TableName, Timestamp,
};
use bytes::Bytes;
use futures_util::stream;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use super::catalogue::damaged;
use super::layout::{BEGUN, ENDED, TABLE, TRIMMED, log_key, log_prefix, put_bytes, shard_prefix, take_bytes};
use crate::core::Core;
use crate::encoding::{Malformed, Put, Take};
use crate::rows::change::place;
use crate::rows::{self, Change as RowChange, Order, Snapshot, Space};
use crate::stream::records::{number, sequence};

/// Shards of a stream of changes.
pub const SHARDS: u8 = 4;

/// One stream of changes.
pub struct Log {
    /// Its name.
    pub name: StreamName,
    /// The owner of its records.
    pub number: u64,
    /// Whose changes they are. Of those that ended before that was written down nobody knows.
    table: OnceLock<TableName>,
    /// When the last record of each shard arrived, in the order of the journal, in milliseconds.
    pub arrivals: Mutex<[u64; SHARDS as usize]>,
    life: RwLock<Life>,
    /// The record that was removed last from each shard.
    trimmed: Mutex<[Option<Place>; SHARDS as usize]>,
    /// Told when there are new records, or the stream has ended.
    changed: Notify,
}

/// Where a record stands: the position of its frame, and its number there.
type Place = (u64, u16);

/// From where to where a stream goes: positions of the journal.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    begun: u64,
    /// In milliseconds.
    begun_at: u64,
    ended: Option<(u64, u64)>,
}

/// All streams of changes.
#[derive(Default)]
pub struct Logs {
    by_name: RwLock<BTreeMap<StreamName, Arc<Log>>>,
}

impl Log {
    /// A stream of a table that begins with the frame that is being written.
    pub fn new(number: u64, table: &TableName) -> Result<Log> {
        let log = Log::numbered(number)?;
        log.belongs_to(table);
        Ok(log)
    }

    fn numbered(number: u64) -> Result<Log> {
        let name = StreamName::new(&format!("changes-{number}"))?;
        Ok(Log {
            name,
            number,
            table: OnceLock::new(),
            arrivals: Mutex::default(),
            life: RwLock::default(),
            trimmed: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// The rows of a new stream.
    pub fn begin(&self, now: u64) -> Vec<RowChange> {
        self.life.write().begun_at = now;
        vec![RowChange::put(log_key(&self.name), self.number.to_le_bytes().to_vec()), self.marker(BEGUN, now)]
    }

    /// The rows of the end of a stream. The row of its table names it no more, so from now on it names the table.
    pub fn end(&self, now: u64) -> Vec<RowChange> {
        let named = self.table.get().map(|table| RowChange::put(self.table_key(), table.as_str().to_owned()));
        [self.marker(ENDED, now)].into_iter().chain(named).collect()
    }

    fn table_key(&self) -> Vec<u8> {
        place(&shard_prefix(self.number, TABLE), 0, 0)
    }

    /// Says whose changes they are.
    pub fn belongs_to(&self, table: &TableName) {
        // Nobody says it twice differently: a stream has one table.
        let _ = self.table.set(table.clone());
    }

    fn marker(&self, marker: u8, now: u64) -> RowChange {
        RowChange::put_placed(shard_prefix(self.number, marker), 0, now.to_le_bytes().to_vec())
    }

    /// The row of a change to the item with this key, which arrives now. It is the `index`th change of its frame. The
    /// caller holds the tally of the table until the frame has its place, so arrivals never decrease.
    pub fn record(&self, key: &Key, change: &Change, now: u64, index: u16) -> RowChange {
        let shard = shard_of(key);
        let mut arrivals = self.arrivals.lock();
        let arrival = now.max(arrivals[usize::from(shard)]);
        arrivals[usize::from(shard)] = arrival;
        drop(arrivals);
        let (text, data) = (key.hash.text(), change.encode());
        let mut value = Vec::with_capacity(16 + text.len() + data.len());
        value.put_u64(arrival);
        put_bytes(&mut value, text.as_bytes());
        value.put(&data);
        RowChange::put_placed(shard_prefix(self.number, shard), index, value)
    }

    /// Tells readers that the stream has begun.
    pub fn begun(&self, position: u64) {
        self.life.write().begun = position;
    }

    /// Tells readers that the stream has ended.
    pub fn ended(&self, position: u64, now: u64) {
        self.life.write().ended = Some((position, now));
        self.changed.notify_waiters();
    }

    /// Tells readers that there is more.
    pub fn grown(&self) {
        self.changed.notify_waiters();
    }

    /// When the stream began, in milliseconds.
    pub fn begun_at(&self) -> u64 {
        self.life.read().begun_at
    }

    /// When the stream ended, in milliseconds.
    pub fn ended_at(&self) -> Option<u64> {
        self.life.read().ended.map(|(_, time)| time)
    }

    /// The shards as a reader sees them.
    pub fn shards(&self) -> impl Iterator<Item = Shard> {
        let life = *self.life.read();
        (0..SHARDS).map(move |shard| Shard {
            id: ShardId::numbered(u64::from(shard)),
            parents: Vec::new(),
            range: None,
            starts_at: number(sequence(life.begun, 0)),
            ends_before: life.ended.map(|(position, _)| number(sequence(position, 0))),
            closed_at: life.ended.map(|(_, time)| Timestamp::from_millis(time)),
        })
    }

    fn trimmed_key(&self, shard: u8) -> Vec<u8> {
        place(&shard_prefix(self.number, TRIMMED), u64::from(shard), 0)
    }

    /// The record that was removed last from a shard.
    pub fn trimmed(&self, id: &ShardId) -> Result<Option<SequenceNumber>> {
        let trimmed = self.trimmed.lock()[usize::from(self.shard(id)?)];
        Ok(trimmed.map(|(position, index)| number(sequence(position, u32::from(index)))))
    }

    /// Tells readers what was removed last from a shard.
    pub fn show_trimmed(&self, removed: &Removed) {
        for (shard, last) in &removed.last {
            self.trimmed.lock()[usize::from(*shard)] = Some(*last);
        }
    }

    /// A record cannot be read. Those behind it can.
    fn damage(&self, shard: &ShardId, (position, index): Place) -> Error {
        metrics::counter!("anabranch_table_damaged_changes_total").increment(1);
        tracing::error!(stream = %self.name, %shard, position, index, "a change is damaged");
        let from = number(sequence(position, u32::from(index)));
        Error::Damaged { shard: shard.clone(), from, resume_at: from.next() }
    }

    fn shard(&self, id: &ShardId) -> Result<u8> {
        let shard = id.number().and_then(|number| u8::try_from(number).ok()).filter(|shard| *shard < SHARDS);
        shard.ok_or_else(|| Error::ShardNotFound(self.name.clone(), id.clone()))
    }
}

fn shard_of(key: &Key) -> u8 {
    (key.place() >> 62) as u8 % SHARDS
}

impl Logs {
    /// Reads all streams from their rows.
    pub fn load(rows: &Snapshot) -> Result<Logs> {
        let logs = Logs::default();
        let mut found = Vec::new();
        let bounds = [[Space::ChangeLogs as u8], [Space::ChangeLogs as u8 + 1]];
        rows.range(
            (Bound::Included(&bounds[0]), Bound::Excluded(&bounds[1])),
            Order::Forward,
            |_, value| {
                found.push(u64::from_le_bytes(value.try_into().map_err(|_| damaged("stream of changes"))?));
                Ok(ControlFlow::Continue(()))
            },
        )?;
        for number in found {
            let log = Log::numbered(number)?;
            log.load(rows)?;
            logs.show(Arc::new(log));
        }
        Ok(logs)
    }

    /// The stream with this name.
    pub fn log(&self, name: &StreamName) -> Result<Arc<Log>> {
        self.by_name.read().get(name).cloned().ok_or_else(|| Error::StreamNotFound(name.clone()))
    }

    /// The streams of a table, the oldest first.
    pub fn of_table(&self, table: &TableName) -> Vec<StreamName> {
        let mut logs = self.all();
        logs.retain(|log| log.table.get() == Some(table));
        logs.sort_by_key(|log| log.number);
        logs.into_iter().map(|log| log.name.clone()).collect()
    }

    /// All streams.
    pub fn all(&self) -> Vec<Arc<Log>> {
        self.by_name.read().values().cloned().collect()
    }

    /// Shows a stream to readers.
    pub fn show(&self, log: Arc<Log>) {
        self.by_name.write().insert(log.name.clone(), log);
    }

    /// Hides a stream from readers.
    pub fn hide(&self, log: &Log) {
        self.by_name.write().remove(&log.name);
        log.changed.notify_waiters();
    }
}

/// A record as its row has it.
struct Stored {
    arrival: u64,
    key: Bytes,
    data: Bytes,
}

impl Stored {
    fn decode(row: &[u8]) -> std::result::Result<Stored, Malformed> {
        let mut take = Take(row);
        let arrival = take.u64()?;
        let key = Bytes::copy_from_slice(take_bytes(&mut take)?);
        Ok(Stored { arrival, key, data: Bytes::copy_from_slice(take.0) })
    }
}

/// The position and the index behind the prefix of a row's key.
fn place_of(key: &[u8]) -> Option<Place> {
    let (rest, index) = key.split_last_chunk::<2>()?;
    let (_, position) = rest.split_last_chunk::<8>()?;
    Some((u64::from_be_bytes(*position), u16::from_be_bytes(*index)))
}

impl Log {
    fn load(&self, rows: &Snapshot) -> Result<()> {
        let mut life = Life::default();
        for marker in [BEGUN, ENDED] {
            let found = first(rows, &shard_prefix(self.number, marker), (0, 0), Order::Forward)?;
            let Some(((position, _), value)) = found else { continue };
            let time = value.as_ref().try_into().map(u64::from_le_bytes);
            let time = time.map_err(|_| damaged("stream of changes"))?;
            match marker {
                BEGUN => (life.begun, life.begun_at) = (position, time),
                _ => life.ended = Some((position, time)),
            }
        }
        *self.life.write() = life;
        if let Some(row) = rows.get(&self.table_key())? {
            let name = std::str::from_utf8(&row).ok().and_then(|name| TableName::new(name).ok());
            self.belongs_to(&name.ok_or_else(|| damaged("stream of changes"))?);
        }
        for shard in 0..SHARDS {
            if let Some(row) = rows.get(&self.trimmed_key(shard))? {
                let mut take = Take(&row);
                let (position, index) = (take.u64(), take.u32().map(u16::try_from));
                let (Ok(position), Ok(Ok(index))) = (position, index) else {
                    return Err(damaged("stream of changes"));
                };
                self.trimmed.lock()[usize::from(shard)] = Some((position, index));
            }
            let prefix = shard_prefix(self.number, shard);
            let last = first_readable(rows, &prefix, (u64::MAX, u16::MAX), Order::Backward)?;
            if let Some((_, stored)) = last {
                self.arrivals.lock()[usize::from(shard)] = stored.arrival;
            }
        }
        Ok(())
    }
}

/// The first row of a shard from a place on, in either direction.
fn first(rows: &Snapshot, prefix: &[u8], from: Place, order: Order) -> Result<Option<(Place, Bytes)>> {
    let mut found = None;
    each(rows, prefix, from, order, |place, value| {
        found = Some((place, Bytes::copy_from_slice(value)));
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// The first record of a shard from a place on, in either direction. What is damaged is passed over.
fn first_readable(
    rows: &Snapshot,
    prefix: &[u8],
    from: Place,
    order: Order,
) -> Result<Option<(Place, Stored)>> {
    let mut found = None;
    each(rows, prefix, from, order, |place, value| match Stored::decode(value) {
        Ok(stored) => {
            found = Some((place, stored));
            ControlFlow::Break(())
        }
        Err(_) => ControlFlow::Continue(()),
    })?;
    Ok(found)
}

/// Visits the rows of a shard from a place on, in either direction.
fn each(
    rows: &Snapshot,
    prefix: &[u8],
    from: Place,
    order: Order,
    mut visit: impl FnMut(Place, &[u8]) -> ControlFlow<()>,
) -> Result<()> {
    let (start, end) = (place(prefix, 0, 0), place(prefix, u64::MAX, u16::MAX));
    let at = place(prefix, from.0, from.1);
    let bounds = match order {
        Order::Forward => (Bound::Included(&at[..]), Bound::Included(&end[..])),
        Order::Backward => (Bound::Included(&start[..]), Bound::Included(&at[..])),
    };
    rows.range(bounds, order, |key, value| {
        let place = place_of(key).ok_or_else(|| damaged("change"))?;
        Ok(visit(place, value))
    })
}

impl Core {
    /// Reads a batch of a stream of changes.
    pub fn read_changes(
        &self,
        log: &Log,
        shard: &ShardId,
        from: Position,
        limit: ReadLimit,
    ) -> Result<Batch> {
        let number_of_shard = log.shard(shard)?;
        let prefix = shard_prefix(log.number, number_of_shard);
        // The end is looked at first: what is written between the two looks is read by the next call.
        let ended = log.life.read().ended.is_some();
        let position = self.published.lock().position;
        let rows = self.rows.snapshot()?;
        // What is trimmed is passed over, whatever the position.
        let trimmed = log.trimmed.lock()[usize::from(number_of_shard)];
        let horizon = trimmed.map_or((0, 0), |(position, index)| (position, index.saturating_add(1)));
        let start = resolve(&rows, &prefix, from, position)?.max(horizon);
        let limit = limit.clamped();
        let (mut records, mut bytes, mut more, mut unreadable) = (Vec::new(), 0, false, None);
        each(&rows, &prefix, start, Order::Forward, |(position, index), value| {
            if records.len() >= limit.records || (bytes >= limit.bytes && !records.is_empty()) {
                more = true;
                return ControlFlow::Break(());
            }
            let Ok(stored) = Stored::decode(value) else {
                (more, unreadable) = (true, Some((position, index)));
                return ControlFlow::Break(());
            };
            let record = Record {
                sequence: number(sequence(position, u32::from(index))),
                arrival: Timestamp::from_millis(stored.arrival),
                partition_key: stored.key.into(),
                data: stored.data,
            };
            bytes += record.size();
            records.push(record);
            ControlFlow::Continue(())
        })?;
        // What can be read in front of it is read first.
        if let (Some(place), true) = (unreadable, records.is_empty()) {
            return Err(log.damage(shard, place));
        }
        let next = match records.last() {
            _ if ended && !more => Next::Ended(Vec::new()),
            Some(last) => Next::At(Position::After(last.sequence)),
            None => Next::At(Position::At(number(sequence(start.0, u32::from(start.1))))),
        };
        let behind = match (more, records.last()) {
            (true, Some(read)) => behind(&rows, &prefix, read.arrival)?,
            _ => Duration::ZERO,
        };
        Ok(Batch { records, next, behind })
    }

    /// Reads a stream of changes and waits for more.
    pub fn follow_changes(
        self: &Arc<Self>,
        log: Arc<Log>,
        shard: &ShardId,
        from: Position,
    ) -> Result<Follow> {
        let first = self.read_changes(&log, shard, from, ReadLimit::default())?;
        let (core, shard, next) = (self.clone(), shard.clone(), first.next.clone());
        let rest = stream::unfold(Some(next), move |next| {
            let (core, log, shard) = (core.clone(), log.clone(), shard.clone());
            async move {
                let Next::At(position) = next? else { return None };
                let batch = core.next_changes(&log, &shard, position).await;
                let next = batch.as_ref().ok().map(|batch| batch.next.clone());
                Some((batch, next))
            }
        });
        Ok(Box::pin(stream::StreamExt::chain(stream::iter([Ok(first)]), rest)))
    }

    async fn next_changes(&self, log: &Log, shard: &ShardId, from: Position) -> Result<Batch> {
        loop {
            let mut told = std::pin::pin!(log.changed.notified());
            told.as_mut().enable();
            self.tables.logs.log(&log.name)?;
            let batch = self.read_changes(log, shard, from, ReadLimit::default())?;
            if !batch.records.is_empty() || matches!(batch.next, Next::Ended(_)) {
                return Ok(batch);
            }
            told.await;
        }
    }
}

/// The place of the first record that a position covers.
fn resolve(rows: &Snapshot, prefix: &[u8], from: Position, published: u64) -> Result<(u64, u16)> {
    let place = |sequence: u128| {
        let (position, index) = ((sequence >> 32) as u64, sequence as u32);
        u16::try_from(index).map_or((position + 1, 0), |index| (position, index))
    };
    let known = |sequence: SequenceNumber| sequence.as_u128().unwrap_or(u128::MAX >> 32);
    Ok(match from {
        Position::TrimHorizon => (0, 0),
        Position::Latest => (published, 0),
        Position::At(sequence) => place(known(sequence)),
        Position::After(sequence) => place(known(sequence).saturating_add(1)),
        Position::AtTimestamp(moment) => at_time(rows, prefix, moment.as_millis(), published)?,
    })
}

/// The first record that arrived at `time` or later, by halves: arrivals never decrease.
fn at_time(rows: &Snapshot, prefix: &[u8], time: u64, published: u64) -> Result<(u64, u16)> {
    let (mut low, mut high) = (0, published);
    while low < high {
        let middle = low + (high - low) / 2;
        match first_readable(rows, prefix, (middle, 0), Order::Forward)? {
            Some(((position, _), stored)) if stored.arrival < time => low = position + 1,
            Some(_) | None => high = middle,
        }
    }
    Ok((low, 0))
}

fn behind(rows: &Snapshot, prefix: &[u8], read: Timestamp) -> Result<Duration> {
    let last = first_readable(rows, prefix, (u64::MAX, u16::MAX), Order::Backward)?;
    Ok(last.map_or(Duration::ZERO, |(_, last)| Timestamp::from_millis(last.arrival).since(read)))
}

/// Records that are to be removed, and the last one of each shard among them.
pub struct Removed {
    keys: Vec<Bytes>,
    last: BTreeMap<u8, Place>,
}

impl Removed {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The rows that remove them, and say so.
    pub fn changes(&self, log: &Log) -> Vec<RowChange> {
        let said = self.last.iter().map(|(shard, (position, index))| {
            let mut value = Vec::with_capacity(12);
            value.put_u64(*position);
            value.put_u32(u32::from(*index));
            RowChange::put(log.trimmed_key(*shard), value)
        });
        self.keys.iter().cloned().map(RowChange::remove).chain(said).collect()
    }
}

/// Records of a stream that arrived before `time`, up to `count` of them. One whose arrival cannot be read goes with those
/// before it, or it would keep those behind it for ever.
pub fn expired(rows: &Snapshot, log: &Log, time: u64, count: usize) -> Result<Removed> {
    let mut removed = Removed { keys: Vec::new(), last: BTreeMap::new() };
    for shard in 0..SHARDS {
        let prefix = shard_prefix(log.number, shard);
        each(rows, &prefix, (0, 0), Order::Forward, |(position, index), value| {
            if Take(value).u64().is_ok_and(|arrival| arrival >= time) || removed.keys.len() >= count {
                return ControlFlow::Break(());
            }
            removed.last.insert(shard, (position, index));
            removed.keys.push(place(&prefix, position, index).into());
            ControlFlow::Continue(())
        })?;
    }
    Ok(removed)
}

/// The rows that remove a stream as a whole.
pub fn removal(log: &Log) -> [RowChange; 2] {
    [RowChange::remove(log_key(&log.name)), rows::bury(&log_prefix(log.number))]
}

#[cfg(test)]
mod tests;
