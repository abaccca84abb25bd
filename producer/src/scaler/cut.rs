//! Where to cut a shard so that its parts carry about the same load, and none more than it should.
//!
//! The load of a shard is known as stretches of keys with a weight each; a heavy key is a stretch of its own. A part that is
//! too heavy is cut where its load is halved, or into as many equal parts as there have to be; if one key is more than half of it, it is cut beside that key.
//!
//! What must hold: every cut lies inside the range and leaves at least two keys on either side, because Kinesis refuses a
//! split that leaves one. A heavy key shares its part with the next, which nobody hits but by chance.

use anabranch_model::{HashKey, HashRange};

use crate::traffic::{BUCKETS, Load, Sketch};

/// What of the load counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Bytes.
    Bytes,
    /// Records.
    Records,
}

impl Dimension {
    fn of(self, load: Load) -> f64 {
        match self {
            Dimension::Bytes => load.bytes,
            Dimension::Records => load.records,
        }
    }
}

/// Where to cut, and what no cut helps against.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cuts {
    /// The first keys of the parts above the lowest, ascending.
    pub at: Vec<HashKey>,
    /// Keys that are too much by themselves, with their load.
    pub hot: Vec<(HashKey, f64)>,
    /// Parts would still be too heavy, but there may be no more of them.
    pub short: bool,
}

/// A smaller share of a load than this is none: weights are scaled and subtracted.
const ROUNDING: f64 = 1e-6;

/// Keys from `first` to `last` with a weight that is spread evenly over them.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: u128,
    last: u128,
    weight: f64,
}

impl Stretch {
    fn is_key(&self) -> bool {
        self.first == self.last
    }
}

/// A part of a shard: stretches that touch each other.
struct Part {
    stretches: Vec<Stretch>,
    /// Nothing more can be done about it.
    done: bool,
}

impl Part {
    fn weight(&self) -> f64 {
        self.stretches.iter().map(|stretch| stretch.weight).sum()
    }
}

/// Cuts the load `demand`, spread as the sketch says, into at most `parts_max` parts of at most `target` each. Of it, `taken` is
/// what the shard took: a key has brought its share of that, and nobody knows that it would have brought more. What only
/// waits comes with keys of its own.
pub fn cuts(
    sketch: &Sketch,
    dimension: Dimension,
    [demand, taken]: [f64; 2],
    target: f64,
    parts_max: usize,
) -> Cuts {
    let mut result = Cuts::default();
    let mut parts = vec![Part { stretches: stretches(sketch, dimension, demand, taken), done: false }];
    loop {
        let heavy = parts.iter_mut().filter(|part| !part.done && part.weight() > target);
        let Some(part) = heavy.max_by(|a, b| a.weight().total_cmp(&b.weight())) else { break };
        if result.at.len() + 1 >= parts_max {
            result.short = true;
            break;
        }
        match cut(part, target, &mut result.hot) {
            Some((at, upper)) => {
                result.at.push(HashKey::new(at));
                parts.push(upper);
            }
            None => part.done = true,
        }
    }
    result.at.sort();
    result.hot.sort_by_key(|hot| hot.0);
    result
}

/// Cuts a part in two and returns the upper one with its first key; none if that does not help.
fn cut(part: &mut Part, target: f64, hot: &mut Vec<(HashKey, f64)>) -> Option<(u128, Part)> {
    let (first, last) = (part.stretches.first()?.first, part.stretches.last()?.last);
    let total = part.weight();
    let heaviest = part.stretches.iter().enumerate().filter(|(_, stretch)| stretch.is_key());
    let heaviest = heaviest.max_by(|a, b| a.1.weight.total_cmp(&b.1.weight));
    let at = match heaviest {
        Some((place, key)) if key.weight > total / 2.0 => {
            let below: f64 = part.stretches[..place].iter().map(|stretch| stretch.weight).sum();
            let rest = total - key.weight;
            if key.weight > target && !hot.iter().any(|(known, _)| known.get() == key.first) {
                hot.push((HashKey::new(key.first), key.weight));
            }
            // Whoever shares a shard with such a key is refused because of it.
            if rest <= ROUNDING * total {
                return None;
            }
            // The heavier side goes first; the other follows if the key and it are still too much.
            if below > rest - below { key.first } else { key.last.saturating_add(2) }
        }
        _ => {
            // As many parts as there have to be, of equal load: halving three into parts of at most one would make four.
            let parts = (total / target).ceil().max(2.0);
            quantile(&part.stretches, total * (parts / 2.0).floor() / parts)?
        }
    };
    let (lowest, highest) = (first.checked_add(2)?, last.checked_sub(1)?);
    if lowest > highest {
        return None;
    }
    let at = at.clamp(lowest, highest);
    Some((at, split(part, at)))
}

/// The key below which this much of the load lies.
fn quantile(stretches: &[Stretch], wanted: f64) -> Option<u128> {
    let (first, last) = (stretches.first()?.first, stretches.last()?.last);
    if first == last {
        return None;
    }
    let mut below = 0.0;
    for stretch in stretches {
        if below + stretch.weight < wanted {
            below += stretch.weight;
            continue;
        }
        let inside = wanted - below;
        let at = if stretch.is_key() {
            // On the side of the key that comes closer.
            let after = stretch.last.checked_add(1).filter(|after| *after <= last);
            match after {
                Some(after) if inside > stretch.weight - inside || stretch.first == first => after,
                _ => stretch.first,
            }
        } else {
            let share = if stretch.weight > 0.0 { inside / stretch.weight } else { 0.5 };
            let width = (stretch.last - stretch.first) as f64;
            // The product is rounded; it must not leave the stretch.
            let offset = ((width * share) as u128).min(stretch.last - stretch.first);
            stretch.first + offset
        };
        return Some(at.clamp(first + 1, last));
    }
    None
}

/// Takes the keys from `at` on out of a part.
fn split(part: &mut Part, at: u128) -> Part {
    let mut upper = Vec::new();
    let mut lower = Vec::new();
    for stretch in part.stretches.drain(..) {
        if stretch.last < at {
            lower.push(stretch);
        } else if stretch.first >= at {
            upper.push(stretch);
        } else {
            let whole = (stretch.last - stretch.first) as f64 + 1.0;
            let share = (at - stretch.first) as f64 / whole;
            lower.push(Stretch { last: at - 1, weight: stretch.weight * share, ..stretch });
            upper.push(Stretch { first: at, weight: stretch.weight * (1.0 - share), ..stretch });
        }
    }
    part.stretches = lower;
    Part { stretches: upper, done: false }
}

/// The range of a sketch as stretches: heavy keys by themselves, and what is left of each bucket around them.
fn stretches(sketch: &Sketch, dimension: Dimension, demand: f64, taken: f64) -> Vec<Stretch> {
    let range = sketch.range();
    let total: f64 = sketch.buckets().iter().map(|load| dimension.of(*load)).sum();
    let [unit, of_key] = [demand, taken].map(|load| if total > 0.0 { load / total } else { 0.0 });
    let mut hitters: Vec<(u128, f64)> = sketch
        .hitters()
        .iter()
        .map(|hitter| (hitter.key.get(), dimension.of(hitter.sure()) * of_key))
        .filter(|(_, weight)| *weight > 0.0)
        .collect();
    hitters.sort_by_key(|hitter| hitter.0);
    let mut stretches = Vec::new();
    for bucket in 0..BUCKETS {
        let Some(span) = bucket_span(sketch, bucket, range) else { break };
        let inside: Vec<_> = hitters.iter().filter(|(key, _)| span.contains(HashKey::new(*key))).collect();
        let known: f64 = inside.iter().map(|(_, weight)| weight).sum();
        let weight = match total > 0.0 {
            true => (dimension.of(sketch.buckets()[bucket]) * unit - known).max(0.0),
            // Nothing is known: the load is taken to be even.
            false => demand / BUCKETS as f64,
        };
        fill(&mut stretches, span, &inside, weight);
    }
    stretches
}

fn bucket_span(sketch: &Sketch, bucket: usize, range: HashRange) -> Option<HashRange> {
    let first = sketch.bucket_start(bucket).filter(|first| *first <= range.last())?;
    let next = sketch.bucket_start(bucket + 1).filter(|_| bucket + 1 < BUCKETS);
    let last = next.map_or(range.last(), |next| HashKey::new(next.get() - 1)).min(range.last());
    HashRange::new(first, last).ok()
}

/// Adds the stretches of one bucket: its heavy keys, and `weight` spread over the gaps between them.
fn fill(into: &mut Vec<Stretch>, span: HashRange, keys: &[&(u128, f64)], weight: f64) {
    let (first, last) = (span.first().get(), span.last().get());
    let mut gaps = Vec::new();
    let mut from = Some(first);
    for (key, own) in keys {
        if let Some(start) = from.filter(|start| start < key) {
            gaps.push(Stretch { first: start, last: key - 1, weight: 0.0 });
        }
        gaps.push(Stretch { first: *key, last: *key, weight: *own });
        from = key.checked_add(1).filter(|next| *next <= last);
    }
    gaps.extend(from.map(|start| Stretch { first: start, last, weight: 0.0 }));
    let width = |stretch: &Stretch| (stretch.last - stretch.first) as f64 + 1.0;
    let own = |stretch: &Stretch| keys.iter().any(|(key, _)| *key == stretch.first && stretch.is_key());
    let free: f64 = gaps.iter().filter(|gap| !own(gap)).map(width).sum();
    for gap in &mut gaps {
        if !own(gap) {
            gap.weight = weight * width(gap) / free;
        }
    }
    into.extend(gaps);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sketch(range: HashRange, loads: &[(u128, f64)]) -> Sketch {
        let mut sketch = Sketch::new(range);
        for (key, records) in loads {
            sketch.add(HashKey::new(*key), records * 100.0, *records);
        }
        sketch
    }

    #[test]
    fn an_even_load_is_cut_in_the_middle() {
        let keys: Vec<_> = (0..4096u128).map(|number| (number << 116, 1.0)).collect();
        let cuts = cuts(&sketch(HashRange::ALL, &keys), Dimension::Records, [1.5, 1.5], 0.8, 10);
        let middle = (1u128 << 127) as f64;
        assert_eq!(cuts.at.len(), 1);
        assert!((cuts.at[0].get() as f64 / middle - 1.0).abs() < 0.02, "{cuts:?}");
        assert!(cuts.hot.is_empty());
    }

    #[test]
    fn a_load_on_one_side_is_cut_there() {
        let keys: Vec<_> = (0..1000u128).map(|number| (number << 110, 1.0)).collect();
        let cuts = cuts(&sketch(HashRange::ALL, &keys), Dimension::Records, [1.5, 1.5], 0.8, 10);
        assert_eq!(cuts.at.len(), 1);
        assert!(cuts.at[0].get() < 1000 << 110, "{cuts:?}");
    }

    #[test]
    fn a_dominant_key_is_isolated() {
        let mut keys: Vec<_> = (0..1000u128).map(|number| (number << 118, 1.0)).collect();
        let hot = 500u128 << 118 | 7;
        keys.push((hot, 3_000.0));
        let cuts = cuts(&sketch(HashRange::ALL, &keys), Dimension::Records, [1.6, 1.6], 0.8, 10);
        assert_eq!(cuts.at, [HashKey::new(hot), HashKey::new(hot + 2)]);
        assert_eq!(cuts.hot.iter().map(|hot| hot.0).collect::<Vec<_>>(), [HashKey::new(hot)]);
    }

    #[test]
    fn a_key_that_is_alone_is_named_and_not_cut() {
        let only = sketch(HashRange::ALL, &[(77, 5_000.0)]);
        let cuts = cuts(&only, Dimension::Bytes, [1.2, 1.2], 0.8, 10);
        assert_eq!(cuts.at, []);
        assert_eq!(cuts.hot, [(HashKey::new(77), 1.2)]);
    }

    #[test]
    fn what_waits_is_not_more_of_the_keys_that_came() {
        // Forty keys, each a fortieth of what the shard took, and twelve times as much is to be taken.
        let keys: Vec<_> = (0..40u128).map(|number| ((number << 121) | (number * 977), 1.0)).collect();
        let cuts = cuts(&sketch(HashRange::ALL, &keys), Dimension::Records, [12.0, 1.0], 0.72, 100);
        assert!(cuts.hot.is_empty(), "{cuts:?}");
        assert!((16..=24).contains(&cuts.at.len()), "about equal parts: {}", cuts.at.len());
        let narrow = cuts.at.windows(2).filter(|pair| pair[1].get() - pair[0].get() < 1 << 110).count();
        assert_eq!(narrow, 0, "no shard for a key that will not come again: {cuts:?}");
    }

    #[test]
    fn there_are_as_many_parts_as_there_have_to_be() {
        let keys: Vec<_> = (0..4096u128).map(|number| (number << 116, 1.0)).collect();
        let cuts = cuts(&sketch(HashRange::ALL, &keys), Dimension::Records, [2.9, 2.9], 1.0, 10);
        let third = (u128::MAX / 3) as f64;
        let parts: Vec<f64> = cuts.at.iter().map(|at| at.get() as f64 / third).collect();
        assert_eq!(parts.len(), 2, "{parts:?}");
        assert!((parts[0] - 1.0).abs() < 0.02 && (parts[1] - 2.0).abs() < 0.02, "{parts:?}");
    }

    #[test]
    fn a_spike_is_cut_into_several_parts_at_once_and_no_more_than_allowed() {
        let keys: Vec<_> = (0..4096u128).map(|number| (number << 116, 1.0)).collect();
        let sketch = sketch(HashRange::ALL, &keys);
        assert_eq!(cuts(&sketch, Dimension::Records, [3.0, 3.0], 0.8, 10).at.len(), 3);
        let few = cuts(&sketch, Dimension::Records, [3.0, 3.0], 0.8, 3);
        assert_eq!((few.at.len(), few.short), (2, true));
    }

    proptest! {
        #[test]
        fn cuts_can_always_be_made(
            bounds: (u128, u128),
            narrow: bool,
            loads in proptest::collection::vec((any::<u128>(), 0.1f64..1000.0), 0..60),
            demand in 0.1f64..20.0,
            parts in 1usize..20,
        ) {
            let (first, last) = (bounds.0.min(bounds.1), bounds.0.max(bounds.1));
            let last = if narrow { first.saturating_add(last % 5) } else { last };
            let mut range = HashRange::new(HashKey::new(first), HashKey::new(last)).unwrap();
            let keys = (last - first).saturating_add(1);
            let loads: Vec<_> = loads.iter().map(|(key, load)| (first + key % keys, *load)).collect();
            let cuts = cuts(&sketch(range, &loads), Dimension::Records, [demand, demand], 0.8, parts);
            prop_assert!(cuts.at.len() < parts.max(1));
            for at in &cuts.at {
                let [lower, upper] = range.split_at(*at).unwrap();
                prop_assert_eq!(lower.merge(upper), Some(range));
                prop_assert!(lower.first() < lower.last() && upper.first() < upper.last(), "a single key");
                range = upper;
            }
        }
    }
}
