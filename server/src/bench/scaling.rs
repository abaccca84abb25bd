//! `bench scale`: how many splits a stream needs until no shard is too full, at the median of the load beside the middle
//! of the range.
//!
//! Keys come as often as Zipf says, ten times what one shard takes, into a stream of four shards. Both sides see the same
//! keys and stop at the same point: no shard is over 80 % except those that one key fills by itself. Nothing is stored: the
//! planner works on the counters that producers keep, fed with a sample of the load.

use std::time::Duration;

use anabranch_model::{Dice, HashKey, HashRange, ShardId};
use anabranch_producer::scaler::{Action, Observed, ObservedShard, ScalerSettings, plan};
use anabranch_producer::traffic::{Second, ShardSnapshot, Sketch};

use super::Setting;
use super::machine::Machine;
use super::report::{Figure, Goal, Report, Unit};
use super::statistics::Spread;
use crate::failure::Failure;

const KEYS: usize = 10_000;
const SHARDS: usize = 4;
/// What all keys bring together, in capacities of a shard.
const LOAD: f64 = 10.0;
const RECORD_BYTES: u64 = 300;
const SECONDS: usize = 10;
/// Passes after which a side that still splits has failed.
const PASSES_MAX: usize = 200;
/// A shard that is fuller than this is split.
const FULL: f64 = 0.8;
/// A key is alone in its shard if the others bring less than this of a shard: a record a second.
const REST: f64 = 0.001;

/// What one side needed.
struct Needed {
    splits: usize,
    passes: usize,
    /// The fullest shard that is not one key's alone.
    fullest: f64,
}

/// Keys with their load, in the order of their places.
struct Keys(Vec<(HashKey, f64)>);

impl Keys {
    fn zipf(exponent: f64, seed: u64) -> Keys {
        let weight = |rank: usize| (rank as f64).powf(-exponent);
        let total: f64 = (1..=KEYS).map(weight).sum();
        let key = |rank: usize| HashKey::of(format!("{seed}/{rank}").as_bytes());
        let mut keys: Vec<_> = (1..=KEYS).map(|rank| (key(rank), weight(rank) / total * LOAD)).collect();
        keys.sort_by_key(|key| key.0);
        Keys(keys)
    }

    fn within(&self, range: HashRange) -> &[(HashKey, f64)] {
        let from = self.0.partition_point(|(key, _)| *key < range.first());
        let to = self.0.partition_point(|(key, _)| *key <= range.last());
        &self.0[from..to]
    }

    /// The load of a range, and that of its heaviest key.
    fn load(&self, range: HashRange) -> (f64, f64) {
        let keys = self.within(range);
        (keys.iter().map(|key| key.1).sum(), keys.iter().map(|key| key.1).fold(0.0, f64::max))
    }

    /// Whether a shard with this range is as it should be, or cannot be helped.
    fn settled(&self, range: HashRange) -> bool {
        let (load, heaviest) = self.load(range);
        load < FULL || load - heaviest < REST
    }
}

/// Splits every shard that is too full in the middle of its range, until none is.
fn by_midpoint(keys: &Keys) -> Needed {
    let mut ranges = HashRange::even(SHARDS);
    let (mut splits, mut passes) = (0, 0);
    while passes < PASSES_MAX {
        let parts = |range: &HashRange| match range.midpoint().filter(|_| !keys.settled(*range)) {
            Some(at) => range.split_at(at).map_or_else(|_| vec![*range], Vec::from),
            None => vec![*range],
        };
        let after: Vec<HashRange> = ranges.iter().flat_map(parts).collect();
        if after.len() == ranges.len() {
            break;
        }
        splits += after.len() - ranges.len();
        passes += 1;
        ranges = after;
    }
    Needed { splits, passes, fullest: fullest(keys, &ranges) }
}

/// The fewest splits that there can be: every shard that is too full is filled again from below, each part as far as it goes.
fn fewest(keys: &Keys) -> usize {
    let ranges = HashRange::even(SHARDS);
    ranges.iter().filter(|range| !keys.settled(**range)).map(|range| parts(keys.within(*range)) - 1).sum()
}

/// Parts of at most [`FULL`], unless one key is more.
fn parts(keys: &[(HashKey, f64)]) -> usize {
    let (mut parts, mut filled) = (1, 0.0);
    for (_, load) in keys {
        if filled + load > FULL && filled >= REST {
            parts += 1;
            filled = 0.0;
        }
        filled += load;
    }
    parts
}

/// Does what the planner says, until it says nothing.
fn by_load(keys: &Keys, settings: &ScalerSettings, dice: &Dice) -> Needed {
    let mut ranges = HashRange::even(SHARDS);
    let (mut splits, mut passes) = (0, 0);
    while passes < PASSES_MAX {
        let shards =
            ranges.iter().zip(0..).map(|(range, number)| observe(keys, *range, number, settings, dice));
        let decisions = plan(&Observed { shards: shards.collect(), backlog: None }, settings);
        let mut after = ranges.clone();
        for decision in decisions {
            let Action::Split { shard, at } = decision.action else { continue };
            let Some(mut rest) = shard.number().and_then(|number| ranges.get(number as usize).copied())
            else {
                continue;
            };
            let Some(place) = after.iter().position(|range| *range == rest) else { continue };
            let mut parts = Vec::new();
            for at in at {
                let Ok([lower, upper]) = rest.split_at(at) else { continue };
                parts.push(lower);
                rest = upper;
                splits += 1;
            }
            parts.push(rest);
            after.splice(place..=place, parts);
        }
        if after.len() == ranges.len() {
            break;
        }
        passes += 1;
        ranges = after;
    }
    Needed { splits, passes, fullest: fullest(keys, &ranges) }
}

fn fullest(keys: &Keys, ranges: &[HashRange]) -> f64 {
    let shared = ranges.iter().map(|range| keys.load(*range)).filter(|(load, heaviest)| {
        // What one key fills by itself says nothing about where the cuts are.
        load - heaviest >= REST
    });
    shared.map(|(load, _)| load).fold(0.0, f64::max)
}

/// What a producer would have counted: each key as often as its load says, give or take a record.
fn observe(
    keys: &Keys,
    range: HashRange,
    number: u64,
    settings: &ScalerSettings,
    dice: &Dice,
) -> ObservedShard {
    let mut sketch = Sketch::new(range);
    let mut records = 0;
    // In turns, as they would come: a key does not send everything at once.
    let turns = SECONDS * 4;
    for _ in 0..turns {
        for (key, load) in keys.within(range) {
            let expected = load * settings.max_records * SECONDS as f64 / turns as f64;
            let chance = (dice.roll() % 1_000_000) as f64 / 1e6;
            let count = expected as u64 + u64::from(chance < expected.fract());
            if count > 0 {
                sketch.add(*key, (count * RECORD_BYTES) as f64, count as f64);
                records += count;
            }
        }
    }
    let second = Second {
        records: records / SECONDS as u64,
        bytes: records * RECORD_BYTES / SECONDS as u64,
        throttles: 0,
    };
    let (shard, seconds) = (ShardId::numbered(number), vec![second; SECONDS]);
    let traffic = ShardSnapshot { shard: shard.clone(), range, seconds, sketch, active: 0 };
    ObservedShard { shard, range, age: Some(Duration::from_secs(60)), traffic: Some(traffic) }
}

pub(super) async fn measure(setting: &Setting<'_>) -> Result<Report, Failure> {
    let rounds = setting.bounds.rounds;
    let mut report = Report::new("scale", Machine::with(setting.place.root()), setting.bounds);
    let settings = ScalerSettings { max_shards: 10_000, ..ScalerSettings::default() };
    for (name, fullest, exponent) in
        [("zipf_1_0", "fullest_1_0", 1.0), ("zipf_1_2", "fullest_1_2", 1.2), ("zipf_1_4", "fullest_1_4", 1.4)]
    {
        let (mut median, mut midpoint, mut least) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds as u64 {
            let keys = Keys::zipf(exponent, round);
            let dice = Dice::new(round);
            least.push(fewest(&keys) as f64);
            median
                .push(super::blocking(move || (by_load(&keys, &settings, &dice), by_midpoint(&keys))).await?);
        }
        midpoint.extend(median.iter().map(|(_, midpoint)| midpoint.splits as f64));
        let passes = |of: &dyn Fn(&(Needed, Needed)) -> usize| {
            let passes: Vec<f64> = median.iter().map(|needed| of(needed) as f64).collect();
            Spread::of(passes).median
        };
        let what = format!(
            "{KEYS} keys by Zipf {exponent}, {LOAD} times a shard's capacity: splits at the median of the load ({} \
             passes; no cuts at all need fewer than {}), beside the middle of the range ({} passes)",
            passes(&|needed| needed.0.passes),
            Spread::of(least).median,
            passes(&|needed| needed.1.passes)
        );
        let splits = Spread::of(median.iter().map(|(median, _)| median.splits as f64).collect());
        let figure = Figure::beside(name, what, Unit::Count, splits, Spread::of(midpoint));
        report.figures.push(if exponent > 1.1 { figure.aim(Goal::RatioAtMost(0.5)) } else { figure });
        let worst = |of: fn(&(Needed, Needed)) -> f64| Spread::of(median.iter().map(of).collect());
        let (ours, theirs) =
            (worst(|needed| needed.0.fullest * 100.0), worst(|needed| needed.1.fullest * 100.0));
        let what = format!("the fullest shard at the end, one key's alone left out, Zipf {exponent}");
        let figure = Figure::with_ratio(fullest, what, Unit::Percent, ours, Some(theirs), None);
        report.figures.push(figure.aim(Goal::Below(FULL * 100.0)));
    }
    report.notes.push("nothing is stored: the planner is given what producers would have counted".to_owned());
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_where_the_load_is_needs_half_as_many_splits() {
        let settings = ScalerSettings { max_shards: 10_000, ..ScalerSettings::default() };
        let (mut median, mut midpoint) = (0, 0);
        for seed in 0..5 {
            let keys = Keys::zipf(1.2, seed);
            let (by_load, by_midpoint) = (by_load(&keys, &settings, &Dice::new(seed)), by_midpoint(&keys));
            assert!(by_load.fullest < FULL, "{}", by_load.fullest);
            assert!(by_midpoint.fullest < FULL, "{}", by_midpoint.fullest);
            assert!(by_load.passes < by_midpoint.passes, "{} {}", by_load.passes, by_midpoint.passes);
            assert!(fewest(&keys) <= by_load.splits, "{} {}", fewest(&keys), by_load.splits);
            (median, midpoint) = (median + by_load.splits, midpoint + by_midpoint.splits);
        }
        assert!(median * 2 <= midpoint, "{median} beside {midpoint}");
    }
}
