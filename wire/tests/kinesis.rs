//! Kinesis over HTTP: what clients cannot show from outside, or show only by chance.

mod harness;

use std::time::Duration;

use anabranch_model::{Admin, Clock, Document, Owner, StreamName, StreamOptions, StreamStore};
use aws_smithy_eventstream::frame::{DecodedFrame, MessageFrameDecoder};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::{Buf, Bytes, BytesMut};
use harness::{Harness, json_request, whole};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};

const SHARD: &str = "shardId-000000000000";

async fn done(harness: &Harness, operation: &str, body: Value) -> Value {
    harness.done(&format!("Kinesis_20131202.{operation}"), body).await
}

async fn refused(harness: &Harness, operation: &str, body: Value) -> String {
    harness.refused(&format!("Kinesis_20131202.{operation}"), body).await.0
}

async fn make(harness: &Harness, stream: &str, shards: usize) {
    done(harness, "CreateStream", json!({"StreamName": stream, "ShardCount": shards})).await;
}

async fn put(harness: &Harness, stream: &str, data: &str) -> String {
    let body = json!({"StreamName": stream, "Data": BASE64_STANDARD.encode(data), "PartitionKey": "k"});
    done(harness, "PutRecord", body).await["SequenceNumber"].as_str().expect("a number").to_owned()
}

async fn iterator(harness: &Harness, stream: &str, kind: &str) -> String {
    let body = json!({"StreamName": stream, "ShardId": SHARD, "ShardIteratorType": kind});
    done(harness, "GetShardIterator", body).await["ShardIterator"].as_str().expect("an iterator").to_owned()
}

async fn register(harness: &Harness, stream: &str) -> String {
    let arn = format!("arn:aws:kinesis:us-east-1:000000000000:stream/{stream}");
    let body = json!({"StreamARN": arn, "ConsumerName": "app"});
    let answer = done(harness, "RegisterStreamConsumer", body).await;
    answer["Consumer"]["ConsumerARN"].as_str().expect("an ARN").to_owned()
}

/// The messages of an event stream: what each says it is, and what it carries.
struct Events {
    body: Incoming,
    bytes: BytesMut,
    decoder: MessageFrameDecoder,
}

impl Events {
    fn of(response: Response<Incoming>) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "application/vnd.amazon.eventstream");
        Events { body: response.into_body(), bytes: BytesMut::new(), decoder: MessageFrameDecoder::new() }
    }

    async fn next(&mut self) -> Option<(String, Bytes)> {
        loop {
            if let DecodedFrame::Complete(message) =
                self.decoder.decode_frame(&mut self.bytes).expect("a frame")
            {
                let kind = message.headers().iter().find_map(|header| {
                    let named = [":event-type", ":exception-type"].contains(&header.name().as_str());
                    named.then(|| header.value().as_string().expect("text").as_str().to_owned())
                });
                return Some((kind.expect("a type"), message.payload().clone()));
            }
            let frame = self.body.frame().await?.expect("a piece of the body");
            self.bytes.extend_from_slice(&frame.into_data().expect("data"));
        }
    }

    /// The next event that has records, or the children that end the shard.
    async fn next_news(&mut self) -> Option<Value> {
        while let Some((kind, payload)) = self.next().await {
            if kind != "SubscribeToShardEvent" {
                continue;
            }
            let value: Value = serde_json::from_slice(&payload).expect("JSON");
            if value["Records"] != json!([]) || value.get("ChildShards").is_some() {
                return Some(value);
            }
        }
        None
    }
}

fn subscribe(consumer: &str, start: Value) -> Request<Full<Bytes>> {
    let body = json!({"ConsumerARN": consumer, "ShardId": SHARD, "StartingPosition": start});
    json_request("Kinesis_20131202.SubscribeToShard", body.to_string())
}

#[tokio::test]
async fn a_stream_whose_making_was_cut_off_is_finished_by_the_next_attempt() {
    let harness = Harness::start().await;
    let body = |stream: &str, tag: &str| {
        let mode = json!({"StreamMode": "ON_DEMAND"});
        json!({"StreamName": stream, "StreamModeDetails": mode, "Tags": {"team": tag}})
    };
    done(&harness, "CreateStream", body("whole", "a")).await;
    let whole = Owner::Stream(StreamName::new("whole").unwrap());
    let settings = harness.engine.document(&whole, "kinesis", "settings").await.unwrap().expect("settings");
    // The server died when the stream was made and its settings were not.
    let cut = StreamName::new("cut").unwrap();
    harness
        .engine
        .create_stream(&cut, StreamOptions { shards: 4, ..StreamOptions::default() })
        .await
        .unwrap();
    let note = vec![Document::new("cut", settings)];
    harness.engine.put_documents(&Owner::Store, "kinesis-making", note).await.unwrap();

    done(&harness, "CreateStream", body("cut", "a")).await;
    let tags = done(&harness, "ListTagsForStream", json!({"StreamName": "cut"})).await;
    assert_eq!(tags["Tags"][0]["Value"], "a");
    let summary = done(&harness, "DescribeStreamSummary", json!({"StreamName": "cut"})).await;
    let mode = &summary["StreamDescriptionSummary"]["StreamModeDetails"]["StreamMode"];
    assert_eq!(mode, "ON_DEMAND");
    for tag in ["a", "b"] {
        assert_eq!(refused(&harness, "CreateStream", body("cut", tag)).await, "ResourceInUseException");
    }
    let tags = done(&harness, "ListTagsForStream", json!({"StreamName": "cut"})).await;
    assert_eq!(tags["Tags"][0]["Value"], "a");
}

#[tokio::test]
async fn readers_pass_any_number_of_damaged_records() {
    let harness = Harness::start().await;
    make(&harness, "s", 1).await;
    let mut numbers = Vec::new();
    for index in 0..70 {
        numbers.push(put(&harness, "s", &format!("the record {index:02} of many")).await);
    }
    let damaged: Vec<_> = (1..69).map(|index| format!("the record {index:02} of many")).collect();
    harness.damage(&damaged);
    let (mut place, mut read) = (iterator(&harness, "s", "TRIM_HORIZON").await, Vec::new());
    for _ in 0..4 {
        let page = done(&harness, "GetRecords", json!({"ShardIterator": place})).await;
        let records = page["Records"].as_array().expect("records");
        read.extend(records.iter().map(|record| record["SequenceNumber"].as_str().expect("text").to_owned()));
        place = page["NextShardIterator"].as_str().expect("an iterator").to_owned();
    }
    assert_eq!(read, [numbers[0].clone(), numbers[69].clone()]);
    // Somebody who subscribes behind the first record gets past them, too.
    let consumer = register(&harness, "s").await;
    let start = json!({"Type": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": numbers[0]});
    let mut events = Events::of(harness.send(subscribe(&consumer, start)).await);
    let news = events.next_news().await.expect("news");
    assert_eq!(news["Records"][0]["SequenceNumber"], numbers[69]);
}

#[tokio::test]
async fn only_reads_count_against_the_reads_of_a_shard() {
    let harness = Harness::with_shard_limits().await;
    make(&harness, "s", 1).await;
    let number = put(&harness, "s", "one").await;
    let consumer = register(&harness, "s").await;
    let long_ago = harness.clock.now().as_millis() as f64 / 1e3 - 60.0;
    let starts = [
        json!({"Type": "LATEST"}),
        json!({"Type": "TRIM_HORIZON"}),
        json!({"Type": "AT_TIMESTAMP", "Timestamp": long_ago}),
        json!({"Type": "AT_SEQUENCE_NUMBER", "SequenceNumber": number}),
    ];
    for start in starts.iter().cycle().take(20) {
        iterator(&harness, "s", "LATEST").await;
        let answer = harness.send(subscribe(&consumer, start.clone())).await;
        if answer.status() != StatusCode::OK {
            // The subscription before is young still; the position was looked for all the same.
            let (_, _, body) = whole(answer).await;
            let refusal = String::from_utf8_lossy(&body);
            assert!(refusal.contains("ResourceInUseException"), "{refusal}");
        }
    }
}

#[tokio::test]
async fn starts_that_contradict_themselves_are_refused() {
    let harness = Harness::start().await;
    make(&harness, "s", 1).await;
    let number = put(&harness, "s", "one").await;
    let start = |kind: &str, more: Value| {
        let mut body = json!({"StreamName": "s", "ShardId": SHARD, "ShardIteratorType": kind});
        body.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        body
    };
    for kind in ["TRIM_HORIZON", "LATEST"] {
        let body = start(kind, json!({"StartingSequenceNumber": number}));
        assert_eq!(refused(&harness, "GetShardIterator", body).await, "InvalidArgumentException");
    }
    let now = harness.clock.now().as_millis() as f64 / 1e3;
    let body = start("AT_TIMESTAMP", json!({"Timestamp": now + 60.0}));
    assert_eq!(refused(&harness, "GetShardIterator", body).await, "InvalidArgumentException");
    done(&harness, "GetShardIterator", start("AT_TIMESTAMP", json!({"Timestamp": now - 60.0}))).await;
    for kind in ["AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER", "AT_TIMESTAMP"] {
        assert_eq!(
            refused(&harness, "GetShardIterator", start(kind, json!({}))).await,
            "InvalidArgumentException"
        );
    }
    let unknown = json!({"StreamName": "none", "ShardId": "shardId-1", "ShardIteratorType": "LATEST"});
    let (code, message) = harness.refused("Kinesis_20131202.GetShardIterator", unknown).await;
    assert_eq!(code, "ResourceNotFoundException");
    assert_eq!(
        message,
        "Shard shardId-000000000001 in stream none under account 000000000000 does not exist"
    );
    let body = json!({"StreamName": "s", "ShardId": "shardId-000000000001", "ShardIteratorType": "LATEST"});
    assert_eq!(refused(&harness, "GetShardIterator", body).await, "ResourceNotFoundException");
}

#[tokio::test]
async fn iterators_expire_and_outlive_a_crash() {
    let harness = Harness::start().await;
    make(&harness, "s", 1).await;
    put(&harness, "s", "one").await;
    let place = iterator(&harness, "s", "TRIM_HORIZON").await;
    let harness = harness.crash().await;
    let page = done(&harness, "GetRecords", json!({"ShardIterator": place})).await;
    assert_eq!(page["Records"][0]["Data"], "b25l");
    harness.clock.advance(Duration::from_secs(299));
    done(&harness, "GetRecords", json!({"ShardIterator": place})).await;
    harness.clock.advance(Duration::from_secs(2));
    let (code, message) =
        harness.refused("Kinesis_20131202.GetRecords", json!({"ShardIterator": place})).await;
    assert_eq!(code, "ExpiredIteratorException");
    let words = "Iterator expired. The iterator was created at time ";
    let times = message.strip_prefix(words).and_then(|rest| rest.split_once(" while right now it is "));
    let (created, rest) = times.unwrap_or_else(|| panic!("{message}"));
    assert!(created.contains(" UTC 20") && created.len() == 28, "{created}");
    let tail = " which is further in the future than the tolerated delay of 300000 milliseconds.";
    assert!(rest.ends_with(tail) && rest.len() == 28 + tail.len(), "{rest}");
    let next = page["NextShardIterator"].as_str().expect("an iterator");
    assert_eq!(
        refused(&harness, "GetRecords", json!({"ShardIterator": next})).await,
        "ExpiredIteratorException"
    );
}

#[tokio::test]
async fn an_iterator_may_stand_between_quotes() {
    let harness = Harness::start().await;
    make(&harness, "s", 1).await;
    put(&harness, "s", "one").await;
    let place = iterator(&harness, "s", "TRIM_HORIZON").await;
    let page = done(&harness, "GetRecords", json!({"ShardIterator": format!("\"{place}\"")})).await;
    assert_eq!(page["Records"][0]["Data"], "b25l");
    for wrong in [format!("\"{place}"), format!("\"\"{place}\"\""), "\"\"".to_owned()] {
        let body = json!({"ShardIterator": wrong});
        assert_eq!(refused(&harness, "GetRecords", body).await, "InvalidArgumentException", "{wrong}");
    }
}

#[tokio::test]
async fn a_reader_is_told_of_the_shard_where_the_stream_is_gone() {
    let harness = Harness::start().await;
    make(&harness, "s", 1).await;
    let place = iterator(&harness, "s", "TRIM_HORIZON").await;
    done(&harness, "DeleteStream", json!({"StreamName": "s"})).await;
    let (code, message) =
        harness.refused("Kinesis_20131202.GetRecords", json!({"ShardIterator": place})).await;
    assert_eq!(code, "ResourceNotFoundException");
    assert_eq!(message, format!("Shard {SHARD} in stream s under account 000000000000 does not exist"));
}

#[tokio::test]
async fn tokens_of_listings_expire_and_fit_nothing_else() {
    let harness = Harness::start().await;
    make(&harness, "s", 3).await;
    let page = done(&harness, "ListShards", json!({"StreamName": "s", "MaxResults": 1})).await;
    let token = page["NextToken"].as_str().expect("a token").to_owned();
    assert_eq!(
        refused(&harness, "GetRecords", json!({"ShardIterator": token})).await,
        "InvalidArgumentException"
    );
    let place = iterator(&harness, "s", "LATEST").await;
    assert_eq!(
        refused(&harness, "ListShards", json!({"NextToken": place})).await,
        "InvalidArgumentException"
    );
    harness.clock.advance(Duration::from_secs(301));
    assert_eq!(
        refused(&harness, "ListShards", json!({"NextToken": token})).await,
        "ExpiredNextTokenException"
    );
    done(&harness, "DeleteStream", json!({"StreamName": "s"})).await;
    make(&harness, "s", 3).await;
    let page = done(&harness, "ListShards", json!({"StreamName": "s", "MaxResults": 1})).await;
    assert_eq!(page["Shards"][0]["ShardId"], SHARD);
}

#[tokio::test]
async fn streams_take_their_time_where_that_is_wanted() {
    let harness = Harness::with_transition(Duration::from_secs(3600)).await;
    make(&harness, "s", 2).await;
    let status = async || {
        let answer = done(&harness, "DescribeStreamSummary", json!({"StreamName": "s"})).await;
        answer["StreamDescriptionSummary"]["StreamStatus"].as_str().expect("a status").to_owned()
    };
    assert_eq!(status().await, "CREATING");
    let described = done(&harness, "DescribeStream", json!({"StreamName": "s"})).await;
    assert_eq!(described["StreamDescription"]["Shards"], json!([]), "they are not there yet");
    assert_eq!(described["StreamDescription"]["HasMoreShards"], false);
    let start = json!({"StreamName": "s", "ShardId": "shardId-0", "ShardIteratorType": "LATEST"});
    let (_, message) = harness.refused("Kinesis_20131202.GetShardIterator", start).await;
    assert_eq!(message, format!("Shard {SHARD} in stream s under account 000000000000 does not exist"));
    let record = json!({"StreamName": "s", "Data": "", "PartitionKey": "k"});
    assert_eq!(refused(&harness, "PutRecord", record.clone()).await, "ResourceNotFoundException");
    let merge =
        json!({"StreamName": "s", "ShardToMerge": SHARD, "AdjacentShardToMerge": "shardId-000000000001"});
    assert_eq!(refused(&harness, "MergeShards", merge.clone()).await, "ResourceInUseException");
    harness.clock.advance(Duration::from_secs(3600));
    assert_eq!(status().await, "ACTIVE");
    let same = json!({"StreamName": "s", "RetentionPeriodHours": 24});
    done(&harness, "IncreaseStreamRetentionPeriod", same).await;
    assert_eq!(status().await, "ACTIVE", "nothing is changed");
    done(&harness, "MergeShards", merge).await;
    assert_eq!(status().await, "UPDATING");
    done(&harness, "PutRecord", record).await;
    let split = json!({"StreamName": "s", "ShardToSplit": "shardId-000000000002", "NewStartingHashKey": "7"});
    assert_eq!(refused(&harness, "SplitShard", split.clone()).await, "ResourceInUseException");
    harness.clock.advance(Duration::from_secs(3600));
    assert_eq!(status().await, "ACTIVE");
    done(&harness, "SplitShard", split).await;
}

#[tokio::test]
async fn cbor_says_the_same_as_json() {
    #[derive(serde::Serialize, serde::Deserialize, Default)]
    #[serde(rename_all = "PascalCase", default)]
    struct Shape {
        #[serde(skip_serializing_if = "Option::is_none")]
        stream_name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        partition_key: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none", with = "bytes_of")]
        data: Option<Vec<u8>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        shard_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        shard_iterator_type: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        timestamp: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        shard_iterator: Option<String>,
        #[serde(skip_serializing)]
        records: Vec<Shape>,
        #[serde(skip_serializing)]
        approximate_arrival_timestamp: u64,
        #[serde(skip_serializing, rename = "__type")]
        code: String,
    }
    mod bytes_of {
        pub fn serialize<S: serde::Serializer>(
            bytes: &Option<Vec<u8>>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(bytes.as_deref().unwrap_or_default())
        }
        pub fn deserialize<'de, D: serde::Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Vec<u8>>, D::Error> {
            struct Plain;
            impl serde::de::Visitor<'_> for Plain {
                type Value = Option<Vec<u8>>;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("bytes")
                }
                fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                    Ok(Some(bytes.to_vec()))
                }
            }
            deserializer.deserialize_bytes(Plain)
        }
    }
    async fn cbor(harness: &Harness, operation: &str, shape: Shape) -> (StatusCode, Shape) {
        let request = Request::post("/")
            .header("content-type", "application/x-amz-cbor-1.1")
            .header("x-amz-target", format!("Kinesis_20131202.{operation}"))
            .body(Full::new(Bytes::from(minicbor_serde::to_vec(&shape).unwrap())))
            .unwrap();
        let (status, headers, bytes) = whole(harness.send_http2(request).await).await;
        assert_eq!(headers["content-type"], "application/x-amz-cbor-1.1");
        (status, minicbor_serde::from_slice(&bytes).expect("CBOR"))
    }
    let harness = Harness::start().await;
    make(&harness, "s", 1).await;
    let payload = vec![0, 255, 128, 7];
    let record = Shape {
        stream_name: Some("s".into()),
        partition_key: Some("k".into()),
        data: Some(payload.clone()),
        ..Shape::default()
    };
    assert_eq!(cbor(&harness, "PutRecord", record).await.0, StatusCode::OK);
    let place = |timestamp| Shape {
        stream_name: Some("s".into()),
        shard_id: Some(SHARD.into()),
        shard_iterator_type: Some("AT_TIMESTAMP".into()),
        timestamp: Some(timestamp),
        ..Shape::default()
    };
    let read = async |timestamp: u64| {
        let (_, answer) = cbor(&harness, "GetShardIterator", place(timestamp)).await;
        let request = Shape { shard_iterator: answer.shard_iterator, ..Shape::default() };
        cbor(&harness, "GetRecords", request).await.1.records
    };
    let found = read(0).await;
    assert_eq!(found[0].data.as_ref(), Some(&payload));
    let arrival = found[0].approximate_arrival_timestamp;
    assert!(arrival > 1_700_000_000_000, "moments are milliseconds: {arrival}");
    assert_eq!(read(arrival).await.len(), 1);
    assert_eq!(read(arrival + 1).await.len(), 0);
    let missing = Shape { stream_name: Some("none".into()), ..Shape::default() };
    let (status, fault) = cbor(&harness, "DescribeStreamSummary", missing).await;
    assert_eq!((status, fault.code.as_str()), (StatusCode::BAD_REQUEST, "ResourceNotFoundException"));
}

#[tokio::test]
async fn a_subscription_pushes_resumes_and_ends_with_the_shard() {
    let harness = Harness::start().await;
    make(&harness, "s", 1).await;
    let consumer = register(&harness, "s").await;
    let first = put(&harness, "s", "one").await;
    let mut events =
        Events::of(harness.send_http2(subscribe(&consumer, json!({"Type": "TRIM_HORIZON"}))).await);
    assert_eq!(events.next().await, Some(("initial-response".to_owned(), Bytes::from("{}"))));
    let event = events.next_news().await.expect("an event");
    assert_eq!(event["Records"][0]["SequenceNumber"], first.as_str());
    assert_eq!(event["ContinuationSequenceNumber"], first.as_str());
    let second = put(&harness, "s", "two").await;
    let event = events.next_news().await.expect("an event");
    assert_eq!(event["Records"][0]["SequenceNumber"], second.as_str());
    done(
        &harness,
        "SplitShard",
        json!({"StreamName": "s", "ShardToSplit": SHARD, "NewStartingHashKey": "7"}),
    )
    .await;
    let last = events.next_news().await.expect("an event");
    assert!(last.get("ContinuationSequenceNumber").is_none(), "{last}");
    assert_eq!(last["ChildShards"].as_array().map(Vec::len), Some(2), "{last}");
    assert_eq!(last["ChildShards"][0]["ParentShards"], json!([SHARD]));
    assert_eq!(events.next().await, None);
    let start = json!({"Type": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": first});
    let mut again = Events::of(harness.send(subscribe(&consumer, start)).await);
    let event = again.next_news().await.expect("an event");
    assert_eq!(event["Records"].as_array().map(Vec::len), Some(1));
    assert_eq!(event["Records"][0]["SequenceNumber"], second.as_str());
}

#[tokio::test]
async fn a_subscription_ends_after_five_minutes_with_the_server_and_with_the_stream() {
    let harness = Harness::start().await;
    let latest = || json!({"Type": "LATEST"});
    make(&harness, "s", 1).await;
    let consumer = register(&harness, "s").await;
    let mut events = Events::of(harness.send(subscribe(&consumer, latest())).await);
    let taken = harness.send(subscribe(&consumer, latest())).await;
    assert_eq!(taken.status(), StatusCode::BAD_REQUEST, "it has just begun");
    let number = put(&harness, "s", "one").await;
    assert_eq!(events.next_news().await.expect("an event")["ContinuationSequenceNumber"], number.as_str());
    harness.clock.advance(Duration::from_secs(301));
    put(&harness, "s", "two").await;
    while events.next().await.is_some() {}

    // Another one takes the place of one that is older than a few seconds.
    let mut events = Events::of(harness.send(subscribe(&consumer, latest())).await);
    harness.clock.advance(Duration::from_secs(6));
    let mut successor = Events::of(harness.send(subscribe(&consumer, latest())).await);
    while events.next().await.is_some() {}

    done(&harness, "DeleteStream", json!({"StreamName": "s", "EnforceConsumerDeletion": true})).await;
    let mut last = None;
    while let Some((kind, _)) = successor.next().await {
        last = Some(kind);
    }
    assert_eq!(last.as_deref(), Some("ResourceNotFoundException"));

    make(&harness, "t", 1).await;
    let consumer = register(&harness, "t").await;
    let mut events = Events::of(harness.send(subscribe(&consumer, latest())).await);
    harness.stop();
    while events.next().await.is_some() {}
}

#[tokio::test]
async fn large_batches_become_several_events() {
    let harness = Harness::start().await;
    make(&harness, "s", 1).await;
    let consumer = register(&harness, "s").await;
    let data = BASE64_STANDARD.encode(vec![7; 700 << 10]);
    let records: Vec<Value> = (0..5).map(|_| json!({"Data": data, "PartitionKey": "k"})).collect();
    done(&harness, "PutRecords", json!({"StreamName": "s", "Records": records})).await;
    let mut events = Events::of(harness.send(subscribe(&consumer, json!({"Type": "TRIM_HORIZON"}))).await);
    let (mut seen, mut last) = (0, 0u128);
    while seen < 5 {
        let event = events.next_news().await.expect("an event");
        let records = event["Records"].as_array().expect("records");
        assert_eq!(records.len(), 1, "two of them are more than a mebibyte");
        let number: u128 = records[0]["SequenceNumber"].as_str().unwrap().parse().unwrap();
        assert_eq!(event["ContinuationSequenceNumber"], number.to_string());
        assert!(number > last);
        (seen, last) = (seen + 1, number);
    }
}

#[tokio::test]
async fn malformed_calls_get_the_error_of_the_service() {
    let harness = Harness::start().await;
    make(&harness, "s", 1).await;
    let raw = async |target: &str, body: &str| {
        let (status, headers, bytes) = harness.exchange(json_request(target, body.to_owned())).await;
        assert!(headers.contains_key("x-amzn-requestid"));
        let value: Value = serde_json::from_slice(&bytes).expect("JSON");
        (status.as_u16(), value["__type"].as_str().unwrap_or_default().to_owned())
    };
    let put = "Kinesis_20131202.PutRecord";
    for body in ["{", "[]", "\u{0}", "{\"StreamName\": 7}", "{\"StreamName\":\"s\",\"Data\":\"%\"}", "nul"] {
        assert_eq!(raw(put, body).await, (400, "SerializationException".into()), "{body}");
    }
    // What is missing in the record is told before it is told that no stream is named.
    assert_eq!(raw(put, "{}").await, (400, "ValidationException".into()));
    let whole = "{\"Data\":\"\",\"PartitionKey\":\"k\"}";
    assert_eq!(raw(put, whole).await, (400, "InvalidArgumentException".into()));
    assert_eq!(raw(put, "{\"StreamName\":\"s\"}").await, (400, "ValidationException".into()));
    for target in ["Kinesis_20131202.Nothing", "Kinesis_20131202.", "Nothing.PutRecord", "x"] {
        assert_eq!(raw(target, "{}").await, (400, "UnknownOperationException".into()), "{target}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(raw(put, &deep).await, (400, "SerializationException".into()));
    let (status, _, _) = harness.exchange(json_request(put, vec![b' '; (16 << 20) + 1])).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_damaged_event_stream_is_noticed_by_the_test_itself() {
    // The decoder that the other tests rely on refuses what is not whole.
    let mut bytes = BytesMut::from(&[0u8; 16][..]);
    assert!(MessageFrameDecoder::new().decode_frame(&mut bytes).is_err());
    assert!(bytes.has_remaining());
}

#[tokio::test]
async fn the_partition_key_counts_towards_the_size_of_a_record() {
    let harness = Harness::start().await;
    make(&harness, "s", 1).await;
    let record =
        |bytes: usize| json!({"Data": BASE64_STANDARD.encode(vec![7; bytes]), "PartitionKey": "käy"});
    let most = (1 << 20) - "käy".len();
    for (bytes, fits) in [(most, true), (most + 1, false)] {
        let mut one = record(bytes);
        one["StreamName"] = json!("s");
        let several = json!({"StreamName": "s", "Records": [record(1), record(bytes)]});
        for (operation, body) in [("PutRecord", one), ("PutRecords", several)] {
            match fits {
                true => drop(done(&harness, operation, body).await),
                false => assert_eq!(refused(&harness, operation, body).await, "ValidationException"),
            }
        }
    }
}
