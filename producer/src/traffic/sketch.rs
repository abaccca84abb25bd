//! Where in the range of a shard the load lies: a histogram over hash keys, and the heaviest keys by themselves.
//!
//! The heaviest are found as Metwally, Agrawal and El Abbadi do it: a fixed number of counters, and a new key takes over
//! the smallest one with its count as a possible error. Everything fades, so that what was is not taken for what is.

use std::time::Duration;

use anabranch_model::{HashKey, HashRange};

/// Parts of equal width into which a range is cut.
pub const BUCKETS: usize = 128;
/// Keys that are counted by themselves.
pub const HITTERS_MAX: usize = 32;
/// The time in which half of the load fades.
const HALF_LIFE_SECONDS: f64 = 10.0;
/// Bits of a width that are left out when a bucket is looked for, so that 128 times the others fit into 64 bits.
const LEADING_BITS: u32 = 128 - 56;
/// Fading is done in steps of this length.
const STEP: Duration = Duration::from_secs(1);

/// Bytes and records, faded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Bytes.
    pub bytes: f64,
    /// Records.
    pub records: f64,
}

impl Load {
    fn add(&mut self, other: Load) {
        self.bytes += other.bytes;
        self.records += other.records;
    }

    fn fade(&mut self, factor: f64) {
        self.bytes *= factor;
        self.records *= factor;
    }
}

/// A key that is counted by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hitter {
    /// Its place in the hash-key space.
    pub key: HashKey,
    /// What it brought, at most.
    pub load: Load,
    /// How much of that may have been other keys'.
    pub error: Load,
}

impl Hitter {
    /// What it certainly brought.
    pub fn sure(&self) -> Load {
        Load {
            bytes: (self.load.bytes - self.error.bytes).max(0.0),
            records: (self.load.records - self.error.records).max(0.0),
        }
    }
}

/// The load of one shard over its range.
#[derive(Clone, Debug)]
pub struct Sketch {
    range: HashRange,
    buckets: Vec<Load>,
    hitters: Vec<Hitter>,
    faded_at: Duration,
    /// What the lightest of the heaviest keys had when all were compared the last time; none has less.
    least: f64,
    /// Behind the last one that is known to have more than that.
    next: usize,
}

impl PartialEq for Sketch {
    /// Where the lightest key was looked for the last time makes no difference.
    fn eq(&self, other: &Sketch) -> bool {
        let all = |sketch: &Sketch| (sketch.range, sketch.faded_at);
        all(self) == all(other) && self.buckets == other.buckets && self.hitters == other.hitters
    }
}

impl Sketch {
    /// No load.
    pub fn new(range: HashRange) -> Self {
        Sketch::from_parts(range, vec![Load::default(); BUCKETS], Vec::new())
    }

    pub(super) fn from_parts(range: HashRange, buckets: Vec<Load>, hitters: Vec<Hitter>) -> Self {
        Sketch { range, buckets, hitters, faded_at: Duration::ZERO, least: f64::NEG_INFINITY, next: 0 }
    }

    /// The keys that it is about.
    pub fn range(&self) -> HashRange {
        self.range
    }

    /// The load of each part of the range, in order.
    pub fn buckets(&self) -> &[Load] {
        &self.buckets
    }

    /// The heaviest keys, in no order.
    pub fn hitters(&self) -> &[Hitter] {
        &self.hitters
    }

    /// Adds the load of a key. What does not belong to the range is left out.
    pub fn add(&mut self, key: HashKey, bytes: f64, records: f64) {
        if !self.range.contains(key) {
            return;
        }
        let load = Load { bytes, records };
        let bucket = self.bucket_of(key);
        self.buckets[bucket].add(load);
        self.hit(key, load, Load::default());
    }

    /// Adds another sketch of the same range.
    pub fn merge(&mut self, other: &Sketch) {
        if self.range != other.range {
            return;
        }
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            bucket.add(*more);
        }
        for hitter in &other.hitters {
            self.hit(hitter.key, hitter.load, hitter.error);
        }
    }

    /// Where a bucket begins; behind the last one it is the key behind the range, if there is one.
    pub fn bucket_start(&self, bucket: usize) -> Option<HashKey> {
        let offset = self.width().checked_mul(bucket as u128)?;
        self.range.first().get().checked_add(offset).map(HashKey::new)
    }

    /// The bucket that a key of the range belongs to.
    pub fn bucket_of(&self, key: HashKey) -> usize {
        let (offset, width) = (key.get() - self.range.first().get(), self.width());
        // The quotient of the leading bits is not too small and hardly ever too large, and much faster than that of all.
        let shift = LEADING_BITS.saturating_sub(width.leading_zeros());
        let mut bucket = ((offset >> shift) as u64 / (width >> shift) as u64).min(BUCKETS as u64 - 1);
        while width * u128::from(bucket) > offset {
            bucket -= 1;
        }
        bucket as usize
    }

    /// Lets the load fade up to a moment.
    pub(super) fn decay_to(&mut self, now: Duration) {
        let steps = (now.saturating_sub(self.faded_at).as_secs_f64() / STEP.as_secs_f64()).floor();
        if steps < 1.0 {
            return;
        }
        self.faded_at += STEP.mul_f64(steps);
        let factor = 0.5_f64.powf(steps * STEP.as_secs_f64() / HALF_LIFE_SECONDS);
        self.buckets.iter_mut().for_each(|bucket| bucket.fade(factor));
        for hitter in &mut self.hitters {
            hitter.load.fade(factor);
            hitter.error.fade(factor);
        }
        self.least = f64::NEG_INFINITY;
    }

    /// Keys in a bucket; at least one.
    fn width(&self) -> u128 {
        let distance = self.range.last().get() - self.range.first().get();
        distance / BUCKETS as u128 + 1
    }

    fn hit(&mut self, key: HashKey, load: Load, error: Load) {
        if let Some(hitter) = self.hitters.iter_mut().find(|hitter| hitter.key == key) {
            hitter.load.add(load);
            hitter.error.add(error);
            return;
        }
        if self.hitters.len() < HITTERS_MAX {
            self.hitters.push(Hitter { key, load, error });
            return;
        }
        let lightest = self.lightest();
        let lightest = &mut self.hitters[lightest];
        let old = lightest.load;
        *lightest = Hitter { key, load, error };
        lightest.load.add(old);
        lightest.error.add(old);
    }

    /// The lightest of the heaviest keys. Counters only grow between two fadings, so one that has no more than the least had
    /// is the lightest; all are compared only when none is left.
    fn lightest(&mut self) -> usize {
        let left = self.hitters.iter().skip(self.next);
        if let Some(at) = left.clone().position(|hitter| hitter.load.records <= self.least) {
            self.next += at + 1;
            return self.next - 1;
        }
        let records = |hitter: &Hitter| hitter.load.records;
        let lightest =
            self.hitters.iter().enumerate().min_by(|(_, a), (_, b)| records(a).total_cmp(&records(b)));
        let (at, least) = lightest.map_or((0, 0.0), |(at, hitter)| (at, records(hitter)));
        (self.least, self.next) = (least, at + 1);
        at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_heavy_key_is_found_among_many() {
        let mut sketch = Sketch::new(HashRange::ALL);
        for number in 0..20_000u32 {
            sketch.add(HashKey::of(&number.to_be_bytes()), 10.0, 1.0);
            if number % 4 == 0 {
                sketch.add(HashKey::new(77), 10.0, 1.0);
            }
        }
        let heavy =
            sketch.hitters().iter().find(|hitter| hitter.key == HashKey::new(77)).expect("the heavy key");
        assert!(heavy.load.records >= 5_000.0, "{heavy:?}");
        assert!(heavy.sure().records > 4_000.0, "{heavy:?}");
    }

    proptest! {
        /// As if all counters were compared every time.
        #[test]
        fn a_new_key_takes_over_the_smallest_counter(keys in prop::collection::vec((0u128..60, 1u32..4), 0..600)) {
            let mut sketch = Sketch::new(HashRange::ALL);
            for (step, (key, records)) in keys.into_iter().enumerate() {
                let before = sketch.hitters().to_vec();
                sketch.add(HashKey::new(key), 1.0, f64::from(records));
                let known = before.iter().any(|hitter| hitter.key == HashKey::new(key));
                if before.len() == HITTERS_MAX && !known {
                    let least = before.iter().map(|hitter| hitter.load.records).fold(f64::INFINITY, f64::min);
                    let new = sketch.hitters().iter().find(|hitter| hitter.key == HashKey::new(key));
                    prop_assert_eq!(new.map(|hitter| hitter.error.records), Some(least));
                }
                if step % 50 == 49 {
                    sketch.decay_to(Duration::from_secs(step as u64 / 10));
                }
            }
        }
    }

    #[test]
    fn load_fades() {
        let mut sketch = Sketch::new(HashRange::ALL);
        sketch.add(HashKey::MAX, 100.0, 1.0);
        sketch.decay_to(Duration::from_secs(10));
        let last = sketch.buckets()[BUCKETS - 1];
        assert!((last.bytes - 50.0).abs() < 1e-6, "{last:?}");
        assert!((sketch.hitters()[0].load.records - 0.5).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn every_key_has_its_bucket(first: u128, last: u128, key: u128) {
            let (first, last) = (first.min(last), first.max(last));
            let range = HashRange::new(HashKey::new(first), HashKey::new(last)).unwrap();
            let key = HashKey::new(key.clamp(first, last));
            let sketch = Sketch::new(range);
            let bucket = sketch.bucket_of(key);
            prop_assert!(sketch.bucket_start(bucket).is_some_and(|start| start <= key));
            prop_assert!(bucket == BUCKETS - 1 || sketch.bucket_start(bucket + 1).is_none_or(|end| key < end));
        }
    }
}
