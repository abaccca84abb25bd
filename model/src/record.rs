//! What goes in and what comes out.

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::hash_key::HashKey;
use crate::limits::{PARTITION_KEY_CHARS_MAX, RECORD_BYTES_MAX};
use crate::partition_key::PartitionKey;
use crate::sequence::SequenceNumber;

/// A record that a writer hands over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    /// UTF-8; records with one key stay in order.
    pub partition_key: PartitionKey,
    /// Chooses the shard in place of the hash of the partition key.
    pub explicit_hash_key: Option<HashKey>,
    /// The payload.
    pub data: Bytes,
}

impl NewRecord {
    /// A record that the hash of its partition key sends to a shard.
    pub fn new(partition_key: impl Into<PartitionKey>, data: impl Into<Bytes>) -> Self {
        NewRecord { partition_key: partition_key.into(), explicit_hash_key: None, data: data.into() }
    }

    /// The place of this record in the hash-key space.
    pub fn hash_key(&self) -> HashKey {
        self.explicit_hash_key.unwrap_or_else(|| HashKey::of(&self.partition_key))
    }

    /// The places of many records, in their order.
    pub fn hash_keys<'a>(records: impl ExactSizeIterator<Item = &'a NewRecord> + Clone) -> Vec<HashKey> {
        if records.clone().all(|record| record.explicit_hash_key.is_none()) {
            return HashKey::of_each(records.map(|record| &record.partition_key[..]));
        }
        records.map(NewRecord::hash_key).collect()
    }

    /// What counts against limits of size: key and payload.
    pub fn size(&self) -> usize {
        self.partition_key.len() + self.data.len()
    }

    /// Whether a store may take this record, wherever it goes.
    pub fn check(&self) -> Result<()> {
        let key = std::str::from_utf8(&self.partition_key).map_err(|error| {
            Error::Invalid(format!("partition key is not UTF-8: byte {} is wrong", error.valid_up_to()))
        })?;
        // There are no more characters than bytes, and few keys are long.
        let chars = if key.len() > PARTITION_KEY_CHARS_MAX { key.chars().count() } else { key.len() };
        if chars == 0 || chars > PARTITION_KEY_CHARS_MAX {
            return Err(Error::Invalid(format!(
                "partition key has {chars} characters: 1 to {PARTITION_KEY_CHARS_MAX} are allowed"
            )));
        }
        let bytes = self.data.len();
        if bytes > RECORD_BYTES_MAX {
            return Err(Error::Invalid(format!(
                "record has {bytes} bytes of data: at most {RECORD_BYTES_MAX} are allowed"
            )));
        }
        Ok(())
    }
}

/// A record that a reader gets. The payload is a slice of the buffer that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its place in the shard.
    pub sequence: SequenceNumber,
    /// When the store took it; never decreasing within a shard.
    pub arrival: Timestamp,
    /// UTF-8.
    pub partition_key: PartitionKey,
    /// The payload.
    pub data: Bytes,
}

impl Record {
    /// What counts against limits of size: key and payload.
    pub fn size(&self) -> usize {
        self.partition_key.len() + self.data.len()
    }
}
