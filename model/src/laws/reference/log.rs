//! A stream of changes: one shard, from its beginning to its end.

use std::time::Duration;

use crate::{Batch, Next, Position, ReadLimit, Record, SequenceNumber, Shard, ShardId, TableName, Timestamp};

/// The records of one stream of changes.
#[derive(Clone, Debug)]
pub struct Log {
    table: TableName,
    shard: Shard,
    records: Vec<Record>,
    /// The last one that was forgotten.
    trimmed: Option<SequenceNumber>,
}

impl Log {
    pub fn new(table: TableName, number: SequenceNumber) -> Self {
        let shard = Shard {
            id: ShardId::numbered(0),
            parents: Vec::new(),
            range: None,
            starts_at: number,
            ends_before: None,
            closed_at: None,
        };
        Log { table, shard, records: Vec::new(), trimmed: None }
    }

    pub fn table(&self) -> &TableName {
        &self.table
    }

    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    pub fn append(&mut self, sequence: SequenceNumber, now: Timestamp, key: String, data: Vec<u8>) {
        let arrival = self.records.last().map_or(now, |last| now.max(last.arrival));
        self.records.push(Record { sequence, arrival, partition_key: key.into(), data: data.into() });
    }

    pub fn close(&mut self, number: SequenceNumber, now: Timestamp) {
        self.shard.ends_before = Some(number);
        self.shard.closed_at = Some(now);
    }

    /// Forgets records that arrived before a moment. Returns whether the stream is to be forgotten as well.
    pub fn trim(&mut self, horizon: Timestamp) -> bool {
        let gone = self.records.iter().rfind(|record| record.arrival < horizon);
        self.trimmed = gone.map(|record| record.sequence).or(self.trimmed);
        self.records.retain(|record| record.arrival >= horizon);
        self.shard.closed_at.is_some_and(|closed| closed < horizon)
    }

    pub fn trimmed(&self) -> Option<SequenceNumber> {
        self.trimmed
    }

    pub fn read(&self, from: Position, limit: ReadLimit) -> Batch {
        read(&self.records, &self.shard, Vec::new(), from, limit)
    }
}

/// Reads from the records of a shard, which `children` continue when it has ended.
pub(super) fn read(
    all: &[Record],
    shard: &Shard,
    children: Vec<ShardId>,
    from: Position,
    limit: ReadLimit,
) -> Batch {
    let start = match from {
        Position::TrimHorizon => 0,
        Position::Latest => all.len(),
        Position::At(number) => all.partition_point(|record| record.sequence < number),
        Position::After(number) => all.partition_point(|record| record.sequence <= number),
        Position::AtTimestamp(moment) => all.partition_point(|record| record.arrival < moment),
    };
    let (limit, mut bytes) = (limit.clamped(), 0);
    let within = |record: &&Record| {
        let room = bytes < limit.bytes;
        bytes += record.size();
        room
    };
    let records: Vec<_> = all[start..].iter().take(limit.records).take_while(within).cloned().collect();
    let end = start + records.len();
    let last_read = all[..end].last();
    let next = match last_read {
        _ if end == all.len() && !shard.is_open() => Next::Ended(children),
        Some(record) => Next::At(Position::After(record.sequence)),
        None => Next::At(Position::At(shard.starts_at)),
    };
    let behind = all.last().zip(last_read).map_or(Duration::ZERO, |(a, b)| a.arrival.since(b.arrival));
    Batch { records, next, behind }
}
