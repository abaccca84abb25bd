//! What to do about a stream, decided from what was observed and from nothing else.
//!
//! A shard is split when it was too full on average over the observation period and still is at its end. Two neighbours
//! are merged when what both carry together would leave one shard nearly empty, over all that is remembered. If it is known
//! what waits in front of the stream, shards that are full only because they catch up are left alone: that has to end before
//! what would be made for it could be merged again.
//!
//! What must hold: no shard appears in two decisions that change something; nothing is decided about a shard that is not known for
//! long enough; the number of shards stays within its bounds; and since the sum of a merged pair is below the threshold
//! of merging, which is below that of splitting, what was merged is not split for the same load.

use std::collections::HashSet;
use std::time::Duration;

use anabranch_model::{HashRange, ShardId};

use super::backlog::Backlog;
use super::cut::{Dimension, cuts};
use super::decision::{Action, Decision, Figures};
use super::settings::ScalerSettings;
use crate::traffic::{Second, ShardSnapshot};

/// Everything that is known about a stream at one moment.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The open shards.
    pub shards: Vec<ObservedShard>,
    /// What waits in front of the stream; none if nobody can say.
    pub backlog: Option<Backlog>,
}

/// What is known about one shard.
#[derive(Clone, Debug)]
pub struct ObservedShard {
    /// The shard.
    pub shard: ShardId,
    /// The keys it takes.
    pub range: HashRange,
    /// How long ago it was opened; none if nobody saw that, so that it is old.
    pub age: Option<Duration>,
    /// What all processes together sent; none if no process says anything.
    pub traffic: Option<ShardSnapshot>,
}

/// A shard that refuses although it takes less than this share is not full: somebody else is in the way, or the refusals
/// have another reason. Unless it refuses this many of all attempts.
const THROTTLED_USAGE_MIN: f64 = 0.4;
const THROTTLED_RATIO_MIN: f64 = 0.5;
/// What a shard refused says how much more it should have taken, but only so much: attempts are made again.
const DEMAND_FACTOR_MAX: f64 = 4.0;
/// How far below the threshold the parts of a split are aimed, so that the next ripple does not split them again.
const TARGET_SHARE: f64 = 0.9;
/// Less than this share more is no growth: what waits is counted while it changes.
const NOISE: f64 = 0.05;

/// What to do.
pub fn plan(observed: &Observed, settings: &ScalerSettings) -> Vec<Decision> {
    let mut decisions = splits(observed, settings);
    let split: HashSet<ShardId> =
        decisions.iter().map(|decision| shard_of(&decision.action).clone()).collect();
    decisions.extend(merges(observed, settings, &split));
    decisions
}

fn shard_of(action: &Action) -> &ShardId {
    match action {
        Action::Split { shard, .. } | Action::HotKey { shard, .. } | Action::Hold { shard } => shard,
        Action::Merge { lower, .. } => lower,
    }
}

/// The load of a shard over a time.
fn figures(sum: Second, seconds: f64, settings: &ScalerSettings, threshold: f64) -> Figures {
    let bytes = sum.bytes as f64 / seconds / settings.max_capacity;
    let records = sum.records as f64 / seconds / settings.max_records;
    let usage = bytes.max(records);
    let factor = 1.0 + sum.throttles as f64 / (sum.records.max(1)) as f64;
    let demand = usage * factor.min(DEMAND_FACTOR_MAX);
    Figures { usage, bytes, records, throttles: sum.throttles, demand, threshold }
}

fn splits(observed: &Observed, settings: &ScalerSettings) -> Vec<Decision> {
    let mut full: Vec<(&ObservedShard, &ShardSnapshot, Figures)> = observed
        .shards
        .iter()
        .filter_map(|shard| {
            let traffic = shard.traffic.as_ref()?;
            too_full(shard, traffic, settings).map(|figures| (shard, traffic, figures))
        })
        .collect();
    if observed.backlog.is_some() && observed.shards.iter().any(|shard| is_fresh(shard, settings)) {
        // What waits became more or fewer when there were other shards: it says nothing about these.
        return Vec::new();
    }
    let needed = observed.backlog.as_ref().map(|backlog| needed(observed, backlog, &full, settings));
    if let Some(needed) = &needed {
        full.iter_mut().for_each(|(_, _, figures)| figures.demand = figures.usage * needed.times);
    }
    // The fullest first: if there may be only few shards more, it gets them.
    full.sort_by(|a, b| b.2.demand.total_cmp(&a.2.demand));
    let mut room = settings.max_shards.saturating_sub(observed.shards.len());
    let mut decisions = Vec::new();
    if let Some(needed) = needed.filter(|needed| !needed.more) {
        let stays = |figures: &Figures| figures.demand >= settings.split_usage_threshold;
        let catch_up = full.extract_if(.., |(_, _, figures)| !stays(figures));
        decisions.extend(catch_up.map(|(shard, _, figures)| catching_up(shard, needed.backlog, figures)));
    }
    let measured = observed.backlog.is_some();
    let mut enough = match observed.backlog {
        Some(_) => enough(&full, settings),
        None => usize::MAX,
    };
    for (shard, traffic, figures) in full {
        if enough == 0 {
            // What is made now takes its share; the others are looked at again then.
            break;
        }
        let made = split(shard, traffic, figures, settings, measured, room.min(enough));
        if let Action::Split { at, .. } = &made.action {
            room -= at.len();
            enough -= at.len();
        }
        decisions.push(made);
    }
    decisions
}

/// What a backlog says about shards that are full.
struct Needed<'a> {
    backlog: &'a Backlog,
    /// They should store so many times as much as they do.
    times: f64,
    /// The stream as a whole should store more than it does.
    more: bool,
}

/// What keeps coming has to find room below the threshold; what waits may fill shards, and should be gone when those that are
/// made for it can be merged again.
fn needed<'a>(
    observed: &Observed,
    backlog: &'a Backlog,
    full: &[(&ObservedShard, &ShardSnapshot, Figures)],
    settings: &ScalerSettings,
) -> Needed<'a> {
    let seconds = (settings.observation_period.as_secs() as usize).max(1);
    let all = observed.shards.iter().filter_map(|shard| shard.traffic.as_ref());
    let all = all.map(|traffic| traffic.sum(seconds).records as f64 / seconds as f64).sum::<f64>();
    let late = backlog.records / settings.merge_cooldown.as_secs_f64();
    let more = backlog.growth + late > NOISE * all;
    let stored: f64 = full.iter().map(|(_, _, figures)| figures.records * settings.max_records).sum();
    let (coming, target) = (stored + backlog.growth, settings.split_usage_threshold * TARGET_SHARE);
    let wanted = coming.max((coming + late) * target).max(0.0);
    Needed { backlog, times: if stored > 0.0 { wanted / stored } else { 1.0 }, more }
}

/// How many shards more are enough for those that are full. Each by itself would be rounded up, and the load of one may go to
/// another: a dozen that need a sixth more need two.
fn enough(full: &[(&ObservedShard, &ShardSnapshot, Figures)], settings: &ScalerSettings) -> usize {
    let target = settings.split_usage_threshold * TARGET_SHARE;
    let shards: f64 = full.iter().map(|(_, _, figures)| figures.demand.max(target) / target).sum();
    (shards.ceil() as usize).saturating_sub(full.len()).max(1)
}

/// Whether a shard that takes its part is younger than what is known about what waits.
fn is_fresh(shard: &ObservedShard, settings: &ScalerSettings) -> bool {
    let known = settings.observation_period + 2 * settings.interval_length;
    shard.age.is_some_and(|age| age < known) && !is_idle(shard, settings)
}

/// Whether it is known that a shard carries next to nothing, as one does that was just merged.
fn is_idle(shard: &ObservedShard, settings: &ScalerSettings) -> bool {
    let Some(traffic) = shard.traffic.as_ref().filter(|traffic| !traffic.seconds.is_empty()) else {
        return false;
    };
    let seconds = traffic.seconds.len().min((settings.observation_period.as_secs() as usize).max(1));
    let threshold = settings.merge_usage_threshold;
    figures(traffic.sum(seconds), seconds as f64, settings, threshold).usage <= threshold
}

fn catching_up(shard: &ObservedShard, backlog: &Backlog, figures: Figures) -> Decision {
    let why = format!(
        "{} % of its capacity, but no more than {} % is load that stays: {:.0} records wait at {}, in a second {:+.0}",
        (figures.usage * 100.0).round(),
        (figures.demand * 100.0).round(),
        backlog.records,
        backlog.place,
        backlog.growth,
    );
    Decision { action: Action::Hold { shard: shard.shard.clone() }, figures, why }
}

/// The figures of a shard that is too full, and has been for long enough.
fn too_full(shard: &ObservedShard, traffic: &ShardSnapshot, settings: &ScalerSettings) -> Option<Figures> {
    let period = settings.observation_period;
    let seconds = (period.as_secs() as usize).max(1);
    if traffic.seconds.len() < seconds || shard.age.is_some_and(|age| age < period) {
        return None;
    }
    let whole = figures(traffic.sum(seconds), seconds as f64, settings, settings.split_usage_threshold);
    let recent = seconds.div_ceil(3);
    let end = figures(traffic.sum(recent), recent as f64, settings, settings.split_usage_threshold);
    let over = |usage: f64| usage >= settings.split_usage_threshold;
    let loaded = over(whole.usage) && over(end.usage);
    (loaded || (throttled(&whole, traffic.sum(seconds), settings) && end.throttles > 0)).then_some(whole)
}

fn throttled(figures: &Figures, sum: Second, settings: &ScalerSettings) -> bool {
    let ratio = sum.throttles as f64 / (sum.throttles + sum.records).max(1) as f64;
    sum.throttles >= settings.split_tp_error_threshold
        && (figures.usage >= THROTTLED_USAGE_MIN || ratio >= THROTTLED_RATIO_MIN)
}

fn split(
    shard: &ObservedShard,
    traffic: &ShardSnapshot,
    figures: Figures,
    settings: &ScalerSettings,
    measured: bool,
    room: usize,
) -> Decision {
    let percent = |share: f64| (share * 100.0).round();
    let state = format!(
        "{} % of its capacity for {} s ({} % of bytes, {} % of records, {} refused or held back); the limit is {} %",
        percent(figures.usage),
        settings.observation_period.as_secs(),
        percent(figures.bytes),
        percent(figures.records),
        figures.throttles,
        percent(figures.threshold),
    );
    let dimension = if figures.bytes > figures.records { Dimension::Bytes } else { Dimension::Records };
    let target = settings.split_usage_threshold * TARGET_SHARE;
    // A shard that refused needs a second one, however little it took.
    let demand = figures.demand.max(target * 1.01);
    // Refusals are of the keys that came; what waits elsewhere is not.
    let taken = if measured { figures.usage.min(demand) } else { demand };
    let found = cuts(&traffic.sketch, dimension, [demand, taken], target, room + 1);
    let hot: Vec<_> =
        found.hot.iter().map(|(key, load)| format!("key {key} alone brings {} %", percent(*load))).collect();
    let id = shard.shard.clone();
    let (action, why) = match (found.at.is_empty(), found.hot.first()) {
        (false, None) => {
            let parts = found.at.len() + 1;
            (Action::Split { shard: id, at: found.at }, format!("{state}; {parts} parts of about equal load"))
        }
        (false, Some(_)) => {
            let why = format!("{state}; {}, so it gets a shard of its own", hot.join(", "));
            (Action::Split { shard: id, at: found.at }, why)
        }
        (true, Some((key, _))) => {
            let why = format!("{state}; {}, and no split can divide one key", hot.join(", "));
            (Action::HotKey { shard: id, key: *key }, why)
        }
        (true, None) if found.short => {
            let why = format!("{state}, but there are `max_shards` ({}) already", settings.max_shards);
            (Action::Hold { shard: id }, why)
        }
        (true, None) => (Action::Hold { shard: id }, format!("{state}, but it cannot be cut any further")),
    };
    Decision { action, figures, why }
}

fn merges(observed: &Observed, settings: &ScalerSettings, split: &HashSet<ShardId>) -> Vec<Decision> {
    let mut shards: Vec<&ObservedShard> = observed.shards.iter().collect();
    shards.sort_by_key(|shard| shard.range.first());
    let mut pairs: Vec<(&ObservedShard, &ObservedShard, Figures)> = shards
        .windows(2)
        .filter_map(|pair| {
            let [lower, upper] = [pair[0], pair[1]];
            lower.range.merge(upper.range)?;
            let busy = split.contains(&lower.shard) || split.contains(&upper.shard);
            let figures = if busy { None } else { nearly_empty(lower, upper, settings) };
            figures.map(|figures| (lower, upper, figures))
        })
        .collect();
    pairs.sort_by(|a, b| a.2.usage.total_cmp(&b.2.usage));
    let mut room = observed.shards.len().saturating_sub(settings.min_shards);
    let mut used = HashSet::new();
    let mut decisions = Vec::new();
    for (lower, upper, figures) in pairs {
        if room == 0 || used.contains(&lower.shard) || used.contains(&upper.shard) {
            continue;
        }
        room -= 1;
        used.extend([lower.shard.clone(), upper.shard.clone()]);
        let why = format!(
            "together {:.1} % of one shard's capacity for {} s, {} refused; the limit is {} %",
            figures.usage * 100.0,
            settings.entry_lifetime.as_secs(),
            figures.throttles,
            (figures.threshold * 100.0).round(),
        );
        let action = Action::Merge { lower: lower.shard.clone(), upper: upper.shard.clone() };
        decisions.push(Decision { action, figures, why });
    }
    decisions
}

/// The figures of two neighbours together, if they can be one shard.
fn nearly_empty(lower: &ObservedShard, upper: &ObservedShard, settings: &ScalerSettings) -> Option<Figures> {
    let old = |shard: &ObservedShard| shard.age.is_none_or(|age| age >= settings.merge_cooldown);
    if !old(lower) || !old(upper) {
        return None;
    }
    let (one, other) = (lower.traffic.as_ref()?, upper.traffic.as_ref()?);
    let sum = |time: Duration| {
        let seconds = (time.as_secs() as usize).max(1);
        if one.seconds.len() < seconds || other.seconds.len() < seconds {
            return None;
        }
        let (one, other) = (one.sum(seconds), other.sum(seconds));
        let both = Second {
            records: one.records + other.records,
            bytes: one.bytes + other.bytes,
            throttles: one.throttles + other.throttles,
        };
        Some(figures(both, seconds as f64, settings, settings.merge_usage_threshold))
    };
    let (long, short) = (sum(settings.entry_lifetime)?, sum(settings.observation_period)?);
    let worse = if short.usage > long.usage { short } else { long };
    let worse = Figures { throttles: long.throttles, ..worse };
    let calm = worse.usage <= settings.merge_usage_threshold;
    (calm && worse.throttles <= settings.merge_tp_error_threshold).then_some(worse)
}
