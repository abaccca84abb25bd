//! Copies records out of memory that the source only lends.
//!
//! A store that lends has little to lend, and whoever holds a record holds a part of it. Nobody knows how long a processor takes,
//! so nothing that is lent is given to one: what it holds is the memory of this worker, which is limited by itself.

use bytes::Bytes;

use crate::delivery::Received;

/// Bytes of small records that share a copy. They stay together until the last of them is dropped, so it is not much.
const SHARED_BYTES: usize = 16 << 10;

/// Makes the records independent of whoever lent them.
pub(super) fn keep(mut records: &mut [Received]) {
    while !records.is_empty() {
        let mut bytes = 0;
        let fits = |record: &&Received| {
            bytes += record.size();
            bytes <= SHARED_BYTES
        };
        let count = records.iter().take_while(fits).count().max(1);
        let (together, rest) = records.split_at_mut(count);
        copy(together);
        records = rest;
    }
}

fn copy(records: &mut [Received]) {
    let mut copy = Vec::with_capacity(records.iter().map(|record| record.data.len()).sum());
    for record in records.iter() {
        copy.extend_from_slice(&record.data);
    }
    let mut copy = Bytes::from(copy);
    for record in records {
        // Short keys lie in their records; a long one becomes bytes of its own.
        record.partition_key = record.partition_key[..].into();
        record.data = copy.split_to(record.data.len());
    }
}

#[cfg(test)]
mod tests {
    use anabranch_model::{SequenceNumber, Timestamp};

    use super::*;

    #[test]
    fn copies_are_equal_and_their_own() {
        let sizes = [0, 5, SHARED_BYTES - 20, 1, SHARED_BYTES + 1, 0, SHARED_BYTES, 7, 7];
        let record = |(number, size): (usize, usize)| Received {
            sequence: SequenceNumber::from_u128(number as u128),
            sub_sequence: 0,
            arrival: Timestamp::EPOCH,
            partition_key: format!("key-{number}").into(),
            explicit_hash_key: None,
            data: vec![number as u8; size].into(),
            attempt: 1,
            seat: None,
        };
        let lent: Vec<_> = sizes.into_iter().enumerate().map(record).collect();
        let mut kept = lent.clone();
        keep(&mut kept);
        for (lent, kept) in lent.iter().zip(&kept) {
            assert_eq!((&lent.partition_key, &lent.data), (&kept.partition_key, &kept.data));
            assert_ne!(lent.partition_key.as_ptr(), kept.partition_key.as_ptr());
        }
        keep(&mut []);
    }
}
