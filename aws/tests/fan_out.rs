//! Following with a registered consumer, where servers of Kinesis's protocol do not show how a subscription ends: with its
//! shard, with its stream, with its time, or because nobody pushes.

mod peer;

use std::sync::{Arc, Mutex};

use anabranch_aws::Streams;
use anabranch_model::{
    Batch, Error, Follow, Next, Position, SequenceNumber, ShardId, ShardSource, StreamName,
};
use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
use futures_util::StreamExt;
use peer::connect;
use peer::stub::{Answer, Open, Stub};

const SHARD: &str = "shardId-000000000000";
const CONSUMER: &str = r#"{"ConsumerDescription":{"ConsumerName":"c","ConsumerStatus":"ACTIVE",
    "ConsumerARN":"arn:aws:kinesis:us-east-1:1:stream/clicks/consumer/c:1",
    "StreamARN":"arn:aws:kinesis:us-east-1:1:stream/clicks","ConsumerCreationTimestamp":1700000000}}"#;
const SUMMARY: &str = r#"{"StreamDescriptionSummary":{"StreamName":"clicks","StreamARN":"arn:aws:kinesis:us-east-1:1:stream/clicks",
    "StreamStatus":"ACTIVE","RetentionPeriodHours":24,"StreamCreationTimestamp":1700000000,"EnhancedMonitoring":[],
    "OpenShardCount":1}}"#;
/// A shard that was split in two.
const SHARDS: &str = r#"{"Shards":[
    {"ShardId":"shardId-000000000000","HashKeyRange":{"StartingHashKey":"0","EndingHashKey":"99"},
        "SequenceNumberRange":{"StartingSequenceNumber":"1","EndingSequenceNumber":"9"}},
    {"ShardId":"shardId-000000000001","ParentShardId":"shardId-000000000000",
        "HashKeyRange":{"StartingHashKey":"0","EndingHashKey":"49"},
        "SequenceNumberRange":{"StartingSequenceNumber":"10"}},
    {"ShardId":"shardId-000000000002","ParentShardId":"shardId-000000000000",
        "HashKeyRange":{"StartingHashKey":"50","EndingHashKey":"99"},
        "SequenceNumberRange":{"StartingSequenceNumber":"10"}}]}"#;

fn name() -> StreamName {
    StreamName::new("clicks").expect("a name")
}

fn shard(id: &str) -> ShardId {
    ShardId::new(id).expect("a shard")
}

/// A message of a stream of events.
fn message(headers: &[(&'static str, &'static str)], payload: String) -> Vec<u8> {
    let with = |message: Message, (name, value): &(&'static str, &'static str)| {
        message.add_header(Header::new(*name, HeaderValue::String((*value).into())))
    };
    let message = headers.iter().fold(Message::new(payload.into_bytes()), with);
    let mut bytes = Vec::new();
    write_message_to(&message, &mut bytes).expect("a message");
    bytes
}

fn record(number: &u32) -> String {
    format!(
        r#"{{"SequenceNumber":"{number}","Data":"eA==","PartitionKey":"k","ApproximateArrivalTimestamp":1700000000}}"#
    )
}

/// An event with a record of each number; `rest` is what else it says.
fn event(numbers: &[u32], rest: &str) -> Vec<u8> {
    let records: Vec<_> = numbers.iter().map(record).collect();
    let payload = format!(r#"{{"Records":[{}],"MillisBehindLatest":0{rest}}}"#, records.join(","));
    let headers = [
        (":message-type", "event"),
        (":event-type", "SubscribeToShardEvent"),
        (":content-type", "application/json"),
    ];
    message(&headers, payload)
}

/// An event behind which the shard goes on.
fn going_on(numbers: &[u32], reached: u32) -> Vec<u8> {
    event(numbers, &format!(r#","ContinuationSequenceNumber":"{reached}""#))
}

/// What a subscription ends with when its stream is deleted.
fn stream_is_gone() -> Vec<u8> {
    let headers = [
        (":message-type", "exception"),
        (":exception-type", "ResourceNotFoundException"),
        (":content-type", "application/json"),
    ];
    message(&headers, r#"{"message":"Stream clicks under account 1 not found."}"#.to_string())
}

/// What a server of one stream answers to everything but subscriptions.
fn usual(operation: &str) -> Answer {
    match operation {
        "describestreamsummary" => Answer::ok(SUMMARY),
        "describestreamconsumer" => Answer::ok(CONSUMER),
        "getsharditerator" => Answer::ok(r#"{"ShardIterator":"first"}"#),
        "getrecords" => Answer::ok(r#"{"Records":[],"NextShardIterator":"next","MillisBehindLatest":0}"#),
        "listshards" => Answer::ok(SHARDS),
        other => panic!("nobody asks for {other}"),
    }
}

/// A server of one stream, which answers to subscriptions with what `subscribe` makes of their number and body.
async fn serving(mut subscribe: impl FnMut(usize, &str) -> Answer + Send + 'static) -> Stub {
    let mut subscriptions = 0..;
    Stub::start(move |operation, body| match operation {
        "subscribetoshard" => subscribe(subscriptions.next().unwrap_or_default(), body),
        other => usual(other),
    })
    .await
}

async fn follow(stub: &Stub) -> Follow {
    let streams = Streams::new(&connect(&stub.endpoint()).await).with_fan_out("c").expect("a name");
    streams.follow(&name(), &shard(SHARD), Position::TrimHorizon).await.expect("the shard is there")
}

fn numbers(batch: &Batch) -> Vec<SequenceNumber> {
    batch.records.iter().map(|record| record.sequence).collect()
}

fn sequences(numbers: &[u128]) -> Vec<SequenceNumber> {
    numbers.iter().map(|number| SequenceNumber::from_u128(*number)).collect()
}

async fn next(follow: &mut Follow) -> Batch {
    follow.next().await.expect("it goes on").expect("a batch")
}

#[tokio::test]
async fn a_subscription_ends_with_its_shard() {
    let child = |id: &str| {
        format!(
            r#"{{"ShardId":"{id}","ParentShards":["{SHARD}"],"HashKeyRange":{{"StartingHashKey":"0","EndingHashKey":"9"}}}}"#
        )
    };
    let (one, other) = (child("shardId-000000000007"), child("shardId-000000000008"));
    let named = format!(r#","ContinuationSequenceNumber":"4","ChildShards":[{one},{other}]"#);
    // Kinesis names the children; a server that does not is asked for them.
    let cases = [
        (event(&[4], &named), ["shardId-000000000007", "shardId-000000000008"]),
        (event(&[4], ""), ["shardId-000000000001", "shardId-000000000002"]),
    ];
    for (last, children) in cases {
        let pushed = [going_on(&[1, 2], 2), going_on(&[], 3), last].concat();
        let stub = serving(move |number, _| {
            assert_eq!(number, 0, "who is at the end subscribes again");
            Answer::Pushed(pushed.clone(), Open::Yes)
        })
        .await;
        let mut follow = follow(&stub).await;
        let first = next(&mut follow).await;
        assert_eq!(
            (numbers(&first), first.next),
            (sequences(&[1, 2]), Next::At(Position::After(sequences(&[2])[0])))
        );
        let last = next(&mut follow).await;
        assert_eq!((numbers(&last), last.next), (sequences(&[4]), Next::Ended(children.map(shard).to_vec())));
        assert!(follow.next().await.is_none(), "there is nothing behind the end");
    }
}

#[tokio::test]
async fn a_subscription_to_a_deleted_stream_fails() {
    // It ends with a word or without one; who subscribes again is told.
    for end in [stream_is_gone(), Vec::new()] {
        let pushed = [going_on(&[1], 1), end].concat();
        let mut deleted = false;
        let stub = Stub::start(move |operation, _| match operation {
            _ if deleted => Answer::failure(400, "ResourceNotFoundException", "Stream clicks not found."),
            "subscribetoshard" => {
                deleted = true;
                Answer::Pushed(pushed.clone(), Open::No)
            }
            other => usual(other),
        })
        .await;
        let mut follow = follow(&stub).await;
        assert_eq!(numbers(&next(&mut follow).await), sequences(&[1]));
        let error = follow.next().await.expect("a last word").expect_err("the stream is gone");
        assert_eq!(error, Error::StreamNotFound(name()));
        assert!(follow.next().await.is_none(), "there is nothing behind an error");
    }
}

#[tokio::test]
async fn a_subscription_whose_time_is_over_is_renewed_where_it_ended() {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = bodies.clone();
    let stub = serving(move |number, body| {
        seen.lock().expect("the list").push(body.to_string());
        match number {
            0 => Answer::Pushed([going_on(&[1, 2], 2), going_on(&[], 5)].concat(), Open::No),
            // Cut in the middle of an event.
            1 => Answer::Pushed(going_on(&[6], 6)[..40].to_vec(), Open::No),
            _ => Answer::Pushed(going_on(&[6], 6), Open::Yes),
        }
    })
    .await;
    let mut follow = follow(&stub).await;
    assert_eq!(numbers(&next(&mut follow).await), sequences(&[1, 2]));
    assert_eq!(numbers(&next(&mut follow).await), sequences(&[6]));
    let bodies = bodies.lock().expect("the list");
    assert!(bodies[0].contains("TRIM_HORIZON"), "{bodies:?}");
    for body in &bodies[1..3] {
        assert!(body.contains("AFTER_SEQUENCE_NUMBER") && body.contains(r#""SequenceNumber":"5""#), "{body}");
    }
}

#[tokio::test]
async fn who_cannot_push_is_polled_to_the_end_of_the_shard() {
    let answers = [
        Answer::failure(400, "UnknownOperationException", ""),
        Answer::failure(500, "InternalError", "The SubscribeToShard action has not been implemented"),
    ];
    for answer in answers {
        let mut reads = 0..;
        let stub = Stub::start(move |operation, _| match operation {
            "subscribetoshard" => answer.clone(),
            // The first is that of the beginning, which says what does not exist.
            "getrecords" => match reads.next() {
                Some(0) => usual(operation),
                Some(1) => Answer::ok(&format!(
                    r#"{{"Records":[{}],"NextShardIterator":"next","MillisBehindLatest":0}}"#,
                    record(&3)
                )),
                _ => Answer::ok(r#"{"Records":[],"MillisBehindLatest":0}"#),
            },
            other => usual(other),
        })
        .await;
        let mut follow = follow(&stub).await;
        assert_eq!(numbers(&next(&mut follow).await), sequences(&[3]));
        let last = next(&mut follow).await;
        assert_eq!(
            last.next,
            Next::Ended(["shardId-000000000001", "shardId-000000000002"].map(shard).to_vec())
        );
        assert!(follow.next().await.is_none(), "there is nothing behind the end");
    }
}
