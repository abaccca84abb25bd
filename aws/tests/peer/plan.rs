//! Plans of faults: which request has which.

use std::collections::BTreeMap;

use super::proxy::Fault;
use super::wire::Request;

/// So many faults in a hundred requests, from a seed. Which one it is goes in turn through those that the request may have,
/// so that a few requests are enough to see all of them.
pub fn chance(
    seed: u64,
    percent: u64,
    faults: impl Fn(&Request) -> &'static [Fault] + Send + 'static,
) -> impl FnMut(&Request) -> Option<Fault> + Send + 'static {
    let mut state = seed;
    let mut turns: BTreeMap<&'static [Fault], usize> = BTreeMap::new();
    // The multiplier is Knuth's; the high bits are the ones that look like chance.
    let mut roll = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    move |request| {
        let faults = faults(request);
        if roll() % 100 >= percent || faults.is_empty() {
            return None;
        }
        let turn = turns.entry(faults).or_insert(0);
        *turn += 1;
        Some(faults[*turn % faults.len()])
    }
}

/// The given faults in turn, each for one request of an operation, and then none.
pub fn first(
    operation: &'static str,
    faults: &'static [Fault],
) -> impl FnMut(&Request) -> Option<Fault> + Send + 'static {
    let mut faults = faults.iter();
    move |request| (request.operation == operation).then(|| faults.next()).flatten().copied()
}

/// A fault for the first request of each of these operations.
pub fn once_each(
    fault: Fault,
    operations: &'static [&'static str],
) -> impl FnMut(&Request) -> Option<Fault> + Send + 'static {
    let mut left: Vec<_> = operations.to_vec();
    move |request| {
        let place = left.iter().position(|operation| *operation == request.operation)?;
        left.swap_remove(place);
        Some(fault)
    }
}
