//! Runs that share appends, on a stream that keeps them and is otherwise as bad as any. Time jumps to the next event.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod world;

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{Clock, Dice};
use anabranch_producer::{Lost, NewRun, Outcome, Pace, Producer, Settings, Why};
use world::{Faulty, RuntimeClock, Weather, first_sights, reshard_for_ever, sights, stream, streams};

async fn producer(store: Arc<Faulty>, settings: Settings) -> Producer {
    Producer::start(store, stream(), RuntimeClock::new(), settings).await.unwrap()
}

fn run(producer: &Producer, name: usize, events: usize) -> NewRun {
    NewRun {
        place: producer.place(),
        key: format!("group-{name}").into(),
        payloads: (0..events).map(|number| format!("{name}/{number:05}").into()).collect(),
    }
}

fn stored(outcomes: &[Outcome]) -> Vec<bool> {
    outcomes.iter().map(Result::is_ok).collect()
}

#[tokio::test(start_paused = true)]
async fn runs_share_appends_up_to_the_limits_of_one() {
    let inner = streams(4).await;
    let store = Faulty::keeping_runs(inner.clone(), Weather::default(), 3);
    let producer = producer(store.clone(), Settings::default()).await;
    let runs = [8, 0, 700, 8].into_iter().enumerate().map(|(name, events)| run(&producer, name, events));
    let outcomes = producer.send_runs(runs.collect()).await;
    assert_eq!(outcomes.iter().map(Vec::len).collect::<Vec<_>>(), [8, 0, 700, 8]);
    assert!(
        outcomes
            .iter()
            .flatten()
            .all(|outcome| { outcome.as_ref().is_ok_and(|stored| stored.attempts == 1 && !stored.repeated) })
    );
    assert_eq!(
        *store.appends.lock(),
        [500, 216],
        "a run goes on in the append behind, and so do those behind it"
    );
    let sights = sights(&inner).await;
    assert_eq!(sights.len(), 716, "none twice");
    assert!(first_sights(&sights).values().all(|data| data.is_sorted()));
    let traffic = producer.traffic();
    let counted: f64 =
        traffic.iter().flat_map(|shard| shard.sketch.buckets()).map(|bucket| bucket.records).sum();
    assert_eq!(counted.round(), 716.0, "where the load lies is known");
    assert!(traffic.iter().all(|shard| shard.active == 0), "groups are counted out");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_loses_a_record_stores_none_behind_it_and_harms_no_other() {
    let inner = streams(2).await;
    let store = Faulty::keeping_runs(inner.clone(), Weather::default(), 3);
    *store.poison.lock() = Some("1/00002");
    let producer = producer(store, Settings::default()).await;
    let outcomes = producer.send_runs((0..3).map(|name| run(&producer, name, 5)).collect()).await;
    assert_eq!(stored(&outcomes[0]), [true; 5]);
    assert_eq!(stored(&outcomes[1]), [true, true, false, false, false]);
    assert_eq!(stored(&outcomes[2]), [true; 5]);
    assert!(matches!(outcomes[1][2], Err(Lost::NotStored(Why::Refused(_)))), "{outcomes:?}");
    assert!(matches!(outcomes[1][4], Err(Lost::NotStored(Why::Behind))), "{outcomes:?}");
    assert_eq!(first_sights(&sights(&inner).await)["group-1"], ["1/00000", "1/00001"]);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_no_store_takes_breaks_its_run_off_where_it_stands() {
    let inner = streams(1).await;
    let producer =
        producer(Faulty::keeping_runs(inner.clone(), Weather::default(), 3), Settings::default()).await;
    let mut broken = run(&producer, 0, 4);
    broken.payloads[2] = vec![b'x'; anabranch_model::limits::RECORD_BYTES_MAX + 1].into();
    let outcomes = producer.send_runs(vec![broken, run(&producer, 1, 3)]).await;
    assert_eq!(stored(&outcomes[0]), [true, true, false, false]);
    assert_eq!(stored(&outcomes[1]), [true; 3]);
    assert_eq!(sights(&inner).await.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn in_any_weather_runs_stay_in_order_and_outcomes_are_true() {
    for seed in 0..60 {
        let inner = streams(4).await;
        let weather = Weather {
            throttled: 10,
            lost_answers: 10,
            lost_calls: 5,
            refused: 5,
            delay: Duration::from_millis(20),
        };
        let store = Faulty::keeping_runs(inner.clone(), weather, seed);
        let settings =
            Settings { seed: Some(seed), lifetime: Duration::from_secs(600), ..Settings::default() };
        let producer = producer(store, settings).await;
        let resharding =
            tokio::spawn(reshard_for_ever(inner.clone(), Dice::new(seed), Duration::from_millis(200)));
        let callers = (0..5).map(|caller| {
            let producer = producer.clone();
            async move {
                let runs = (0..4).map(|number| run(&producer, caller * 4 + number, 30)).collect();
                producer.send_runs(runs).await
            }
        });
        let outcomes: Vec<_> = futures_util::future::join_all(callers).await.into_iter().flatten().collect();
        resharding.abort();
        let sights = sights(&inner).await;
        let seen = first_sights(&sights);
        for (name, outcomes) in outcomes.iter().enumerate() {
            assert!(outcomes.iter().all(Result::is_ok), "seed {seed}: {outcomes:?}");
            let data = &seen[&format!("group-{name}")];
            assert_eq!(data.len(), 30, "seed {seed}");
            assert!(data.is_sorted(), "seed {seed}: {data:?}");
            for (number, outcome) in outcomes.iter().enumerate() {
                let stored = outcome.as_ref().unwrap();
                let times: Vec<_> =
                    sights.iter().filter(|sight| sight.data == format!("{name}/{number:05}")).collect();
                assert!(
                    times.iter().any(|sight| sight.sequence == stored.sequence),
                    "it is where it is said to be"
                );
                assert!(
                    times.len() == 1 || stored.repeated,
                    "seed {seed}: {stored:?} is there {} times",
                    times.len()
                );
                assert!(!stored.repeated || stored.attempts > 1, "{stored:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_given_up_when_nothing_of_it_is_stored_for_its_lifetime() {
    let inner = streams(1).await;
    let down = Weather { refused: 100, ..Weather::default() };
    let settings = Settings { lifetime: Duration::from_secs(5), ..Settings::default() };
    let producer = producer(Faulty::keeping_runs(inner.clone(), down, 3), settings).await;
    let outcomes = producer.send_runs(vec![run(&producer, 0, 2)]).await.remove(0);
    assert!(matches!(outcomes[0], Err(Lost::NotStored(Why::Expired(Some(_))))), "{outcomes:?}");
    assert!(matches!(outcomes[1], Err(Lost::NotStored(Why::Behind))), "{outcomes:?}");
    assert!(sights(&inner).await.is_empty());
}

/// Answers that never come leave doubt, and doubt is said.
#[tokio::test(start_paused = true)]
async fn what_may_be_there_is_not_said_to_be_lost() {
    let inner = streams(1).await;
    let mute = Weather { lost_answers: 100, ..Weather::default() };
    let settings = Settings { lifetime: Duration::from_secs(5), ..Settings::default() };
    let producer = producer(Faulty::keeping_runs(inner.clone(), mute, 3), settings).await;
    let outcomes = producer.send_runs(vec![run(&producer, 0, 2)]).await.remove(0);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Lost::Unknown(_)))), "{outcomes:?}");
    assert!(!sights(&inner).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_closed_producer_takes_no_runs_and_waits_for_those_that_it_took() {
    let inner = streams(1).await;
    let slow = Weather { delay: Duration::from_secs(3), ..Weather::default() };
    let producer = producer(Faulty::keeping_runs(inner.clone(), slow, 3), Settings::default()).await;
    let early = tokio::spawn({
        let producer = producer.clone();
        async move { producer.send_runs(vec![run(&producer, 0, 1_200)]).await.remove(0) }
    });
    world::pause(Duration::from_millis(1)).await;
    producer.close().await;
    assert_eq!(sights(&inner).await.len(), 1_200, "closed means concluded");
    assert!(early.await.unwrap().iter().all(Result::is_ok));
    let late = producer.send_runs(vec![run(&producer, 1, 1)]).await.remove(0);
    assert!(matches!(late[0], Err(Lost::NotStored(_))), "{late:?}");
}

/// A store that keeps no runs gets them record by record.
#[tokio::test(start_paused = true)]
async fn elsewhere_runs_go_record_by_record() {
    let inner = streams(2).await;
    let store = Faulty::new(inner.clone(), Weather { throttled: 30, ..Weather::default() }, 5);
    let producer = producer(store.clone(), Settings::default()).await;
    let outcomes = producer.send_runs(vec![run(&producer, 0, 20)]).await.remove(0);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert!(store.appends.lock().iter().all(|records| *records == 1));
    assert!(first_sights(&sights(&inner).await).values().all(|data| data.is_sorted() && data.len() == 20));
}

/// A shard that is paced gets a run as a whole, and is left alone for as long as the run takes of its pace.
#[tokio::test(start_paused = true)]
async fn a_paced_shard_gets_runs_as_a_whole_and_no_more_than_its_pace() {
    let inner = streams(1).await;
    let clock = RuntimeClock::new();
    let paced = Settings { pace: Some(Pace { records: 100.0, bytes: 1e6 }), ..Settings::default() };
    let store = Faulty::keeping_runs(inner.clone(), Weather::default(), 5);
    let producer = Producer::start(store.clone(), stream(), clock.clone(), paced).await.unwrap();
    let began = clock.elapsed();
    let callers = (0..50).map(|name| {
        let producer = producer.clone();
        tokio::spawn(async move { producer.send_runs(vec![run(&producer, name, 8)]).await.remove(0) })
    });
    for outcomes in futures_util::future::join_all(callers.collect::<Vec<_>>()).await {
        assert!(outcomes.unwrap().iter().all(Result::is_ok));
    }
    let took = clock.elapsed() - began;
    assert!((Duration::from_millis(3_600)..Duration::from_millis(4_400)).contains(&took), "{took:?}");
    assert!(store.appends.lock().iter().all(|records| *records == 8), "{:?}", store.appends.lock());
    let held: u64 = producer.traffic().iter().map(|shard| shard.sum(100).throttles).sum();
    assert!((350..=400).contains(&held), "what waited is counted once: {held}");
    assert!(first_sights(&sights(&inner).await).values().all(|data| data.is_sorted() && data.len() == 8));
}

/// A run that is more than a shard takes at once goes in parts, at the pace of the shard.
#[tokio::test(start_paused = true)]
async fn a_long_run_keeps_the_pace_of_its_shard() {
    let inner = streams(1).await;
    let clock = RuntimeClock::new();
    let paced = Settings { pace: Some(Pace { records: 100.0, bytes: 1e6 }), ..Settings::default() };
    let store = Faulty::keeping_runs(inner.clone(), Weather::default(), 5);
    let producer = Producer::start(store.clone(), stream(), clock.clone(), paced).await.unwrap();
    let began = clock.elapsed();
    let outcomes = producer.send_runs(vec![run(&producer, 0, 400)]).await.remove(0);
    assert!(outcomes.iter().all(Result::is_ok));
    let took = clock.elapsed() - began;
    assert!((Duration::from_millis(3_500)..Duration::from_millis(4_400)).contains(&took), "{took:?}");
    assert!(store.appends.lock().iter().all(|records| *records <= 20), "{:?}", store.appends.lock());
    assert!(first_sights(&sights(&inner).await).values().all(|data| data.is_sorted() && data.len() == 400));
}
