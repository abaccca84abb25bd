//! The shards of a stream: all of them, those of a moment, and how they are spelled.

use std::collections::HashMap;

use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::{SequenceNumber, Shard, ShardId, StreamName, Timestamp};
use serde::Serialize;

use super::errors::{fault, invalid, no_such_shard, shard_not_found};
use crate::context::Context;
use crate::fault::Fault;

/// The largest number of a shard.
const SHARD_NUMBER_MAX: u64 = i32::MAX as u64;

/// A shard as answers show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ShardShape {
    shard_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_shard_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    adjacent_parent_shard_id: Option<String>,
    hash_key_range: HashKeyRange,
    sequence_number_range: SequenceNumberRange,
}

/// The keys of a shard.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct HashKeyRange {
    starting_hash_key: String,
    ending_hash_key: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct SequenceNumberRange {
    starting_sequence_number: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ending_sequence_number: Option<String>,
}

/// A shard that continues one that has ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ChildShard {
    shard_id: String,
    parent_shards: Vec<String>,
    hash_key_range: HashKeyRange,
}

impl From<&Shard> for ShardShape {
    fn from(shard: &Shard) -> Self {
        let parent = |index: usize| shard.parents.get(index).map(ToString::to_string);
        ShardShape {
            shard_id: shard.id.to_string(),
            parent_shard_id: parent(0),
            adjacent_parent_shard_id: parent(1),
            hash_key_range: shard.into(),
            sequence_number_range: SequenceNumberRange {
                starting_sequence_number: shard.starts_at.to_string(),
                ending_sequence_number: shard.ends_before.map(|end| before(end).to_string()),
            },
        }
    }
}

impl From<&Shard> for HashKeyRange {
    fn from(shard: &Shard) -> Self {
        let range = shard.range.unwrap_or(anabranch_model::HashRange::ALL);
        HashKeyRange {
            starting_hash_key: range.first().to_string(),
            ending_hash_key: range.last().to_string(),
        }
    }
}

impl From<&Shard> for ChildShard {
    fn from(shard: &Shard) -> Self {
        ChildShard {
            shard_id: shard.id.to_string(),
            parent_shards: shard.parents.iter().map(ToString::to_string).collect(),
            hash_key_range: shard.into(),
        }
    }
}

/// The number before another one; zero stays what it is. Numbers of the engine fit into 128 bits.
pub(super) fn before(number: SequenceNumber) -> SequenceNumber {
    number.as_u128().map_or(number, |value| SequenceNumber::from_u128(value.saturating_sub(1)))
}

/// All shards of a stream in the order of their creation, those behind `after` only.
pub(super) async fn all(
    context: &Context,
    stream: &StreamName,
    after: Option<&ShardId>,
) -> Result<Vec<Shard>, Fault> {
    let mut shards: Vec<Shard> = Vec::new();
    loop {
        let last = shards.last().map(|shard| shard.id.clone());
        let after = last.as_ref().or(after);
        let page = context.ports.streams.shards(stream, after, PAGE_ENTRIES_MAX).await.map_err(fault)?;
        shards.extend(page.entries);
        if !page.more {
            return Ok(shards);
        }
    }
}

/// The shard that is asked for.
pub(super) async fn find(context: &Context, stream: &StreamName, id: &ShardId) -> Result<Shard, Fault> {
    // Shards are numbered in the order of their creation, so the one before leads to it.
    let before = id.number().and_then(|number| number.checked_sub(1)).map(ShardId::numbered);
    let page = context.ports.streams.shards(stream, before.as_ref(), 1).await.map_err(fault)?;
    page.entries.into_iter().find(|shard| shard.id == *id).ok_or_else(|| shard_not_found(stream, id))
}

/// The shard that is to be split or merged.
pub(super) async fn find_to_change(
    context: &Context,
    stream: &StreamName,
    id: &ShardId,
) -> Result<Shard, Fault> {
    let missing = shard_not_found(stream, id);
    find(context, stream, id)
        .await
        .map_err(|fault| if fault == missing { no_such_shard(stream, id.as_str()) } else { fault })
}

/// The shards that continue `parent`, which has ended.
pub(super) async fn children(
    context: &Context,
    stream: &StreamName,
    parent: &ShardId,
    ids: &[ShardId],
) -> Result<Vec<ChildShard>, Fault> {
    // Children are younger than their parents.
    let younger = all(context, stream, Some(parent)).await?;
    Ok(younger.iter().filter(|shard| ids.contains(&shard.id)).map(ChildShard::from).collect())
}

/// Which shards are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// All that are listed.
    Any,
    /// Those that take records now.
    Now,
    /// Those that took records at this time.
    At(Timestamp),
    /// Those that took records at this time or later.
    From(Timestamp),
}

/// The shards of a moment. Those of `At` and `Now` have neither a hole nor an overlap between them.
pub(super) fn of_moment(shards: Vec<Shard>, moment: Moment) -> Vec<Shard> {
    let lives = lives(&shards);
    let keep = |shard: &Shard| {
        let Some(Life { born, died }) = lives.get(&shard.id).copied() else { return false };
        let outlives = |time: Timestamp| died.is_none_or(|died| died > time);
        match moment {
            Moment::Any => true,
            Moment::Now => shard.is_open(),
            Moment::At(time) => born <= time && outlives(time),
            Moment::From(time) => outlives(time),
        }
    };
    shards.into_iter().filter(keep).collect()
}

/// From when to when a shard took records.
#[derive(Clone, Copy)]
struct Life {
    born: Timestamp,
    died: Option<Timestamp>,
}

/// The lives of shards in the order of their creation. A shard is born when its parents die. What the clock said may
/// contradict that, because a clock can go back between two changes of shards.
fn lives(shards: &[Shard]) -> HashMap<ShardId, Life> {
    let mut lives: HashMap<ShardId, Life> = HashMap::new();
    for shard in shards {
        let parents = shard.parents.iter().filter_map(|parent| lives.get(parent)?.died);
        let born = parents.max().unwrap_or(Timestamp::EPOCH);
        for parent in &shard.parents {
            if let Some(life) = lives.get_mut(parent) {
                life.died = Some(born);
            }
        }
        let died = shard.closed_at.map(|closed| closed.max(born));
        lives.insert(shard.id.clone(), Life { born, died });
    }
    lives
}

/// An identifier of a shard that was checked. Of one that ends with a number the number alone counts, as in the service.
pub(super) fn parse(id: &str) -> Result<ShardId, Fault> {
    match number(id) {
        Some(number) => Ok(ShardId::numbered(number)),
        None => ShardId::new(id).map_err(|error| invalid(error.to_string())),
    }
}

/// The same where one shard of a stream is meant: what has no number is none, whether there is such a stream or not.
pub(super) fn parse_of(stream: &StreamName, id: &str) -> Result<ShardId, Fault> {
    number(id).map(ShardId::numbered).ok_or_else(|| no_such_shard(stream, id))
}

fn number(id: &str) -> Option<u64> {
    let digits = id.rsplit('-').next().unwrap_or(id);
    let number = digits.parse().ok().filter(|number| *number <= SHARD_NUMBER_MAX);
    number.filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use anabranch_model::{HashKey, ShardGraph};

    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_shard_is_known_by_its_number() {
        for id in ["shardId-000000000007", "shardId-7", "7", "007", "any-shard-7"] {
            assert_eq!(parse(id), Ok(ShardId::numbered(7)), "{id}");
        }
        for id in ["shardId-002147483648", "99999999999999999999", "shardId-", "abc", "2.14E4", "shardId-+7"]
        {
            assert_ne!(parse(id).ok().and_then(|shard| shard.number()), Some(7), "{id}");
        }
    }

    fn number(value: u128) -> SequenceNumber {
        SequenceNumber::from_u128(value)
    }

    /// 0 splits at 100 into 1 and 2; 1 splits into 3 and 4; 2 and 4 merge into 5. The times of the latter two are given.
    fn history(split: u64, merge: u64) -> Vec<Shard> {
        let id = ShardId::numbered;
        let stream = StreamName::new("s").unwrap();
        let range = Some(anabranch_model::HashRange::ALL);
        let first = Shard {
            id: id(0),
            parents: vec![],
            range,
            starts_at: number(1),
            ends_before: None,
            closed_at: None,
        };
        let mut graph = ShardGraph::new([first]);
        let key = |bits: u32| HashKey::new(1 << bits);
        graph.split(&stream, &id(0), key(127), [id(1), id(2)], number(10), at(100)).unwrap();
        graph.split(&stream, &id(1), key(126), [id(3), id(4)], number(20), at(split)).unwrap();
        graph.merge(&stream, &id(2), &id(4), id(5), number(30), at(merge)).unwrap();
        graph.iter().cloned().collect()
    }

    fn ids(moment: Moment, shards: &[Shard]) -> Vec<u64> {
        of_moment(shards.to_vec(), moment).iter().filter_map(|shard| shard.id.number()).collect()
    }

    /// Whether the ranges are a partition of all keys.
    fn partition(mut shards: Vec<Shard>) -> bool {
        shards.sort_by_key(|shard| shard.range.unwrap().first());
        let mut next = Some(HashKey::MIN);
        for shard in shards {
            let range = shard.range.unwrap();
            if next != Some(range.first()) {
                return false;
            }
            next = range.last().get().checked_add(1).map(HashKey::new);
        }
        next.is_none()
    }

    #[test]
    fn a_moment_has_neither_a_hole_nor_an_overlap() {
        let shards = history(200, 300);
        assert_eq!(ids(Moment::At(at(99)), &shards), [0]);
        assert_eq!(ids(Moment::At(at(100)), &shards), [1, 2]);
        assert_eq!(ids(Moment::At(at(200)), &shards), [2, 3, 4]);
        assert_eq!(ids(Moment::At(at(300)), &shards), [3, 5]);
        assert_eq!(ids(Moment::Now, &shards), [3, 5]);
        assert_eq!(ids(Moment::From(at(150)), &shards), [1, 2, 3, 4, 5]);
        assert_eq!(ids(Moment::Any, &shards), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn nor_when_the_clock_goes_back_or_stands_still() {
        for (split, merge) in [(100, 100), (90, 80), (50, 300), (200, 10)] {
            let shards = history(split, merge);
            for time in 0..400 {
                let found = of_moment(shards.clone(), Moment::At(at(time)));
                assert!(partition(found), "split at {split}, merge at {merge}, seen from {time}");
            }
        }
    }

    #[test]
    fn nor_when_retention_has_taken_the_parents() {
        let shards = history(200, 300).split_off(1);
        assert!(partition(of_moment(shards.clone(), Moment::At(at(150)))));
        let shards = history(200, 300).split_off(2);
        assert!(partition(of_moment(shards, Moment::At(at(250)))));
    }
}
