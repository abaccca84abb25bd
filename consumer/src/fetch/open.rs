//! Opens aggregates. What says that it is one and is none is delivered as it came: only the processor can tell.

use anabranch_model::Record;
use anabranch_model::aggregate::{deaggregate, is_aggregate};

use crate::delivery::{Received, ShardInfo};
use crate::metrics;

/// Appends what a record holds.
pub(super) fn open(record: Record, shard: &ShardInfo, into: &mut Vec<Received>) {
    let plain = Received {
        sequence: record.sequence,
        sub_sequence: 0,
        arrival: record.arrival,
        partition_key: record.partition_key,
        explicit_hash_key: None,
        data: record.data,
        attempt: 1,
        seat: None,
    };
    if !is_aggregate(&plain.data) {
        into.push(plain);
        return;
    }
    match deaggregate(&plain.data) {
        Ok(parts) => into.extend(parts.into_iter().zip(0..).map(|(part, sub_sequence)| Received {
            sub_sequence,
            partition_key: part.partition_key,
            explicit_hash_key: part.explicit_hash_key,
            data: part.data,
            ..plain.clone()
        })),
        Err(error) => {
            metrics::corrupt_aggregate(shard);
            tracing::warn!(shard = %shard.shard, sequence = %plain.sequence, %error, "delivered as it came");
            into.push(plain);
        }
    }
}
