//! What the stub of `bench aws` says to each operation: answers of the services, as long as theirs are.

use serde_json::{Value, json};

use super::aws::{BATCH, ITEMS, MESSAGES};
use super::stub::Answers;

/// A message, and what the handles of its receipts begin with.
pub(super) const MESSAGE: &str = "5fea7756-0ea4-451a-a703-a558b933e274";
pub(super) const HANDLE: &str = "AQEBzJnKyrHigUMZj6rYigCgxlaS3SLy0a";

/// What the stub says. `text` is the base64 of a record, and the body of a message.
pub(super) fn answers(text: &str) -> Answers {
    let number = "49590338271490256608559692538361571095921575989136588898";
    let shard = "shardId-000000000000";
    let stored = json!({ "SequenceNumber": number, "ShardId": shard });
    let record = json!({
        "SequenceNumber": number, "PartitionKey": "key",
        "ApproximateArrivalTimestamp": 1_700_000_000.123_f64, "Data": text,
    });
    let message = json!({
        "MessageId": MESSAGE, "ReceiptHandle": HANDLE, "Body": text,
        "Attributes": {
            "ApproximateReceiveCount": "1", "SentTimestamp": "1700000000000",
            "ApproximateFirstReceiveTimestamp": "1700000000001",
        },
    });
    let sent =
        |place: usize| json!({ "Id": place.to_string(), "MessageId": MESSAGE, "MD5OfMessageBody": "" });
    let attributes = json!({ "QueueArn": "arn:aws:sqs:us-east-1:000000000000:bench" });
    let table = json!({ "Table": {
        "TableName": "bench", "TableStatus": "ACTIVE", "TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/bench",
        "KeySchema": [{ "AttributeName": "id", "KeyType": "HASH" }],
        "AttributeDefinitions": [{ "AttributeName": "id", "AttributeType": "S" }],
        "ItemCount": 1, "TableSizeBytes": 1024, "CreationDateTime": 1_700_000_000.0_f64,
    }});
    let item = json!({ "id": { "S": "a" }, "text": { "S": text } });
    let done = |place: usize| json!({ "Id": place.to_string() });
    let times = json!({ "TimeToLiveDescription": { "TimeToLiveStatus": "DISABLED" } });
    let all: [(&'static str, Value); 13] = [
        ("PutRecords", json!({ "FailedRecordCount": 0, "Records": vec![stored; BATCH] })),
        ("GetShardIterator", json!({ "ShardIterator": "iterator" })),
        (
            "GetRecords",
            json!({ "Records": vec![record; BATCH], "NextShardIterator": "iterator", "MillisBehindLatest": 1_000 }),
        ),
        ("GetQueueUrl", json!({ "QueueUrl": "http://127.0.0.1/000000000000/bench" })),
        ("GetQueueAttributes", json!({ "Attributes": attributes })),
        (
            "SendMessageBatch",
            json!({ "Successful": (0..MESSAGES).map(sent).collect::<Vec<_>>(), "Failed": [] }),
        ),
        ("ReceiveMessage", json!({ "Messages": vec![message; MESSAGES] })),
        (
            "DeleteMessageBatch",
            json!({ "Successful": (0..MESSAGES).map(done).collect::<Vec<_>>(), "Failed": [] }),
        ),
        ("DescribeTable", table),
        ("DescribeTimeToLive", times),
        ("PutItem", json!({})),
        ("GetItem", json!({ "Item": item })),
        ("Query", json!({ "Items": vec![item.clone(); ITEMS], "Count": ITEMS, "ScannedCount": ITEMS })),
    ];
    let mut answers: Answers = all.into_iter().map(|(name, body)| (name, body.to_string())).collect();
    // Blobs have no operations: their requests are told by their methods.
    answers.insert("PUT", String::new());
    answers.insert("GET", text.to_owned());
    answers
}
