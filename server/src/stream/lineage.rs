//! The shards of a stream as a tree: a child stands below its parent, and a merged one below the lower of its two.

use std::collections::HashSet;

use anabranch_model::{Shard, ShardGraph, ShardId};

/// Characters of branches in front of a shard. A stream that was resharded a thousand times is not drawn a
/// thousand levels deep: the innermost levels are shown.
const BRANCH_CHARS_MAX: usize = 36;

/// One line of the tree.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// What is drawn in front of the shard.
    pub(super) branch: String,
    pub(super) shard: &'a Shard,
}

/// All shards, parents before their children, siblings in the order of their ranges.
pub(super) fn tree(graph: &ShardGraph) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut drawn: HashSet<&ShardId> = HashSet::new();
    // A stack and not recursion, because lineages can be long. The last entry is drawn next.
    let mut waiting: Vec<Waiting<'_>> = Vec::new();
    push_siblings(&mut waiting, sorted(graph.roots().collect()), None);
    while let Some(Waiting { shard, above, last }) = waiting.pop() {
        if !drawn.insert(&shard.id) {
            continue;
        }
        let (branch, below) = match &above {
            None => (String::new(), String::new()),
            Some(above) => {
                let (corner, line) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                (shortened(format!("{above}{corner}")), shortened(format!("{above}{line}")))
            }
        };
        lines.push(Line { branch, shard });
        push_siblings(&mut waiting, sorted(drawn_below(graph, &shard.id)), Some(below));
    }
    lines
}

struct Waiting<'a> {
    shard: &'a Shard,
    /// The lines of the levels above; none for a root.
    above: Option<String>,
    /// Whether no sibling follows.
    last: bool,
}

fn push_siblings<'a>(waiting: &mut Vec<Waiting<'a>>, siblings: Vec<&'a Shard>, above: Option<String>) {
    for (index, shard) in siblings.into_iter().rev().enumerate() {
        waiting.push(Waiting { shard, above: above.clone(), last: index == 0 });
    }
}

/// The children that are drawn below `parent`: those whose first listed parent it is.
fn drawn_below<'a>(graph: &'a ShardGraph, parent: &ShardId) -> Vec<&'a Shard> {
    let first_listed =
        |shard: &&Shard| shard.parents.iter().find(|id| graph.get(id).is_some()) == Some(parent);
    graph.children_of(parent).into_iter().filter_map(|id| graph.get(id)).filter(first_listed).collect()
}

fn sorted(mut shards: Vec<&Shard>) -> Vec<&Shard> {
    shards.sort_by_key(|shard| shard.range.map(|range| range.first()));
    shards
}

fn shortened(branch: String) -> String {
    let chars = branch.chars().count();
    branch.chars().skip(chars.saturating_sub(BRANCH_CHARS_MAX)).collect()
}

#[cfg(test)]
mod tests {
    use anabranch_model::{HashRange, SequenceNumber, StreamName, Timestamp};

    use super::*;

    fn drawn(graph: &ShardGraph) -> Vec<String> {
        let number = |id: &ShardId| id.number().unwrap();
        tree(graph).iter().map(|line| format!("{}{}", line.branch, number(&line.shard.id))).collect()
    }

    fn two_shards() -> ShardGraph {
        ShardGraph::new(HashRange::even(2).into_iter().enumerate().map(|(index, range)| Shard {
            id: ShardId::numbered(index as u64),
            parents: Vec::new(),
            range: Some(range),
            starts_at: SequenceNumber::MIN,
            ends_before: None,
            closed_at: None,
        }))
    }

    fn split(graph: &mut ShardGraph, id: u64, lower: u64) {
        let stream = StreamName::new("clicks").unwrap();
        let id = ShardId::numbered(id);
        let at = graph.get(&id).unwrap().range.unwrap().midpoint().unwrap();
        let children = [lower, lower + 1].map(ShardId::numbered);
        let number = SequenceNumber::from_u128(u128::from(lower));
        graph.split(&stream, &id, at, children, number, Timestamp::EPOCH).unwrap();
    }

    #[test]
    fn splits_and_merges_are_drawn_below_their_parents() {
        let mut graph = two_shards();
        split(&mut graph, 0, 2);
        let stream = StreamName::new("clicks").unwrap();
        let [one, three, four] = [1, 3, 4].map(ShardId::numbered);
        graph.merge(&stream, &three, &one, four, SequenceNumber::MAX, Timestamp::EPOCH).unwrap();
        assert_eq!(drawn(&graph), ["0", "├─ 2", "└─ 3", "   └─ 4", "1"]);
    }

    #[test]
    fn a_long_lineage_stays_readable_and_complete() {
        let mut graph = two_shards();
        let mut id = 0;
        for round in 0..100 {
            split(&mut graph, id, 2 + 2 * round);
            id = 2 + 2 * round;
        }
        let lines = tree(&graph);
        assert_eq!(lines.len(), 202);
        assert!(lines.iter().all(|line| line.branch.chars().count() <= BRANCH_CHARS_MAX));
    }
}
