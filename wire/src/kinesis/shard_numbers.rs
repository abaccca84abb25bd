//! Numbers of single shards. They are counted while they are switched on for their stream, and `/metrics` shows them with
//! the labels `stream` and `shard`.

use std::time::Duration;

use anabranch_model::{Appended, Batch, Error, NewRecord, Record, ShardId, StreamName};
use metrics::{counter, gauge};

use super::settings::Settings;

/// What can be switched on, in the words of the service.
pub(super) const METRICS: &[&str] = &[
    INCOMING_BYTES,
    INCOMING_RECORDS,
    OUTGOING_BYTES,
    OUTGOING_RECORDS,
    WRITES_REFUSED,
    READS_REFUSED,
    ITERATOR_AGE,
];
const INCOMING_BYTES: &str = "IncomingBytes";
const INCOMING_RECORDS: &str = "IncomingRecords";
const OUTGOING_BYTES: &str = "OutgoingBytes";
const OUTGOING_RECORDS: &str = "OutgoingRecords";
const WRITES_REFUSED: &str = "WriteProvisionedThroughputExceeded";
const READS_REFUSED: &str = "ReadProvisionedThroughputExceeded";
const ITERATOR_AGE: &str = "IteratorAgeMilliseconds";

/// The numbers of the shards of one stream.
pub(super) struct ShardNumbers<'a> {
    stream: &'a StreamName,
    on: &'a [String],
}

impl<'a> ShardNumbers<'a> {
    /// Those that the settings of the stream switch on.
    pub(super) fn of(stream: &'a StreamName, settings: &'a Settings) -> Self {
        ShardNumbers { stream, on: &settings.metrics }
    }

    /// The sizes of records that are about to be put, if anybody wants to know them.
    pub(super) fn sizes(&self, records: &[NewRecord]) -> Vec<usize> {
        if self.on.is_empty() { Vec::new() } else { records.iter().map(NewRecord::size).collect() }
    }

    /// Records of these sizes were put.
    pub(super) fn have_put(&self, sizes: &[usize], results: &[Result<Appended, Error>]) {
        for (size, result) in sizes.iter().zip(results) {
            match result {
                Ok(Appended { shard, .. }) => {
                    self.add(INCOMING_RECORDS, "anabranch_kinesis_shard_incoming_records_total", shard, 1);
                    self.add(INCOMING_BYTES, "anabranch_kinesis_shard_incoming_bytes_total", shard, *size);
                }
                Err(Error::Throttled { shard, .. }) => {
                    self.add(WRITES_REFUSED, "anabranch_kinesis_shard_writes_refused_total", shard, 1);
                }
                Err(_) => {}
            }
        }
    }

    /// A batch was read.
    pub(super) fn have_read(&self, shard: &ShardId, batch: &Batch) {
        let (records, bytes) = (batch.records.len(), batch.records.iter().map(Record::size).sum());
        self.add(OUTGOING_RECORDS, "anabranch_kinesis_shard_outgoing_records_total", shard, records);
        self.add(OUTGOING_BYTES, "anabranch_kinesis_shard_outgoing_bytes_total", shard, bytes);
        self.set_age(shard, batch.behind);
    }

    /// A read was refused because there were too many.
    pub(super) fn have_refused_read(&self, shard: &ShardId) {
        self.add(READS_REFUSED, "anabranch_kinesis_shard_reads_refused_total", shard, 1);
    }

    fn add(&self, metric: &str, name: &'static str, shard: &ShardId, count: usize) {
        if self.is_on(metric) {
            counter!(name, &self.labels(shard)).increment(count as u64);
        }
    }

    fn set_age(&self, shard: &ShardId, behind: Duration) {
        if self.is_on(ITERATOR_AGE) {
            gauge!("anabranch_kinesis_shard_iterator_age_seconds", &self.labels(shard))
                .set(behind.as_secs_f64());
        }
    }

    fn is_on(&self, metric: &str) -> bool {
        self.on.iter().any(|on| on == metric)
    }

    fn labels(&self, shard: &ShardId) -> [(&'static str, String); 2] {
        [("stream", self.stream.to_string()), ("shard", shard.to_string())]
    }
}
