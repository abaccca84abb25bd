//! Parents and children: how a shard ends, and what is listed.

use std::collections::HashSet;

use super::trial::{Trial, sorted};
use super::written::{gist, gist_written, some_records};
use crate::{Next, Position, ReadLimit, Shard, ShardGraph, ShardId, StreamName, limits};

/// A shard that was split gives its records and then `Ended` with both children, from every position.
pub async fn a_split_shard_ends_with_its_children(trial: Trial) {
    for count in [0, 7] {
        let (stream, parent) = trial.single_shard().await;
        let mut written = Vec::new();
        if count > 0 {
            written = trial.write(&stream, some_records("parent", count)).await;
        }
        let before = trial.read_on(&stream, &parent, Position::TrimHorizon).await;
        let children = trial.split(&stream, &trial.shard(&stream, &parent).await).await;
        trial.write(&stream, some_records("child", 10)).await;
        let expected = (gist_written(&written), sorted(children.into()));
        for records in [1, 2, 100] {
            let reading = trial.read_by(&stream, &parent, Position::TrimHorizon, records).await;
            let seen = (gist(&reading.records), trial.children(&reading.next));
            trial.same(format!("the closed shard read by {records}"), seen, expected.clone());
        }
        // A reader that had caught up before the split is sent to the children as well.
        let rest = trial.read_on(&stream, &parent, trial.position(&before.next)).await;
        trial.same("records behind the end", gist(&rest.records), Vec::new());
        trial.same("children behind the end", trial.children(&rest.next), expected.1);
    }
}

/// Both shards of a merge give their records and then `Ended` with the one child.
pub async fn merged_shards_end_with_their_child(trial: Trial) {
    let stream = trial.stream(3).await;
    let written = trial.write(&stream, some_records("parent", 60)).await;
    let open = trial.open_shards(&stream).await;
    // The upper one comes first in the call: the order does not matter.
    let child = trial.merge(&stream, &open[1].id, &open[0].id).await;
    trial.write(&stream, some_records("child", 10)).await;
    for parent in &open[..2] {
        let reading = trial.read_by(&stream, &parent.id, Position::TrimHorizon, 3).await;
        let expected = gist_written(written.iter().filter(|w| w.shard == parent.id));
        trial.same("records of a merged shard", gist(&reading.records), expected);
        trial.same("children of a merged shard", trial.children(&reading.next), vec![child.clone()]);
    }
    let child = trial.shard(&stream, &child).await;
    trial.same(
        "parents, the lower one first",
        child.parents.clone(),
        vec![open[0].id.clone(), open[1].id.clone()],
    );
    let union = trial.range(&open[0]).merge(trial.range(&open[1]));
    trial.same("range of the child", child.range, union);
}

/// An open shard never says `Ended`, however often and from wherever it is read.
pub async fn an_open_shard_never_ends(trial: Trial) {
    let stream = trial.stream(2).await;
    let written = trial.write(&stream, some_records("some", 40)).await;
    let open = trial.open_shards(&stream).await;
    trial.split(&stream, &open[0]).await;
    for shard in trial.open_shards(&stream).await {
        let last = written.iter().filter(|w| w.shard == shard.id).map(|w| w.sequence).max();
        let behind_last = Position::After(last.unwrap_or(shard.starts_at));
        for from in [Position::TrimHorizon, Position::Latest, Position::At(shard.starts_at), behind_last] {
            let mut position = from;
            for _ in 0..5 {
                let batch = trial.read(&stream, &shard.id, position, ReadLimit::default()).await;
                trial.holds(
                    !matches!(batch.next, Next::Ended(_)),
                    format!("open shard {} read from {position:?} says {:?}", shard.id, batch.next),
                );
                position = trial.position(&batch.next);
            }
        }
    }
}

/// Some splits and merges with records before, between and behind them.
async fn resharded(trial: &Trial) -> StreamName {
    let stream = trial.stream(3).await;
    for round in 0..6 {
        trial.write(&stream, some_records(&format!("round-{round}"), 30)).await;
        let open = trial.open_shards(&stream).await;
        if round % 3 == 2 {
            trial.merge(&stream, &open[1].id, &open[2].id).await;
        } else {
            trial.split(&stream, &open[round % open.len()]).await;
        }
    }
    trial.write(&stream, some_records("end", 30)).await;
    stream
}

/// Shards are listed in the order of their creation, with parents whose ranges are divided or united; a closed one has
/// children and an open one has none.
pub async fn parents_are_listed_before_children(trial: Trial) {
    let stream = resharded(&trial).await;
    let shards = trial.shards(&stream).await;
    let graph = ShardGraph::new(shards.clone());
    let mut listed = HashSet::new();
    for shard in &shards {
        for parent in &shard.parents {
            trial.holds(listed.contains(parent), format!("{shard:?} is listed before its parent {parent}"));
        }
        listed.insert(&shard.id);
        trial.holds(shard.parents.len() <= 2, format!("{shard:?} has more than two parents"));
        trial.same(
            format!("whether {} is open and has a time of closing", shard.id),
            (shard.closed_at.is_some(), !graph.children_of(&shard.id).is_empty()),
            (!shard.is_open(), !shard.is_open()),
        );
        check_ranges(&trial, &graph, shard);
    }
    trial.same("shards in all", listed.len(), shards.len());
}

fn check_ranges(trial: &Trial, graph: &ShardGraph, shard: &Shard) {
    let range_of = |id: &ShardId| graph.get(id).and_then(|shard| shard.range);
    let parents: Vec<_> = shard.parents.iter().filter_map(range_of).collect();
    if let [lower, upper] = parents[..] {
        trial.holds(lower.first() < upper.first(), format!("{shard:?} has its upper parent first"));
        trial.same(format!("range of {} and of its parents", shard.id), shard.range, lower.merge(upper));
    }
    let children: Vec<_> = graph.children_of(&shard.id).into_iter().filter_map(range_of).collect();
    if let [one, other] = children[..] {
        trial.same(format!("range of {} and of its children", shard.id), shard.range, one.merge(other));
    }
}

/// All records of a parent have smaller numbers than all records of its children, and each shard keeps within the
/// numbers that it declares.
pub async fn numbers_of_parents_are_smaller(trial: Trial) {
    let stream = resharded(&trial).await;
    let graph = trial.graph(&stream).await;
    for shard in graph.iter() {
        let records = trial.read_all(&stream, &shard.id).await;
        for record in &records {
            trial.holds(record.sequence >= shard.starts_at, format!("{record:?} lies before {shard:?}"));
            trial.holds(
                shard.ends_before.is_none_or(|end| record.sequence < end),
                format!("{record:?} lies behind {shard:?}"),
            );
        }
        for parent in shard.parents.iter() {
            let last = trial.read_all(&stream, parent).await.last().map(|record| record.sequence);
            let first = records.first().map(|record| record.sequence);
            if let (Some(last), Some(first)) = (last, first) {
                trial.holds(
                    last < first,
                    format!("{} begins with {first}, but {parent} has {last}", shard.id),
                );
            }
        }
    }
}

/// Pages of any size join to the same listing.
pub async fn pages_of_shards_join_to_the_listing(trial: Trial) {
    let stream = resharded(&trial).await;
    let whole = trial.shards(&stream).await;
    trial.holds(whole.len() >= 9, format!("only {} shards are listed", whole.len()));
    for limit in [0, 1, 2, 4, whole.len(), limits::PAGE_ENTRIES_MAX, usize::MAX] {
        let joined = trial.shards_by(&stream, limit).await;
        trial.same(format!("shards in pages of {limit}"), joined, whole.clone());
    }
    for (place, shard) in whole.iter().enumerate() {
        let page = trial.store().shards(&stream, Some(&shard.id), limits::PAGE_ENTRIES_MAX).await;
        let page = trial.ok("listing shards", page);
        trial.same(format!("shards behind {}", shard.id), page.entries, whole[place + 1..].to_vec());
    }
}

/// The identifier of a shard is given once in the life of a stream.
pub async fn shard_ids_are_given_once(trial: Trial) {
    let stream = trial.stream(2).await;
    let mut given: HashSet<ShardId> = trial.shards(&stream).await.into_iter().map(|shard| shard.id).collect();
    for _ in 0..5 {
        let open = trial.open_shards(&stream).await;
        let merged = trial.merge(&stream, &open[0].id, &open[1].id).await;
        trial.holds(given.insert(merged.clone()), format!("a merge gave {merged} again"));
        let children = trial.split(&stream, &trial.shard(&stream, &merged).await).await;
        for child in children {
            trial.holds(given.insert(child.clone()), format!("a split gave {child} again"));
        }
    }
    let listed = trial.shards(&stream).await;
    trial.same("shards listed", listed.len(), given.len());
}
