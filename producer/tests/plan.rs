//! What the planner decides: each rule by itself, and over time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use anabranch_model::{HashKey, HashRange, ShardId};
use anabranch_producer::scaler::{Action, Backlog, Decision, Observed, ObservedShard, ScalerSettings, plan};
use anabranch_producer::traffic::{Second, ShardSnapshot, Sketch};
use proptest::prelude::*;

const OLD: Option<Duration> = None;

/// A shard with the same traffic in every second, on keys that are spread evenly.
fn shard(number: u64, of: usize, second: Second, seconds: usize) -> ObservedShard {
    let range = HashRange::even(of)[number as usize];
    let mut sketch = Sketch::new(range);
    let step = (range.last().get() - range.first().get()) / 1_000;
    for place in 0..1_000u128 {
        let key = HashKey::new(range.first().get() + place * step);
        sketch.add(key, second.bytes as f64 / 1_000.0, second.records as f64 / 1_000.0);
    }
    observed(number, range, second, seconds, sketch)
}

fn observed(number: u64, range: HashRange, second: Second, seconds: usize, sketch: Sketch) -> ObservedShard {
    let id = ShardId::numbered(number);
    let traffic =
        ShardSnapshot { shard: id.clone(), range, seconds: vec![second; seconds], sketch, active: 0 };
    ObservedShard { shard: id, range, age: OLD, traffic: Some(traffic) }
}

fn records(records: u64) -> Second {
    Second { records, bytes: records * 100, throttles: 0 }
}

fn bytes(bytes: u64) -> Second {
    Second { records: 1, bytes, throttles: 0 }
}

fn actions(shards: Vec<ObservedShard>) -> Vec<Action> {
    plan(&Observed { shards, backlog: None }, &ScalerSettings::default())
        .into_iter()
        .map(|decision| decision.action)
        .collect()
}

fn words(shards: Vec<ObservedShard>) -> Vec<&'static str> {
    actions(shards).iter().map(Action::word).collect()
}

#[test]
fn the_worse_of_bytes_and_records_decides() {
    assert_eq!(words(vec![shard(0, 1, records(790), 60)]), [""; 0]);
    assert_eq!(words(vec![shard(0, 1, records(810), 60)]), ["split"]);
    assert_eq!(words(vec![shard(0, 1, bytes(790_000), 60)]), [""; 0]);
    assert_eq!(words(vec![shard(0, 1, bytes(810_000), 60)]), ["split"]);
}

#[test]
fn a_shard_must_stay_full() {
    let mut peak = shard(0, 1, records(100), 60);
    let seconds = &mut peak.traffic.as_mut().unwrap().seconds;
    seconds[58] = records(5_000);
    assert_eq!(words(vec![peak.clone()]), [""; 0], "one second is no load");
    let mut over = shard(0, 1, records(1_000), 60);
    over.traffic.as_mut().unwrap().seconds[55..].fill(records(200));
    assert_eq!(words(vec![over]), [""; 0], "the load has gone already");
    assert_eq!(words(vec![shard(0, 1, records(1_000), 9)]), [""; 0], "not known for long enough");
    let mut fresh = shard(0, 1, records(1_000), 60);
    fresh.age = Some(Duration::from_secs(9));
    assert_eq!(words(vec![fresh]), [""; 0], "what is fresh has another one's load");
}

#[test]
fn refusals_count_where_there_is_load_or_nothing_but_refusals() {
    let throttled = |records, throttles| Second { records, bytes: records, throttles };
    assert_eq!(words(vec![shard(0, 1, throttled(500, 60), 60)]), ["split"]);
    assert_eq!(words(vec![shard(0, 1, throttled(100, 10), 60)]), [""; 0], "a tenth of all, with little load");
    assert_eq!(words(vec![shard(0, 1, throttled(100, 300), 60)]), ["split"], "another writer fills it");
}

#[test]
fn a_spike_is_planned_as_several_splits_at_once() {
    let spike = Second { records: 1_000, bytes: 1_000, throttles: 3_000 };
    let decided = actions(vec![shard(0, 1, spike, 60)]);
    let [Action::Split { at, .. }] = &decided[..] else { panic!("{decided:?}") };
    assert!((5..=7).contains(&at.len()), "four times the capacity in parts below 72 %: {at:?}");
}

#[test]
fn one_key_over_the_limit_is_named_and_not_split() {
    let range = HashRange::ALL;
    let mut sketch = Sketch::new(range);
    sketch.add(HashKey::new(1 << 100), 1_000_000.0, 10_000.0);
    let decided = plan(
        &Observed { shards: vec![observed(0, range, records(1_000), 60, sketch)], backlog: None },
        &ScalerSettings::default(),
    );
    assert_eq!(
        decided[0].action,
        Action::HotKey { shard: ShardId::numbered(0), key: HashKey::new(1 << 100) }
    );
    assert!(decided[0].why.contains("no split can divide one key"), "{}", decided[0].why);
    // In a shard of its own it is left alone as well.
    let single = HashRange::new(HashKey::new(7), HashKey::new(7)).unwrap();
    let mut sketch = Sketch::new(single);
    sketch.add(HashKey::new(7), 1.0, 1.0);
    assert_eq!(words(vec![observed(0, single, records(1_000), 60, sketch)]), ["hot key"]);
}

#[test]
fn a_dominant_key_gets_a_shard_of_its_own() {
    let mut hot = shard(0, 1, records(1_000), 60);
    let key = HashKey::new(3 << 125 | 12_345);
    hot.traffic.as_mut().unwrap().sketch.add(key, 200_000.0, 2_000.0);
    let decided = actions(vec![hot]);
    let above = HashKey::new(key.get() + 1);
    let [Action::Split { at, .. }] = &decided[..] else { panic!("{decided:?}") };
    assert!(at.contains(&key) || at.contains(&above), "{at:?}");
}

#[test]
fn neighbours_are_merged_by_their_sum() {
    assert_eq!(words(vec![shard(0, 2, records(200), 60), shard(1, 2, records(50), 60)]), ["merge"]);
    assert_eq!(words(vec![shard(0, 2, records(200), 60), shard(1, 2, records(150), 60)]), [""; 0]);
    // Half full by bytes and half full by records is not nearly empty only if one of the sums is over.
    assert_eq!(words(vec![shard(0, 2, bytes(290_000), 60), shard(1, 2, records(290), 60)]), [""; 0]);
}

#[test]
fn fresh_unknown_or_refusing_shards_are_not_merged() {
    let idle = |number| shard(number, 2, records(1), 60);
    assert_eq!(words(vec![idle(0), idle(1)]), ["merge"]);
    let mut fresh = idle(0);
    fresh.age = Some(Duration::from_secs(299));
    assert_eq!(words(vec![fresh, idle(1)]), [""; 0]);
    let mut unknown = idle(0);
    unknown.traffic = None;
    assert_eq!(words(vec![unknown, idle(1)]), [""; 0]);
    assert_eq!(words(vec![shard(0, 2, records(1), 59), idle(1)]), [""; 0]);
    let mut refusing = idle(0);
    refusing.traffic.as_mut().unwrap().seconds[3].throttles = 1;
    assert_eq!(words(vec![refusing, idle(1)]), [""; 0]);
}

#[test]
fn no_shard_is_merged_twice_in_a_pass_and_the_emptiest_pair_goes_first() {
    let loads = [100, 10, 10, 100];
    let shards = (0..4).map(|number| shard(number, 4, records(loads[number as usize]), 60)).collect();
    let merged = Action::Merge { lower: ShardId::numbered(1), upper: ShardId::numbered(2) };
    assert_eq!(actions(shards), [merged]);
    let shards = (0..5).map(|number| shard(number, 5, records(10), 60)).collect();
    assert_eq!(words(shards), ["merge", "merge"]);
}

#[test]
fn a_split_shard_is_not_merged_and_bounds_are_kept() {
    let full = shard(0, 2, records(1_000), 60);
    assert_eq!(words(vec![full.clone(), shard(1, 2, records(1), 60)]), ["split"]);
    let settings = ScalerSettings { max_shards: 2, min_shards: 2, ..ScalerSettings::default() };
    let held = plan(&Observed { shards: vec![full, shard(1, 2, records(1), 60)], backlog: None }, &settings);
    assert_eq!(held[0].action.word(), "hold");
    assert!(held[0].why.contains("`max_shards` (2)"), "{}", held[0].why);
    let idle = (0..2).map(|number| shard(number, 2, records(1), 60)).collect();
    assert_eq!(plan(&Observed { shards: idle, backlog: None }, &settings), []);
}

#[test]
fn the_fullest_shard_gets_the_last_place() {
    let settings = ScalerSettings { max_shards: 3, ..ScalerSettings::default() };
    let shards = vec![shard(0, 2, records(850), 60), shard(1, 2, records(990), 60)];
    let decided = plan(&Observed { shards, backlog: None }, &settings);
    let words: Vec<_> =
        decided.iter().map(|decision| (decision.action.word(), decision.figures.records)).collect();
    assert_eq!(words, [("split", 0.99), ("hold", 0.85)]);
}

/// What is decided about shards of equal load while so many records wait and become so many more a second.
fn with_backlog(shards: Vec<ObservedShard>, records: f64, growth: f64) -> Vec<Decision> {
    let backlog = Some(Backlog { place: "submissions".to_owned(), records, growth });
    plan(&Observed { shards, backlog }, &ScalerSettings::default())
}

fn held_back(number: u64, of: usize) -> ObservedShard {
    shard(number, of, Second { records: 1_000, bytes: 100_000, throttles: 1_000 }, 60)
}

#[test]
fn full_shards_that_catch_up_are_not_split() {
    // Ten shards' worth comes, fourteen take it, and what waits since there was one is gone in a while.
    let shards = || (0..14).map(|number| held_back(number, 14)).collect::<Vec<_>>();
    let decided = with_backlog(shards(), 100_000.0, -4_000.0);
    assert_eq!(decided.len(), 14);
    for decision in &decided {
        assert_eq!(decision.action.word(), "hold", "{decision}");
        assert!(decision.why.contains("100000 records wait at submissions, in a second -4000"), "{decision}");
    }
    // Nobody can say what waits: then refusals are all that is known.
    assert!(words(shards()).iter().all(|word| *word == "split"));
    // It becomes fewer, but so slowly that shards for it would be of use for longer than they have to stay.
    let slowly = with_backlog(shards(), 10_000_000.0, -100.0);
    assert!(slowly.iter().all(|decision| decision.action.word() == "split"), "{slowly:?}");
}

#[test]
fn what_piles_up_says_how_many_parts_there_have_to_be() {
    let parts = |decided: &[Decision]| {
        let parts = decided.iter().map(|decision| match &decision.action {
            Action::Split { at, .. } => at.len() + 1,
            _ => 1,
        });
        parts.sum::<usize>()
    };
    // One shard takes a tenth of what comes: fourteen at 71 % are enough, and are made at once.
    assert_eq!(parts(&with_backlog(vec![held_back(0, 1)], 90_000.0, 9_000.0)), 14);
    assert_eq!(parts(&with_backlog(vec![held_back(0, 2), held_back(1, 2)], 80_000.0, 8_000.0)), 14);
    // Nothing comes any more, and 2,900,000 records are to be written in five minutes: what catches up may be full.
    assert_eq!(parts(&with_backlog(vec![held_back(0, 1)], 2_900_000.0, -1_000.0)), 10);
    // A sixth more than a dozen shards can take is two, and not one for each.
    let dozen = (0..12).map(|number| held_back(number, 12)).collect();
    assert_eq!(parts(&with_backlog(dozen, 0.0, -2_000.0)), 2 + 2, "ten that stay, below 72 %");
    // Only one of three is full, and what piles up is its own.
    let others = (1..3).map(|number| shard(number, 3, records(200), 60));
    let one = with_backlog(std::iter::once(held_back(0, 3)).chain(others).collect(), 5_000.0, 500.0);
    assert_eq!((one.len(), parts(&one)), (1, 3), "{one:?}");
}

#[test]
fn a_backlog_says_nothing_about_shards_that_are_younger() {
    let mut shards = vec![held_back(0, 2), held_back(1, 2)];
    shards[1].age = Some(Duration::from_secs(11));
    assert_eq!(with_backlog(shards.clone(), 80_000.0, 8_000.0), []);
    // One that was just merged takes next to nothing, and changed nothing.
    let mut merged = shard(1, 2, records(100), 3);
    merged.age = Some(Duration::from_secs(3));
    assert_eq!(with_backlog(vec![shards[0].clone(), merged], 80_000.0, 8_000.0).len(), 1);
    shards[1].age = Some(Duration::from_secs(12));
    assert_eq!(with_backlog(shards, 80_000.0, 8_000.0).len(), 2);
}

#[test]
fn refusals_without_a_backlog_hurt_nobody() {
    let refusing = Second { records: 500, bytes: 500, throttles: 50 };
    let decided = with_backlog(vec![shard(0, 1, refusing, 60)], 3.0, 1.0);
    assert_eq!(decided[0].action.word(), "hold", "{decided:?}");
    // A shard that another writer fills takes little of ours, and more and more waits.
    let filled = Second { records: 100, bytes: 100, throttles: 300 };
    let decided = with_backlog(vec![shard(0, 1, filled, 60)], 2_000.0, 200.0);
    assert_eq!(decided[0].action.word(), "split", "{decided:?}");
    // Without a refusal, a full shard is split as ever.
    assert_eq!(with_backlog(vec![shard(0, 1, records(850), 60)], 0.0, 0.0)[0].action.word(), "split");
}

/// Splits and merges as a plan says.
fn apply(shards: &[HashRange], actions: &[Action]) -> Vec<HashRange> {
    let mut ranges = shards.to_vec();
    let at_of = |shard: &ShardId| shards[shard.number().unwrap() as usize];
    for action in actions {
        match action {
            Action::Split { shard, at } => {
                let mut rest = at_of(shard);
                let place = ranges.iter().position(|range| *range == rest).unwrap();
                let mut parts = Vec::new();
                for at in at {
                    let [lower, upper] = rest.split_at(*at).unwrap();
                    parts.push(lower);
                    rest = upper;
                }
                parts.push(rest);
                ranges.splice(place..=place, parts);
            }
            Action::Merge { lower, upper } => {
                let (lower, upper) = (at_of(lower), at_of(upper));
                let place = ranges.iter().position(|range| *range == lower).unwrap();
                assert_eq!(ranges[place + 1], upper, "neighbours that nobody touched");
                ranges.splice(place..=place + 1, [lower.merge(upper).unwrap()]);
            }
            Action::HotKey { .. } | Action::Hold { .. } => {}
        }
    }
    ranges
}

/// What is observed when keys bring so many records a second each.
fn observe(ranges: &[HashRange], keys: &[(u128, u64)]) -> Observed {
    let shard = |(range, number): (&HashRange, u64)| {
        let own: Vec<_> = keys.iter().filter(|(key, _)| range.contains(HashKey::new(*key))).collect();
        let mut sketch = Sketch::new(*range);
        for _ in 0..10 {
            own.iter().for_each(|(key, load)| sketch.add(HashKey::new(*key), *load as f64, *load as f64));
        }
        let total = own.iter().map(|(_, load)| load).sum();
        observed(number, *range, Second { records: total, bytes: total, throttles: 0 }, 60, sketch)
    };
    Observed { shards: ranges.iter().zip(0..).map(shard).collect(), backlog: None }
}

proptest! {
    #[test]
    fn shards_stay_a_partition_and_settle(
        keys in proptest::collection::vec((any::<u128>(), 0u64..400), 1..200),
        start in 1usize..8,
    ) {
        let settings = ScalerSettings::default();
        let mut ranges = HashRange::even(start);
        let mut settled = false;
        for _ in 0..40 {
            let observed = observe(&ranges, &keys);
            let actions: Vec<_> = plan(&observed, &settings).into_iter().map(|decision| decision.action).collect();
            settled = !actions.iter().any(Action::changes);
            if settled {
                break;
            }
            ranges = apply(&ranges, &actions);
            prop_assert_eq!(ranges[0].first(), HashKey::MIN);
            prop_assert_eq!(ranges[ranges.len() - 1].last(), HashKey::MAX);
            for pair in ranges.windows(2) {
                prop_assert!(pair[0].merge(pair[1]).is_some(), "{:?}", pair);
            }
            prop_assert!((settings.min_shards..=settings.max_shards).contains(&ranges.len()));
        }
        prop_assert!(settled, "splits and merges do not chase each other: {} shards", ranges.len());
        let observed = observe(&ranges, &keys);
        for shard in observed.shards {
            let load = shard.traffic.as_ref().unwrap().seconds[0].records;
            prop_assert!(load < 800, "{} is left with {}", shard.shard, load);
        }
    }
}
