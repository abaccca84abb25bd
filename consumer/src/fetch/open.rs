//! Opens aggregates, and cuts a batch where it would take more room than there is. What says that it is an aggregate and is
//! none is delivered as it came: only the processor can tell.

use anabranch_model::aggregate::{Aggregate, is_aggregate};
use anabranch_model::{Record, SequenceNumber};

use crate::delivery::{Received, ShardInfo};
use crate::lease::Checkpoint;
use crate::metrics;

/// What a record takes beside its bytes: it lies in the batch, in the list of those under way, and in the call.
pub(super) const RECORD_COST: usize = 3 * size_of::<Received>();

/// How much of a batch is opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Bytes that it may take.
    pub(super) bytes: usize,
    /// Bytes that it may take if it comes from one record of the source.
    pub(super) first: usize,
    /// Most records.
    pub(super) records: usize,
}

/// What a batch held, as far as there was room.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) records: Vec<Received>,
    /// Bytes that they take.
    pub(super) cost: usize,
    /// Records and bytes of the source that they come from.
    pub(super) read: (usize, usize),
    /// The most that a record of the source took.
    pub(super) largest: usize,
    pub(super) rest: Option<Rest>,
}

/// What was left out of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// This record of the source, or what is left of it, and those behind it.
    From(SequenceNumber),
    /// All of it: its first record takes so many bytes.
    TooLarge(SequenceNumber, usize),
}

/// Opens what is not covered yet. `payload` says how many bytes a record stands for that lie somewhere else.
pub(super) fn open(
    batch: Vec<Record>,
    shard: &ShardInfo,
    covered: Checkpoint,
    bounds: Bounds,
    payload: impl Fn(&Received) -> usize,
) -> Opened {
    let mut opened = Opened::default();
    for record in batch {
        let (sequence, size, before) = (record.sequence, record.size(), opened.records.len());
        let part = Part::of(record, shard, covered, bounds, &payload, &mut opened.records);
        let is_first = before == 0;
        let fits = if is_first {
            part.cost <= bounds.first
        } else {
            opened.cost + part.cost <= bounds.bytes && opened.records.len() <= bounds.records
        };
        if opened.records.len() > before && !fits {
            opened.records.truncate(before);
            let rest = if is_first { Rest::TooLarge(sequence, part.cost) } else { Rest::From(sequence) };
            opened.rest = Some(rest);
            break;
        }
        opened.read = (opened.read.0 + 1, opened.read.1 + size);
        opened.largest = opened.largest.max(part.cost);
        opened.cost += part.cost;
        if !part.is_whole {
            opened.rest = Some(Rest::From(sequence));
            break;
        }
    }
    opened
}

/// What one record of the source holds.
struct Part {
    cost: usize,
    /// Nothing of it was left out.
    is_whole: bool,
}

impl Part {
    /// Puts what it holds behind other records.
    fn of(
        record: Record,
        shard: &ShardInfo,
        covered: Checkpoint,
        bounds: Bounds,
        payload: &impl Fn(&Received) -> usize,
        records: &mut Vec<Received>,
    ) -> Self {
        let mut part = Part { cost: 0, is_whole: true };
        let (size, before) = (record.size(), records.len());
        for received in contents(record, shard) {
            if covered.covers(received.sequence, received.sub_sequence) {
                continue;
            }
            let (payload, count) = (payload(&received), records.len() - before);
            let is_first = count == 0;
            let is_full = count >= bounds.records || payload > 0 && part.cost + payload > bounds.bytes;
            if is_full && !is_first {
                part.is_whole = false;
                break;
            }
            part.cost += RECORD_COST + payload + if is_first { size } else { 0 };
            records.push(received);
        }
        part
    }
}

/// The records in a record.
fn contents(record: Record, shard: &ShardInfo) -> impl Iterator<Item = Received> {
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
    let aggregate = match is_aggregate(&plain.data).then(|| Aggregate::open(&plain.data)) {
        Some(Ok(aggregate)) => Some(aggregate),
        Some(Err(error)) => {
            metrics::corrupt_aggregate(shard);
            tracing::warn!(shard = %shard.shard, sequence = %plain.sequence, %error, "delivered as it came");
            None
        }
        None => None,
    };
    let Received { sequence, arrival, .. } = plain;
    let itself = aggregate.is_none().then_some(plain);
    let parts = aggregate.into_iter().flatten().zip(0..).map(move |(part, sub_sequence)| Received {
        sequence,
        sub_sequence,
        arrival,
        partition_key: part.partition_key,
        explicit_hash_key: part.explicit_hash_key,
        data: part.data,
        attempt: 1,
        seat: None,
    });
    itself.into_iter().chain(parts)
}

#[cfg(test)]
mod tests {
    use anabranch_model::aggregate::aggregate;
    use anabranch_model::{NewRecord, ShardId, StreamName, Timestamp};
    use bytes::Bytes;

    use super::*;

    const BOUNDS: Bounds = Bounds { bytes: usize::MAX, first: usize::MAX, records: usize::MAX };

    fn record(number: u128, data: impl Into<Bytes>) -> Record {
        let sequence = SequenceNumber::from_u128(number);
        Record { sequence, arrival: Timestamp::EPOCH, partition_key: "k".into(), data: data.into() }
    }

    fn many(count: usize) -> Bytes {
        aggregate(&(0..count).map(|n| NewRecord::new("k", n.to_string())).collect::<Vec<_>>()).unwrap()
    }

    fn opened(batch: &[Record], covered: Checkpoint, bounds: Bounds) -> Opened {
        let shard = ShardInfo {
            stream: StreamName::new("orders").unwrap(),
            shard: ShardId::numbered(0),
            lease: "lease".into(),
        };
        open(batch.to_vec(), &shard, covered, bounds, |_| 0)
    }

    /// Reads a batch again and again from where it was cut, as the fetcher does.
    fn in_parts(batch: &[Record], bounds: Bounds) -> Vec<Vec<String>> {
        let (mut parts, mut covered) = (Vec::new(), Checkpoint::TrimHorizon);
        loop {
            let Opened { records, rest, cost, .. } = opened(batch, covered, bounds);
            assert!(cost <= bounds.bytes.max(bounds.first));
            covered = records.last().map_or(covered, Received::checkpoint);
            parts.push(records.iter().map(|r| String::from_utf8(r.data.to_vec()).unwrap()).collect());
            match rest {
                Some(Rest::From(_)) => {}
                None => return parts,
                Some(rest) => panic!("{rest:?}"),
            }
        }
    }

    #[test]
    fn a_batch_is_cut_between_records_and_an_aggregate_where_it_has_too_many() {
        let batch = [record(1, "a"), record(2, many(7)), record(3, "b"), record(4, "c")];
        let parts = in_parts(&batch, Bounds { records: 3, ..BOUNDS });
        let expected: [&[&str]; 4] = [&["a"], &["0", "1", "2"], &["3", "4", "5"], &["6", "b", "c"]];
        assert_eq!(parts, expected);
        assert_eq!(in_parts(&batch, BOUNDS).concat().len(), 10);
        let parts = in_parts(&batch, Bounds { records: 1, ..BOUNDS });
        assert_eq!(parts.concat(), ["a", "0", "1", "2", "3", "4", "5", "6", "b", "c"]);
    }

    #[test]
    fn opened_records_cost_what_they_take_and_not_what_was_read() {
        let aggregate = record(1, many(1_000));
        let cost = opened(std::slice::from_ref(&aggregate), Checkpoint::TrimHorizon, BOUNDS).cost;
        assert_eq!(cost, aggregate.size() + 1_000 * RECORD_COST);
        // Behind another one it waits; as the first one it says what it needs.
        let bounds = Bounds { bytes: cost, first: cost - 1, ..BOUNDS };
        let both = opened(&[record(0, "a"), aggregate.clone()], Checkpoint::TrimHorizon, bounds);
        assert_eq!((both.records.len(), both.rest), (1, Some(Rest::From(aggregate.sequence))));
        let alone = opened(std::slice::from_ref(&aggregate), Checkpoint::TrimHorizon, bounds);
        assert_eq!((alone.records.len(), alone.rest), (0, Some(Rest::TooLarge(aggregate.sequence, cost))));
        // Of one that is processed to its middle only the rest counts.
        let middle = Checkpoint::At { sequence: aggregate.sequence, sub_sequence: 499 };
        let rest = opened(std::slice::from_ref(&aggregate), middle, bounds);
        assert_eq!((rest.records.len(), rest.rest), (500, None));
    }
}
