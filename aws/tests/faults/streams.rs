//! Streams.

use std::collections::HashMap;
use std::time::Duration;

use anabranch_aws::Streams;
use anabranch_model::{
    Appended, Error, NewRecord, Next, Position, ReadLimit, Record, SequenceNumber, Shard, ShardId,
    ShardSource, StreamName, StreamOptions, StreamStore,
};
use futures_util::StreamExt;
use futures_util::future::join_all;

use crate::peer::Peer;
use crate::peer::gaps::streams::KINESIS_MOCK;
use crate::peer::plan::{chance, first, once_each};
use crate::peer::proxy::Fault::{self, *};
use crate::peer::proxy::Proxy;
use crate::peer::suite::{self, stream_cases};
use crate::peer::wire::Request;
use crate::{
    ALL, AT_MOST_ONCE, ATTEMPT_MAX, CERTAIN, DOUBTFUL, Fate, LOOKED_UP, OF_CHANGES, PERCENT, REPEATED,
    is_doubt,
};

/// The calls that change a stream, in the order in which they are made here.
const CHANGES: &[&str] = &[
    "CreateStream",
    "IncreaseStreamRetentionPeriod",
    "SplitShard",
    "MergeShards",
    "DecreaseStreamRetentionPeriod",
    "DeleteStream",
];
/// A law of three thousand reads, which takes the server a minute without any fault. Followers read through faults below.
const TOO_LONG: &str = "nothing_is_skipped";
const HOUR: Duration = Duration::from_secs(3_600);

fn name(name: &str) -> StreamName {
    StreamName::new(name).expect("a name")
}

fn of_laws(request: &Request) -> &'static [Fault] {
    match request.operation.as_str() {
        "PutRecords" => CERTAIN,
        operation if CHANGES.contains(&operation) => LOOKED_UP,
        _ => REPEATED,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_of_streams_hold() {
    let mock = Peer::kinesis_mock().await;
    let proxy = Proxy::start(mock.address(), chance(11, PERCENT, of_laws)).await;
    let streams = Streams::new(&proxy.connect(None).await);
    let mut cases = stream_cases(&streams, "faulty");
    cases.retain(|(law, _)| *law != TOO_LONG);
    suite::hold(cases, KINESIS_MOCK, 8).await;
    proxy.saw(REPEATED);
}

/// Every record of a shard, as the server itself has them.
async fn stored(direct: &Streams, stream: &StreamName, shard: &ShardId) -> Vec<Record> {
    let mut records = Vec::new();
    let mut position = Position::TrimHorizon;
    loop {
        let batch = direct.read(stream, shard, position, ReadLimit::default()).await.unwrap();
        records.extend(batch.records);
        match batch.next {
            Next::At(next) if !batch.behind.is_zero() => position = next,
            _ => return records,
        }
    }
}

async fn shards(streams: &Streams, stream: &StreamName) -> Vec<Shard> {
    streams.shards(stream, None, 100).await.unwrap().entries
}

type Told = Vec<(String, Fate<Appended>)>;

/// Appends two records at a time, and says what it was told about each.
async fn write(streams: Streams, stream: StreamName, writer: usize, appends: usize) -> Told {
    let mut told = Vec::new();
    for append in 0..appends {
        let texts: Vec<_> = (0..2).map(|place| format!("{writer}-{append}-{place}")).collect();
        let records = texts.iter().map(|text| NewRecord::new(format!("writer-{writer}"), text.clone()));
        let fates = match streams.append(&stream, records.collect()).await {
            Ok(results) => results.into_iter().map(Fate::of).collect(),
            Err(error) => vec![Fate::of(Err(error)); texts.len()],
        };
        told.extend(texts.into_iter().zip(fates));
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_appended_is_stored_once_and_in_order_or_in_doubt() {
    let mock = Peer::kinesis_mock().await;
    let (direct, stream) = (Streams::new(&mock.connect().await), name("appends"));
    direct.create_stream(&stream, StreamOptions { shards: 2, ..StreamOptions::default() }).await.unwrap();
    // A record that comes twice to Kinesis is there twice, and nobody could say so: that fault is left out.
    let proxy = Proxy::start(mock.address(), chance(12, 20, |_| AT_MOST_ONCE)).await;
    let streams = Streams::new(&proxy.connect(ATTEMPT_MAX).await);
    let writers = (0..6).map(|writer| tokio::spawn(write(streams.clone(), stream.clone(), writer, 30)));
    let told: Vec<Told> = join_all(writers).await.into_iter().map(|told| told.unwrap()).collect();
    proxy.saw(AT_MOST_ONCE);

    let mut copies: HashMap<String, Vec<Appended>> = HashMap::new();
    for shard in shards(&direct, &stream).await {
        for record in stored(&direct, &stream, &shard.id).await {
            let text = String::from_utf8(record.data.to_vec()).unwrap();
            let place = Appended { shard: shard.id.clone(), sequence: record.sequence };
            copies.entry(text).or_default().push(place);
        }
    }
    let (mut doubts, mut doubts_stored) = (0, 0);
    for writer in &told {
        let mut last: Option<SequenceNumber> = None;
        for (text, fate) in writer {
            let found = copies.remove(text).unwrap_or_default();
            match fate {
                Fate::Stored(place) => assert_eq!(found, std::slice::from_ref(place), "{text}"),
                Fate::InDoubt => {
                    doubts += 1;
                    doubts_stored += found.len();
                    assert!(found.len() <= 1, "{text} is there {} times", found.len());
                }
                Fate::Refused => assert_eq!(found, [], "{text} was refused"),
            }
            // The records of a writer share a key, and so a shard.
            if let Some(place) = found.first() {
                assert!(
                    last < Some(place.sequence),
                    "{text} was put before what its writer had sent earlier"
                );
                last = Some(place.sequence);
            }
        }
    }
    assert!(copies.is_empty(), "nobody has written {copies:?}");
    assert!(0 < doubts_stored && doubts_stored < doubts, "{doubts_stored} of {doubts} are stored");
}

#[tokio::test]
async fn an_append_without_an_answer_is_an_error_that_says_so_and_is_not_repeated() {
    let mock = Peer::kinesis_mock().await;
    let (direct, stream) = (Streams::new(&mock.connect().await), name("doubts"));
    direct.create_stream(&stream, StreamOptions::default()).await.unwrap();
    let proxy = Proxy::start(mock.address(), first("PutRecords", DOUBTFUL)).await;
    let streams = Streams::new(&proxy.connect(ATTEMPT_MAX).await);
    for (number, fault) in DOUBTFUL.iter().enumerate() {
        let error =
            streams.append(&stream, vec![NewRecord::new("k", format!("{fault:?}"))]).await.unwrap_err();
        assert!(is_doubt(&error), "{fault:?}: {error:?}");
        assert_eq!((proxy.count(*fault), proxy.asked("PutRecords")), (1, number + 1), "{fault:?}");
    }
    let shard = &shards(&direct, &stream).await[0].id;
    let stored: Vec<_> = stored(&direct, &stream, shard).await.into_iter().map(|it| it.data).collect();
    assert_eq!(stored, ["Drop", "Hang", "Fail", "Cut"]);
}

/// A stream is made, changed and removed, and each of these calls has the fault once.
async fn live(mock: &Peer, fault: Fault) {
    let proxy = Proxy::start(mock.address(), once_each(fault, CHANGES)).await;
    let streams = Streams::new(&proxy.connect(ATTEMPT_MAX).await);
    let stream = name(&format!("life-{fault:?}"));
    let options = StreamOptions { shards: 1, retention: 48 * HOUR };
    streams.create_stream(&stream, options).await.unwrap();
    assert_eq!(streams.create_stream(&stream, options).await, Err(Error::StreamExists(stream.clone())));
    let summary = streams.stream(&stream).await.unwrap();
    assert_eq!((summary.open_shards, summary.retention), (1, options.retention), "{fault:?}");
    let parent = shards(&streams, &stream).await[0].clone();
    let middle = parent.range.and_then(|range| range.midpoint()).unwrap();
    let [lower, upper] = streams.split(&stream, &parent.id, middle).await.unwrap();
    let child = streams.merge(&stream, &lower, &upper).await.unwrap();
    let listed = shards(&streams, &stream).await;
    let open: Vec<_> = listed.iter().filter(|shard| shard.is_open()).map(|shard| &shard.id).collect();
    assert_eq!((listed.len(), open), (4, vec![&child]), "{fault:?}");
    assert_eq!(
        streams.split(&stream, &parent.id, middle).await,
        Err(Error::ShardClosed(parent.id.clone())),
        "{fault:?}"
    );
    streams.set_retention(&stream, 24 * HOUR).await.unwrap();
    assert_eq!(streams.stream(&stream).await.unwrap().retention, 24 * HOUR, "{fault:?}");
    streams.delete_stream(&stream).await.unwrap();
    let gone = Err(Error::StreamNotFound(stream.clone()));
    assert_eq!(streams.delete_stream(&stream).await, gone, "{fault:?}");
    assert_eq!(proxy.count(fault), CHANGES.len(), "{fault:?} did not happen to every change");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_change_as_they_should_behind_lost_answers() {
    let mock = Peer::kinesis_mock().await;
    join_all(OF_CHANGES.iter().map(|fault| live(&mock, *fault))).await;
}

const FOLLOWED: usize = 120;

/// What a follower sees until it has seen everything.
async fn follow(streams: Streams, stream: StreamName, shard: ShardId) -> Vec<Record> {
    let mut follow = streams.follow(&stream, &shard, Position::TrimHorizon).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < FOLLOWED {
        let batch = follow.next().await.expect("an open shard does not end").unwrap();
        seen.extend(batch.records);
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_miss_nothing_and_see_nothing_twice() {
    let mock = Peer::kinesis_mock().await;
    let (direct, stream) = (Streams::new(&mock.connect().await), name("followed"));
    direct.create_stream(&stream, StreamOptions::default()).await.unwrap();
    let shard = shards(&direct, &stream).await[0].id.clone();
    let subscribing = Proxy::start(
        mock.address(),
        chance(13, 85, |request| match request.operation.as_str() {
            "SubscribeToShard" => &[Cut, Cut, Cut, Refuse, Throttle, Fail],
            "RegisterStreamConsumer" => LOOKED_UP,
            _ => &[],
        }),
    )
    .await;
    let polling = Proxy::start(mock.address(), chance(14, 50, |_| ALL)).await;
    let pushed = Streams::new(&subscribing.connect(None).await).with_fan_out("follower").unwrap();
    let polled = Streams::new(&polling.connect(ATTEMPT_MAX).await);
    let followers =
        [pushed, polled].map(|streams| tokio::spawn(follow(streams, stream.clone(), shard.clone())));
    let mut pace = tokio::time::interval(Duration::from_millis(25));
    for number in 0..FOLLOWED {
        pace.tick().await;
        let records = vec![NewRecord::new("k", number.to_string())];
        direct.append(&stream, records).await.unwrap().remove(0).unwrap();
    }
    let expected = stored(&direct, &stream, &shard).await;
    assert_eq!(expected.len(), FOLLOWED);
    for follower in followers {
        let seen = tokio::time::timeout(Duration::from_secs(60), follower).await.expect("no hang").unwrap();
        let numbers = |records: &[Record]| records.iter().map(|it| it.sequence).collect::<Vec<_>>();
        assert_eq!(numbers(&seen), numbers(&expected));
    }
    subscribing.saw(&[Cut]);
    polling.saw(&[Refuse, Drop, Cut, Fail]);
}
