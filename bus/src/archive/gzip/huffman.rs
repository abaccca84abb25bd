//! Prefix codes: few bits for what comes often.

use std::collections::VecDeque;

/// A prefix code for symbols that come so often.
pub(super) struct Code {
    /// Bits of each symbol; none for those that never come.
    pub(super) lengths: Vec<u8>,
    /// The code of each symbol, its first bit lowest, and above 16 bits how many it has.
    pub(super) symbols: Vec<u32>,
}

impl Code {
    /// The shortest code with no symbol longer than `longest` bits, or one that is close to it. It has at least two
    /// symbols: a code of one would leave a bit without a meaning, which some readers refuse.
    pub(super) fn of(counts: &[u32], longest: u8) -> Code {
        let mut counts = counts.to_vec();
        let used = counts.iter().filter(|count| **count > 0).count();
        counts
            .iter_mut()
            .filter(|count| **count == 0)
            .take(2_usize.saturating_sub(used))
            .for_each(|count| *count = 1);
        let mut lengths = depths(&counts);
        while lengths.iter().any(|length| *length > longest) {
            // Counts that lie closer together make a flatter tree.
            counts.iter_mut().filter(|count| **count > 0).for_each(|count| *count = *count / 2 + 1);
            lengths = depths(&counts);
        }
        let symbols = in_order(&lengths);
        Code { lengths, symbols }
    }

    /// Bits that these symbols take.
    pub(super) fn cost(&self, counts: &[u32]) -> u64 {
        counts.iter().zip(&self.lengths).map(|(count, length)| u64::from(*count) * u64::from(*length)).sum()
    }
}

/// How deep each symbol lies in the tree that joins, again and again, the two rarest.
fn depths(counts: &[u32]) -> Vec<u8> {
    let symbols = (0..counts.len()).filter(|symbol| counts[*symbol] > 0);
    let mut symbols: Vec<_> = symbols.map(|symbol| (counts[symbol], symbol)).collect();
    symbols.sort_unstable();
    // Nodes that join two are made from the rarest to the most frequent, so the rarest of all is the first of one or the other.
    let (mut symbols, mut nodes) = (VecDeque::from(symbols), VecDeque::new());
    let mut rarest = |nodes: &mut VecDeque<_>| match (symbols.front(), nodes.front()) {
        (Some(symbol), Some(node)) if node < symbol => nodes.pop_front(),
        (None, _) => nodes.pop_front(),
        _ => symbols.pop_front(),
    };
    // Behind the symbols come the nodes.
    let mut parents = vec![0; counts.len()];
    while let (Some((one, left)), Some((other, right))) = (rarest(&mut nodes), rarest(&mut nodes)) {
        let node = parents.len();
        parents.push(node);
        (parents[left], parents[right]) = (node, node);
        nodes.push_back((one + other, node));
    }
    // A parent comes behind its children, so that its depth is known before theirs.
    let mut depths = vec![0_u8; parents.len()];
    for node in (0..parents.len()).rev().skip(1) {
        if node >= counts.len() || counts[node] > 0 {
            depths[node] = depths[parents[node]] + 1;
        }
    }
    depths.truncate(counts.len());
    depths
}

/// The codes that follow from the lengths alone: those of one length count upwards, from the shortest to the longest.
fn in_order(lengths: &[u8]) -> Vec<u32> {
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let (mut next, mut symbols) = (0_u16, vec![0; lengths.len()]);
    for length in 1..=longest {
        next <<= 1;
        for (symbol, _) in lengths.iter().enumerate().filter(|(_, other)| **other == length) {
            symbols[symbol] = u32::from(next.reverse_bits() >> (16 - length)) | u32::from(length) << 16;
            next += 1;
        }
    }
    symbols
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every sequence of bits means something, and nothing is too long.
        #[test]
        fn codes_are_complete(counts in prop::collection::vec(prop_oneof![Just(0_u32), 0..5_u32, 0..1_000_000_u32], 30)) {
            for longest in [7, 14] {
                let code = Code::of(&counts, longest);
                let share = |length: &u8| if *length == 0 { 0 } else { 1_u32 << (14 - length) };
                prop_assert_eq!(code.lengths.iter().map(share).sum::<u32>(), 1 << 14);
                prop_assert!(code.lengths.iter().all(|length| *length <= longest));
                prop_assert!(counts.iter().zip(&code.lengths).all(|(count, length)| *count == 0 || *length > 0));
            }
        }
    }

    #[test]
    fn what_comes_often_is_short() {
        let code = Code::of(&[1, 1, 2, 4, 0], 15);
        assert_eq!(code.lengths, [3, 3, 2, 1, 0]);
        assert_eq!(code.symbols, [0x3_0003, 0x3_0007, 0x2_0001, 0x1_0000, 0]);
    }
}
