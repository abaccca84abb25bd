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
async fn tags_have_the_letters_of_the_service() {
    let harness = Harness::start().await;
    streams(&harness, 1).await;
    let tagged = |key: &str, value: &str| json!({"StreamName": "s0", "Tags": {key: value}});
    done(&harness, "AddTagsToStream", tagged("Größe 1_./=+-@:", "")).await;
    for bad in ["a;b", "a\tb", "a\nb", "a,b", "a!", "a%"] {
        for body in [tagged(bad, "x"), tagged("x", bad)] {
            let (code, message) = refused(&harness, "AddTagsToStream", body).await;
            assert_eq!(code, "InvalidArgumentException", "{bad}");
            assert!(message.starts_with("Some tags contain invalid characters."), "{message}");
        }
        let keys = json!({"StreamName": "s0", "TagKeys": [bad]});
        assert_eq!(refused(&harness, "RemoveTagsFromStream", keys).await.0, "InvalidArgumentException");
    }
    let tags = done(&harness, "ListTagsForStream", json!({"StreamName": "s0"})).await;
    assert_eq!(tags["Tags"].as_array().map(Vec::len), Some(1));

    let long = "k".repeat(129);
    let (code, message) = refused(&harness, "AddTagsToStream", tagged(&long, "v")).await;
    assert_eq!(code, "ValidationException");
    let shown = format!(
        "1 validation error detected: Value '{{{long}=v}}' at 'tags' failed to satisfy constraint: Map keys"
    );
    assert!(message.starts_with(&shown), "{message}");
    // The stream is looked for before its tags are read.
    let keys = json!({"StreamName": "none", "TagKeys": [";"]});
    assert_eq!(refused(&harness, "RemoveTagsFromStream", keys).await.0, "ResourceNotFoundException");

    let many: serde_json::Map<String, Value> = (0..50).map(|n| (n.to_string(), json!("v"))).collect();
    let (_, message) = refused(&harness, "AddTagsToStream", json!({"StreamName": "s0", "Tags": many})).await;
    assert_eq!(
        message,
        "Failed to add tags to stream s0 under account 000000000000 because a given stream cannot have more than 50 tags \
         associated with it."
    );
}

#[tokio::test]
async fn a_stream_without_a_policy_has_an_empty_one() {
    let harness = Harness::start().await;
    streams(&harness, 1).await;
    let here = json!({"ResourceARN": STREAM_ARN});
    assert_eq!(done(&harness, "GetResourcePolicy", here.clone()).await, json!({"Policy": "{}"}));
    let policy = r#"{"Version":"2012-10-17","Statement":[]}"#;
    done(&harness, "PutResourcePolicy", json!({"ResourceARN": STREAM_ARN, "Policy": policy})).await;
    assert_eq!(done(&harness, "GetResourcePolicy", here.clone()).await["Policy"], policy);
    done(&harness, "DeleteResourcePolicy", here.clone()).await;
    assert_eq!(done(&harness, "GetResourcePolicy", here.clone()).await["Policy"], "{}");
    assert_eq!(refused(&harness, "DeleteResourcePolicy", here).await.0, "ResourceNotFoundException");
    let nowhere = json!({"ResourceARN": STREAM_ARN.replace("s0", "none")});
    assert_eq!(refused(&harness, "GetResourcePolicy", nowhere).await.0, "ResourceNotFoundException");
}

#[tokio::test]
async fn who_asks_for_nothing_leaves_the_shards_to_the_service() {
    let harness = Harness::start().await;
    let mode = async |stream: &str| {
        let summary = done(&harness, "DescribeStreamSummary", json!({"StreamName": stream})).await;
        let summary = &summary["StreamDescriptionSummary"];
        (summary["StreamModeDetails"]["StreamMode"].clone(), summary["OpenShardCount"].clone())
    };
    done(&harness, "CreateStream", json!({"StreamName": "bare"})).await;
    assert_eq!(mode("bare").await, (json!("ON_DEMAND"), json!(4)));
    done(&harness, "CreateStream", json!({"StreamName": "counted", "ShardCount": 2})).await;
    assert_eq!(mode("counted").await, (json!("PROVISIONED"), json!(2)));
    let provisioned = json!({"StreamName": "p", "StreamModeDetails": {"StreamMode": "PROVISIONED"}});
    assert_eq!(refused(&harness, "CreateStream", provisioned).await.0, "InvalidArgumentException");
    assert_eq!(
        refused(&harness, "ListShards", json!({})).await.1,
        "Either NextToken or StreamName should be provided."
    );
}

#[tokio::test]
async fn a_retention_changes_in_the_direction_that_is_asked_for() {
    let harness = Harness::start().await;
    streams(&harness, 1).await;
    let hours = |hours: i64| json!({"StreamName": "s0", "RetentionPeriodHours": hours});
    done(&harness, "IncreaseStreamRetentionPeriod", hours(48)).await;
    for (operation, asked, expected) in [
        (
            "IncreaseStreamRetentionPeriod",
            24,
            "Requested retention period (24 hours) for stream s0 can not be shorter than existing retention period (48 \
             hours). Use DecreaseRetentionPeriod API.",
        ),
        (
            "DecreaseStreamRetentionPeriod",
            49,
            "Requested retention period (49 hours) for stream s0 can not be longer than existing retention period (48 \
             hours). Use IncreaseRetentionPeriod API.",
        ),
        (
            "DecreaseStreamRetentionPeriod",
            23,
            "Minimum allowed retention period is 24 hours. Requested retention period (23 hours) is too short.",
        ),
        (
            "IncreaseStreamRetentionPeriod",
            8_761,
            "Maximum allowed retention period is 8760 hours. Requested retention period (8761 hours) is too long.",
        ),
    ] {
        let (code, message) = refused(&harness, operation, hours(asked)).await;
        assert_eq!((&*code, &*message), ("InvalidArgumentException", expected));
    }
    assert_eq!(refused(&harness, "DecreaseStreamRetentionPeriod", hours(-1)).await.0, "ValidationException");
}

#[tokio::test]
async fn a_shard_is_cut_into_halves_of_more_than_one_key_and_merged_from_below() {
    let harness = Harness::start().await;
    done(&harness, "CreateStream", json!({"StreamName": "s", "ShardCount": 2})).await;
    let split =
        |shard: &str, key: &str| json!({"StreamName": "s", "ShardToSplit": shard, "NewStartingHashKey": key});
    let last = (u128::MAX / 2).to_string();
    for key in ["0", "1", &last] {
        let (code, message) = refused(&harness, "SplitShard", split("shardId-0", key)).await;
        assert_eq!(code, "InvalidArgumentException", "{key}");
        assert!(message.contains("is not both greater than one plus"), "{message}");
    }
    for id in ["shardId-5", "ABKLFD8", "2147483648"] {
        let (code, message) = refused(&harness, "SplitShard", split(id, "2")).await;
        assert_eq!(code, "ResourceNotFoundException", "{id}");
        assert!(message.starts_with("Could not find shard "), "{message}");
    }
    let merge = |lower: &str, upper: &str| json!({"StreamName": "s", "ShardToMerge": lower, "AdjacentShardToMerge": upper});
    let (code, message) = refused(&harness, "MergeShards", merge("shardId-1", "shardId-0")).await;
    assert_eq!(code, "InvalidArgumentException");
    assert!(message.contains("are not an adjacent pair of shards"), "{message}");
    assert_eq!(
        refused(&harness, "MergeShards", merge("shardId-0", "x")).await.0,
        "ResourceNotFoundException"
    );
    done(&harness, "MergeShards", merge("shardId-0", "shardId-1")).await;
    done(&harness, "SplitShard", split("shardId-2", "2")).await;
}

#[tokio::test]
async fn all_that_is_wrong_with_a_record_is_told_with_the_name_of_its_stream() {
    let harness = Harness::start().await;
    let record = json!({"StreamName": "", "Data": "", "PartitionKey": "", "ExplicitHashKey": "x"});
    let (code, message) = refused(&harness, "PutRecord", record).await;
    assert_eq!(code, "ValidationException");
    assert!(message.starts_with("4 validation errors detected: Value '' at 'partitionKey'"), "{message}");
    let (_, message) = refused(&harness, "PutRecords", json!({"StreamName": "s", "Records": []})).await;
    assert!(message.contains("Value '[]' at 'records' failed"), "{message}");
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
