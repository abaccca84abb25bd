//! A right request for every operation there is, and the resources that they are about.

use std::fmt;

use anabranch_model::table::{
    ChangeView, Column, ColumnKind, KeyKind, KeySchema, KeyspaceShape, TableOptions,
};
use anabranch_model::{TableName, TableStore};
use anabranch_wire::Wire;
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::{rest, send};

/// Names that queries have.
pub const NAMES: &[&str] = &[
    "Action",
    "Version",
    "uploadId",
    "uploads",
    "partNumber",
    "list-type",
    "prefix",
    "delimiter",
    "marker",
    "max-keys",
    "continuation-token",
    "start-after",
    "encoding-type",
    "acl",
    "delete",
    "versionId",
    "response-content-type",
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
    "X-Amz-Security-Token",
    "x-id",
    "attributes",
    "max-parts",
    "part-number-marker",
];

/// Headers that decide something.
pub const HEADERS: &[&str] = &[
    "authorization",
    "content-encoding",
    "content-length",
    "content-md5",
    "content-type",
    "expect",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "range",
    "x-amz-acl",
    "x-amz-checksum-algorithm",
    "x-amz-checksum-crc32",
    "x-amz-checksum-crc64nvme",
    "x-amz-checksum-mode",
    "x-amz-checksum-sha256",
    "x-amz-content-sha256",
    "x-amz-copy-source",
    "x-amz-copy-source-range",
    "x-amz-date",
    "x-amz-decoded-content-length",
    "x-amz-meta-a",
    "x-amz-metadata-directive",
    "x-amz-object-attributes",
    "x-amz-security-token",
    "x-amz-tagging",
    "x-amz-target",
    "x-amz-trailer",
    "smithy-protocol",
];

/// A request, and what it is for.
#[derive(Clone)]
pub struct Sample {
    pub service: &'static str,
    pub operation: &'static str,
    pub method: String,
    pub uri: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    pub cbor: bool,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "from {} {}:\n{} {}", self.service, self.operation, self.method, self.uri)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {}", value.escape_ascii())?;
        }
        write!(f, "\n{}", self.body.escape_ascii())
    }
}

/// All samples.
pub struct Corpus {
    pub samples: Vec<Sample>,
}

/// Text that stands for values that only the server can make.
struct Made {
    stream_arn: String,
    iterator: String,
    consumer_arn: String,
    queue_url: String,
    receipt: String,
    changes_arn: String,
    changes_shard: String,
    changes_iterator: String,
    keyspaces_arn: String,
    keyspaces_shard: String,
    keyspaces_iterator: String,
}

/// A sample of a service that speaks JSON.
pub fn sample(service: &'static str, operation: &'static str, body: &Value) -> Sample {
    let (target, version) = match service {
        "kinesis" => ("Kinesis_20131202", "1.1"),
        "sqs" => ("AmazonSQS", "1.0"),
        "dynamodb" => ("DynamoDB_20120810", "1.0"),
        "dynamodbstreams" => ("DynamoDBStreams_20120810", "1.0"),
        "keyspacesstreams" => ("KeyspacesStreams", "1.0"),
        "firehose" => ("Firehose_20150804", "1.1"),
        "secretsmanager" => ("secretsmanager", "1.1"),
        other => panic!("{other} has no target"),
    };
    let header = |name: &str, value: String| (name.to_owned(), value.into_bytes());
    Sample {
        service,
        operation,
        method: "POST".to_owned(),
        uri: "/".to_owned(),
        headers: vec![
            header("host", "localhost:4566".to_owned()),
            header("x-amz-target", format!("{target}.{operation}")),
            header("content-type", format!("application/x-amz-json-{version}")),
            header(
                "authorization",
                format!(
                    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261115/us-east-1/{service}/aws4_request, \
                     SignedHeaders=host;x-amz-date;x-amz-target, Signature={}",
                    "0".repeat(64)
                ),
            ),
            header("x-amz-date", "20261115T181500Z".to_owned()),
        ],
        body: body.to_string().into_bytes(),
        cbor: false,
    }
}

/// The same in CBOR.
fn in_cbor(sample: &Sample) -> Sample {
    let value: Value = serde_json::from_slice(&sample.body).expect("JSON");
    let mut sample = sample.clone();
    sample.headers[2].1 = b"application/x-amz-cbor-1.1".to_vec();
    Sample { body: minicbor_serde::to_vec(&value).expect("CBOR"), cbor: true, ..sample }
}

/// A form, as older clients send it.
fn form(service: &'static str, operation: &'static str, version: &str, fields: &str) -> Sample {
    let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    Sample {
        service,
        operation,
        method: "POST".to_owned(),
        uri: "/".to_owned(),
        headers: vec![
            header("host", "localhost:4566"),
            header("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
        ],
        body: format!("Action={operation}&Version={version}{fields}").into_bytes(),
        cbor: false,
    }
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
async fn make(harness: &Harness, wire: &Wire) -> Made {
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

impl Corpus {
    /// Makes the resources and the requests.
    pub async fn make(harness: &Harness, wire: &Wire) -> Self {
        let made = make(harness, wire).await;
        let mut samples = kinesis(&made);
        samples.extend(samples.iter().map(in_cbor).collect::<Vec<_>>());
        samples.extend(queues(&made));
        samples.extend(forms(&made));
        samples.extend(tables());
        samples.extend(changes(&made));
        samples.extend(around());
        samples.extend(rest::samples(wire).await);
        Corpus { samples }
    }
}

/// Samples of one service.
fn of(service: &'static str, calls: Vec<(&'static str, Value)>) -> Vec<Sample> {
    calls.into_iter().map(|(operation, body)| sample(service, operation, &body)).collect()
}

fn kinesis(made: &Made) -> Vec<Sample> {
    let (arn, consumer) = (&made.stream_arn, &made.consumer_arn);
    let policy = json!({"Version": "2012-10-17", "Statement": []}).to_string();
    of(
        "kinesis",
        vec![
            ("AddTagsToStream", json!({"StreamName": "s", "Tags": {"a": "b"}})),
            ("CreateStream", json!({"StreamName": "other", "ShardCount": 1, "Tags": {"a": "b"}})),
            ("DecreaseStreamRetentionPeriod", json!({"StreamName": "s", "RetentionPeriodHours": 24})),
            ("DeleteResourcePolicy", json!({"ResourceARN": arn})),
            ("DeleteStream", json!({"StreamName": "other", "EnforceConsumerDeletion": true})),
            ("DeregisterStreamConsumer", json!({"StreamARN": arn, "ConsumerName": "d"})),
            ("DescribeAccountSettings", json!({})),
            ("DescribeLimits", json!({})),
            ("DescribeStream", json!({"StreamName": "s", "Limit": 2})),
            ("DescribeStreamConsumer", json!({"ConsumerARN": consumer})),
            ("DescribeStreamSummary", json!({"StreamARN": arn})),
            ("DisableEnhancedMonitoring", json!({"StreamName": "s", "ShardLevelMetrics": ["ALL"]})),
            ("EnableEnhancedMonitoring", json!({"StreamName": "s", "ShardLevelMetrics": ["IncomingBytes"]})),
            ("GetRecords", json!({"ShardIterator": made.iterator, "Limit": 10})),
            ("GetResourcePolicy", json!({"ResourceARN": arn})),
            (
                "GetShardIterator",
                json!({"StreamName": "s", "ShardId": "shardId-000000000001",
                    "ShardIteratorType": "AT_TIMESTAMP", "Timestamp": 1_700_000_000.5}),
            ),
            ("IncreaseStreamRetentionPeriod", json!({"StreamName": "s", "RetentionPeriodHours": 48})),
            ("ListShards", json!({"StreamName": "s", "ShardFilter": {"Type": "AT_LATEST"}, "MaxResults": 3})),
            ("ListStreamConsumers", json!({"StreamARN": arn, "MaxResults": 1})),
            ("ListStreams", json!({"Limit": 1, "ExclusiveStartStreamName": "a"})),
            ("ListTagsForResource", json!({"ResourceARN": arn})),
            ("ListTagsForStream", json!({"StreamName": "s", "Limit": 1})),
            (
                "MergeShards",
                json!({"StreamName": "s", "ShardToMerge": "shardId-000000000000",
                    "AdjacentShardToMerge": "shardId-000000000001"}),
            ),
            (
                "PutRecord",
                json!({"StreamName": "s", "Data": "AAECAw==", "PartitionKey": "k", "ExplicitHashKey": "0",
                    "SequenceNumberForOrdering": "1"}),
            ),
            (
                "PutRecords",
                json!({"StreamName": "s", "Records": [{"Data": "eA==", "PartitionKey": "a"},
                    {"Data": "", "PartitionKey": "b", "ExplicitHashKey": "5"}]}),
            ),
            ("PutResourcePolicy", json!({"ResourceARN": arn, "Policy": policy})),
            ("RegisterStreamConsumer", json!({"StreamARN": arn, "ConsumerName": "d"})),
            ("RemoveTagsFromStream", json!({"StreamName": "s", "TagKeys": ["a"]})),
            (
                "SplitShard",
                json!({"StreamName": "s", "ShardToSplit": "shardId-000000000002",
                    "NewStartingHashKey": "200000000000000000000000000000000000000"}),
            ),
            ("StartStreamEncryption", json!({"StreamName": "s", "EncryptionType": "KMS", "KeyId": "k"})),
            ("StopStreamEncryption", json!({"StreamName": "s", "EncryptionType": "KMS", "KeyId": "k"})),
            (
                "SubscribeToShard",
                json!({"ConsumerARN": consumer, "ShardId": "shardId-000000000003",
                    "StartingPosition": {"Type": "TRIM_HORIZON"}}),
            ),
            ("TagResource", json!({"ResourceARN": arn, "Tags": {"c": "d"}})),
            ("UntagResource", json!({"ResourceARN": arn, "TagKeys": ["c"]})),
            ("UpdateAccountSettings", json!({"MinimumThroughputBillingCommitment": {"Status": "DISABLED"}})),
            ("UpdateMaxRecordSize", json!({"StreamARN": arn, "MaxRecordSizeInKiB": 2048})),
            (
                "UpdateShardCount",
                json!({"StreamName": "s", "TargetShardCount": 4, "ScalingType": "UNIFORM_SCALING"}),
            ),
            (
                "UpdateStreamMode",
                json!({"StreamARN": arn, "StreamModeDetails": {"StreamMode": "PROVISIONED"}}),
            ),
            ("UpdateStreamWarmThroughput", json!({"StreamARN": arn, "WarmThroughputMiBps": 1})),
        ],
    )
}

fn queues(made: &Made) -> Vec<Sample> {
    let (url, receipt) = (&made.queue_url, &made.receipt);
    let arn = "arn:aws:sqs:us-east-1:000000000000:q";
    let attributes = json!({
        "one": {"DataType": "String", "StringValue": "v"}, "two": {"DataType": "Binary.x", "BinaryValue": "AAE="},
        "three": {"DataType": "Number", "StringValue": "1.5e3"}});
    of(
        "sqs",
        vec![
            (
                "AddPermission",
                json!({"QueueUrl": url, "Label": "l", "AWSAccountIds": ["000000000000"], "Actions": ["SendMessage"]}),
            ),
            ("CancelMessageMoveTask", json!({"TaskHandle": "eA=="})),
            (
                "ChangeMessageVisibility",
                json!({"QueueUrl": url, "ReceiptHandle": receipt, "VisibilityTimeout": 9}),
            ),
            (
                "ChangeMessageVisibilityBatch",
                json!({"QueueUrl": url, "Entries": [{"Id": "a", "ReceiptHandle": receipt, "VisibilityTimeout": 9}]}),
            ),
            (
                "CreateQueue",
                json!({"QueueName": "other.fifo", "tags": {"a": "b"},
                    "Attributes": {"FifoQueue": "true", "VisibilityTimeout": "30",
                        "RedrivePolicy": json!({"deadLetterTargetArn": arn, "maxReceiveCount": 3}).to_string()}}),
            ),
            ("DeleteMessage", json!({"QueueUrl": url, "ReceiptHandle": receipt})),
            (
                "DeleteMessageBatch",
                json!({"QueueUrl": url, "Entries": [{"Id": "a", "ReceiptHandle": receipt}]}),
            ),
            ("DeleteQueue", json!({"QueueUrl": "http://localhost:4566/000000000000/other"})),
            ("GetQueueAttributes", json!({"QueueUrl": url, "AttributeNames": ["All"]})),
            ("GetQueueUrl", json!({"QueueName": "q"})),
            ("ListDeadLetterSourceQueues", json!({"QueueUrl": url, "MaxResults": 1})),
            ("ListMessageMoveTasks", json!({"SourceArn": arn})),
            ("ListQueueTags", json!({"QueueUrl": url})),
            ("ListQueues", json!({"QueueNamePrefix": "q", "MaxResults": 1})),
            ("PurgeQueue", json!({"QueueUrl": "http://localhost:4566/000000000000/other"})),
            (
                "ReceiveMessage",
                json!({"QueueUrl": url, "MaxNumberOfMessages": 2, "AttributeNames": ["All"],
                    "MessageAttributeNames": ["o*"], "WaitTimeSeconds": 0}),
            ),
            ("RemovePermission", json!({"QueueUrl": url, "Label": "l"})),
            (
                "SendMessage",
                json!({"QueueUrl": url, "MessageBody": "x\u{1f600}", "DelaySeconds": 1, "MessageAttributes": attributes}),
            ),
            (
                "SendMessageBatch",
                json!({"QueueUrl": url, "Entries": [{"Id": "a", "MessageBody": "x"},
                    {"Id": "b", "MessageBody": "y", "MessageAttributes": attributes}]}),
            ),
            ("SetQueueAttributes", json!({"QueueUrl": url, "Attributes": {"DelaySeconds": "0"}})),
            ("StartMessageMoveTask", json!({"SourceArn": arn})),
            ("TagQueue", json!({"QueueUrl": url, "Tags": {"a": "b"}})),
            ("UntagQueue", json!({"QueueUrl": url, "TagKeys": ["a"]})),
        ],
    )
}

/// The same languages of older clients.
fn forms(made: &Made) -> Vec<Sample> {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let url = format!("&QueueUrl={}", encode(&made.queue_url));
    let receipt = encode(&made.receipt);
    let sqs = |operation, fields: String| form("sqs", operation, "2012-11-05", &fields);
    vec![
        sqs(
            "CreateQueue",
            "&QueueName=q&Attribute.1.Name=DelaySeconds&Attribute.1.Value=0&Tag.1.Key=a&Tag.1.Value=b".into(),
        ),
        sqs(
            "SendMessage",
            url.clone()
                + "&MessageBody=x&MessageAttribute.1.Name=a&MessageAttribute.1.Value.DataType=Binary\
                   &MessageAttribute.1.Value.BinaryValue=AAE%3D",
        ),
        sqs(
            "SendMessageBatch",
            url.clone()
                + "&SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageBody=x\
                   &SendMessageBatchRequestEntry.2.Id=b&SendMessageBatchRequestEntry.2.MessageBody=y",
        ),
        sqs(
            "ReceiveMessage",
            url.clone() + "&AttributeName.1=All&MessageAttributeName.1=All&MaxNumberOfMessages=2",
        ),
        sqs("DeleteMessage", format!("{url}&ReceiptHandle={receipt}")),
        sqs("GetQueueAttributes", url + "&AttributeName.1=All"),
        sqs("ListQueues", "&QueueNamePrefix=q".into()),
        form("sts", "GetCallerIdentity", "2011-06-15", ""),
        form(
            "cloudwatch",
            "PutMetricData",
            "2010-08-01",
            "&Namespace=App&MetricData.member.1.MetricName=m&MetricData.member.1.Value=1.5\
             &MetricData.member.1.Dimensions.member.1.Name=a&MetricData.member.1.Dimensions.member.1.Value=b",
        ),
    ]
}

fn tables() -> Vec<Sample> {
    let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/items";
    let key = json!({"h": {"S": "a"}, "r": {"N": "1"}});
    let every = json!({"h": {"S": "b"}, "r": {"N": "-1.5e10"}, "b": {"B": "AAE="}, "t": {"BOOL": true},
        "n": {"NULL": true}, "l": {"L": [{"S": "x"}, {"L": []}]}, "m": {"M": {"a.b": {"N": "0"}}},
        "ss": {"SS": ["a", "b"]}, "ns": {"NS": ["1", "2.50"]}, "bs": {"BS": ["AA=="]}});
    let schema = json!([{"AttributeName": "h", "KeyType": "HASH"}]);
    let definitions = json!([{"AttributeName": "h", "AttributeType": "S"}]);
    let condition = "attribute_exists(#a.b[1].c) AND (size(l) >= :n OR NOT h IN (:s, :s)) AND r BETWEEN :n AND :n \
                     AND begins_with(g, :s) AND contains(ss, :s) AND attribute_type(l, :s) AND h <> :s";
    let values = json!({":n": {"N": "1"}, ":s": {"S": "x"}, ":l": {"L": []}});
    of(
        "dynamodb",
        vec![
            (
                "BatchGetItem",
                json!({"RequestItems": {"items": {"Keys": [key], "ProjectionExpression": "h, l[0].a"}}}),
            ),
            (
                "BatchWriteItem",
                json!({"RequestItems": {"items": [{"PutRequest": {"Item": every}},
                    {"DeleteRequest": {"Key": {"h": {"S": "z"}, "r": {"N": "9"}}}}]}}),
            ),
            (
                "CreateTable",
                json!({"TableName": "other", "KeySchema": schema, "AttributeDefinitions": definitions,
                    "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
                    "Tags": [{"Key": "a", "Value": "b"}]}),
            ),
            (
                "DeleteItem",
                json!({"TableName": "items", "Key": {"h": {"S": "z"}, "r": {"N": "9"}}, "ReturnValues": "ALL_OLD",
                    "Expected": {"g": {"ComparisonOperator": "NULL"}}}),
            ),
            ("DeleteTable", json!({"TableName": "other"})),
            ("DescribeContinuousBackups", json!({"TableName": "items"})),
            ("DescribeEndpoints", json!({})),
            ("DescribeLimits", json!({})),
            ("DescribeTable", json!({"TableName": arn})),
            ("DescribeTimeToLive", json!({"TableName": "items"})),
            (
                "GetItem",
                json!({"TableName": "items", "Key": key, "ConsistentRead": true, "ProjectionExpression": "#a, l[1].x",
                    "ExpressionAttributeNames": {"#a": "g"}, "ReturnConsumedCapacity": "INDEXES"}),
            ),
            ("ListTables", json!({"Limit": 1, "ExclusiveStartTableName": "a"})),
            ("ListTagsOfResource", json!({"ResourceArn": arn})),
            (
                "PutItem",
                json!({"TableName": "items", "Item": every, "ConditionExpression": condition,
                    "ExpressionAttributeNames": {"#a": "m"},
                    "ExpressionAttributeValues": {":n": {"N": "1"}, ":s": {"S": "x"}},
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}),
            ),
            (
                "Query",
                json!({"TableName": "items", "KeyConditionExpression": "h = :s AND r BETWEEN :n AND :m",
                    "FilterExpression": "NOT contains(l, :n)", "ScanIndexForward": false, "Limit": 1,
                    "ExpressionAttributeValues": {":s": {"S": "a"}, ":n": {"N": "0"}, ":m": {"N": "5"}},
                    "ExclusiveStartKey": key}),
            ),
            (
                "Query",
                json!({"TableName": "items", "IndexName": "by-g", "Select": "COUNT",
                    "KeyConditions": {"g": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "x"}]}},
                    "QueryFilter": {"l": {"ComparisonOperator": "NOT_NULL"}}}),
            ),
            (
                "Scan",
                json!({"TableName": "items", "Segment": 1, "TotalSegments": 2, "FilterExpression": "g = :s OR size(g) < :n",
                    "ExpressionAttributeValues": {":s": {"S": "x"}, ":n": {"N": "3"}}}),
            ),
            ("TagResource", json!({"ResourceArn": arn, "Tags": [{"Key": "a", "Value": "b"}]})),
            (
                "TransactGetItems",
                json!({"TransactItems": [{"Get": {"TableName": "items", "Key": key, "ProjectionExpression": "h"}}]}),
            ),
            (
                "TransactWriteItems",
                json!({"ClientRequestToken": "token", "TransactItems": [
                    {"ConditionCheck": {"TableName": "items", "Key": key, "ConditionExpression": "attribute_exists(h)"}},
                    {"Put": {"TableName": "items", "Item": every}},
                    {"Update": {"TableName": "items", "Key": {"h": {"S": "u"}, "r": {"N": "1"}},
                        "UpdateExpression": "SET a = :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}}]}),
            ),
            ("UntagResource", json!({"ResourceArn": arn, "TagKeys": ["a"]})),
            (
                "UpdateItem",
                json!({"TableName": "items", "Key": key, "ReturnValues": "UPDATED_NEW",
                    "UpdateExpression": "SET #a = if_not_exists(c, :n) + :n, l[0] = :s, x = list_append(:l, :l) \
                        REMOVE y[3].z ADD n :n DELETE ss :set",
                    "ConditionExpression": condition, "ExpressionAttributeNames": {"#a": "m"},
                    "ExpressionAttributeValues": {":set": {"SS": ["x"]}, ":n": values[":n"], ":s": values[":s"], ":l": values[":l"]}}),
            ),
            (
                "UpdateItem",
                json!({"TableName": "items", "Key": key,
                    "AttributeUpdates": {"a": {"Action": "ADD", "Value": {"N": "1"}}, "b": {"Action": "DELETE"}}}),
            ),
            (
                "UpdateTable",
                json!({"TableName": "items", "AttributeDefinitions": [{"AttributeName": "i", "AttributeType": "S"}],
                    "GlobalSecondaryIndexUpdates": [{"Create": {"IndexName": "by-i",
                        "KeySchema": [{"AttributeName": "i", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a"]}}}]}),
            ),
            (
                "UpdateTimeToLive",
                json!({"TableName": "items", "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": true}}),
            ),
        ],
    )
}

fn changes(made: &Made) -> Vec<Sample> {
    let (arn, shard) = (&made.changes_arn, &made.changes_shard);
    let mut samples = of(
        "dynamodbstreams",
        vec![
            ("DescribeStream", json!({"StreamArn": arn, "Limit": 1})),
            ("GetRecords", json!({"ShardIterator": made.changes_iterator, "Limit": 5})),
            (
                "GetShardIterator",
                json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
                    "SequenceNumber": "100000000000000000000"}),
            ),
            ("ListStreams", json!({"TableName": "items", "Limit": 1})),
        ],
    );
    let (arn, shard) = (&made.keyspaces_arn, &made.keyspaces_shard);
    samples.extend(of(
        "keyspacesstreams",
        vec![
            ("GetRecords", json!({"shardIterator": made.keyspaces_iterator, "maxResults": 5})),
            ("GetShardIterator", json!({"streamArn": arn, "shardId": shard, "shardIteratorType": "LATEST"})),
            ("GetStream", json!({"streamArn": arn, "maxResults": 1})),
            ("ListStreams", json!({"keyspaceName": "shop", "tableName": "cells", "maxResults": 1})),
        ],
    ));
    samples
}

fn around() -> Vec<Sample> {
    let destination = json!({
        "RoleARN": "arn:aws:iam::000000000000:role/r", "BucketARN": "arn:aws:s3:::lake", "CompressionFormat": "GZIP",
        "Prefix": "y=!{timestamp:yyyy}/!{firehose:random-string}/", "ErrorOutputPrefix": "e/!{firehose:error-output-type}/",
        "BufferingHints": {"SizeInMBs": 1, "IntervalInSeconds": 60}});
    let mut samples = of(
        "firehose",
        vec![
            (
                "CreateDeliveryStream",
                json!({"DeliveryStreamName": "f", "ExtendedS3DestinationConfiguration": destination,
                    "Tags": [{"Key": "a", "Value": "b"}]}),
            ),
            ("DescribeDeliveryStream", json!({"DeliveryStreamName": "f"})),
            ("ListDeliveryStreams", json!({"Limit": 1, "ExclusiveStartDeliveryStreamName": "a"})),
            ("ListTagsForDeliveryStream", json!({"DeliveryStreamName": "f", "Limit": 1})),
            ("PutRecord", json!({"DeliveryStreamName": "f", "Record": {"Data": "eA=="}})),
            (
                "PutRecordBatch",
                json!({"DeliveryStreamName": "f", "Records": [{"Data": "eA=="}, {"Data": ""}]}),
            ),
            ("TagDeliveryStream", json!({"DeliveryStreamName": "f", "Tags": [{"Key": "a", "Value": "b"}]})),
            ("UntagDeliveryStream", json!({"DeliveryStreamName": "f", "TagKeys": ["a"]})),
            ("DeleteDeliveryStream", json!({"DeliveryStreamName": "other"})),
        ],
    );
    samples.extend(of(
        "secretsmanager",
        vec![
            (
                "CreateSecret",
                json!({"Name": "other", "SecretString": "x", "ClientRequestToken": "0".repeat(32)}),
            ),
            ("DeleteSecret", json!({"SecretId": "other", "RecoveryWindowInDays": 7})),
            ("DescribeSecret", json!({"SecretId": "secret"})),
            ("GetSecretValue", json!({"SecretId": "secret", "VersionStage": "AWSCURRENT"})),
            ("ListSecrets", json!({"MaxResults": 1, "Filters": [{"Key": "name", "Values": ["s"]}]})),
            ("PutSecretValue", json!({"SecretId": "secret", "SecretBinary": "AAE=", "VersionStages": ["A"]})),
            ("RestoreSecret", json!({"SecretId": "other"})),
        ],
    ));
    samples
}
