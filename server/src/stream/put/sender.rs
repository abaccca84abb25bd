//! Stores chunks one after the other and keeps count.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use anabranch_model::{Appended, Error, NewRecord, NextMove, ShardId, StreamName};
use anabranch_producer::{Lost, Producer, Settings, Why};
use serde::Serialize;

use super::input::Chunk;
use crate::failure::Failure;
use crate::patience::Patience;
use crate::quantity::{Size, counted};
use crate::stream::Session;

/// What was acknowledged so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stored {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

/// Stores the records of one command.
pub(super) struct Sender<'a> {
    session: &'a Session<'a>,
    name: &'a StreamName,
    started_at: Duration,
    stored: Stored,
    retries: u64,
    shards: HashSet<ShardId>,
    last: Option<Appended>,
    /// Packs records into aggregates, if that is wanted.
    aggregating: Option<Producer>,
}

/// Bytes of an aggregate, as the Kinesis Producer Library has them.
const AGGREGATE_BYTES: usize = 51_200;

/// A record that is not stored yet, with its place in the chunk.
type Pending = (usize, NewRecord);

impl<'a> Sender<'a> {
    pub(super) fn new(session: &'a Session<'a>, name: &'a StreamName) -> Self {
        Sender {
            session,
            name,
            started_at: session.clock.elapsed(),
            stored: Stored::default(),
            retries: 0,
            shards: HashSet::new(),
            last: None,
            aggregating: None,
        }
    }

    /// Packs small records of one shard into aggregates from now on.
    pub(super) async fn aggregate(&mut self) -> std::result::Result<(), Failure> {
        let settings = Settings { aggregate_bytes: Some(AGGREGATE_BYTES), ..Settings::default() };
        let (store, clock) = (self.session.stores.shared_streams()?, self.session.shared_clock.clone());
        self.aggregating = Some(Producer::start(store, self.name.clone(), clock, settings).await?);
        Ok(())
    }

    /// Stores a chunk as aggregates.
    async fn send_packed(&mut self, producer: &Producer, chunk: Chunk) -> std::result::Result<(), Failure> {
        let mut sent = Vec::with_capacity(chunk.records.len());
        for record in chunk.records {
            sent.push((record.clone(), producer.send(record).await?));
        }
        for (record, ticket) in sent {
            let stored = ticket.await.map_err(|lost| match lost {
                Lost::NotStored(Why::Refused(error)) | Lost::Unknown(Why::Refused(error)) => {
                    Failure::from(error)
                }
                lost => Failure::from(Error::Unavailable(lost.to_string())),
            })?;
            self.retries += u64::from(stored.attempts.saturating_sub(1));
            self.count(&record, Appended { shard: stored.shard, sequence: stored.sequence });
        }
        Ok(())
    }

    pub(super) fn stored(&self) -> Stored {
        self.stored
    }

    /// Stores a chunk. Records that the store refuses for now are sent again, the others are not.
    pub(super) async fn send(&mut self, chunk: Chunk) -> std::result::Result<(), Failure> {
        if let Some(producer) = self.aggregating.clone() {
            return self.send_packed(&producer, chunk).await;
        }
        let first_line = chunk.first_line;
        let failure = |(place, error): (usize, Error)| match first_line {
            Some(line) => Failure::from(error).at(format_args!("line {}", line + place as u64)),
            None => Failure::from(error),
        };
        let mut pending: Vec<Pending> = chunk.records.into_iter().enumerate().collect();
        let mut patience = Patience::new(self.session.clock);
        while let Some((first, _)) = pending.first() {
            let first = *first;
            let before = self.stored.records;
            let refusal = self.attempt(&mut pending).await.map_err(failure)?;
            if self.stored.records > before {
                patience.restore();
            }
            if let Some(error) = refusal {
                self.retries += 1;
                patience.wait(error).await.map_err(|error| failure((first, error)))?;
            }
        }
        Ok(())
    }

    /// Sends what may go of what is pending, and keeps what must be sent later. Returns why something is to be sent again, or
    /// the record that can never be stored.
    async fn attempt(
        &mut self,
        pending: &mut Vec<Pending>,
    ) -> std::result::Result<Option<Error>, (usize, Error)> {
        let (sent, mut kept) = self.next(std::mem::take(pending));
        let first = sent.first().map_or(0, |(place, _)| *place);
        let records = sent.iter().map(|(_, record)| record.clone()).collect();
        let (mut again, mut never) = (None, None);
        match self.session.store.append(self.name, records).await {
            Ok(results) => {
                for ((place, record), result) in sent.into_iter().zip(results) {
                    match result {
                        Ok(appended) => self.count(&record, appended),
                        Err(error) if error.next_move() == NextMove::Retry => {
                            kept.push((place, record));
                            again = Some(error);
                        }
                        Err(error) => never = never.or(Some((place, error))),
                    }
                }
            }
            Err(error) if error.next_move() == NextMove::Retry => {
                kept.extend(sent);
                again = Some(error);
            }
            Err(error) => never = Some((first, error)),
        }
        kept.sort_by_key(|(place, _)| *place);
        *pending = kept;
        never.map_or(Ok(again), Err)
    }

    /// What goes now and what later. A store that others share may refuse a record and take the one behind it, so the second
    /// record of a key waits for the first; an engine that this process has for itself refuses none for now.
    fn next(&self, pending: Vec<Pending>) -> (Vec<Pending>, Vec<Pending>) {
        if !self.session.shared {
            return (pending, Vec::new());
        }
        let mut keys = HashSet::new();
        pending.into_iter().partition(|(_, record)| keys.insert(record.partition_key.clone()))
    }

    fn count(&mut self, record: &NewRecord, appended: Appended) {
        self.stored.records += 1;
        self.stored.bytes += record.data.len() as u64;
        if !self.shards.contains(&appended.shard) {
            self.shards.insert(appended.shard.clone());
        }
        self.last = Some(appended);
    }

    pub(super) fn into_report(self) -> PutReport {
        let taken = self.session.clock.elapsed().saturating_sub(self.started_at);
        PutReport {
            stream: self.name.to_string(),
            records: self.stored.records,
            bytes: self.stored.bytes,
            shards: self.shards.len() as u64,
            retries: self.retries,
            elapsed_ms: u64::try_from(taken.as_millis()).unwrap_or(u64::MAX),
            last: self.last.map(|appended| Place {
                shard: appended.shard.to_string(),
                sequence: appended.sequence.to_string(),
            }),
        }
    }
}

/// What `stream put` says at the end.
#[derive(Debug, Serialize)]
pub(super) struct PutReport {
    stream: String,
    records: u64,
    bytes: u64,
    shards: u64,
    retries: u64,
    elapsed_ms: u64,
    last: Option<Place>,
}

#[derive(Debug, Serialize)]
struct Place {
    shard: String,
    sequence: String,
}

impl fmt::Display for PutReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = counted(self.records, "record");
        write!(f, "stored {records} ({}) in stream {}", Size(self.bytes), self.stream)?;
        match &self.last {
            Some(place) if self.records == 1 => {
                write!(f, ": shard {}, sequence {}", place.shard, place.sequence)
            }
            Some(_) => {
                let seconds = self.elapsed_ms as f64 / 1_000.0;
                write!(f, ": {}, {seconds:.1} s", counted(self.shards, "shard"))
            }
            None => Ok(()),
        }
    }
}
