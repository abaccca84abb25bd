//! Which leases there should be, from the shards that there are.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use anabranch_model::{Result, Shard, ShardGraph, ShardId, ShardSource, limits};
use smol_str::SmolStr;

use crate::lease::{Checkpoint, Lease};
use crate::settings::{InitialPosition, StreamChoice};

/// All shards of a stream.
pub(crate) async fn list(source: &Arc<dyn ShardSource>, choice: &StreamChoice) -> Result<ShardGraph> {
    let (mut shards, mut after) = (Vec::<Shard>::new(), None);
    loop {
        let page = source.shards(&choice.name, after.as_ref(), limits::PAGE_ENTRIES_MAX).await?;
        after = page.entries.last().map(|shard| shard.id.clone());
        shards.extend(page.entries);
        if !page.more || after.is_none() {
            return Ok(ShardGraph::new(shards));
        }
    }
}

/// The lease of a shard that nobody has read.
pub(crate) fn lease_of(shard: &Shard, choice: &StreamChoice, checkpoint: Checkpoint) -> Lease {
    Lease {
        parents: shard.parents.clone(),
        range: shard.range,
        stream: choice.identifier.clone(),
        ..Lease::new(choice.lease_key(&shard.id), checkpoint)
    }
}

/// The checkpoint that says where reading starts.
pub(crate) fn start(initial: InitialPosition) -> Checkpoint {
    match initial {
        InitialPosition::TrimHorizon => Checkpoint::TrimHorizon,
        InitialPosition::Latest => Checkpoint::Latest,
        InitialPosition::AtTimestamp(_) => Checkpoint::AtTimestamp,
    }
}

/// Leases that are missing, given those that there are. The shards must have been listed *before* the leases were read: the
/// leases of children are made before their parent's says that it has ended, so what is missing then is missing indeed.
/// And a lease is removed only when its children are under way, so a parent of one that is not has lost its lease.
pub(crate) fn missing(
    graph: &ShardGraph,
    leases: &HashMap<SmolStr, Lease>,
    choice: &StreamChoice,
    initial: InitialPosition,
) -> Vec<Lease> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let lease = |id: &ShardId| leases.get(&choice.lease_key(id));
    // One that somebody set back to its beginning is untouched again, whatever became of its children.
    let set_back = graph.iter().filter(|shard| lease(&shard.id).is_some_and(Lease::is_untouched));
    let mut waiting: Vec<&Shard> = last(graph, initial).chain(set_back).collect();
    while let Some(shard) = waiting.pop() {
        if !seen.insert(shard.id.clone()) {
            continue;
        }
        let own = lease(&shard.id);
        if own.is_some_and(|lease| !lease.is_untouched()) {
            continue;
        }
        // Every parent is looked at; whoever has begun stops there.
        let listed = shard.parents.iter().filter_map(|parent| graph.get(parent));
        let wanted: Vec<_> = listed.filter(|parent| matters(parent, initial)).collect();
        waiting.extend(&wanted);
        let known: Vec<_> = shard.parents.iter().filter_map(lease).collect();
        // A parent that is being read makes the lease itself when it ends; one without a lease needs one first.
        let waits = known.iter().any(|lease| lease.checkpoint != Checkpoint::ShardEnd)
            || wanted.iter().any(|parent| lease(&parent.id).is_none());
        if own.is_some() || waits {
            continue;
        }
        // Where nobody has read anything it begins where the application wants to begin.
        let checkpoint = if known.is_empty() { start(initial) } else { Checkpoint::TrimHorizon };
        found.push(lease_of(shard, choice, checkpoint));
    }
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found
}

/// Keys of leases that are not there and need not be, although children of theirs are untouched: their shards are gone, or
/// hold nothing that is wanted.
pub(crate) fn settled(
    graph: &ShardGraph,
    leases: &HashMap<SmolStr, Lease>,
    choice: &StreamChoice,
    initial: InitialPosition,
) -> HashSet<SmolStr> {
    let untouched = leases.values().filter(|lease| lease.stream == choice.identifier && lease.is_untouched());
    let needless = |parent: &&ShardId| !graph.get(parent).is_some_and(|shard| matters(shard, initial));
    let parents = untouched.flat_map(|lease| &lease.parents).filter(needless);
    parents.map(|parent| choice.lease_key(parent)).filter(|key| !leases.contains_key(key)).collect()
}

/// The shards that nothing continues: those that are open, and those with which a stream has ended.
fn last(graph: &ShardGraph, initial: InitialPosition) -> impl Iterator<Item = &Shard> {
    let continued = |shard: &Shard| !graph.children_of(&shard.id).is_empty();
    graph.iter().filter(move |shard| shard.is_open() || !continued(shard) && matters(shard, initial))
}

/// Whether a stream has ended and everything in it is processed.
pub(crate) fn is_over(
    graph: &ShardGraph,
    leases: &HashMap<SmolStr, Lease>,
    choice: &StreamChoice,
    initial: InitialPosition,
) -> bool {
    let mut of_stream = leases.values().filter(|lease| lease.stream == choice.identifier);
    graph.open().next().is_none()
        && of_stream.all(|lease| lease.checkpoint == Checkpoint::ShardEnd)
        && last(graph, initial).all(|shard| leases.contains_key(&choice.lease_key(&shard.id)))
}

/// Whether a closed shard has anything that the application wants.
fn matters(shard: &Shard, initial: InitialPosition) -> bool {
    match initial {
        InitialPosition::TrimHorizon => true,
        InitialPosition::Latest => shard.is_open(),
        InitialPosition::AtTimestamp(moment) => shard.closed_at.is_none_or(|closed| closed >= moment),
    }
}

/// Whether every parent of a shard has a lease, as far as it is listed. One that has none yet is not being read, and a child
/// that does not know of it would begin too early.
pub(crate) fn parents_known(
    graph: &ShardGraph,
    lease: &Lease,
    leases: &[Lease],
    choice: &StreamChoice,
) -> bool {
    let known = |parent: &ShardId| {
        let key = choice.lease_key(parent);
        leases.iter().any(|lease| lease.key == key)
    };
    lease.parents.iter().filter(|parent| graph.get(parent).is_some()).all(known)
}

/// Whether a parent of a shard has no lease yet and an ancestor of it is still being read: it gets its lease when that one
/// has ended, and its records come before those of the shard.
pub(crate) fn awaits_ancestor(
    graph: &ShardGraph,
    lease: &Lease,
    leases: &[Lease],
    choice: &StreamChoice,
) -> bool {
    let by_key: HashMap<_, _> = leases.iter().map(|lease| (&lease.key, lease)).collect();
    let lease_of = |shard: &ShardId| by_key.get(&choice.lease_key(shard));
    let mut waiting: Vec<_> = lease.parents.iter().filter(|parent| lease_of(parent).is_none()).collect();
    let mut seen = HashSet::new();
    while let Some(shard) = waiting.pop() {
        let parents = graph.get(shard).map(|shard| &shard.parents[..]).unwrap_or_default();
        for parent in parents.iter().filter(|parent| seen.insert(*parent)) {
            match lease_of(parent) {
                Some(lease) if lease.checkpoint != Checkpoint::ShardEnd => return true,
                Some(_) => {}
                None => waiting.push(parent),
            }
        }
    }
    false
}

/// The leases of the shards that continue one which has ended with this checkpoint. If nothing of it was younger than the
/// moment at which the application begins, its children may begin too early as well.
pub(crate) fn children(
    graph: &ShardGraph,
    children: &[ShardId],
    choice: &StreamChoice,
    ended_at: Checkpoint,
) -> Option<Vec<Lease>> {
    let checkpoint = match ended_at {
        Checkpoint::AtTimestamp => Checkpoint::AtTimestamp,
        _ => Checkpoint::TrimHorizon,
    };
    let lease = |child: &ShardId| graph.get(child).map(|shard| lease_of(shard, choice, checkpoint));
    children.iter().map(lease).collect()
}

/// Leases that nobody needs any more: of shards that are read to their end, whose children are under way and whose own
/// parents are gone, or that retention has removed.
pub(crate) fn removable<'a>(
    graph: &ShardGraph,
    leases: &'a HashMap<SmolStr, Lease>,
    choice: &StreamChoice,
) -> Vec<&'a Lease> {
    let of_stream = leases.values().filter(|lease| lease.stream == choice.identifier);
    let is_done = |lease: &&Lease| {
        let started = |child: &ShardId| {
            leases.get(&choice.lease_key(child)).is_some_and(|child| child.checkpoint > Checkpoint::Latest)
        };
        let parent_left = |parent: &ShardId| leases.contains_key(&choice.lease_key(parent));
        let listed = ShardId::new(lease.shard()).is_ok_and(|shard| graph.get(&shard).is_some());
        let continued = !lease.children.is_empty() && lease.children.iter().all(started);
        lease.checkpoint == Checkpoint::ShardEnd
            && (continued || !listed)
            && !lease.parents.iter().any(parent_left)
    };
    let mut found: Vec<_> = of_stream.filter(is_done).collect();
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found
}

/// Leases that say that a shard has ended which is open: they are of an earlier stream of the same name.
pub(crate) fn contradicted<'a>(
    graph: &ShardGraph,
    leases: &'a HashMap<SmolStr, Lease>,
    choice: &StreamChoice,
) -> Vec<&'a Lease> {
    let ended = graph.open().filter_map(|shard| leases.get(&choice.lease_key(&shard.id)));
    ended.filter(|lease| lease.checkpoint == Checkpoint::ShardEnd).collect()
}
