//! How the leader spreads leases over the workers. It asks owners to hand leases over, and never takes one away.

use std::collections::{BTreeMap, HashSet};

use smol_str::SmolStr;

use super::checkpoint::Checkpoint;
use super::item::Lease;
use crate::settings::BalanceBy;

/// Leases that change their owner in one round at most: the next round sees what became of them.
const MOVES_MAX: usize = 32;
/// A worker is let alone as long as its load is within this part of the average.
const TOLERANCE: f64 = 0.1;

/// A lease that should have another owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) lease: SmolStr,
    pub(crate) from: SmolStr,
    pub(crate) to: SmolStr,
}

/// Which leases should change hands. `alive` are the workers that can have any; leases of others, and those that change
/// hands already, are let alone.
pub(crate) fn plan(leases: &[Lease], alive: &HashSet<SmolStr>, by: BalanceBy) -> Vec<Move> {
    let mut loads: BTreeMap<&SmolStr, Vec<&Lease>> =
        alive.iter().map(|worker| (worker, Vec::new())).collect();
    for lease in leases.iter().filter(|lease| lease.checkpoint != Checkpoint::ShardEnd) {
        // A lease on its way counts for the one who gets it.
        if let Some(load) = lease.owner.as_ref().and_then(|owner| loads.get_mut(owner)) {
            load.push(lease);
        }
    }
    let mut moves = Vec::new();
    while moves.len() < MOVES_MAX {
        let Some(next) = next_move(&mut loads, &moves, by) else { break };
        moves.push(next);
    }
    moves
}

fn next_move<'a>(
    loads: &mut BTreeMap<&'a SmolStr, Vec<&'a Lease>>,
    moves: &[Move],
    by: BalanceBy,
) -> Option<Move> {
    let weigh = |load: &Vec<&Lease>| load.iter().map(|lease| weight(lease, by)).sum::<f64>();
    let heavier = |a: &(f64, &SmolStr), b: &(f64, &SmolStr)| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1));
    let weighed: Vec<(f64, &SmolStr)> = loads.iter().map(|(worker, load)| (weigh(load), *worker)).collect();
    let (most, from) = *weighed.iter().max_by(|a, b| heavier(a, b))?;
    let (least, to) = *weighed.iter().min_by(|a, b| heavier(a, b))?;
    let average = weighed.iter().map(|(load, _)| load).sum::<f64>() / weighed.len() as f64;
    if by == BalanceBy::Throughput && most <= average * (1.0 + TOLERANCE) {
        return None;
    }
    // The largest one that leaves the receiver with less than the giver had; moving it must make a difference.
    let fits = |lease: &&&Lease| least + weight(lease, by) < most;
    // What is on its way, or was moved in this round, counts but is not chosen again.
    let rests = |lease: &&&Lease| {
        lease.checkpoint_owner.is_none() && moves.iter().all(|moved| moved.lease != lease.key)
    };
    let movable = loads.get(from)?.iter().filter(rests).filter(fits);
    let chosen =
        *movable.max_by(|a, b| weight(a, by).total_cmp(&weight(b, by)).then_with(|| b.key.cmp(&a.key)))?;
    loads.get_mut(from)?.retain(|lease| lease.key != chosen.key);
    let moved = Move { lease: chosen.key.clone(), from: from.clone(), to: to.clone() };
    loads.get_mut(to)?.push(chosen);
    Some(moved)
}

fn weight(lease: &Lease, by: BalanceBy) -> f64 {
    match by {
        BalanceBy::Count => 1.0,
        // A lease without load costs something as well, or all idle ones would stay with one worker.
        BalanceBy::Throughput => lease.throughput_kbps.max(0.001),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(number: usize, owner: &str, kbps: f64) -> Lease {
        let key = format!("shardId-{number:012}");
        Lease { owner: Some(owner.into()), throughput_kbps: kbps, ..Lease::new(key, Checkpoint::TrimHorizon) }
    }

    fn workers(names: &[&str]) -> HashSet<SmolStr> {
        names.iter().map(|name| SmolStr::from(*name)).collect()
    }

    fn after(leases: &[Lease], moves: &[Move]) -> BTreeMap<SmolStr, (usize, f64)> {
        let mut loads = BTreeMap::new();
        for lease in leases {
            let moved = moves.iter().find(|m| m.lease == lease.key);
            let owner = moved.map_or_else(|| lease.owner.clone().unwrap(), |m| m.to.clone());
            let load: &mut (usize, f64) = loads.entry(owner).or_default();
            *load = (load.0 + 1, load.1 + lease.throughput_kbps);
        }
        loads
    }

    #[test]
    fn counts_end_up_even_and_no_lease_moves_twice() {
        for (count, names) in
            [(10, &["a", "b", "c"][..]), (7, &["a", "b"]), (2, &["a", "b", "c"]), (0, &["a"])]
        {
            let leases: Vec<_> = (0..count).map(|number| lease(number, "a", 0.0)).collect();
            let moves = plan(&leases, &workers(names), BalanceBy::Count);
            let moved: HashSet<_> = moves.iter().map(|m| &m.lease).collect();
            assert_eq!(moved.len(), moves.len(), "{moves:?}");
            assert!(moves.iter().all(|m| m.from != m.to));
            let loads = after(&leases, &moves);
            let most = loads.values().map(|load| load.0).max().unwrap_or(0);
            assert!(most <= count.div_ceil(names.len()).max(1), "{loads:?}");
        }
    }

    #[test]
    fn what_is_even_stays() {
        let leases = [lease(0, "a", 9.0), lease(1, "a", 0.0), lease(2, "b", 0.0)];
        assert_eq!(plan(&leases, &workers(&["a", "b"]), BalanceBy::Count), vec![]);
        let leases = [lease(0, "a", 5.0), lease(1, "b", 5.2)];
        assert_eq!(plan(&leases, &workers(&["a", "b"]), BalanceBy::Throughput), vec![]);
    }

    #[test]
    fn the_loudest_lease_is_not_thrown_back_and_forth() {
        let leases = [lease(0, "a", 100.0), lease(1, "a", 1.0), lease(2, "b", 2.0)];
        let moves = plan(&leases, &workers(&["a", "b"]), BalanceBy::Throughput);
        let loads = after(&leases, &moves);
        assert_eq!(loads["b"], (2, 3.0), "{moves:?}");
    }

    #[test]
    fn leases_of_the_dead_and_those_on_their_way_are_let_alone() {
        let mut leases: Vec<_> = (0..4).map(|number| lease(number, "dead", 0.0)).collect();
        leases.extend((4..8).map(|number| lease(number, "a", 0.0)));
        for lease in &mut leases[4..8] {
            lease.checkpoint_owner = Some("b".into());
        }
        assert_eq!(plan(&leases, &workers(&["a", "b"]), BalanceBy::Count), vec![]);
    }
}
