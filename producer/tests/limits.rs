//! The buffer, deadlines, pace and the end.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod world;

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::laws::reference::ReferenceBlobs;
use anabranch_model::{
    BucketName, Clock, Error, NewRecord, Pointer, Position, ReadLimit, ShardId, ShardSource, StreamName,
};
use anabranch_producer::{Large, Lost, Pace, Producer, Settings, TrySendError, Why, collect_payloads};
use bytes::Bytes;
use world::{BOTH, Faulty, RuntimeClock, Weather, pause, sights, stream, streams};

const DEAD: Weather =
    Weather { throttled: 0, lost_answers: 0, lost_calls: 0, refused: 100, delay: Duration::ZERO };

fn small(buffer_bytes: usize) -> Settings {
    Settings { buffer_bytes, seed: Some(1), ..Settings::default() }
}

#[tokio::test(start_paused = true)]
async fn a_full_buffer_is_said_or_waited_for() {
    for make in BOTH {
        let store = make(streams(1).await, DEAD, 1);
        let producer =
            Producer::start(store.clone(), stream(), RuntimeClock::new(), small(3_000)).await.unwrap();
        let record = |number: usize| NewRecord::new(format!("{number}"), vec![b'x'; 700]);
        let tickets: Vec<_> = (0..3).map(|number| producer.try_send(record(number)).unwrap()).collect();
        let Err(TrySendError::Full(back)) = producer.try_send(record(3)) else { panic!("it is full") };
        assert_eq!(back, record(3));
        let waiting = tokio::spawn({
            let producer = producer.clone();
            async move { producer.send(back).await.unwrap().await }
        });
        pause(Duration::from_secs(5)).await;
        assert!(!waiting.is_finished(), "it waits for room");
        *store.weather.lock() = Weather::default();
        waiting.await.unwrap().unwrap();
        for ticket in tickets {
            ticket.await.unwrap();
        }
        assert_eq!(sights(&store.inner).await.len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_is_given_up_at_its_deadline_and_certainty_is_kept_apart() {
    for make in BOTH {
        let clock = RuntimeClock::new();
        for (weather, unknown) in [(DEAD, false), (Weather { refused: 0, lost_calls: 100, ..DEAD }, true)] {
            let store = make(streams(1).await, weather, 1);
            let producer = Producer::start(store, stream(), clock.clone(), small(100_000)).await.unwrap();
            let began = clock.elapsed();
            let ticket =
                producer.send_within(NewRecord::new("a", "b"), Duration::from_secs(7)).await.unwrap();
            let behind = producer.send(NewRecord::new("a", "c")).await.unwrap();
            let lost = ticket.await.unwrap_err();
            let took = clock.elapsed() - began;
            assert!((Duration::from_secs(7)..Duration::from_secs(8)).contains(&took), "{took:?}");
            assert_eq!(matches!(lost, Lost::Unknown(_)), unknown, "{lost:?}");
            assert!(matches!(lost.why(), Why::Expired(Some(_))), "{lost:?}");
            behind.await.unwrap_err();
            let took = clock.elapsed() - began;
            assert!((Duration::from_secs(30)..Duration::from_secs(31)).contains(&took), "{took:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_stored_is_refused_before_it_is_sent() {
    for make in BOTH {
        let store = make(streams(1).await, Weather::default(), 1);
        let clock: Arc<dyn Clock> = RuntimeClock::new();
        let producer =
            Producer::start(store.clone(), stream(), clock.clone(), Settings::default()).await.unwrap();
        for record in
            [NewRecord::new("", "x"), NewRecord::new("k", vec![0; 11 << 20]), NewRecord::new(vec![0xff], "x")]
        {
            assert!(matches!(producer.send(record.clone()).await, Err(Error::Invalid(_))));
            assert!(matches!(producer.try_send(record), Err(TrySendError::Refused(Error::Invalid(_)))));
        }
        let missing = StreamName::new("missing").unwrap();
        let error = Producer::start(store.clone(), missing, clock.clone(), Settings::default()).await.err();
        assert!(matches!(error, Some(Error::StreamNotFound(_))), "{error:?}");
        let settings = Settings { appends_max: 0, ..Settings::default() };
        let error = Producer::start(store, stream(), clock, settings).await.err().unwrap().to_string();
        assert!(error.contains("`appends_max` is 0"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shard_is_sent_no_more_than_its_pace() {
    let clock = RuntimeClock::new();
    let store = Faulty::new(streams(1).await, Weather::default(), 1);
    let settings = Settings { pace: Some(Pace { records: 100.0, bytes: 1e6 }), ..small(10_000_000) };
    let settings = Settings { lifetime: Duration::from_secs(60), ..settings };
    let producer = Producer::start(store, stream(), clock.clone(), settings).await.unwrap();
    let began = clock.elapsed();
    let mut tickets = Vec::new();
    for number in 0..1_000 {
        tickets.push(producer.send(NewRecord::new(format!("{number}"), "x")).await.unwrap());
    }
    for ticket in tickets {
        ticket.await.unwrap();
    }
    let took = clock.elapsed() - began;
    assert!((Duration::from_millis(9_700)..Duration::from_secs(11)).contains(&took), "{took:?}");
    let held: u64 = producer.traffic().iter().map(|shard| shard.sum(100).throttles).sum();
    assert!((900..=1_000).contains(&held), "those who waited are counted once: {held}");
}

#[tokio::test(start_paused = true)]
async fn closing_finishes_what_was_sent_and_takes_no_more() {
    for make in BOTH {
        let slow = Weather { delay: Duration::from_millis(400), throttled: 30, ..Weather::default() };
        let store = make(streams(1).await, slow, 1);
        let producer =
            Producer::start(store.clone(), stream(), RuntimeClock::new(), small(100_000)).await.unwrap();
        let mut tickets = Vec::new();
        for number in 0..50 {
            tickets.push(producer.send(NewRecord::new(format!("{}", number % 5), "x")).await.unwrap());
        }
        producer.close().await;
        for ticket in tickets {
            ticket.await.unwrap();
        }
        assert_eq!(sights(&store.inner).await.len(), 50);
        assert!(matches!(producer.send(NewRecord::new("k", "x")).await, Err(Error::Stopped(_))));
        assert!(producer.try_send(NewRecord::new("k", "x")).is_err());
    }
}

fn large(blobs: &ReferenceBlobs) -> Large {
    let bucket = BucketName::new("large").unwrap();
    Large { blobs: Arc::new(blobs.clone()), bucket, prefix: "payloads/".to_owned(), threshold_bytes: 1_000 }
}

async fn keys(large: &Large) -> usize {
    large.blobs.list(&large.bucket, Default::default()).await.unwrap().entries.len()
}

#[tokio::test(start_paused = true)]
async fn large_payloads_go_to_blobs_and_orphans_go() {
    let blobs = ReferenceBlobs::new();
    let large = large(&blobs);
    large.blobs.create_bucket(&large.bucket).await.unwrap();
    let store = Faulty::new(streams(1).await, Weather::default(), 1);
    let settings = Settings { large: Some(large.clone()), ..small(20 << 20) };
    let clock = RuntimeClock::new();
    let producer = Producer::start(store.clone(), stream(), clock.clone(), settings).await.unwrap();
    // More than a record may have: only the pointer goes to the stream.
    let payload = Bytes::from(vec![b'y'; 11 << 20]);
    producer.send(NewRecord::new("k", payload.clone())).await.unwrap().await.unwrap();
    producer.send(NewRecord::new("k", "short")).await.unwrap().await.unwrap();
    let (shard, limit) = (ShardId::numbered(0), ReadLimit::default());
    let records = store.inner.read(&stream(), &shard, Position::TrimHorizon, limit).await.unwrap().records;
    let pointer = Pointer::decode(&records[0].data).expect("a pointer");
    pointer.check(&payload).unwrap();
    assert_eq!((records[1].data.as_ref(), keys(&large).await), (&b"short"[..], 1));
    // What is certainly not stored leaves nothing behind.
    *store.weather.lock() = DEAD;
    let lost =
        producer.send_within(NewRecord::new("k", payload.clone()), Duration::from_secs(2)).await.unwrap();
    assert!(matches!(lost.await, Err(Lost::NotStored(_))));
    pause(Duration::from_millis(10)).await;
    assert_eq!(keys(&large).await, 1);
    // What nobody knows about stays as long as a record could point to it.
    *store.weather.lock() = Weather { lost_answers: 100, ..Weather::default() };
    let lost = producer.send_within(NewRecord::new("k", payload), Duration::from_secs(2)).await.unwrap();
    assert!(matches!(lost.await, Err(Lost::Unknown(_))));
    let day = Duration::from_secs(24 * 3600);
    let now = clock.now();
    assert_eq!(collect_payloads(&large, &stream(), day, now.plus(day)).await.unwrap(), 0);
    assert_eq!(keys(&large).await, 2);
    assert_eq!(collect_payloads(&large, &stream(), day, now.plus(day * 2)).await.unwrap(), 2);
    assert_eq!(keys(&large).await, 0);
}
