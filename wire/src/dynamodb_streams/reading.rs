//! Reading changes past those that are damaged: no other answer would ever let a reader pass them.

use anabranch_model::table::Change;
use anabranch_model::{Error, Next, Position, ReadLimit, Record, ShardId, ShardSource, StreamName};

/// Damaged places that one call passes over.
const DAMAGES_MAX: usize = 64;

/// Changes, each with its record, and what comes after them.
pub(crate) type Changes = (Vec<(Record, Change)>, Next);

/// Reads changes from a position on. What cannot be read, or makes no sense, is told and left out.
pub(crate) async fn read(
    source: &dyn ShardSource,
    (stream, shard): (&StreamName, &ShardId),
    mut position: Position,
    limit: ReadLimit,
) -> Result<Changes, Error> {
    for _ in 0..DAMAGES_MAX {
        match source.read(stream, shard, position, limit).await {
            Err(Error::Damaged { from, resume_at, .. }) => {
                tracing::error!(%stream, %shard, %from, %resume_at, "a damaged change is passed over");
                position = Position::At(resume_at);
            }
            read => {
                let batch = read?;
                let change = |record: Record| match Change::decode(&record.data) {
                    Ok(change) => Some((record, change)),
                    Err(error) => {
                        let from = record.sequence;
                        tracing::error!(%stream, %shard, %from, %error, "a damaged change is passed over");
                        metrics::counter!("anabranch_table_damaged_changes_total").increment(1);
                        None
                    }
                };
                return Ok((batch.records.into_iter().filter_map(change).collect(), batch.next));
            }
        }
    }
    // The next call goes on from here.
    Ok((Vec::new(), Next::At(position)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anabranch_model::table::{Event, Item};
    use anabranch_model::{Batch, Capabilities, Follow, Page, Result, SequenceNumber, Shard, Timestamp};
    use async_trait::async_trait;

    use super::*;

    /// What lies at the numbers from zero on.
    #[derive(Clone, Copy, PartialEq)]
    enum Row {
        Sound,
        Unreadable,
        Senseless,
    }

    struct Rows(Vec<Row>);

    fn number(at: usize) -> SequenceNumber {
        SequenceNumber::from_u128(at as u128)
    }

    fn change() -> Change {
        Change {
            event: Event::Insert,
            keys: Item::new().with("id", "one"),
            old: None,
            new: None,
            at: Timestamp::EPOCH,
            expired: false,
            size: 5,
        }
    }

    #[async_trait]
    impl ShardSource for Rows {
        fn capabilities(&self) -> Capabilities {
            Capabilities { hash_ranges: false, at_timestamp: false, push: false, lends: false }
        }

        async fn shards(&self, _: &StreamName, _: Option<&ShardId>, _: usize) -> Result<Page<Shard>> {
            panic!("nobody asks for shards")
        }

        async fn read(&self, _: &StreamName, shard: &ShardId, from: Position, _: ReadLimit) -> Result<Batch> {
            let Position::At(from) = from else { panic!("{from:?}") };
            let start = from.as_u128().expect("a small number") as usize;
            let readable = |at: &usize| self.0[*at] != Row::Unreadable;
            if start < self.0.len() && !readable(&start) {
                return Err(Error::Damaged { shard: shard.clone(), from, resume_at: from.next() });
            }
            let record = |at: usize| Record {
                sequence: number(at),
                arrival: Timestamp::EPOCH,
                partition_key: Default::default(),
                data: if self.0[at] == Row::Sound { change().encode().into() } else { "?".into() },
            };
            let records: Vec<_> = (start..self.0.len()).take_while(readable).map(record).collect();
            let next = Next::At(Position::At(number(start + records.len())));
            Ok(Batch { records, next, behind: Duration::ZERO })
        }

        async fn follow(&self, _: &StreamName, _: &ShardId, _: Position) -> Result<Follow> {
            panic!("nobody follows")
        }
    }

    async fn read_from(rows: &Rows, at: usize) -> (Vec<SequenceNumber>, Next) {
        let stream = StreamName::new("changes-1").expect("a name");
        let place = (&stream, &ShardId::numbered(0));
        let read = read(rows, place, Position::At(number(at)), ReadLimit::default()).await;
        let (changes, next) = read.expect("an answer");
        (changes.into_iter().map(|(record, _)| record.sequence).collect(), next)
    }

    #[tokio::test]
    async fn what_is_damaged_is_left_out_and_its_neighbours_are_read() {
        use Row::{Senseless, Sound, Unreadable};
        let rows = Rows(vec![Sound, Senseless, Sound, Unreadable, Unreadable, Sound, Senseless]);
        let at = |place: usize| Next::At(Position::At(number(place)));
        assert_eq!(read_from(&rows, 0).await, (vec![number(0), number(2)], at(3)));
        assert_eq!(read_from(&rows, 3).await, (vec![number(5)], at(7)));
        assert_eq!(read_from(&rows, 6).await, (Vec::new(), at(7)));
        // However much is damaged, each call gets further.
        let rows = Rows(vec![Unreadable; 100]);
        assert_eq!(read_from(&rows, 0).await, (Vec::new(), at(64)));
        assert_eq!(read_from(&rows, 64).await, (Vec::new(), at(100)));
    }
}
