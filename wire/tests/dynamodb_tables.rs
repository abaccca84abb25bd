//! Tables, their indexes and the streams of their changes over HTTP: time, names and what is left behind.

mod harness;

use std::time::Duration;

use harness::Harness;
use http::StatusCode;
use serde_json::{Value, json};

async fn call(harness: &Harness, operation: &str, body: Value) -> (StatusCode, Value) {
    let streams = ["ListStreams", "DescribeStream", "GetShardIterator", "GetRecords"].contains(&operation);
    let service = if streams { "DynamoDBStreams_20120810" } else { "DynamoDB_20120810" };
    harness.call(&format!("{service}.{operation}"), body).await
}

async fn done(harness: &Harness, operation: &str, body: Value) -> Value {
    let (status, value) = call(harness, operation, body).await;
    assert_eq!(status, StatusCode::OK, "{operation}: {value}");
    value
}

async fn refused(harness: &Harness, operation: &str, body: Value) -> (String, String) {
    let (status, value) = call(harness, operation, body).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{operation}: {value}");
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    (text("__type").rsplit('#').next().unwrap_or_default().to_owned(), text("message"))
}

async fn make(harness: &Harness, table: &str, more: Value) -> Value {
    let mut body = json!({
        "TableName": table, "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    });
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    done(harness, "CreateTable", body).await["TableDescription"].clone()
}

fn stream_of(description: &Value) -> String {
    description["LatestStreamArn"].as_str().expect("a stream").to_owned()
}

async fn put(harness: &Harness, table: &str, item: Value) {
    done(harness, "PutItem", json!({"TableName": table, "Item": item})).await;
}

async fn iterators(harness: &Harness, arn: &str, kind: &str) -> Vec<String> {
    let described = done(harness, "DescribeStream", json!({"StreamArn": arn})).await;
    let mut iterators = Vec::new();
    for shard in described["StreamDescription"]["Shards"].as_array().expect("shards") {
        let body = json!({"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": kind});
        let answer = done(harness, "GetShardIterator", body).await;
        iterators.push(answer["ShardIterator"].as_str().expect("an iterator").to_owned());
    }
    iterators
}

/// The records behind iterators, and the iterators that follow.
async fn read(harness: &Harness, iterators: Vec<String>) -> (Vec<Value>, Vec<String>) {
    let (mut records, mut next) = (Vec::new(), Vec::new());
    for iterator in iterators {
        let answer = done(harness, "GetRecords", json!({"ShardIterator": iterator})).await;
        records.extend(answer["Records"].as_array().expect("records").clone());
        next.extend(answer["NextShardIterator"].as_str().map(str::to_owned));
    }
    (records, next)
}

const BOTH: &str = r#"{"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"}"#;

fn with_stream() -> Value {
    json!({"StreamSpecification": serde_json::from_str::<Value>(BOTH).expect("JSON")})
}

#[tokio::test]
async fn identifiers_are_as_long_as_clients_demand() {
    let harness = Harness::start().await;
    let description = make(&harness, "orders", with_stream()).await;
    let arn = stream_of(&description);
    assert!((37..=1024).contains(&arn.len()));
    put(&harness, "orders", json!({"id": {"S": "a"}})).await;
    let (records, _) = read(&harness, iterators(&harness, &arn, "TRIM_HORIZON").await).await;
    let number = records[0]["dynamodb"]["SequenceNumber"].as_str().expect("a number");
    assert!((21..=40).contains(&number.len()), "{number}");
    let described = done(&harness, "DescribeStream", json!({"StreamArn": arn})).await;
    for shard in described["StreamDescription"]["Shards"].as_array().expect("shards") {
        let id = shard["ShardId"].as_str().expect("an id");
        assert!((28..=65).contains(&id.len()), "{id}");
        let first = shard["SequenceNumberRange"]["StartingSequenceNumber"].as_str().expect("a number");
        assert!((21..=40).contains(&first.len()), "{first}");
    }
}

#[tokio::test]
async fn the_latest_is_what_it_was_when_it_was_asked_for() {
    let harness = Harness::start().await;
    let arn = stream_of(&make(&harness, "orders", with_stream()).await);
    put(&harness, "orders", json!({"id": {"S": "before"}})).await;
    let latest = iterators(&harness, &arn, "LATEST").await;
    put(&harness, "orders", json!({"id": {"S": "after"}})).await;
    let (records, next) = read(&harness, latest).await;
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(records[0]["dynamodb"]["Keys"], json!({"id": {"S": "after"}}));
    put(&harness, "orders", json!({"id": {"S": "later"}})).await;
    assert_eq!(read(&harness, next).await.0.len(), 1);
}

#[tokio::test]
async fn iterators_expire_and_cannot_be_forged() {
    let harness = Harness::start().await;
    let arn = stream_of(&make(&harness, "orders", with_stream()).await);
    let iterator = iterators(&harness, &arn, "TRIM_HORIZON").await.remove(0);
    let harness = harness.crash().await;
    done(&harness, "GetRecords", json!({"ShardIterator": iterator})).await;
    let mut forged = iterator.clone().into_bytes();
    forged[20] ^= 1;
    for other in [String::from_utf8(forged).expect("text"), String::new(), "x".repeat(5_000)] {
        let (code, _) = refused(&harness, "GetRecords", json!({"ShardIterator": other})).await;
        assert_eq!(code, "ValidationException", "{other}");
    }
    harness.clock.advance(Duration::from_secs(15 * 60 + 1));
    let (code, _) = refused(&harness, "GetRecords", json!({"ShardIterator": iterator})).await;
    assert_eq!(code, "ExpiredIteratorException");
}

#[tokio::test]
async fn a_stream_outlives_its_table_for_a_day() {
    let harness = Harness::start().await;
    let arn = stream_of(&make(&harness, "orders", with_stream()).await);
    put(&harness, "orders", json!({"id": {"S": "a"}})).await;
    done(&harness, "DeleteTable", json!({"TableName": "orders"})).await;
    // A younger table of the same name has another stream.
    let younger = stream_of(&make(&harness, "orders", with_stream()).await);
    assert_ne!(younger, arn);
    let (records, next) = read(&harness, iterators(&harness, &arn, "TRIM_HORIZON").await).await;
    assert_eq!(records.iter().map(|record| record["eventName"].clone()).collect::<Vec<_>>(), ["INSERT"]);
    assert_eq!(next, Vec::<String>::new(), "what has ended has no next iterator");
    let described =
        done(&harness, "DescribeStream", json!({"StreamArn": arn})).await["StreamDescription"].clone();
    assert_eq!(described["StreamStatus"], "DISABLED");
    assert_eq!(described["StreamViewType"], "NEW_AND_OLD_IMAGES");
    assert_eq!(described["KeySchema"], json!([{"AttributeName": "id", "KeyType": "HASH"}]));
    let listed = done(&harness, "ListStreams", json!({"TableName": "orders"})).await["Streams"].clone();
    let arns: Vec<_> =
        listed.as_array().expect("streams").iter().map(|stream| stream["StreamArn"].clone()).collect();
    assert_eq!(arns.len(), 2);
    assert!(arns.contains(&json!(arn)) && arns.contains(&json!(younger)));
    let one = done(&harness, "ListStreams", json!({"Limit": 1})).await;
    let more = json!({"ExclusiveStartStreamArn": one["LastEvaluatedStreamArn"]});
    let rest = done(&harness, "ListStreams", more).await;
    assert_eq!(rest["Streams"].as_array().map(Vec::len), Some(1));
    assert_eq!(rest["LastEvaluatedStreamArn"], Value::Null);
}

#[tokio::test]
async fn streams_that_never_were_are_not_found() {
    let harness = Harness::start().await;
    let arn = stream_of(&make(&harness, "orders", with_stream()).await);
    make(&harness, "others", json!({})).await;
    for other in
        [arn.replace("orders", "others"), arn.replace("changes-", "changes-9"), format!("{arn}x"), "x".into()]
    {
        let (code, _) = refused(&harness, "DescribeStream", json!({"StreamArn": other})).await;
        assert_eq!(code, "ResourceNotFoundException", "{other}");
    }
    let body = json!({"StreamArn": arn, "ShardId": format!("shardId-{:020}-{:08x}", 77, 77), "ShardIteratorType": "LATEST"});
    assert_eq!(refused(&harness, "GetShardIterator", body).await.0, "ResourceNotFoundException");
    let described = done(&harness, "DescribeStream", json!({"StreamArn": arn})).await;
    let shard = &described["StreamDescription"]["Shards"][0]["ShardId"];
    for body in [
        json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "AT_TIMESTAMP"}),
        json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "AT_SEQUENCE_NUMBER"}),
        json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": "x"}),
        json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "LATEST", "SequenceNumber": "1"}),
    ] {
        assert_eq!(refused(&harness, "GetShardIterator", body).await.0, "ValidationException");
    }
}

#[tokio::test]
async fn a_younger_table_has_nothing_of_the_older_one() {
    let harness = Harness::start().await;
    let tags = json!({"Tags": [{"Key": "a", "Value": "1"}], "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4}});
    let older = make(&harness, "orders", tags).await;
    assert_eq!(older["ProvisionedThroughput"]["WriteCapacityUnits"], 4);
    assert_eq!(older["BillingModeSummary"], Value::Null);
    done(&harness, "DeleteTable", json!({"TableName": "orders"})).await;
    harness.clock.advance(Duration::from_secs(1));
    let younger = make(&harness, "orders", json!({})).await;
    assert_ne!(younger["TableId"], older["TableId"]);
    assert_eq!(younger["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST");
    let tags = done(&harness, "ListTagsOfResource", json!({"ResourceArn": younger["TableArn"]})).await;
    assert_eq!(tags["Tags"], json!([]));
    let nothing = "arn:aws:dynamodb:us-east-1:000000000000:table/nothing";
    let (code, _) = refused(
        &harness,
        "TagResource",
        json!({"ResourceArn": nothing, "Tags": [{"Key": "a", "Value": ""}]}),
    )
    .await;
    assert_eq!(code, "ResourceNotFoundException");
}

#[tokio::test]
async fn what_cannot_be_altered_stays() {
    let harness = Harness::start().await;
    make(&harness, "orders", with_stream()).await;
    let before = done(&harness, "DescribeTable", json!({"TableName": "orders"})).await;
    let create = json!({"Create": {"IndexName": "by-x", "Projection": {"ProjectionType": "ALL"},
        "KeySchema": [{"AttributeName": "x", "KeyType": "HASH"}]}});
    for body in [
        json!({}),
        json!({"GlobalSecondaryIndexUpdates": [create]}),
        json!({"GlobalSecondaryIndexUpdates": [{}]}),
        json!({"StreamSpecification": {"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"}}),
        json!({"StreamSpecification": {"StreamEnabled": true}}),
        json!({"BillingMode": "PROVISIONED"}),
        json!({"BillingMode": "FREE"}),
        json!({"ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 1}}),
    ] {
        let mut body = body;
        body["TableName"] = json!("orders");
        let (code, message) = refused(&harness, "UpdateTable", body.clone()).await;
        assert_eq!(code, "ValidationException", "{body}: {message}");
    }
    assert_eq!(done(&harness, "DescribeTable", json!({"TableName": "orders"})).await, before);
}
