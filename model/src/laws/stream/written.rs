//! Records as laws write them and compare them.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::{HashKey, NewRecord, PartitionKey, Record, SequenceNumber, ShardId};

/// A record that was acknowledged, and as what.
#[derive(Clone, Debug)]
pub(in crate::laws) struct Written {
    pub record: NewRecord,
    pub shard: ShardId,
    pub sequence: SequenceNumber,
}

/// What identifies a record to a law. The time of arrival is the store's business.
pub(super) type Gist = (SequenceNumber, PartitionKey, Bytes);

pub(super) fn gist(records: &[Record]) -> Vec<Gist> {
    records.iter().map(|r| (r.sequence, r.partition_key.clone(), r.data.clone())).collect()
}

pub(super) fn gist_written<'a>(written: impl IntoIterator<Item = &'a Written>) -> Vec<Gist> {
    let gist = |w: &Written| (w.sequence, w.record.partition_key.clone(), w.record.data.clone());
    written.into_iter().map(gist).collect()
}

/// Small records with a few different keys; each payload occurs once.
pub(super) fn some_records(label: &str, count: usize) -> Vec<NewRecord> {
    (0..count).map(|n| NewRecord::new(format!("key-{}", n % 7), format!("{label}-{n}"))).collect()
}

/// A record for the shard that owns `key`.
pub(super) fn placed(key: HashKey, data: impl Into<Bytes>) -> NewRecord {
    NewRecord { explicit_hash_key: Some(key), ..NewRecord::new("placed", data) }
}

/// What tasks of a law collect together.
#[derive(Clone, Default)]
pub(super) struct Notebook(Arc<Mutex<Vec<Written>>>);

impl Notebook {
    pub fn note(&self, written: impl IntoIterator<Item = Written>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(written);
    }

    pub fn all(&self) -> Vec<Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
