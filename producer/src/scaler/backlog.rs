//! What waits in front of a stream and has not come to a producer yet.
//!
//! Shards that are behind are full whatever comes: without this, what is caught up with would look like load that stays, and
//! a stream would be split on and on while it is working off what one narrow minute left behind.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use anabranch_model::Result;
use futures_util::future::BoxFuture;

/// What waits in one place, and whether it becomes more.
#[derive(Clone, Debug, PartialEq)]
pub struct Backlog {
    /// The place: processes that name the same one see the same records.
    pub place: String,
    /// Records that wait.
    pub records: f64,
    /// How many more they become in a second; negative while they become fewer.
    pub growth: f64,
}

/// What a look at such a place shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Depth {
    /// What waits, for instance messages.
    pub items: u64,
    /// Records that come of each.
    pub records_each: f64,
}

/// A place in front of a producer, and how to look at it.
pub struct Waiting {
    /// The place.
    pub place: String,
    /// Over this time it is told whether it becomes more.
    pub period: Duration,
    /// Looks.
    pub look: Box<dyn Fn() -> BoxFuture<'static, Result<Depth>> + Send + Sync>,
}

/// What waits at all places together; none if nobody tells.
pub(super) fn total(told: impl IntoIterator<Item = Backlog>) -> Option<Backlog> {
    let mut places: BTreeMap<String, Backlog> = BTreeMap::new();
    for backlog in told {
        let more = places.get(&backlog.place).is_none_or(|known| backlog.records > known.records);
        if more {
            places.insert(backlog.place.clone(), backlog);
        }
    }
    places.into_values().reduce(|sum, more| Backlog {
        place: format!("{}, {}", sum.place, more.place),
        records: sum.records + more.records,
        growth: sum.growth + more.growth,
    })
}

/// Looks at one place over time.
#[derive(Debug, Default)]
pub(super) struct Trend {
    /// The oldest first.
    looks: VecDeque<(Duration, u64)>,
}

impl Trend {
    /// Adds a look; says what waits when the period is known.
    pub(super) fn add(&mut self, waiting: &Waiting, depth: Depth, now: Duration) -> Option<Backlog> {
        self.looks.push_back((now, depth.items));
        while self.looks.get(1).is_some_and(|(at, _)| *at + waiting.period <= now) {
            self.looks.pop_front();
        }
        let (since, before) = *self.looks.front()?;
        let passed = now.saturating_sub(since);
        if passed < waiting.period {
            return None;
        }
        let growth = (depth.items as f64 - before as f64) / passed.as_secs_f64();
        Some(Backlog {
            place: waiting.place.clone(),
            records: depth.items as f64 * depth.records_each,
            growth: growth * depth.records_each,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog(place: &str, records: f64, growth: f64) -> Backlog {
        Backlog { place: place.to_owned(), records, growth }
    }

    #[test]
    fn what_two_processes_see_of_one_queue_counts_once() {
        let told = [backlog("a", 90.0, 5.0), backlog("a", 100.0, 4.0), backlog("b", 7.0, -1.0)];
        assert_eq!(total(told), Some(backlog("a, b", 107.0, 3.0)));
        assert_eq!(total([]), None);
    }

    #[test]
    fn a_trend_is_known_after_its_period_and_follows() {
        let look = Box::new(|| unreachable!("the test looks itself"));
        let waiting = Waiting { place: "a".to_owned(), period: Duration::from_secs(4), look };
        let mut trend = Trend::default();
        let mut told = Vec::new();
        // Ten more a second for eight seconds, then twenty fewer.
        for second in 0..=16u64 {
            let items = if second <= 8 { second * 10 } else { 80 - (second - 8).min(4) * 20 };
            let depth = Depth { items, records_each: 8.0 };
            told.push(trend.add(&waiting, depth, Duration::from_secs(second)));
        }
        assert!(told[..4].iter().all(Option::is_none), "{told:?}");
        assert_eq!(told[4], Some(backlog("a", 320.0, 80.0)));
        assert_eq!(told[8], Some(backlog("a", 640.0, 80.0)));
        assert_eq!(told[12], Some(backlog("a", 0.0, -160.0)));
        assert_eq!(told[16], Some(backlog("a", 0.0, 0.0)));
    }
}
