//! Kinesis over HTTP: streams, consumers and tags as they are managed.

mod harness;

use std::time::Duration;

use harness::Harness;
use http::StatusCode;
use serde_json::{Value, json};

const STREAM_ARN: &str = "arn:aws:kinesis:us-east-1:000000000000:stream/s0";

async fn done(harness: &Harness, operation: &str, body: Value) -> Value {
    harness.done(&format!("Kinesis_20131202.{operation}"), body).await
}

async fn refused(harness: &Harness, operation: &str, body: Value) -> (String, String) {
    harness.refused(&format!("Kinesis_20131202.{operation}"), body).await
}

async fn streams(harness: &Harness, count: usize) {
    for number in 0..count {
        done(harness, "CreateStream", json!({"StreamName": format!("s{number}"), "ShardCount": 1})).await;
    }
}

#[tokio::test]
async fn a_page_has_a_thousand_shards_at_most() {
    let harness = Harness::start().await;
    done(&harness, "CreateStream", json!({"StreamName": "wide", "ShardCount": 1_001})).await;
    for asked in [json!({"StreamName": "wide", "MaxResults": 10_000}), json!({"StreamName": "wide"})] {
        let page = done(&harness, "ListShards", asked).await;
        assert_eq!(page["Shards"].as_array().map(Vec::len), Some(1_000));
        let rest =
            done(&harness, "ListShards", json!({"NextToken": page["NextToken"], "MaxResults": 10_000})).await;
        assert_eq!(rest["Shards"].as_array().map(Vec::len), Some(1));
        assert_eq!(rest["NextToken"], Value::Null);
    }
}

#[tokio::test]
async fn streams_are_listed_by_tokens_that_nobody_can_make() {
    let harness = Harness::start().await;
    streams(&harness, 3).await;
    let first = done(&harness, "ListStreams", json!({"Limit": 2})).await;
    assert_eq!(first["StreamNames"], json!(["s0", "s1"]));
    let token = first["NextToken"].clone();
    assert_ne!(token, "s1", "a token is no name");
    let harness = harness.crash().await;
    let last = done(&harness, "ListStreams", json!({"Limit": 2, "NextToken": token})).await;
    assert_eq!((&last["StreamNames"], &last["NextToken"]), (&json!(["s2"]), &Value::Null));
    for bad in ["s1", "?", "czE="] {
        let (code, message) = refused(&harness, "ListStreams", json!({"NextToken": bad})).await;
        assert_eq!(code, "InvalidArgumentException", "{bad}");
        assert!(message.contains("NextToken"), "{message}");
    }
    let after = done(&harness, "ListStreams", json!({"ExclusiveStartStreamName": "s1"})).await;
    assert_eq!(after["StreamNames"], json!(["s2"]));
    harness.clock.advance(Duration::from_secs(301));
    let (code, _) = refused(&harness, "ListStreams", json!({"NextToken": token})).await;
    assert_eq!(code, "ExpiredNextTokenException");
}

#[tokio::test]
async fn whoever_sets_tags_sets_some() {
    let harness = Harness::start().await;
    streams(&harness, 1).await;
    for (operation, what) in [
        ("AddTagsToStream", json!({"StreamName": "s0"})),
        ("TagResource", json!({"ResourceARN": STREAM_ARN})),
    ] {
        let mut request = what;
        let (code, _) = refused(&harness, operation, request.clone()).await;
        assert_eq!(code, "ValidationException", "{operation} without tags");
        request["Tags"] = json!({});
        let (code, message) = refused(&harness, operation, request.clone()).await;
        assert_eq!(code, "ValidationException", "{operation} with none");
        assert!(message.contains("'tags'") && message.contains("greater than or equal to 1"), "{message}");
        request["Tags"] = json!({"a": "1"});
        done(&harness, operation, request).await;
    }
    done(&harness, "CreateStream", json!({"StreamName": "bare", "ShardCount": 1, "Tags": {}})).await;
}

#[tokio::test]
async fn a_consumer_is_not_deregistered_in_place_of_an_older_one() {
    let harness = Harness::start().await;
    streams(&harness, 1).await;
    let register =
        || done(&harness, "RegisterStreamConsumer", json!({"StreamARN": STREAM_ARN, "ConsumerName": "app"}));
    let mut arn = register().await["Consumer"]["ConsumerARN"].clone();
    for _ in 0..20 {
        // The ARN of the next one has another second.
        harness.clock.advance(Duration::from_secs(2));
        let old = json!({"ConsumerARN": arn});
        let again = json!({"StreamARN": STREAM_ARN, "ConsumerName": "app"});
        let (one, made, other) = tokio::join!(
            harness.call("Kinesis_20131202.DeregisterStreamConsumer", old.clone()),
            harness.call("Kinesis_20131202.RegisterStreamConsumer", again),
            harness.call("Kinesis_20131202.DeregisterStreamConsumer", old),
        );
        assert!([one.0, other.0].contains(&StatusCode::OK), "{one:?} {other:?}");
        let there = done(&harness, "ListStreamConsumers", json!({"StreamARN": STREAM_ARN})).await;
        if made.0 == StatusCode::OK {
            let new = &made.1["Consumer"]["ConsumerARN"];
            assert_eq!(&there["Consumers"][0]["ConsumerARN"], new, "{one:?} {other:?}");
            arn = new.clone();
        } else {
            assert_eq!(there["Consumers"], json!([]));
            arn = register().await["Consumer"]["ConsumerARN"].clone();
        }
    }
}
