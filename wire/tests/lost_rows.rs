//! A directory whose state is damaged is open for reading only: records are read, everything else is refused as a failure of the
//! server, in the words of each service, and nobody is told that something does not exist.

mod harness;

use std::path::Path;

use anabranch_model::{Admin, Owner};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use harness::Harness;
use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

const SHARD: &str = "shardId-000000000000";
const WORDS: &str = "open for reading only";

fn damage(folder: &Path) {
    let path = folder.join("state.redb");
    let bytes = std::fs::read(&path).expect("the state");
    let turned: Vec<u8> = bytes.into_iter().map(|byte| byte ^ 0x55).collect();
    std::fs::write(path, turned).expect("damaged");
}

async fn record(harness: &Harness) -> Value {
    let iterator = json!({"StreamName": "kept", "ShardId": SHARD, "ShardIteratorType": "TRIM_HORIZON"});
    let iterator = harness.done("Kinesis_20131202.GetShardIterator", iterator).await;
    let records = json!({"ShardIterator": iterator["ShardIterator"]});
    harness.done("Kinesis_20131202.GetRecords", records).await["Records"][0].clone()
}

async fn s3(harness: &Harness, method: &str, path: &str) -> (StatusCode, String) {
    let body = if path == "/photos" { "" } else { "a body" };
    let request = Request::builder().method(method).uri(path).body(Full::new(Bytes::from(body)));
    let (status, _, body) = harness.exchange(request.expect("a request")).await;
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn records_are_read_and_everything_else_is_a_failure_of_the_server() {
    let harness = Harness::start().await;
    harness.done("Kinesis_20131202.CreateStream", json!({"StreamName": "kept", "ShardCount": 1})).await;
    let put = json!({"StreamName": "kept", "Data": BASE64_STANDARD.encode("one"), "PartitionKey": "k"});
    harness.done("Kinesis_20131202.PutRecord", put.clone()).await;
    let table = json!({
        "TableName": "things", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    });
    harness.done("DynamoDB_20120810.CreateTable", table).await;
    let item = json!({"TableName": "things", "Item": {"id": {"S": "a"}}});
    harness.done("DynamoDB_20120810.PutItem", item.clone()).await;
    let queue = harness.done("AmazonSQS.CreateQueue", json!({"QueueName": "work"})).await["QueueUrl"].clone();
    for path in ["/photos", "/photos/a"] {
        let (status, body) = s3(&harness, "PUT", path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
    }
    let before = record(&harness).await;
    assert_eq!(before["Data"], BASE64_STANDARD.encode("one"));

    // Without a checkpoint the journal has everything.
    let engine = harness.engine.clone();
    tokio::task::spawn_blocking(move || engine.upkeep()).await.expect("a checkpoint");
    let harness = harness.crash_and(damage).await;
    assert_eq!(record(&harness).await, before);
    let listed = harness.done("Kinesis_20131202.ListShards", json!({"StreamName": "kept"})).await;
    assert_eq!(listed["Shards"][0]["ShardId"], SHARD);
    let key = json!({"TableName": "things", "Key": {"id": {"S": "a"}}});
    for (target, body) in [
        ("Kinesis_20131202.PutRecord", put),
        ("Kinesis_20131202.CreateStream", json!({"StreamName": "other", "ShardCount": 1})),
        ("Kinesis_20131202.DescribeStreamSummary", json!({"StreamName": "kept"})),
        ("DynamoDB_20120810.GetItem", key.clone()),
        ("DynamoDB_20120810.ListTables", json!({})),
        ("DynamoDB_20120810.PutItem", item),
        ("DynamoDB_20120810.DeleteItem", key),
        ("AmazonSQS.ReceiveMessage", json!({"QueueUrl": queue})),
        ("AmazonSQS.SendMessage", json!({"QueueUrl": queue, "MessageBody": "m"})),
        ("AmazonSQS.ListQueues", json!({})),
    ] {
        let (answered, body) = harness.call(target, body).await;
        assert!(answered.is_server_error(), "{target}: {answered} {body}");
        assert!(body.to_string().contains(WORDS), "{target}: {body}");
    }
    for (method, path) in
        [("GET", "/photos/a"), ("GET", "/photos"), ("PUT", "/photos/b"), ("DELETE", "/photos/a")]
    {
        let (answered, body) = s3(&harness, method, path).await;
        assert!(answered.is_server_error(), "{method} {path}: {answered} {body}");
        assert!(body.contains(WORDS), "{method} {path}: {body}");
    }
    let kept = harness.engine.document(&Owner::Store, "wire", "token-key").await;
    assert!(kept.is_err(), "iterators are sealed with a key that nobody keeps");
}
