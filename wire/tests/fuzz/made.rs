//! The resources that the requests are about.

use anabranch_model::table::{
    ChangeView, Column, ColumnKind, KeyKind, KeySchema, KeyspaceShape, TableOptions,
};
use anabranch_model::{TableName, TableStore};
use anabranch_wire::Wire;
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::sample::sample;
use crate::send;

/// Text that stands for values that only the server can make.
pub struct Made {
    pub stream_arn: String,
    pub iterator: String,
    pub consumer_arn: String,
    pub queue_url: String,
    pub receipt: String,
    pub changes_arn: String,
    pub changes_shard: String,
    pub changes_iterator: String,
    pub keyspaces_arn: String,
    pub keyspaces_shard: String,
    pub keyspaces_iterator: String,
}

/// Calls, and takes a text out of the answer; empty if it is not there.
async fn call(wire: &Wire, service: &'static str, operation: &'static str, body: Value, at: &str) -> String {
    let answered =
        send(wire, &sample(service, operation, &body)).await.expect("a request").expect("an answer");
    let value: Value = serde_json::from_slice(&answered.body).unwrap_or_default();
    assert!(at.is_empty() || answered.status == 200, "{operation} {body}: {value}");
    value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Makes what the samples are about.
pub async fn make(harness: &Harness, wire: &Wire) -> Made {
    call(wire, "kinesis", "CreateStream", json!({"StreamName": "s", "ShardCount": 4}), "").await;
    let put = json!({"StreamName": "s", "Data": "eA==", "PartitionKey": "k"});
    call(wire, "kinesis", "PutRecord", put, "").await;
    let described = json!({"StreamName": "s"});
    let stream_arn =
        call(wire, "kinesis", "DescribeStreamSummary", described, "/StreamDescriptionSummary/StreamARN")
            .await;
    let from =
        json!({"StreamName": "s", "ShardId": "shardId-000000000000", "ShardIteratorType": "TRIM_HORIZON"});
    let iterator = call(wire, "kinesis", "GetShardIterator", from, "/ShardIterator").await;
    let register = json!({"StreamARN": stream_arn, "ConsumerName": "c"});
    let consumer_arn =
        call(wire, "kinesis", "RegisterStreamConsumer", register, "/Consumer/ConsumerARN").await;

    let queue_url = call(wire, "sqs", "CreateQueue", json!({"QueueName": "q"}), "/QueueUrl").await;
    call(wire, "sqs", "SendMessage", json!({"QueueUrl": queue_url, "MessageBody": "x"}), "").await;
    let receive = json!({"QueueUrl": queue_url, "VisibilityTimeout": 600});
    let receipt = call(wire, "sqs", "ReceiveMessage", receive, "/Messages/0/ReceiptHandle").await;

    let table = json!({
        "TableName": "items", "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "h", "KeyType": "HASH"}, {"AttributeName": "r", "KeyType": "RANGE"}],
        "AttributeDefinitions": [
            {"AttributeName": "h", "AttributeType": "S"}, {"AttributeName": "r", "AttributeType": "N"},
            {"AttributeName": "g", "AttributeType": "S"}],
        "GlobalSecondaryIndexes": [{"IndexName": "by-g", "Projection": {"ProjectionType": "ALL"},
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}]}],
        "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"}});
    call(wire, "dynamodb", "CreateTable", table, "").await;
    let item =
        json!({"h": {"S": "a"}, "r": {"N": "1"}, "g": {"S": "x"}, "l": {"L": [{"N": "1"}, {"M": {}}]}});
    call(wire, "dynamodb", "PutItem", json!({"TableName": "items", "Item": item}), "").await;
    let changes_arn =
        call(wire, "dynamodbstreams", "ListStreams", json!({"TableName": "items"}), "/Streams/0/StreamArn")
            .await;
    let described = json!({"StreamArn": changes_arn});
    let shard = "/StreamDescription/Shards/0/ShardId";
    let changes_shard = call(wire, "dynamodbstreams", "DescribeStream", described, shard).await;
    let from =
        json!({"StreamArn": changes_arn, "ShardId": changes_shard, "ShardIteratorType": "TRIM_HORIZON"});
    let changes_iterator = call(wire, "dynamodbstreams", "GetShardIterator", from, "/ShardIterator").await;

    let column = |name: &str| Column { name: name.to_owned(), kind: ColumnKind::Text, shared: false };
    let keyspace = KeyspaceShape {
        keyspace: "shop".to_owned(),
        columns: vec![column("a"), column("b")],
        partition: vec!["a".to_owned()],
        clustering: Vec::new(),
    };
    let options = TableOptions::new(KeySchema::hash("a", KeyKind::Text)).with_changes(ChangeView::Both);
    let options = TableOptions { keyspace: Some(keyspace), ..options };
    // It is there already when the corpus is made again.
    let _ = harness.engine.create_table(&TableName::new("cells").expect("a name"), options).await;
    let listed = json!({"keyspaceName": "shop"});
    let keyspaces_arn = call(wire, "keyspacesstreams", "ListStreams", listed, "/streams/0/streamArn").await;
    let described = json!({"streamArn": keyspaces_arn});
    let keyspaces_shard = call(wire, "keyspacesstreams", "GetStream", described, "/shards/0/shardId").await;
    let from =
        json!({"streamArn": keyspaces_arn, "shardId": keyspaces_shard, "shardIteratorType": "TRIM_HORIZON"});
    let keyspaces_iterator = call(wire, "keyspacesstreams", "GetShardIterator", from, "/shardIterator").await;
    call(wire, "secretsmanager", "CreateSecret", json!({"Name": "secret", "SecretString": "x"}), "").await;
    let made = Made {
        stream_arn,
        iterator,
        consumer_arn,
        queue_url,
        receipt,
        changes_arn,
        changes_shard,
        changes_iterator,
        keyspaces_arn,
        keyspaces_shard,
        keyspaces_iterator,
    };
    for (text, what) in
        [(&made.iterator, "iterator"), (&made.receipt, "receipt"), (&made.changes_iterator, "changes")]
    {
        assert!(!text.is_empty(), "no {what}");
    }
    made
}
