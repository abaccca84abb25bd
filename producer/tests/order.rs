//! Whatever is refused, lost or resharded: records of a key stay in order, and what is said about a record is true.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Dice, NewRecord};
use anabranch_producer::{Lost, Outcome, Pace, Producer, Settings};
use proptest::prelude::*;
use world::{
    BOTH, Faulty, RuntimeClock, Weather, first_sights, pause, reshard_for_ever, sights, stream, streams,
};

#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    weather: Weather,
    keys: usize,
    records: usize,
    aggregate: bool,
    paced: bool,
    resharded: bool,
    keeps_runs: bool,
    linger_ms: u64,
    lifetime: Duration,
}

fn case() -> impl Strategy<Value = Case> {
    let percents = (0u64..40, 0u64..20, 0u64..20, 0u64..20);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (any::<u64>(), percents, 1usize..9, 1usize..120, flags, 0u64..5, 1u64..40).prop_map(
        |(
            seed,
            (throttled, lost_answers, lost_calls, refused),
            keys,
            records,
            flags,
            linger_ms,
            lifetime,
        )| Case {
            seed,
            weather: Weather {
                throttled,
                lost_answers,
                lost_calls,
                refused,
                delay: Duration::from_millis(seed % 30),
            },
            keys,
            records,
            aggregate: flags.0,
            paced: flags.1,
            resharded: flags.2,
            keeps_runs: flags.3,
            linger_ms,
            lifetime: Duration::from_secs(lifetime),
        },
    )
}

async fn run(case: Case) -> Result<(), TestCaseError> {
    let inner = streams(2).await;
    let store = BOTH[usize::from(case.keeps_runs)](inner.clone(), case.weather, case.seed);
    let settings = Settings {
        batch_records: 1 + (case.seed % 20) as usize,
        linger: Duration::from_millis(case.linger_ms),
        aggregate_bytes: case.aggregate.then_some(400),
        pace: case.paced.then_some(Pace { records: 50.0, bytes: 1e6 }),
        lifetime: case.lifetime,
        refresh_every: Duration::from_secs(5),
        seed: Some(case.seed),
        ..Settings::default()
    };
    let producer = Producer::start(store, stream(), RuntimeClock::new(), settings).await.unwrap();
    let resharding = case.resharded.then(|| {
        tokio::spawn(reshard_for_ever(inner.clone(), Dice::new(case.seed), Duration::from_millis(300)))
    });
    let mut tickets = Vec::new();
    for number in 0..case.records {
        let (key, data) = (format!("key-{}", number % case.keys), format!("{number:04}"));
        let mut record = NewRecord::new(key.clone(), data.clone());
        // Whoever names the place of a key stays in line with those who do not.
        record.explicit_hash_key = number.is_multiple_of(3).then(|| record.hash_key());
        tickets.push((key, data, producer.send(record).await.unwrap()));
        if number % 7 == 0 {
            pause(Duration::from_millis(case.seed % 11)).await;
        }
    }
    let mut outcomes: Vec<(String, String, Outcome)> = Vec::new();
    for (key, data, ticket) in tickets {
        outcomes.push((key, data, ticket.await));
    }
    producer.close().await;
    if let Some(resharding) = resharding {
        resharding.abort();
    }
    check(&outcomes, &sights(&inner).await)
}

fn check(outcomes: &[(String, String, Outcome)], sights: &[world::Sight]) -> Result<(), TestCaseError> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    sights.iter().for_each(|sight| *counts.entry(&sight.data).or_default() += 1);
    for (key, data, outcome) in outcomes {
        let count = counts.get(data.as_str()).copied().unwrap_or_default();
        match outcome {
            Ok(stored) => {
                let there =
                    sights.iter().find(|sight| sight.data == *data && sight.sequence == stored.sequence);
                let there = there.expect("what is said to be stored is there");
                prop_assert_eq!((&there.shard, &there.key), (&stored.shard, key));
                prop_assert!(there.owned, "{} lies where nobody looks for it", data);
                prop_assert!(count == 1 || stored.repeated, "{} is there {} times", data, count);
            }
            Err(Lost::NotStored(why)) => prop_assert_eq!(count, 0, "{} is there: {}", data, why),
            Err(Lost::Unknown(_)) => {}
        }
    }
    for (key, data) in first_sights(sights) {
        prop_assert!(data.is_sorted(), "{}: {:?}", key, data);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(320))]
    #[test]
    fn records_of_a_key_stay_in_order_and_outcomes_are_true(case in case()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(case))?;
    }
}

#[tokio::test(start_paused = true)]
async fn in_good_weather_everything_is_stored_once() {
    for make in BOTH {
        let inner = streams(3).await;
        let store = make(inner.clone(), Weather { delay: Duration::from_millis(5), ..Weather::default() }, 1);
        let producer =
            Producer::start(store.clone(), stream(), RuntimeClock::new(), Settings::default()).await.unwrap();
        let mut tickets = Vec::new();
        for number in 0..2_000 {
            let record = NewRecord::new(format!("key-{}", number % 400), format!("{number:05}"));
            tickets.push(producer.send(record).await.unwrap());
        }
        for ticket in tickets {
            let stored = ticket.await.unwrap();
            assert_eq!((stored.attempts, stored.repeated), (1, false));
        }
        assert_eq!(sights(&inner).await.len(), 2_000);
        let appends = store.appends.lock().clone();
        assert!(appends.len() < 60, "records share appends: {appends:?}");
        let traffic = producer.traffic();
        pause(Duration::from_secs(1)).await;
        let counted: u64 = producer.traffic().iter().map(|shard| shard.sum(100).records).sum();
        assert_eq!((traffic.len(), counted), (3, 2_000));
    }
}

/// One key, and a store that keeps runs: many records of it share an append, and one that is refused holds up those behind it.
#[tokio::test(start_paused = true)]
async fn records_of_one_key_share_appends_where_runs_are_kept() {
    for throttled in [0, 20] {
        let inner = streams(3).await;
        let weather = Weather { delay: Duration::from_millis(5), throttled, ..Weather::default() };
        let store = Faulty::keeping_runs(inner.clone(), weather, 1);
        let settings = Settings { retry_first: Duration::from_millis(1), ..Settings::default() };
        let producer = Producer::start(store.clone(), stream(), RuntimeClock::new(), settings).await.unwrap();
        let mut tickets = Vec::new();
        for number in 0..1_000 {
            tickets.push(producer.send(NewRecord::new("one", format!("{number:05}"))).await.unwrap());
        }
        for ticket in tickets {
            assert!(!ticket.await.unwrap().repeated);
        }
        let data: Vec<_> = sights(&inner).await.into_iter().map(|sight| sight.data).collect();
        assert_eq!(data.len(), 1_000);
        assert!(data.is_sorted());
        let appends = store.appends.lock().len();
        assert!(appends < if throttled == 0 { 10 } else { 500 }, "{appends} appends");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_loses_a_record_stores_none_behind_it() {
    let inner = streams(2).await;
    let store = Faulty::new(inner.clone(), Weather::default(), 3);
    *store.poison.lock() = Some("2");
    let producer = Producer::start(store, stream(), RuntimeClock::new(), Settings::default()).await.unwrap();
    let place = producer.place();
    let payloads = (0..6).map(|number| number.to_string().into()).collect();
    let outcomes = producer.send_run(&place, &"group".into(), payloads).await;
    let stored: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(stored, [true, true, false, false, false, false]);
    let data: Vec<_> = sights(&inner).await.into_iter().map(|sight| sight.data).collect();
    assert_eq!(data, ["0", "1"]);
    assert!(outcomes[5].as_ref().unwrap_err().to_string().contains("a record before it"), "{outcomes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_stays_in_one_lineage_and_in_order_while_shards_change() {
    for seed in 0..40 {
        let inner = streams(4).await;
        let weather = Weather {
            throttled: 10,
            lost_answers: 5,
            delay: Duration::from_millis(20),
            ..Weather::default()
        };
        let store = Faulty::new(inner.clone(), weather, seed);
        let settings =
            Settings { seed: Some(seed), lifetime: Duration::from_secs(600), ..Settings::default() };
        let producer = Producer::start(store, stream(), RuntimeClock::new(), settings).await.unwrap();
        let resharding =
            tokio::spawn(reshard_for_ever(inner.clone(), Dice::new(seed), Duration::from_millis(200)));
        let groups = (0..10).map(|group| {
            let producer = producer.clone();
            async move {
                let place = producer.place();
                let payloads = (0..30).map(|number| format!("{group}/{number:03}").into()).collect();
                producer.send_run(&place, &format!("group-{group}").into(), payloads).await
            }
        });
        for outcomes in futures_util::future::join_all(groups).await {
            assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        }
        resharding.abort();
        let seen = first_sights(&sights(&inner).await);
        assert_eq!(seen.len(), 10);
        for (key, data) in seen {
            assert_eq!(data.len(), 30, "{key}");
            assert!(data.is_sorted(), "seed {seed}, {key}: {data:?}");
        }
        assert!(producer.traffic().iter().all(|shard| shard.active == 0), "groups are counted out");
    }
}

#[tokio::test(start_paused = true)]
async fn groups_go_to_less_loaded_shards() {
    let inner = streams(8).await;
    let store: Arc<Faulty> = Faulty::new(inner, Weather::default(), 3);
    let settings = Settings { seed: Some(5), ..Settings::default() };
    let producer = Producer::start(store, stream(), RuntimeClock::new(), settings).await.unwrap();
    let places: Vec<_> = (0..800).map(|_| producer.place()).collect();
    let counts: Vec<u64> = producer.traffic().iter().map(|shard| shard.active).collect();
    assert!(counts.iter().all(|count| (90..=110).contains(count)), "two choices keep them even: {counts:?}");
    for place in &places {
        assert!(producer.place_in(place.shard()).is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_may_take_longer_than_one_of_its_records() {
    let inner = streams(1).await;
    let slow = Weather { delay: Duration::from_millis(100), ..Weather::default() };
    let settings = Settings { lifetime: Duration::from_secs(2), ..Settings::default() };
    let store = Faulty::new(inner.clone(), slow, 3);
    let producer = Producer::start(store, stream(), RuntimeClock::new(), settings).await.unwrap();
    let place = producer.place();
    let payloads = (0..200).map(|number| format!("{number:03}").into()).collect();
    let outcomes = producer.send_run(&place, &"group".into(), payloads).await;
    assert!(outcomes.iter().all(Result::is_ok), "{:?}", outcomes.iter().find(|outcome| outcome.is_err()));
    assert_eq!(sights(&inner).await.len(), 200);
}
