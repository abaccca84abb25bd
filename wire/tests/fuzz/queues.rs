//! Requests to queues, and in the language of older clients.

use serde_json::json;

use crate::made::Made;
use crate::sample::{Sample, form, of};

pub fn json(made: &Made) -> Vec<Sample> {
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
pub fn forms(made: &Made) -> Vec<Sample> {
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
